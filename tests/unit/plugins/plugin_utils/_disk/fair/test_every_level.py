# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The best plan at every level: whoever is full gives way to somebody poorer who can pass it, in any order of the schema."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.solve import allocate_fair
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of
from ansible_collections.bareon.allocator.tests.support.disk.rules import size_of

MIRROR = {"id": "mirror", "type": "raid", "level": "raid1", "legs": 2}


@pytest.mark.parametrize(
    ("disks", "entries", "expected"),
    [
        pytest.param(
            (1_000_000, 950_000),
            (
                {"id": "a", "type": "partition", "max_size": 800_000},
                {"id": "b", "type": "partition", "size": 300_000},
                {"id": "c", "type": "partition"},
            ),
            {"a": 699_998, "b": 300_000, "c": 949_998},
            id="two disks",
        ),
        pytest.param(
            (457_862,) * 3,
            (
                {"id": "a", "type": "partition", "max_size": 374_425},
                {"id": "b", "type": "partition", "size": 99_269},
                {"id": "c", "type": "partition"},
                {"id": "d", "type": "partition"},
            ),
            {"a": 358_591, "b": 99_269, "c": 457_860, "d": 457_860},
            id="three equal disks",
        ),
        pytest.param(
            (457_862,) * 3,
            (
                MIRROR,
                {"id": "g", "type": "vg", "contains": ["l"]},
                {"id": "l", "type": "lv", "size": 91_572},
                {"id": "p", "type": "partitions"},
                {**MIRROR, "id": "small", "size": 137_358},
            ),
            {"mirror": 320_502, "l": 91_572, "p": 366_287, "small": 137_358},
            id="a space in pieces without a minimum",
        ),
    ],
)
def test_no_room_is_idle_that_somebody_may_use(disks: tuple[int, ...], entries: tuple[dict, ...], expected: dict[str, int]) -> None:
    hardware = hardware_of(*disks)
    for order in itertools.permutations(entries):
        schema = schema_of(hardware, *order)
        allocation = allocate_fair(hardware, schema)
        found = {space.id: size_of(schema, allocation, at) for at, space in enumerate(schema.spaces) if space.id in expected}
        assert found == pytest.approx(expected, abs=4)
        assert allocation.proven
