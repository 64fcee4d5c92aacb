# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fair all the way up: plans against every placement of small machines, and against an exact program on larger ones.

Neither shares code with the planner. The first tries all placements and fills each by bisection; the second asks a mixed-integer
program of SciPy whether, beside all that are poorer, the rest could have more.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.solve import allocate_fair
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Allocation, Hardware, Schema
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of
from ansible_collections.bareon.allocator.tests.support.disk.rules import broken, size_of
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import optimize

NOTICED = 1.03
"""More than this is unfair; a level that is a percent higher is not looked for."""
SLACK = 24
"""MiB that metadata and extents may take or give."""


class Spaces:
    """What grows: solids (partition or raid1: MiB on each of so many disks) and volumes of groups, as plain lists."""

    def __init__(self, hardware: Hardware, schema: Schema) -> None:
        self.room = [disk.size - 2 for disk in hardware.disks]
        self.solids = [at for at, space in enumerate(schema.spaces) if space.type in ("partition", "raid")]
        self.volumes = [at for at, space in enumerate(schema.spaces) if space.volume_group]
        self.low = {at: schema.spaces[at].min_size for at in (*self.solids, *self.volumes)}
        self.high = {at: schema.spaces[at].max_size or 10**9 for at in self.low}
        self.weight = {at: schema.spaces[at].weight for at in self.low}
        self.allowed = {at: sorted(schema.spaces[at].allowed) for at in self.solids}
        self.legs = {at: max(1, schema.spaces[at].legs) for at in self.solids}
        self.group = {at: next(space.id for space in schema.spaces if space.id == schema.spaces[at].volume_group) for at in self.volumes}
        self.disks_of = {space.id: sorted(space.allowed) for space in schema.spaces if space.type == "vg"}

    def at_level(self, level: float, frozen: dict[int, float]) -> dict[int, float]:
        return {at: frozen.get(at, min(max(level * self.weight[at], self.low[at]), self.high[at])) for at in self.low}

    def fits(self, sizes: dict[int, float], way: dict[int, tuple[int, ...]]) -> bool:
        """Tell whether sizes fit when the solids lie so (Hall's condition over the groups)."""
        left = list(self.room)
        for at, disks in way.items():
            for disk in disks:
                left[disk] -= sizes[at]
        if min(left) < -1e-6:
            return False
        needs = {group: sum(sizes[at] for at in self.volumes if self.group[at] == group) for group in self.disks_of}
        return all(
            sum(needs[group] for group in groups)
            <= sum(left[disk] for disk in {disk for group in groups for disk in self.disks_of[group]}) + 1e-6
            for count in range(1, len(needs) + 1)
            for groups in itertools.combinations(needs, count)
        )

    def filled(self, way: dict[int, tuple[int, ...]]) -> dict[int, float] | None:
        """Return the max-min fair sizes of one placement, or None when the minimums do not fit it."""
        frozen: dict[int, float] = {}
        if not self.fits(self.at_level(0, {}), way):
            return None
        while len(frozen) < len(self.low):
            low, high = 0.0, float(2 * sum(self.room))
            for _halving in range(50):
                middle = (low + high) / 2
                low, high = (middle, high) if self.fits(self.at_level(middle, frozen), way) else (low, middle)
            sizes = self.at_level(low, frozen)
            for at in set(self.low) - set(frozen):
                more = {**sizes, at: min(sizes[at] + 0.01, self.high[at])}
                if sizes[at] >= self.high[at] - 1e-6 or not self.fits(more, way):
                    frozen[at] = sizes[at]
        return frozen

    def best(self) -> list[float] | None:
        """Return the sorted levels of the best of all placements."""
        ways = [list(itertools.combinations(self.allowed[at], self.legs[at])) for at in self.solids]
        found = [self.filled(dict(zip(self.solids, way, strict=True))) for way in itertools.product(*ways)]
        levels = [sorted(sizes[at] / self.weight[at] for at in sizes) for sizes in found if sizes is not None]
        return max(levels, default=None)

    def could_have_more(self, schema: Schema, allocation: Allocation) -> list[str]:
        """Return for which levels the rest could have more beside the poorer, by an exact program."""
        sizes = {at: float(size_of(schema, allocation, at)) for at in self.low}
        levels = {at: sizes[at] / self.weight[at] for at in sizes}
        rest = [at for at in sizes if sizes[at] < self.high[at]]
        faults = []
        for level in sorted({levels[at] for at in rest}):
            wanted = NOTICED * level + SLACK / min(self.weight.values())
            asked = {
                at: min(wanted * self.weight[at], self.high[at]) if levels[at] >= level else max(self.low[at], sizes[at]) for at in sizes
            }
            if all(asked[at] <= sizes[at] for at in asked):
                continue
            if self.has_placement(asked):
                faults.append(f"all from {level:.0f} on could have {wanted:.0f}")
        return faults

    def has_placement(self, sizes: dict[int, float]) -> bool:
        """Ask SciPy for a placement of these sizes, metadata apart."""
        binaries = [(at, disk) for at in self.solids for disk in self.allowed[at]]
        flows = [(group, disk) for group, disks in self.disks_of.items() for disk in disks]
        width = len(binaries) + len(flows)
        rows, low, high = [], [], []
        for at in self.solids:
            rows.append([float(owner == at) for owner, _disk in binaries] + [0.0] * len(flows))
            low.append(self.legs[at])
            high.append(self.legs[at])
        for disk, room in enumerate(self.room):
            rows.append([sizes[at] * (own == disk) for at, own in binaries] + [float(own == disk) for _group, own in flows])
            low.append(-np.inf)
            high.append(room)
        for group in self.disks_of:
            rows.append([0.0] * len(binaries) + [float(owner == group) for owner, _disk in flows])
            low.append(sum(sizes[at] for at in self.volumes if self.group[at] == group))
            high.append(np.inf)
        result = optimize.milp(
            np.zeros(width),
            integrality=[1] * len(binaries) + [0] * len(flows),
            bounds=optimize.Bounds(0, [1.0] * len(binaries) + [np.inf] * len(flows)),
            constraints=[optimize.LinearConstraint(np.array(rows), low, high)],
        )
        return bool(result.status == 0)


