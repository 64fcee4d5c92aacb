# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remembering computations by what they read."""

from __future__ import annotations

import typing as t
from collections.abc import Callable

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.memo import Memory

FACTS = {"ram": 5, "serial": "x", "disks": [{"id": "a", "size": 1, "serial": "s1"}, {"id": "b", "size": 2, "serial": "s2"}], "none": None}


class Counting:
    """A computation that counts how often it is really done."""

    def __init__(self, compute: Callable[[t.Any], t.Any]) -> None:
        self._compute = compute
        self.times = 0

    def __call__(self, facts: t.Any) -> t.Any:
        self.times += 1
        return self._compute(facts)


def changed(**keys: t.Any) -> dict[str, t.Any]:
    return {**FACTS, **keys}


def disks(*sizes: int) -> list[dict[str, t.Any]]:
    return [{"id": f"d{number}", "size": size, "serial": f"n{number}"} for number, size in enumerate(sizes)]


def ram_or_disks(facts: t.Any) -> t.Any:
    return facts["ram"] if facts["ram"] > 3 else len(facts["disks"])


@pytest.mark.parametrize(
    ("compute", "other", "times"),
    [
        (lambda facts: facts["ram"] * 2, changed(serial="y", disks=[]), 1),
        (lambda facts: facts["ram"] * 2, changed(ram=6), 2),
        (lambda facts: facts["ram"] * 2, changed(ram=5.0), 2),
        (lambda facts: facts.get("uptime", 7), changed(serial="y"), 1),
        (lambda facts: facts.get("uptime", 7), changed(uptime=8), 2),
        (lambda facts: facts.get("none", 7), {**FACTS, "none": 0}, 2),
        (lambda facts: len(facts["disks"]), changed(disks=disks(7, 8)), 1),
        (lambda facts: len(facts["disks"]), changed(disks=disks(1)), 2),
        (lambda facts: sum(disk["size"] for disk in facts["disks"]), changed(disks=disks(1, 2)), 1),
        (lambda facts: sum(disk["size"] for disk in facts["disks"]), changed(disks=disks(1, 3)), 2),
        (lambda facts: facts["disks"][-1]["size"], changed(disks=disks(9, 2)), 1),
        (lambda facts: facts["disks"][-1]["size"], changed(disks=disks(1, 2, 2)), 2),
        (lambda facts: [disk["size"] for disk in facts["disks"][1:]], changed(disks=disks(9, 2)), 1),
        (sorted, changed(ram=6, serial="y"), 1),
        (sorted, changed(more=1), 2),
        (lambda facts: dict(facts["disks"][0])["size"], changed(disks=[FACTS["disks"][0]]), 1),
        (lambda facts: dict(facts["disks"][0])["size"], changed(disks=disks(1)), 2),
        (lambda facts: facts["disks"][0] == facts["disks"][1], changed(disks=disks(1, 2)), 2),
        (ram_or_disks, changed(disks=[]), 1),
        (lambda facts: facts["disks"][5:], changed(disks=disks(7, 8)), 1),
    ],
)
def test_only_what_was_read_matters(compute: Callable[[t.Any], t.Any], other: dict[str, t.Any], times: int) -> None:
    memory, counting = Memory(), Counting(compute)
    assert memory.compute("x", FACTS, counting) == compute(FACTS)
    assert memory.compute("x", other, counting) == compute(other)
    assert counting.times == times
    assert memory.compute("x", FACTS, counting) == compute(FACTS)
    assert counting.times == times


def test_views_can_be_members_of_sets() -> None:
    memory, counting = Memory(), Counting(lambda facts: len(set(facts["disks"])))
    assert memory.compute("x", changed(disks=[FACTS["disks"][0], FACTS["disks"][0]]), counting) == 1
    assert memory.compute("x", changed(ram=1), counting) == 2
    assert memory.compute("x", changed(ram=2), counting) == 2
    assert counting.times == 2


def test_what_is_read_may_depend_on_what_was_read_before() -> None:
    memory, counting = Memory(), Counting(ram_or_disks)
    assert memory.compute("x", changed(ram=2), counting) == 2
    assert memory.compute("x", changed(ram=2, disks=[]), counting) == 0
    assert memory.compute("x", changed(ram=4, disks=disks(1)), counting) == 4
    assert counting.times == 3
    assert memory.compute("x", changed(ram=2, disks=disks(5, 6), serial="other"), counting) == 2
    assert memory.compute("x", changed(ram=4), counting) == 4
    assert counting.times == 3


def test_parts_of_facts_in_a_result_are_those_of_the_facts_at_hand() -> None:
    memory, counting = (
        Memory(),
        Counting(lambda facts: {"big": [disk for disk in facts["disks"] if disk["size"] > 1], "all": facts["disks"]}),
    )
    assert memory.compute("x", FACTS, counting) == {"big": [FACTS["disks"][1]], "all": FACTS["disks"]}
    other = changed(disks=disks(1, 2))
    assert memory.compute("x", other, counting) == {"big": [other["disks"][1]], "all": other["disks"]}
    assert counting.times == 1


def test_computations_of_different_names_are_kept_apart() -> None:
    memory = Memory()
    assert memory.compute("x", FACTS, lambda facts: facts["ram"]) == 5
    assert memory.compute("y", FACTS, lambda facts: facts["serial"]) == "x"
    assert memory.compute("x", FACTS, lambda facts: None) == 5


def test_nothing_is_remembered_of_a_failure() -> None:
    memory = Memory()
    with pytest.raises(KeyError):
        memory.compute("x", {}, lambda facts: facts["ram"])
    assert memory.compute("x", FACTS, lambda facts: facts["ram"]) == 5


def test_an_index_out_of_range() -> None:
    with pytest.raises(IndexError):
        Memory().compute("x", FACTS, lambda facts: facts["disks"][2])
