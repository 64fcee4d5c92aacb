# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""OpenStack Placement's own HTTP tests, out of its package, asked of Placement and of our ledger in the same run.

Run it with the peer's own virtual environment: `$(tests/peers/placement-venv) -m pytest tests/peers/test_placement_gabbits.py`.
Placement has to pass its tests; `placement_mirror.py` asks our ledger for the same and compares. Each difference needs a reason here.
"""

from __future__ import annotations

import collections
import fnmatch
import functools
import pathlib
import re
import tempfile
import unittest

import pytest

pytest.importorskip("placement", reason="openstack-placement is in the virtual environment that tests/peers/placement-venv makes")

from ansible_collections.bareon.allocator.tests.support.provider.placement_mirror import DEFECT, Mirror, Step
from gabbi import driver
from placement.tests import functional
from placement.tests.functional.fixtures import gabbits as fixtures

GABBITS = pathlib.Path(functional.__file__).parent / "gabbits"
WITHOUT_MEANING = {
    "*-policy": "who may call Placement's API; a ledger is guarded by the rights on its database",
    "*-rbac": "who may call Placement's API, by roles",
    "confirm-auth": "who may call Placement's API",
    "cors": "headers for browsers",
    "non-cors": "headers for browsers",
    "basic-http": "methods, content types and error pages of HTTP",
    "microversion*": "versions of an HTTP API",
    "resource-provider-links": "links in HTTP answers",
    "resource-classes-last-modified": "headers of HTTP caches",
    "unicode": "encodings of HTTP queries",
}
"""Files that say nothing about providers, claims or candidates, and what they are about."""
REASONS = {
    "declared": (
        r'"status": 409.*(already exists|UNIQUE constraint failed: inventories)|No inventory of class \w+ found',
        "a task declares what a provider, an inventory or a name is to be: one that exists is changed, one that is missing is made",
    ),
    "older reserved": (r"reserved value is greater than or equal to total", "today's Placement takes reserved equal to total, as we do"),
    "older parent": (
        r"(un|re)-parenting a provider is not currently allowed",
        "today's Placement moves a provider in its tree, as we do",
    ),
    "unchanged": (r"consumer generation conflict", "a claim of what the consumer has already changes nothing, and passes"),
    "dashes": (r"is not a UUID; write it as 8-4-4-4-12", "we take a UUID in its one form, since other forms could be names"),
    "consumer name": (r"Malformed consumer_uuid", "our consumers may have names"),
    "policy": (r"group_policy", "we take `none` where several groups are given without a policy; Placement wants it said"),
}
"""Differences: what the answers say, of either side, and why we differ."""
COMPARED = ("write", "candidates", "providers")


def files() -> list[str]:
    """Return the names of the files that have a meaning here."""
    names = sorted(path.stem for path in GABBITS.glob("*.yaml"))
    return [name for name in names if not any(fnmatch.fnmatch(name, pattern) for pattern in WITHOUT_MEANING)]


@functools.cache
def played(name: str) -> tuple[unittest.TestResult, list[Step]]:
    """Run a file against Placement and our ledger."""
    mirror = Mirror(fixtures.LazyWSGIApp())
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / f"{name}.yaml").symlink_to(GABBITS / f"{name}.yaml")
        suite = driver.build_tests(
            folder, unittest.TestLoader(), intercept=lambda: mirror, fixture_module=fixtures, test_loader_name="gabbits"
        )
        result = unittest.TestResult()
        suite.run(result)
    mirror.close()
    return result, mirror.steps


def reason(step: Step) -> str | None:
    """Return the reason for a difference, None where there is none."""
    if step.because == DEFECT:
        return "defect"
    said = f"{step.because} {step.peer}"
    return next((name for name, (pattern, _why) in REASONS.items() if re.search(pattern, said, re.DOTALL)), None)


@pytest.mark.parametrize("name", files())
def test_a_file_of_placements_own_tests_is_answered_alike(name: str) -> None:
    result, steps = played(name)
    assert result.testsRun > 0
    assert result.wasSuccessful(), "Placement fails a test of its own"
    unnamed = [f"{step.request}\npeer {step.peer}\nours {step.ours}\n{step.because}" for step in steps if step.differs and not reason(step)]
    assert not unnamed, "\n\n".join(unnamed)


def test_most_of_what_has_a_meaning_is_compared_and_no_reason_is_idle() -> None:
    steps = [step for name in files() for step in played(name)[1]]
    kinds = collections.Counter(step.kind for step in steps)
    forms = collections.Counter(step.because for step in steps if step.kind == "form")
    differences = collections.Counter(reason(step) for step in steps if step.differs)
    print(f"\n{len(files())} files, {len(steps)} requests: {dict(kinds)}; without a meaning here: {dict(forms)}")
    print(f"differences: {dict(differences)}")
    assert sum(kinds[kind] for kind in COMPARED) >= 500
    assert set(differences) - {"defect"} == set(REASONS)
    assert sum(differences.values()) < 20


@pytest.mark.parametrize("pattern", WITHOUT_MEANING)
def test_files_that_are_left_out_exist(pattern: str) -> None:
    assert list(GABBITS.glob(f"{pattern}.yaml"))
