# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_layout on hosts with other languages and encodings does, refuses and says what it does in the plain locale."""

from __future__ import annotations

import pathlib
import subprocess

import pytest
from ansible_collections.bareon.allocator.tests.loop.layout_runs import EXT4, Plain, apply, attempt, digest, new_disk, run, schema
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

LOCALES = {
    "de_DE.UTF-8": ("de_DE", "UTF-8"),
    "de_DE.ISO-8859-1": ("de_DE", "ISO-8859-1"),
    "tr_TR.UTF-8": ("tr_TR", "UTF-8"),
    "C": None,
}
"""A decimal comma, an encoding that is not UTF-8, an I whose small letter has no dot; and ASCII, which Python is kept from mending."""

LABEL = "Größe ılık"


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("locales")
    for name, source in LOCALES.items():
        if source is not None:
            # Its warnings are of the sources.
            subprocess.run(["localedef", "--inputfile", source[0], "--charmap", source[1], str(folder / name)], check=False)
            assert (folder / name / "LC_NUMERIC").exists()
    return folder


@pytest.mark.parametrize("name", LOCALES)
def test_a_locale_changes_nothing(loops: Loops, locales: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    ours, theirs = new_disk(loops, 300), new_disk(loops, 300)
    run("mkfs.ext4", "-q", "-F", "-L", LABEL, theirs)
    before = digest(theirs)
    wanted, unwanted = ({"schema": schema(disk, {"name": "boot", "size": 100, **EXT4})} for disk in (ours, theirs))
    attempts: list[tuple[Plain, bool]] = [(unwanted, True), (unwanted, False), ({**unwanted, "wipe": [theirs], "protect": [LABEL]}, False)]
    plain = [answer(options, check) for options, check in attempts]
    assert all(LABEL in said["msg"] for said in plain), plain
    for variable, value in {"LC_ALL": name, "LOCPATH": str(locales), "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setenv(variable, value)
    assert [answer(options, check) for options, check in attempts] == plain
    assert digest(theirs) == before
    assert apply(wanted, check=True)["changed"]
    assert apply(wanted)["changed"]
    assert not apply(wanted)["changed"]


def answer(options: Plain, check: bool) -> Plain:
    result = attempt(options, check=check)
    assert result["failed"], result
    return {key: value for key, value in result.items() if key != "invocation"}
