# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is there becomes a schema with which there is nothing to do; what has no words in it is left out, and told."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Filesystem
from ansible_collections.bareon.allocator.plugins.module_utils._layout.adopt import adopt
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import (
    MIB,
    host_with_table,
    installed,
    maker_on,
    new_host,
    plan,
    simple,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import old_array


def taken(present):
    return adopt(present, present.disks)


def steps(found, present, **options):
    planned = plan_steps(parse_static_schema(found.schema), present, **options)
    assert planned.refusals == ()
    return planned.steps


def test_a_layout_is_taken_over_with_nothing_to_do():
    maker = simple()
    maker.disk("sdb", 1501 * MIB)
    maker.schema["parteds"][1].pop("disk_size")
    device = maker.partition("sdb", 300, "keys")
    maker.fill(device, 300, "luks-ext4", "keys", "ext4")
    host = installed(maker)
    present = host.present()
    found = taken(present)
    assert found.notes == ()
    assert steps(found, present) == ()
    assert [(fs["device"].rpartition("/")[2], fs["fs_type"]) for fs in found.schema["fss"]] == [
        ("wwn-sda-part1", "ext4"),
        ("keys-crypt", "ext4"),
        ("vg0-data", "xfs"),
    ]
    assert [(vg["name"], vg["pvnames"]) for vg in found.schema["vgs"]] == [("vg0", [maker.schema["pvs"][0]["name"]])]
    assert all(entry["keep_data"] for name, entries in found.schema.items() if name != "parteds" for entry in entries)
    # What may be wiped is not what is kept.
    wipe = [table["name"] for table in found.schema["parteds"]]
    assert steps(found, present, wipe=wipe, keep_unlisted=True) == ()


def test_what_was_taken_over_can_grow():
    host = installed(simple())
    found = taken(host.present())
    found.schema["lvs"][0]["size"] += 40
    assert [type(step).__name__ for step in steps(found, host.present())] == ["ExtendLogicalVolume", "GrowFilesystem"]


def test_a_mirror_is_taken_over_under_its_own_name():
    host = host_with_table("sda", (1, 1, 100, "one"), (2, 101, 100, "two"))
    old_array(host, [block for name, block in host.blocks().items() if name in ("sda1", "sda2")], "1.2", "hand")
    host.start_all()
    found = taken(host.present())
    (array,) = found.schema["mds"]
    assert (array["name"], array["level"], array["metadata"]) == ("/dev/md/hand", "raid1", "1.2")
    assert [device.rpartition("-")[2] for device in array["devices"]] == ["part1", "part2"]
    assert steps(found, host.present()) == ()


def moved(present, name, start, size):
    """The state with a partition that does not lie in whole MiB."""
    device = present.tree.devices[name]
    entry = dataclasses.replace(device.partition, start=start, size=size)
    disk = present.tree.devices["sda"]
    entries = tuple(entry if one.number == entry.number else one for one in disk.table.partitions)
    changed = [
        dataclasses.replace(device, partition=entry, size=size),
        dataclasses.replace(disk, table=dataclasses.replace(disk.table, partitions=entries)),
    ]
    return dataclasses.replace(present, tree=present.tree.with_devices(changed))


@pytest.mark.parametrize(("start", "size"), [(17408, 900 * 1024), (17408, 50 * MIB + 512), (MIB + 32256, 99 * MIB + 7 * 512)])
def test_partitions_of_other_tools_need_not_lie_in_whole_mib(start, size):
    host = host_with_table("sda", (1, 1, 100, "odd"), (2, 101, 100, ""))
    present = moved(host.present(), "sda1", start, size)
    found = taken(present)
    assert [part["count"] for part in found.schema["parteds"][0]["partitions"]] == [1, 2]
    assert steps(found, present) == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((34 * 512, 2048 * 512 - 34 * 512), (MIB, 100 * MIB)),
        ((63 * 512, 1000 * 512), (1063 * 512, 100 * MIB)),
        ((MIB + 512, 512), (MIB + 1024, 98 * MIB + 512)),
        ((MIB, 10 * MIB + 512), (11 * MIB + 512, 512)),
    ],
)
def test_partitions_lie_where_other_tools_have_put_them(first, second):
    """GRUB's of Proxmox below the first MiB, one of a few sectors, two that share a MiB: in whole sectors, and nothing is to be done."""
    host = host_with_table("sda", (1, 1, 100, "odd"), (2, 101, 100, "next"))
    present = moved(moved(host.present(), "sda1", *first), "sda2", *second)
    found = taken(present)
    assert found.notes == ()
    parts = parse_static_schema(found.schema).disks[0].partitions
    assert [part.start for part in parts] == [first[0], second[0]]
    assert all(part.end <= start + size for part, (start, size) in zip(parts, (first, second)))
    assert steps(found, present) == ()


