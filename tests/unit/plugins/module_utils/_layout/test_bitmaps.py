# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write-intent bitmaps of arrays: made as asked for, changed where one is asked for, left alone otherwise, read, adopted and compared."""

from __future__ import annotations

import json
import typing as t
from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._facts.present import Present
from ansible_collections.bareon.allocator.plugins.module_utils._layout.adopt import adopt
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import ChangeBitmap, CreateArray
from ansible_collections.bareon.allocator.plugins.module_utils._storage.raid import ArrayOptions, read_options
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.compare import compare
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.runs import complete, ids
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import SchemaMaker

MIB = 1024**2
DISKS = {"sda": 600 * MIB, "sdb": 600 * MIB}
Plain = dict[str, t.Any]


def schema(**keys: t.Any) -> Plain:
    maker = SchemaMaker()
    for disk, size in DISKS.items():
        maker.disk(disk, size)
    maker.fill(maker.mirror(("sda", "sdb"), 200, "data", "1.2"), 198, "fs", "data", "ext4")
    maker.schema["mds"][0] |= keys
    return maker.schema


def present_with(bitmap: str) -> Present:
    """A host that has the array, with what the kernel says of its bitmap; simulated arrays have none to look at."""
    host = SimulatedHost.with_disks(DISKS)
    host.start_all()
    complete(host, parse_static_schema(schema()), ids(DISKS))
    present = host.present()
    (array,) = (device for device in present.tree.devices.values() if device.kind == "raid1")
    return replace(present, tree=present.tree.with_devices([replace(array, details={"bitmap": bitmap} if bitmap else {})]))


@pytest.mark.parametrize(
    ("location", "bitmap"), [("+8\n", "internal"), ("-8", "internal"), ("none\n", "none"), ("file", "external"), (None, "")]
)
def test_the_kernel_says_where_a_bitmap_is(location: str | None, bitmap: str) -> None:
    assert read_options({"bitmap/location": location}.get).bitmap == bitmap


@pytest.mark.parametrize(
    ("there", "wanted", "changes"),
    [("internal", "none", True), ("none", "internal", True), ("internal", "internal", False), ("none", None, False), ("", "none", False)],
)
def test_a_bitmap_is_changed_where_another_is_asked_for(there: str, wanted: str | None, changes: bool) -> None:
    plan = plan_steps(parse_static_schema(schema(**({"bitmap": wanted} if wanted else {}))), present_with(there), [])
    assert [(type(step), getattr(step, "bitmap", None)) for step in plan.steps] == ([(ChangeBitmap, wanted)] if changes else [])


@pytest.mark.parametrize(("bitmap", "option"), [("", "--bitmap=internal"), ("internal", "--bitmap=internal"), ("none", "--bitmap=none")])
def test_an_array_is_made_with_its_bitmap(bitmap: str, option: str) -> None:
    step = CreateArray("/dev/md/a", "a", "raid1", ("/dev/sda1", "/dev/sdb1"), (), "1.2", "0" * 32, ArrayOptions(bitmap))
    assert option in step.command()


def test_a_bitmap_is_changed_once_the_array_is_built_up_and_read_back() -> None:
    machine = RecordingMachine(files={"/sys/block/md127/md/bitmap/location": "none\n"})
    ChangeBitmap("/dev/md127", "md127", "none").run(machine)
    assert machine.commands == ["mdadm --wait /dev/md127", "mdadm --grow /dev/md127 --bitmap=none"]
    with pytest.raises(StepFailed, match="none after it was set to internal"):
        ChangeBitmap("/dev/md127", "md127", "internal").run(machine)


@pytest.mark.parametrize(("there", "adopted"), [("none", "none"), ("internal", None), ("", None)])
def test_an_array_without_a_bitmap_is_adopted_as_such(there: str, adopted: str | None) -> None:
    present = present_with(there)
    (array,) = adopt(present, present.disks).schema["mds"]
    assert array.get("bitmap") == adopted


def test_raid0_has_no_bitmap() -> None:
    with pytest.raises(SchemaMistakes) as caught:
        parse_static_schema(schema(level="raid0", bitmap="none"))
    assert [mistake.partition(":")[0] for mistake in caught.value.mistakes] == ["mds[0].bitmap"]
    with pytest.raises(InputError) as refused:
        planned("raid0")
    assert [mistake.place for mistake in refused.value.mistakes] == ["schema[0].bitmap"]


def planned(level: str) -> Plain:
    disks = [{"id": name, "path": name, "type": "ssd", "size": 1000} for name in DISKS]
    entry = {"id": "data", "type": "raid", "level": level, "legs": 2, "size": 200, "bitmap": "none"}
    return Planner([entry]).plan({"ram": 1024, "firmware": "uefi", "disks": disks})


@pytest.mark.parametrize(("there", "differs"), [({"bitmap": "internal"}, True), ({"bitmap": "none"}, False), ({}, False)])
def test_drift_names_another_bitmap(there: Plain, differs: bool) -> None:
    plan = planned("raid1")
    assert plan["schema"]["mds"][0]["bitmap"] == "none"
    disks = []
    for table in plan["schema"]["parteds"]:
        (part,) = table["partitions"]
        entry = {"number": 1, "uuid": part["uuid"], "start": part["begin"], "size": part["end"] - part["begin"]}
        holder = {"type": "raid1", "name": "data", "members": ["a", "b"], **there}
        disks.append({"id": table["disk_id"], "size": 1000, "partitions": [entry], "holders": [holder]})
    found = compare(plan, json.loads(json.dumps({"disks": disks})))
    assert [finding.place for finding in found] == (["/dev/md/data"] if differs else [])
