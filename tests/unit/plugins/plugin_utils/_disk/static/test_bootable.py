# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a layout lacks for a host to start from it, and whether the line that is told really adds it."""

from __future__ import annotations

import re

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.bootable import why_not_bootable

DISKS = [{"id": f"/dev/disk/by-id/{name}", "path": name, "type": "ssd", "size": 20000} for name in ("a", "b")]
PARTS = {"uefi": "EFI system partition", "bios": "BIOS boot partition"}
SCHEMAS = {
    "a root": [{"id": "root", "type": "partition", "min_size": 5000, "mount": "/"}],
    "a boot of its own": [
        {"id": "early", "type": "raid", "level": "raid1", "legs": 2, "size": 500, "mount": "/boot"},
        {"id": "os", "type": "vg", "contains": ["root"]},
        {"id": "root", "type": "lv", "min_size": 5000, "mount": "/"},
    ],
    "volumes": [{"id": "os", "type": "vg", "contains": ["root"]}, {"id": "root", "type": "lv", "min_size": 5000, "mount": "/"}],
    "nothing that is known to start": [{"id": "data", "type": "partition", "min_size": 5000, "mount": "/srv"}],
}


def machine(firmware):
    return {"ram": 8192, "firmware": firmware, "disks": DISKS}


def planned(schema, firmware):
    return Planner(schema, Objective.FAIR, 0).plan(machine(firmware))["schema"]


def merged(schema, line):
    """Return the schema with a line of it as overrides are merged: by id."""
    same = [{**space, **line} if space["id"] == line["id"] else space for space in schema]
    return same if same != schema else [*schema, line]


@pytest.mark.parametrize("firmware", PARTS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_the_line_that_is_told_adds_what_is_missing(name, firmware):
    (told,) = why_not_bootable(planned(SCHEMAS[name], firmware), machine(firmware))
    assert f"starts by {firmware.upper()}, and the layout has no {PARTS[firmware]}" in told
    line = yaml.safe_load(re.search(r"- (\{.*?\})", told)[1])
    added = planned(merged(SCHEMAS[name], line), firmware)
    if "type" in line:
        # Nothing says what starts, so that it has to have a disk of its own choice; the planner gives the first.
        assert line["id"] in {part["space_id"] for table in added["parteds"] for part in table["partitions"]}
    assert why_not_bootable(added, machine(firmware)) == []


def test_what_another_firmware_starts_from_does_not_count():
    bios = planned([{"id": "root", "type": "partition", "min_size": 5000, "mount": "/", "boot": True}], "bios")
    assert why_not_bootable(bios, machine("bios")) == []
    (told,) = why_not_bootable(bios, machine("uefi"))
    assert "{id: root, boot: true}" in told


def test_without_a_known_firmware_any_kind_will_do():
    bios = planned([{"id": "root", "type": "partition", "min_size": 5000, "mount": "/", "boot": True}], "bios")
    assert why_not_bootable(bios, {}) == []
    assert "firmware: bios or firmware: uefi" in why_not_bootable({}, {"firmware": None})[0]