def test_partitions_that_overlap_are_not_both_in_the_schema():
    host = host_with_table("sda", (1, 1, 100, "odd"), (2, 101, 100, "next"))
    present = moved(host.present(), "sda1", MIB, 100 * MIB + 512)
    found = taken(present)
    assert [part["count"] for part in found.schema["parteds"][0]["partitions"]] == [1]
    assert "/dev/sda2 is left out" in found.notes[0]
    assert "shares sectors with /dev/sda1" in found.notes[0]


def test_a_partition_may_reach_up_to_the_backup_of_its_table():
    host = host_with_table("sda", (1, 1, 100, "one"))
    size = host.present().tree.devices["sda"].size
    present = moved(host.present(), "sda1", MIB, size - MIB - 33 * 512)
    found = taken(present)
    assert found.notes == ()
    assert steps(found, present) == ()


def test_numbers_past_those_of_our_tables_are_taken_over():
    host = host_with_table("sda", (1, 1, 100, "one"), (200, 101, 100, "two"))
    found = taken(host.present())
    assert [part["count"] for part in found.schema["parteds"][0]["partitions"]] == [1, 200]
    assert steps(found, host.present()) == ()


def test_a_partition_that_the_kernel_does_not_know_is_told():
    host = host_with_table("sda", (1, 1, 100, "one"), (2, 101, 100, "two"))
    present = host.present()
    unknown = dataclasses.replace(present.tree.devices["sda2"], dev=None)
    found = taken(dataclasses.replace(present, tree=present.tree.with_devices([unknown])))
    assert [part["count"] for part in found.schema["parteds"][0]["partitions"]] == [1]
    assert "partition 2 of" in found.notes[0]
    assert "the kernel does not know it" in found.notes[0]


def test_what_a_schema_has_no_words_for_is_left_out_and_told():
    host = host_with_table("sda", (1, 1, 100, "one"), (2, 101, 100, "two"))
    host.media.write_table("sdb", "00000000-0000-0000-0000-000000000000", (), "dos")
    host.media.sign(host.media.disk("sdc"), "xfs", ("00000000-0000-0000-0000-000000000001", 100 * MIB))
    host.start_all()
    present = host.present()
    odd = dataclasses.replace(present.tree.devices["sda1"], filesystem=Filesystem("ntfs"))
    sealed = dataclasses.replace(present.tree.devices["sda2"], filesystem=Filesystem("crypto_LUKS"))
    present = dataclasses.replace(present, tree=present.tree.with_devices([odd, sealed]))
    found = taken(present)
    assert [table["name"][-3:] for table in found.schema["parteds"]] == ["sda"]
    told = "\n".join(found.notes)
    assert all(words in told for words in ("it has no GPT, but", "the ntfs on /dev/sda1", "/dev/sda2 is left out", "it is closed"))
    assert steps(found, present) == ()


def test_a_group_that_lies_elsewhere_as_well_is_left_out():
    maker = maker_on("sda", "sdb")
    for disk in ("sda", "sdb"):
        maker.fill(maker.partition(disk, 100, "os"), 100, "pv", "os", "ext4")
    # Both lie in one group.
    maker.schema["vgs"] = [{"name": "vg0", "pvnames": [volume["name"] for volume in maker.schema["pvs"]]}]
    host = installed(maker)
    present = host.present()
    found = adopt(present, [disk for disk in present.disks if disk.device.name == "sda"])
    assert found.schema["vgs"] == []
    assert "the volume group vg0 is left out of the schema, and stays as it is: not all of its" in found.notes[0]


def test_nothing_is_a_schema_of_nothing():
    found = taken(new_host().present())
    assert not any(found.schema.values())
    assert found.notes == ()
    assert plan(new_host(), found.schema).steps == ()


def test_data_with_a_detached_header_are_left_out_by_name():
    host = host_with_table("sda", (1, 1, 100, "one"), (2, 101, 100, "two"))
    present = host.present()
    use = "the data of the LUKS container vault, whose header is /boot/vault.img by /etc/crypttab"
    part = dataclasses.replace(present.tree.devices["sda2"], uses=(use,))
    present = dataclasses.replace(present, tree=present.tree.with_devices([part]))
    found = taken(present)
    assert [note for note in found.notes if use in note and part.dev in note] == list(found.notes) != []
    assert steps(found, present) == ()
    bare = new_host().present()
    disk = dataclasses.replace(bare.tree.devices["sdb"], uses=(use,))
    (note,) = taken(dataclasses.replace(bare, tree=bare.tree.with_devices([disk]))).notes
    assert use in note
