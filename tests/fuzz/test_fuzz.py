# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Damaged inputs at every door and every parser: each is answered or refused, none ends in an exception.

Here each target gets a few hundred calls; `make fuzz` has more of them, and is guided by coverage where atheris is installed.
"""

from __future__ import annotations

import ast
import json
import os
import pathlib
import subprocess
import sys

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.paths import why_no_path
from ansible_collections.bareon.allocator.tests.support.fuzz.mutations import ODD, BytesDraw, mutate
from ansible_collections.bareon.allocator.tests.support.fuzz.reached import PARSERS
from ansible_collections.bareon.allocator.tests.support.fuzz.run import findings
from ansible_collections.bareon.allocator.tests.support.fuzz.targets import Target, all_targets

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = {target.name: target for target in all_targets()}
CALLS, SEED = int(os.environ.get("TEST_FUZZ_CALLS", "400")), int(os.environ.get("TEST_FUZZ_SEED", "1"))
HAND_OVER = {
    "disk_boot",
    "disk_erase",
    "disk_facts",
    "disk_keys",
    "disk_layout",
    "disk_layout_info",
    "disk_mounts",
    "disk_tables",
    "node_facts",
}
"""Actions that hand their options over to the module on the host, and read none themselves."""
OF_THE_PLAY = {"host_answer", "pinned_options"}
"""What hands over what a play says to other modules, and what reads its variables; they have tests of their own."""
CALLED_BY_ANSIBLE = {folder.name for folder in (ROOT / "plugins").iterdir() if folder.is_dir()} - {
    *("doc_fragments", "modules", "module_utils", "plugin_utils", "__pycache__")
}
ASKING = (
    *("module_utils/_layout", "module_utils/_steps", "module_utils/_facts/host.py", "module_utils/_facts/reader.py::read_remains"),
    *("module_utils/_keys/header.py::read_header", "plugin_utils/_provider/feasible/matching.py::read_matching"),
    *("plugin_utils/_provider/ledger/read.py", "plugin_utils/_provider/ledger/worlds.py", "plugin_utils/_provider/ledger/usages.py"),
    *("plugin_utils/_provider/ledger/stored.py::read_drain", "module_utils/_facts/lvm.py::read_lvm"),
    *("plugin_utils/_disk/schema/yaql.py::read_set", "plugin_utils/_provider/ledger/successors.py::read_consumers_of"),
)
"""Where a function that is called `read_` runs tools or asks the database, and hands what they say to others, which are fuzzed; or reads
what was computed here."""


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_sound_is_read(name: str) -> None:
    target = TARGETS[name]
    for sound in target.sound:
        answer = target.read(sound)
        failed = answer.get("failed") and answer["msg"] if isinstance(answer, dict) else None
        assert not failed, failed


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_damaged_is_answered_or_refused(name: str) -> None:
    target: Target = TARGETS[name]
    found = list(findings(target, CALLS, SEED))
    assert not found, "\n\n".join(f"{one.given!r:.1000}\n{one.said}" for one in found)


def test_nothing_is_left_where_damaged_options_point() -> None:
    """Actions are called in check mode, and write no file."""
    texts = [text.strip("/") for text in ODD if isinstance(text, str) and not why_no_path(text) and text.strip("/. ")]
    places = [pathlib.Path(folder) / text for folder in (ROOT, pathlib.Path.cwd(), "/") for text in texts]
    before = [place for place in places if place.exists()]
    for name in ("disk_plan", "group_follow", "group_progress", "provider", "provider_allocation", "provider_backup", "controller_file"):
        list(findings(TARGETS[name], 200, SEED))
    assert [place for place in places if place.exists()] == before


def test_every_door_is_fuzzed() -> None:
    doors = {file.stem for kind in CALLED_BY_ANSIBLE for file in (ROOT / "plugins" / kind).glob("[!_]*.py")}
    assert doors - HAND_OVER - OF_THE_PLAY <= TARGETS.keys()


def test_every_parser_is_fuzzed() -> None:
    """By sound inputs alone each is called, as its name says that it reads something."""
    command = [sys.executable, "-m", "ansible_collections.bareon.allocator.tests.support.fuzz.reached"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".venv" / "collections")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    there = {
        f"{file.relative_to(ROOT / 'plugins')}::{node.name}"
        for file in (ROOT / "plugins").rglob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith(PARSERS)
    }
    reached = set(json.loads(done.stdout.splitlines()[-1]))
    assert sorted(name for name in there - reached if not name.startswith(ASKING)) == [], "damage what it reads, in tests/support/fuzz"


def test_the_same_seed_finds_the_same() -> None:
    def read(given: object) -> None:
        if isinstance(given, dict) and not isinstance(given.get("a"), int):
            raise KeyError(given.get("a"))

    target = Target("wrong", [{"a": 1}], read, (ValueError,))
    first, second = ([repr(one.given) for one in findings(target, 50, 7)] for _run in range(2))
    assert first == second
    assert first


def test_a_byte_of_a_guided_draw_decides_one_damage() -> None:
    """What atheris changes in its bytes must show in the damage, and nothing else: it keeps bytes that reach new code, to change them."""
    data = bytes([200, 3, 40, 7, 90, 5, 60, 1, 20, 2, 30, 4] * 4)
    sound = {"a": ["x", {"b": 5}], "c": "some text"}
    assert repr(mutate(BytesDraw(data), sound)) == repr(mutate(BytesDraw(data), sound))
    drawn = [BytesDraw(data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]) for index in range(4)]
    first = [[draw.getrandbits(8) for _number in range(4)] for draw in drawn]
    assert [sum(a != b for a, b in zip(numbers, data, strict=False)) for numbers in first] == [1, 1, 1, 1]
    ended = BytesDraw(b"")
    assert [ended.choice("abc"), ended.randint(1, 3), ended.random(), ended.sample(range(6), 6)[0]] == ["a", 1, 0.0, 0]