@st.composite
def small_machines(draw: st.DrawFn) -> tuple[Hardware, Schema]:
    """Up to four disks and six spaces, some of them with few disks or little room to grow."""
    disks = draw(st.lists(st.integers(8, 160), min_size=1, max_size=4))
    hardware = hardware_of(*(size * 1000 for size in disks))
    names = [disk.id for disk in hardware.disks]

    def space(name: str, kind: str, **keys: object) -> dict:
        low = draw(st.sampled_from([1000, 1000, 2000, 5000]))
        entry = {"id": name, "type": kind, "min_size": low, "weight": draw(st.sampled_from([1, 1, 1, 2, 3])), **keys}
        if draw(st.integers(0, 4)) == 0:
            entry["max_size"] = low + draw(st.sampled_from([4000, 20_000]))
        return entry

    def where() -> dict:
        return {"disks": draw(st.lists(st.sampled_from(names), min_size=1, unique=True))} if draw(st.integers(0, 2)) == 0 else {}

    entries = [space(f"p{at}", "partition", **where()) for at in range(draw(st.integers(0, 3)))]
    if len(disks) > 1:
        entries += [space(f"r{at}", "raid", level="raid1", legs=2) for at in range(draw(st.integers(0, 1)))]
    for group in range(draw(st.integers(0, 2))):
        members = [f"l{group}{at}" for at in range(draw(st.integers(1, 2)))]
        here = where()
        entries.append({"id": f"g{group}", "type": "vg", "contains": members, **here})
        entries += [space(member, "lv", **here) for member in members]
    return hardware, schema_of(hardware, *(entries or [space("only", "partition")]))


@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(small_machines())
def test_no_placement_has_better_levels(machine: tuple[Hardware, Schema]) -> None:
    hardware, schema = machine
    spaces = Spaces(hardware, schema)
    best = spaces.best()
    if best is None:
        return
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert allocation.proven
    got = sorted(size_of(schema, allocation, at) / spaces.weight[at] for at in spaces.low)
    assert_no_worse(got, best)


def assert_no_worse(got: list[float], best: list[float]) -> None:
    """Compare level after level until one is higher than it need be."""
    for mine, its in zip(got, best, strict=True):
        assert mine >= its * 0.985 - SLACK
        if mine > its * 1.015 + SLACK:
            break


def partition(name: str, **keys: object) -> dict:
    return {"id": name, "type": "partition", "min_size": 1000, **keys}


def mirror(name: str, **keys: object) -> dict:
    return {"id": name, "type": "raid", "level": "raid1", "legs": 2, "min_size": 1000, **keys}


