# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Libraries that are there, missing, old or broken."""

from __future__ import annotations

import sys
import types

import numpy
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._common import libraries
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import MissingLibraries, part_of, refuse_missing
from packaging.requirements import Requirement

DECLARED = """
class Sized(absent.Base, dict):
    number = absent.Column(absent.Integer() | None, sizes=[absent.of(name) for name in ("a", "b")])
NAMES = {name: 1 for name in absent.names()}
TOTAL = absent.total + 1

def compute():
    return [absent.of(name) for name in ("a", "b")]
"""


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "_causes", {})


def stand_in() -> object:
    return libraries._Absent(ModuleNotFoundError("No module named 'numpy'"))


def asked_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """Return what a library is to somebody who asks for it first; afterwards it is what it was."""
    monkeypatch.setitem(vars(libraries), name, None)
    del vars(libraries)[name]
    return getattr(libraries, name)


def test_libraries_are_themselves() -> None:
    assert libraries.np is numpy
    refuse_missing("")


def test_what_is_no_library_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _unused = libraries.nothing


def test_a_stand_in_declares_and_does_not_compute() -> None:
    space: dict[str, object] = {"absent": stand_in()}
    exec(DECLARED, space)
    assert space["NAMES"] == {}
    assert issubclass(space["Sized"], dict)  # type: ignore[arg-type]
    with pytest.raises(MissingLibraries, match="pip install -r"):
        space["compute"]()  # type: ignore[operator]


def test_a_stand_in_is_not_empty_for_a_function() -> None:
    with pytest.raises(MissingLibraries):
        list(stand_in())  # type: ignore[call-overload]


def test_an_old_version_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy, "__version__", "1.25.2")
    assert isinstance(asked_anew("np", monkeypatch), libraries._Absent)
    with pytest.raises(MissingLibraries) as caught:
        refuse_missing("")
    assert "does not have: numpy>=1.26 (it has 1.25.2). Install" in str(caught.value)


def test_a_library_that_cannot_be_loaded_is_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    assert isinstance(asked_anew("networkx", monkeypatch), libraries._Absent)
    with pytest.raises(MissingLibraries, match=f"cannot load a Python library that {sys.executable} has: .*networkx"):
        refuse_missing("")


def test_what_is_expected_and_not_there_is_refused_unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries.expect("alembic")
    refuse_missing("")
    libraries.expect("no_such_library")
    monkeypatch.setattr(libraries, "_requirements", lambda file: {"no_such_library": "no-such-library>=1"})
    with pytest.raises(MissingLibraries, match="no-such-library"):
        refuse_missing("")


def test_a_library_that_does_not_tell_its_version_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "silent", types.ModuleType("silent"))
    monkeypatch.setattr(libraries, "_requirements", lambda file: {"silent": "silent>=3.0"})
    libraries._refuse_old("silent")


@pytest.mark.parametrize("version", ["1.9", "1.10", "1.10.1", "1.12.0", "1.12", "1.12.1", "2", "2.0.0rc1", "0.99.99", "1.11.dev3"])
@pytest.mark.parametrize("requirement", ["numpy>=1.11", "highspy>=1.10,!=1.12.0", "highspy>=1.10,<1.12"])
def test_versions_fit_as_pip_says(version: str, requirement: str) -> None:
    assert libraries._fits(version, requirement) == Requirement(requirement).specifier.contains(
        version.partition("rc")[0].partition(".dev")[0]
    )


def test_every_requirement_has_bounds_that_are_understood() -> None:
    for requirement in libraries._requirements(libraries.REQUIREMENTS).values():
        parsed = Requirement(requirement)
        assert {clause.operator for clause in parsed.specifier} <= {">=", "<", "!="}
        assert len(libraries._BOUND.findall(requirement)) == len(parsed.specifier)


@pytest.mark.parametrize(
    ("database", "loaded"),
    [
        ("postgresql+psycopg://ledger@db/ledger", ["psycopg", "sqlalchemy.dialects.postgresql"]),
        ("mariadb://ledger@db/ledger", ["pymysql", "sqlalchemy.dialects.mysql"]),
        ("ledger.sqlite", []),
        ("", []),
    ],
)
def test_the_driver_of_the_named_ledger_is_loaded_before_it_is_used(database, loaded, monkeypatch):
    asked = []
    monkeypatch.setattr(libraries.importlib, "import_module", asked.append)
    libraries._load_driver(database)
    assert asked == loaded


def test_a_driver_that_is_not_there_is_left_to_who_connects(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    libraries._load_driver("postgresql://db/ledger")
    refuse_missing("")


def test_a_part_is_not_refused_for_what_another_part_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaql", None)
    assert isinstance(asked_anew("yaql", monkeypatch), libraries._Absent)
    refuse_missing(part_of("bareon.allocator.group_balance"))
    for part in (part_of("bareon.allocator.disk_plan"), part_of("somebody.elses.action")):
        with pytest.raises(MissingLibraries):
            refuse_missing(part)
