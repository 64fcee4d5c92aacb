# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The oldest Python that the collection runs on, with whatever libraries that has, makes the plans that this one makes."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

from ansible_collections.bareon.allocator.tests.support.disk import many_plans

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_all_plans_are_the_same() -> None:
    oldest = subprocess.run(
        [str(ROOT / "tests" / "peers" / "oldest-python-venv")], check=True, capture_output=True, text=True
    ).stdout.strip()
    versions = [
        subprocess.run([python, "--version"], check=True, capture_output=True, text=True).stdout for python in (oldest, sys.executable)
    ]
    assert versions[0] != versions[1], "this Python is the oldest itself; run the test by a newer one"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".venv" / "collections")}
    theirs = json.loads(subprocess.run([oldest, many_plans.__file__], env=environment, check=True, capture_output=True, text=True).stdout)
    ours = many_plans.plans()
    assert theirs.keys() == ours.keys()
    assert [name for name, plan in ours.items() if plan != theirs[name]] == []
