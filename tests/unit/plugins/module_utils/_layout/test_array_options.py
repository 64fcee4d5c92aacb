# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chunks and layouts of arrays: made as asked for, never changed, read, adopted and compared."""

from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._facts.present import Present
from ansible_collections.bareon.allocator.plugins.module_utils._layout.adopt import adopt
from ansible_collections.bareon.allocator.plugins.module_utils._layout.arrays import members_can_grow
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import CreateArray
from ansible_collections.bareon.allocator.plugins.module_utils._storage.raid import ArrayOptions, read_options
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.compare import compare
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
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
    maker.schema["mds"][0] |= {"level": "raid10", **keys}
    return maker.schema


def present_with(**details: t.Any) -> Present:
    """A host that has the array, with what the kernel says of it; simulated arrays have no such files."""
    host = SimulatedHost.with_disks(DISKS)
    host.start_all()
    complete(host, parse_static_schema(schema()), ids(DISKS))
    present = host.present()
    (array,) = (device for device in present.tree.devices.values() if device.kind == "raid10")
    return replace(present, tree=present.tree.with_devices([replace(array, slots=2, details=details)]))


def planned(**keys: t.Any) -> Plain:
    disks = [{"id": name, "path": name, "type": "ssd", "size": 1000} for name in DISKS]
    entry = {"id": "data", "type": "raid", "level": "raid10", "legs": 2, "size": 200, **keys}
    return Planner([entry]).plan({"ram": 1024, "firmware": "uefi", "disks": disks})


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({"chunk_size": "65536\n"}, {"chunk": 64}),
        ({"chunk_size": "0\n"}, {}),
        ({"level": "raid10\n", "layout": "258\n"}, {"layout": "n2"}),
        ({"level": "raid10\n", "layout": "513\n"}, {"layout": "f2"}),
        ({"level": "raid10\n", "layout": "66049\n"}, {"layout": "o2"}),
        ({"level": "raid10\n", "layout": "259\n"}, {}),
        ({"level": "raid6\n", "layout": "2\n"}, {"layout": "left-symmetric"}),
        ({"level": "raid1\n", "layout": "0\n"}, {}),
        ({"chunk_size": ""}, {}),
        ({}, {}),
    ],
)
def test_the_kernel_says_what_an_array_was_made_with(files: Plain, options: Plain) -> None:
    assert {key: value for key, value in read_options(files.get).given().items() if key != "bitmap"} == options


@pytest.mark.parametrize(("options", "words"), [({"chunk": 64}, "--chunk=64"), ({"layout": "f2"}, "--layout=f2"), ({}, None)])
def test_an_array_is_made_as_the_plan_says(options: Plain, words: str | None) -> None:
    made = parse_static_schema(schema(**options))
    (step,) = [
        step for step in plan_steps(made, SimulatedHost.with_disks(DISKS).present(), ids(DISKS)).steps if isinstance(step, CreateArray)
    ]
    assert [word for word in step.command() if word.startswith(("--chunk", "--layout"))] == ([words] if words else [])


@pytest.mark.parametrize(("key", "there", "wanted"), [("chunk", 512, 64), ("layout", "n2", "f2")])
def test_an_array_that_is_otherwise_is_refused(key: str, there: t.Any, wanted: t.Any) -> None:
    plan = plan_steps(parse_static_schema(schema(**{key: wanted})), present_with(**{key: there}), [])
    assert plan.steps == ()
    assert any(f"the {key} {there}, which is not changed to {wanted}" in refusal for refusal in plan.refusals)
    for details, keys in (({key: wanted}, {key: wanted}), ({key: there}, {}), ({}, {key: wanted})):
        kept = plan_steps(parse_static_schema(schema(**keys)), present_with(**details), [])
        assert (kept.steps, kept.refusals) == ((), ())


@pytest.mark.parametrize(
    ("details", "adopted"),
    [
        ({"chunk": 64}, {"chunk": 64}),
        ({"chunk": 512}, {}),
        ({"chunk": 1024}, {}),
        ({"layout": "o2"}, {"layout": "o2"}),
        ({"layout": "n2"}, {}),
        ({}, {}),
    ],
)
def test_what_a_new_array_would_not_have_is_adopted(details: Plain, adopted: Plain) -> None:
    present = present_with(**details)
    (array,) = adopt(present, present.disks).schema["mds"]
    assert {key: array[key] for key in ArrayOptions().__dict__ if key in array} == adopted


@pytest.mark.parametrize(
    "keys",
    [
        {"chunk": 64, "level": "raid1"},
        {"chunk": 96},
        {"chunk": 1024},
        {"chunk": 2},
        {"layout": "left-symmetric"},
        {"layout": "n2", "level": "raid1"},
    ],
)
def test_what_md_would_not_make_or_no_plan_has_room_for_is_refused(keys: Plain) -> None:
    place = next(iter(keys))
    with pytest.raises(SchemaMistakes) as caught:
        parse_static_schema(schema(**keys))
    assert [mistake.partition(":")[0] for mistake in caught.value.mistakes] == [f"mds[0].{place}"]
    in_kib = {"chunk": f"{keys['chunk']} KiB"} if "chunk" in keys else {}
    with pytest.raises(InputError) as refused:
        planned(**{**keys, **in_kib})
    assert [mistake.place for mistake in refused.value.mistakes] == [f"schema[0].{place}"]


@pytest.mark.parametrize(
    ("keys", "written", "other"),
    [({"chunk": "64 KiB"}, {"chunk": 64}, {"chunk": 512}), ({"layout": "f2"}, {"layout": "f2"}, {"layout": "n2"})],
)
def test_a_plan_has_it_and_drift_names_another(keys: Plain, written: Plain, other: Plain) -> None:
    plan = planned(**keys)
    assert plan["schema"]["mds"][0].items() >= written.items()
    for there, differs in ((other, True), (written, False), ({}, False)):
        disks = []
        for table in plan["schema"]["parteds"]:
            (part,) = table["partitions"]
            entry = {"number": 1, "uuid": part["uuid"], "start": part["begin"], "size": part["end"] - part["begin"]}
            holder = {"type": "raid10", "name": "data", "members": ["a", "b"], **there}
            disks.append({"id": table["disk_id"], "size": 1000, "partitions": [entry], "holders": [holder]})
        found = compare(plan, {"disks": disks})
        assert [finding.place for finding in found] == (["/dev/md/data"] if differs else [])


def test_md_cannot_grow_a_far_layout() -> None:
    present = present_with(layout="n2")
    (array,) = (device for device in present.tree.devices.values() if device.kind == "raid10")
    assert members_can_grow(array)
    assert not members_can_grow(replace(array, details={"layout": "f2"}))
