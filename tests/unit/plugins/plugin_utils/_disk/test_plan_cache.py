# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes that plan one machine each: what one found out serves the others, and changes no plan."""

from __future__ import annotations

import pathlib
import pickle
import stat
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk import plan_cache, planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.plan_cache import SharedCache
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.memo import Kind, ReadSet
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, load_profile

GENERAL = load_profile(PROFILES / "general.yml")
SHAPES = [[("ssd", 228_936)], [("ssd", 457_862), ("hdd", 953_869), ("hdd", 953_869)], [("hdd", 953_869)] * 4]


def machine(name: str, shape: t.Sequence[tuple[str, int]], ram: int = 65_536) -> dict[str, t.Any]:
    disks = [{"id": f"{name}-{at}", "serial": f"S{name}{at}", "type": kind, "size": size} for at, (kind, size) in enumerate(shape)]
    return {"ram": ram, "firmware": "uefi", "disks": disks}


def test_plans_are_those_of_a_process_that_learnt_from_nobody(tmp_path: pathlib.Path) -> None:
    for name, ram in (("a", 65_536), ("b", 65_536), ("c", 4096), ("d", 65_530)):
        for shape in SHAPES:
            facts = machine(name, shape, ram)
            assert Planner(GENERAL, shared_cache=SharedCache(tmp_path / "shelf")).plan(facts) == Planner(GENERAL).plan(facts)


def test_for_the_twin_of_another_process_nothing_is_evaluated_or_solved(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Planner(GENERAL, shared_cache=SharedCache(tmp_path)).plan(machine("a", SHAPES[1]))
    monkeypatch.delattr(planner, "allocate_fair")
    monkeypatch.setattr(plan_cache.Memory, "compute", None)
    assert Planner(GENERAL, shared_cache=SharedCache(tmp_path)).plan(machine("b", SHAPES[1]))["disks"][0]["disk_id"].startswith("b-")


def test_other_options_have_their_own_plans(tmp_path: pathlib.Path) -> None:
    shared_cache, facts = SharedCache(tmp_path), machine("a", SHAPES[2])
    sizes = [
        sum(
            space["size"]
            for disk in Planner(GENERAL, reserve=reserve, shared_cache=shared_cache).plan(facts)["disks"]
            for space in disk["spaces"]
        )
        for reserve in (0, 1000)
    ]
    assert sizes[0] > sizes[1]


def test_why_there_is_no_plan_is_told_of_the_twin_with_its_own_names(tmp_path: pathlib.Path) -> None:
    for name in "ab":
        schema, facts = [{"id": "x", "type": "partition", "min_size": 300_000}], machine(name, SHAPES[0])
        with pytest.raises(NoSolution) as alone:
            Planner(schema).plan(facts)
        with pytest.raises(NoSolution) as told:
            Planner(schema, shared_cache=SharedCache(tmp_path)).plan(facts)
        assert (str(told.value), told.value.conflict) == (str(alone.value), alone.value.conflict)


def test_a_folder_that_cannot_be_used_is_done_without(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    assert Planner(GENERAL, shared_cache=SharedCache(tmp_path / "file" / "shelf")).plan(machine("a", SHAPES[0]))["disks"]


def spoilt(content: bytes, how: str) -> bytes:
    if how == "cut off":
        return content[:-7]
    if how == "empty":
        return b""
    if how == "another's":
        return bytes(32) + pickle.dumps(Trap())
    return pickle.dumps(Trap()) if how == "older" else content[:40] + bytes([content[40] ^ 1]) + content[41:]


class Trap:
    """What must never be unpickled."""

    def __reduce__(self) -> tuple[t.Any, ...]:
        return pytest.fail, ("it was unpickled",)


@pytest.mark.parametrize("how", ["cut off", "empty", "another's", "older", "a bit changed"])
def test_what_no_process_of_this_run_wrote_as_it_is_counts_as_nothing(tmp_path: pathlib.Path, how: str) -> None:
    facts = machine("a", SHAPES[1])
    wanted = Planner(GENERAL, shared_cache=SharedCache(tmp_path)).plan(facts)
    (file,) = tmp_path.iterdir()
    file.write_bytes(spoilt(file.read_bytes(), how))
    assert Planner(GENERAL, shared_cache=SharedCache(tmp_path)).plan(facts) == wanted
    assert Planner(GENERAL, shared_cache=SharedCache(tmp_path)).plan(machine("b", SHAPES[1]))["disks"][0]["disk_id"].startswith("b-")


def test_what_another_run_left_counts_as_nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared_cache = SharedCache(tmp_path)
    shared_cache.leave("name", ReadSet(()), "found")
    assert shared_cache.find("name", {}) == "found"
    monkeypatch.setattr(plan_cache, "_SECRET", b"that of another run")
    assert shared_cache.find("name", {}) is None


def test_nobody_else_can_look_into_the_folder(tmp_path: pathlib.Path) -> None:
    Planner(GENERAL, shared_cache=SharedCache(tmp_path / "shelf")).plan(machine("a", SHAPES[0]))
    assert stat.S_IMODE((tmp_path / "shelf").stat().st_mode) == 0o700


@pytest.mark.parametrize("there", ["a folder", "a file without rights"])
def test_a_file_that_cannot_be_read_is_done_without(tmp_path: pathlib.Path, there: str) -> None:
    facts = machine("a", SHAPES[0])
    wanted = Planner(GENERAL, shared_cache=SharedCache(tmp_path)).plan(facts)
    (file,) = tmp_path.iterdir()
    file.unlink()
    if there == "a folder":
        file.mkdir()
    else:
        file.touch(mode=0)
    assert Planner(GENERAL, shared_cache=SharedCache(tmp_path)).plan(facts) == wanted


def test_machines_that_differ_in_what_was_asked_are_found_apart(tmp_path: pathlib.Path) -> None:
    schema = [{"id": "x", "type": "partition", "min_size": 1, "max_size": "yaql=$.disks[0].slots * 1000"}]
    for name, slots in (("a", 1), ("b", 2), ("c", 1), ("d", 3), ("e", 2)):
        facts = machine(name, SHAPES[0])
        facts["disks"][0]["slots"] = slots
        plan = Planner(schema, shared_cache=SharedCache(tmp_path)).plan(facts)
        assert plan["disks"][0]["spaces"] == [{"space_id": "x", "size": slots * 1000}]
    (file,) = tmp_path.iterdir()


def test_more_than_is_quickly_looked_through_is_not_left(tmp_path: pathlib.Path) -> None:
    shared_cache = SharedCache(tmp_path)
    for number in range(40):
        shared_cache.leave("much", ReadSet(((0, (Kind.VALUE, ("ram",)), (False, False, number)),)), number)
    assert [shared_cache.find("much", {"ram": number}) for number in (0, 31, 32)] == [0, 31, None]