@pytest.mark.parametrize(
    ("sizes", "entries"),
    [
        pytest.param(
            (100_000, 116_000, 136_000, 149_000),
            (partition("p0", weight=2), partition("p1", weight=3), partition("p2"), mirror("r0", weight=2)),
            id="three change places",
        ),
        pytest.param(
            (47_000, 65_000, 128_000, 128_000),
            (partition("p0"), partition("p1"), partition("p2"), mirror("r0", max_size=5000)),
            id="a mirror that is full lies where others need little",
        ),
        pytest.param(
            (152_000, 152_000, 152_000),
            (partition("p0", disks=["d0"]), partition("p1", max_size=6000, weight=2), partition("p2", max_size=5000), mirror("r0")),
            id="of two as poor the other stays so",
        ),
        pytest.param(
            (3_815_447, 476_940, 476_940, 476_940),
            (partition("p0", weight=2), mirror("r0"), partition("p1")),
            id="a mirror that can be on small disks only keeps no partition there",
        ),
    ],
)
def test_who_stays_poor_is_chosen_for_the_rest(sizes: tuple[int, ...], entries: tuple[dict, ...]) -> None:
    hardware = hardware_of(*sizes)
    schema = schema_of(hardware, *entries)
    spaces = Spaces(hardware, schema)
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert allocation.proven
    best = spaces.best()
    assert best is not None
    assert_no_worse(sorted(size_of(schema, allocation, at) / spaces.weight[at] for at in spaces.low), best)


@pytest.mark.parametrize("seed", range(60))
def test_machines_with_disks_that_are_alike_have_no_better_levels(seed: int) -> None:
    chance = random.Random(seed)
    hardware = hardware_of(*(chance.choice([228_936, 476_940, 3_815_447, 7_630_885]) for _disk in range(chance.randint(2, 5))))
    weights = [chance.choice([1, 1, 2, 3]) for _space in range(chance.randint(3, 4))]
    entries = [(mirror if chance.random() < 0.25 else partition)(f"s{at}", weight=weight) for at, weight in enumerate(weights)]
    schema = schema_of(hardware, *entries)
    spaces = Spaces(hardware, schema)
    best = spaces.best()
    if best is None:
        return
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert allocation.proven
    assert_no_worse(sorted(size_of(schema, allocation, at) / spaces.weight[at] for at in spaces.low), best)


def small_system_disk(seed: int) -> tuple[Hardware, Schema]:
    """Return a machine with the OS on the smallest disk, and other spaces anywhere."""
    chance = random.Random(seed)
    sizes = sorted(
        chance.choice([122_104, 228_936, 476_940, 953_869, 1_907_729, 3_815_447, 7_630_885]) for _disk in range(chance.randint(2, 6))
    )
    hardware = hardware_of(*sizes)
    others = [disk.id for disk in hardware.disks] if chance.random() < 0.5 else [disk.id for disk in hardware.disks][1:]
    entries: list[dict] = [{"id": "os", "type": "vg", "contains": ["root", "var"], "disks": ["d0"]}]
    entries += [{"id": name, "type": "lv", "min_size": 10_000, "disks": ["d0"]} for name in ("root", "var")]
    for at in range(chance.randint(1, 4)):
        entry = {
            "id": f"p{at}",
            "type": "partition",
            "min_size": chance.choice([1, 20_000]),
            "weight": chance.choice([1, 1, 2]),
            "disks": others,
        }
        if chance.random() < 0.3 and len(others) > 1:
            entry |= {"id": f"r{at}", "type": "raid", "level": "raid1", "legs": 2}
        entries.append(entry)
    for group in range(chance.randint(0, 2)):
        members = [f"l{group}{at}" for at in range(chance.randint(1, 3))]
        entries.append({"id": f"g{group}", "type": "vg", "contains": members, "disks": others})
        entries += [{"id": member, "type": "lv", "min_size": 4000, "weight": chance.choice([1, 2]), "disks": others} for member in members]
    return hardware, schema_of(hardware, *entries)


@pytest.mark.parametrize("seed", range(120))
def test_the_os_on_the_smallest_disk_takes_nothing_from_the_others(seed: int) -> None:
    hardware, schema = small_system_disk(seed)
    spaces = Spaces(hardware, schema)
    assert spaces.has_placement({at: float(low + SLACK) for at, low in spaces.low.items()})
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert spaces.could_have_more(schema, allocation) == []
