# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of caches on a host."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout.adopt import adopt
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import installed, maker_on, plan, refusal
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import SchemaMaker
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out


def slow() -> SchemaMaker:
    maker = maker_on("sda", "sdb")
    maker.fill(maker.partition("sda", 400, "slow"), 400, "pv", "slow", "ext4")
    maker.volume("vg0", "data", 50, False, "ext4")
    return maker


def cached() -> SchemaMaker:
    maker = slow()
    maker.cache("vg0", "data", maker.partition("sdb", 61, "fast"))
    return maker


def says(host, schema, wipe=(), **options):
    found = plan(host, schema, wipe, **options)
    assert not found.refusals, found.refusals
    return [step.says for step in found.steps]


def test_a_cache_is_made_first_and_attached_last():
    host = installed(maker_on("sda", "sdb"))
    steps = [line for line in says(host, cached().schema) if "vg0" in line]
    assert steps == [
        "create the volume group vg0 on /dev/sda1, /dev/sdb1",
        "create the cache vg0/data_fast on /dev/sdb1",
        "create the logical volume vg0/data with 200 MiB",
        "clear old signatures at both ends of /dev/mapper/vg0-data",
        "mark data in vg0 as cleared",
        "make ext4 on /dev/mapper/vg0-data",
        "mark data in vg0 as finished",
        "cache the logical volume vg0/data by data_fast, writethrough",
    ]


def test_a_volume_in_use_gets_one_and_keeps_it_and_changes_its_mode():
    host = installed(slow())
    host.mounts[host.by_node("/dev/mapper/vg0-data").name] = "/srv"
    schema = cached().schema
    assert [line for line in says(host, schema) if "vg0" in line] == [
        "extend the volume group vg0 by /dev/sdb1",
        "create the cache vg0/data_fast on /dev/sdb1",
        "cache the logical volume vg0/data by data_fast, writethrough",
    ]
    for step in plan(host, schema).steps:
        carry_out(host, step)
    assert says(host, schema) == []
    schema["caches"][0]["mode"] = "writeback"
    assert says(host, schema) == ["change the cache of the logical volume vg0/data to writeback"]
    del schema["caches"]
    assert says(host, schema) == []


def test_other_volumes_do_not_get_the_room_of_a_cache():
    maker = cached()
    host = installed(maker_on("sda", "sdb"))
    schema = copy.deepcopy(maker.schema)
    schema["lvs"][0]["size"] = 99 * 4
    assert says(host, schema)
    schema["lvs"][0]["size"] = 100 * 4
    assert "4 MiB too few" in refusal(host, schema)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda schema: schema["caches"][0].update(name="other"),
            "vg0/data is already cached by data_fast, but should be by other; lvconvert --uncache vg0/data takes a cache off",
        ),
        (
            lambda schema: schema["parteds"][1]["partitions"][0].update(end=100),
            "the cache vg0/data_fast would have to grow, which it cannot",
        ),
    ],
)
def test_what_a_cache_cannot_do_is_refused(change, said):
    maker = cached()
    host = installed(maker)
    change(maker.schema)
    assert said in refusal(host, maker.schema)


@pytest.mark.parametrize("before", [slow, lambda: maker_on("sda", "sdb")])
def test_a_cache_on_larger_blocks_is_refused(before):
    """What is cached gets them, and a file system that was made for smaller ones cannot be mounted."""
    present = installed(before()).present()
    disks = [replace_block(disk, 4096) if disk.device.name == "sdb" else disk for disk in present.disks]
    tree = present.tree.with_devices([disk.device for disk in disks])
    planned = plan_steps(parse_static_schema(cached().schema), dataclasses.replace(present, disks=tuple(disks), tree=tree))
    assert "the cache vg0/data_fast is on a disk with logical blocks of 4096 bytes, and vg0/data of 512" in "\n".join(planned.refusals)


def replace_block(disk, size):
    signatures = tuple(
        dataclasses.replace(found, offsets=(size, disk.device.size - size)) if found.type == "gpt" else found
        for found in disk.device.signatures
    )
    device = dataclasses.replace(disk.device, row={**disk.device.row, "log-sec": size}, signatures=signatures)
    return dataclasses.replace(disk, device=device, source=device)


def test_a_volume_of_the_name_of_a_cache_is_not_lost_for_it():
    maker = slow()
    maker.volume("vg0", "data_fast", 5, False, "ext4")
    host = installed(maker)
    schema = cached().schema
    assert "vg0/data_fast is a volume, but wanted as a cache; no volume is destroyed for one" in refusal(host, schema, ["sda", "sdb"])


def test_a_volume_that_is_made_anew_is_cached_anew():
    maker = cached()
    host = installed(maker)
    schema = copy.deepcopy(maker.schema)
    schema["lvs"][0]["size"] = 100
    steps = says(host, schema, ["sda", "sdb"])
    assert [line.partition(" vg0/")[0] for line in steps if " vg0/" in line] == [
        "remove the logical volume",
        "create the cache",
        "create the logical volume",
        "cache the logical volume",
    ]
    for step in plan(host, schema, ["sda", "sdb"]).steps:
        carry_out(host, step)
    assert says(host, schema) == []


def test_a_cached_volume_is_taken_over_with_its_cache():
    present = installed(cached()).present()
    found = adopt(present, present.disks)
    assert found.notes == ()
    assert [(cache["name"], cache["origin"], cache["mode"]) for cache in found.schema["caches"]] == [("data_fast", "data", "writethrough")]
    assert plan_steps(parse_static_schema(found.schema), present).steps == ()
    # There is more on its physical volume than the cache.
    more = [dataclasses.replace(volume, free=volume.free or volume.extent_size) for volume in present.physical]
    found = adopt(dataclasses.replace(present, physical=tuple(more)), present.disks)
    assert "caches" not in found.schema
    assert "vg0/data is left out of the schema, and stays as it is: it is cached in another way than" in found.notes[0]
