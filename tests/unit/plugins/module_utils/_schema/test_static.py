# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout.capacity import array_head, capacity, extents_of
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage import overhead
from ansible_collections.bareon.allocator.plugins.module_utils._storage.raid import RaidLevel, data_legs, least_legs
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner

MIB = 1024**2

SCHEMA = {
    "parteds": [
        {
            "name": "/dev/disk/by-id/wwn-1",
            "disk_id": "/dev/disk/by-id/wwn-1",
            "label": "gpt",
            "disk_size": 2000,
            "partitions": [
                {"begin": 1, "end": 101, "flags": ["boot"], "space_id": "esp"},
                {"begin": 101, "end": 501, "guid": "E6D6D379-F507-44C2-A23C-238F2A3DF928", "space_id": "os"},
                {"begin": 501, "end": 601, "flags": ["legacy_boot"], "space_id": "home", "keep_data": True},
            ],
        },
        {
            "name": "/dev/nvme0n1",
            "partitions": [{"count": 4, "begin": 1, "end": 99, "flags": ["raid"]}, {"count": 1, "begin": 100, "end": 200}],
        },
    ],
    "mds": [{"name": "/dev/md/data", "level": "mirror", "devices": ["/dev/nvme0n1p4", "/dev/nvme0n1p1"], "metadata": "default"}],
    "luks": [{"name": "home-crypt", "device": "/dev/disk/by-id/wwn-1-part3"}, {"name": "root-crypt", "device": "/dev/os/ro-ot"}],
    "pvs": [{"name": "/dev/disk/by-id/wwn-1-part2", "metadatasize": 16, "metadatacopies": 2}],
    "vgs": [{"name": "os", "pvnames": ["/dev/disk/by-id/wwn-1-part2"]}],
    "lvs": [{"name": "ro-ot", "vgname": "os", "size": 40}, {"name": "swap", "vgname": "os", "size": 10}],
    "fss": [
        {"device": "/dev/disk/by-id/wwn-1-part1", "fs_type": "vfat", "mount": "/boot/efi"},
        {
            "device": "/dev/mapper/home-crypt",
            "fs_type": "btrfs",
            "fs_options": "-d single -O no-holes,^quota",
            "fs_label": "home",
        },
        {"device": "/dev/mapper/os-swap", "fs_type": "swap", "mount": "swap"},
        {"device": "/dev/md/data"},
    ],
}


def mistakes_of(schema):
    with pytest.raises(SchemaMistakes) as caught:
        parse_static_schema(schema)
    return caught.value.mistakes


def changed(path, value):
    """The schema with one value in another place."""
    schema = copy.deepcopy(SCHEMA)
    place = schema
    for key in path[:-1]:
        place = place[key]
    if isinstance(place, list) and path[-1] == len(place):
        place.append(value)
    else:
        place[path[-1]] = value
    return schema


def test_everything_is_read():
    layout = parse_static_schema(SCHEMA)
    first, second = layout.disks
    assert [(part.number, part.start // MIB, part.size // MIB) for part in first.partitions] == [(1, 1, 100), (2, 101, 400), (3, 501, 100)]
    assert [part.type[:8] for part in first.partitions] == ["c12a7328", "e6d6d379", "0fc63daf"]
    assert [part.attrs for part in first.partitions] == [None, None, "LegacyBIOSBootable"]
    assert [part.keep_data for part in first.partitions] == [False, False, True]
    assert [(part.number, part.device) for part in second.partitions] == [(1, "/dev/nvme0n1p1"), (4, "/dev/nvme0n1p4")]
    assert layout.arrays[0].level == "raid1"
    assert layout.arrays[0].metadata == "1.2"
    assert layout.groups[0].physical[0].metadata_size == 16 * MIB
    assert layout.filesystems[1].options == ("-d", "single", "-O", "no-holes,^quota")
    assert layout.containers[1].below == "/dev/mapper/os-ro--ot"
    assert layout.partitions_below("/dev/mapper/os-swap") == (first.partitions[1],)
    assert layout.identity("/dev/mapper/os-swap") != layout.identity("/dev/mapper/os-ro--ot")


def test_identities_follow_from_the_schema_and_differ():
    one, two = parse_static_schema(SCHEMA), parse_static_schema(copy.deepcopy(SCHEMA))
    uuids = [part.uuid for part in one.partitions()] + [part.unfinished for part in one.partitions()]
    assert len(set(uuids)) == len(uuids)
    assert uuids[:5] == [part.uuid for part in two.partitions()]


@pytest.mark.parametrize(
    ("path", "value", "place", "says"),
    [
        (("extra",), [], "extra", "is not a key of a static schema"),
        (("parteds", 0, "partitions", 0, "ends"), 1, "parteds[0].partitions[0].ends", "did you mean end"),
        (("parteds", 0, "partitions", 0, "begin"), "1", "parteds[0].partitions[0].begin", "must be a whole number"),
        (("parteds", 0, "partitions", 0, "begin"), True, "parteds[0].partitions[0].begin", "must be a whole number"),
        (("parteds", 0, "partitions", 0, "end"), 1, "parteds[0].partitions[0].end", "must be"),
        (("parteds", 0, "partitions", 0, "end"), 102, "parteds[0].partitions[1].begin", "lies in parteds[0].partitions[0]"),
        (("parteds", 0, "partitions", 2, "end"), 2000, "parteds[0].partitions[2].end", "is beyond 1999"),
        (("parteds", 0, "partitions", 1, "count"), 1, "parteds[0].partitions[1].count", "is already that of parteds[0].partitions[0]"),
        (("parteds", 0, "partitions", 1, "count"), 129, "parteds[0].partitions[1].count", "128"),
        (("parteds", 0, "partitions", 1, "uuid"), "no", "parteds[0].partitions[1].uuid", "must be a GUID"),
        (("parteds", 0, "partitions", 1, "flags"), "boot", "parteds[0].partitions[1].flags", "must be a list of flags"),
        (("parteds", 0, "partitions", 1, "flags"), 5, "parteds[0].partitions[1].flags", "must be a list of flags"),
        (("vgs", 0, "pvnames"), [""], "vgs[0].pvnames[0]", "must be text"),
        (("parteds", 0, "partitions", 1, "flags"), ["swap"], "parteds[0].partitions[1].flags[0]", "must be one of"),
        (("parteds", 0, "partitions", 1, "partition_type"), "logical", "parteds[0].partitions[1].partition_type", "primary"),
        (("parteds", 0, "label"), "msdos", "parteds[0].label", "must be gpt"),
        (("parteds", 1, "disk_id"), "/dev/disk/by-id/wwn-1", "parteds[1].disk_id", "is already that of parteds[0]"),
        (("parteds", 0), "sda", "parteds[0]", "must be a mapping"),
        (("parteds",), {"name": "x"}, "parteds", "must be a list"),
        (("mds", 0, "level"), "raid7", "mds[0].level", "must be one of"),
        (("mds", 0, "level"), "raid6", "mds[0].devices", "needs at least 4"),
        (("mds", 0, "metadata"), "2", "mds[0].metadata", "must be one of"),
        (("mds", 0, "devices", 0), "/dev/sdx1", "mds[0].devices", "/dev/sdx1 is not a partition"),
        (("mds", 0, "devices", 0), "/dev/nvme0n1p1", "mds[0].devices", "is already used by mds[0].devices"),
        (("mds", 0, "name"), "/dev/sda", "mds[0].name", "must be /dev/md/NAME"),
        (("luks", 0, "name"), "a b", "luks[0].name", "device-mapper name"),
        (("luks", 0, "device"), "/dev/sdx1", "luks[0].device", "is not a partition, array or volume"),
        (("luks", 0, "device"), "/dev/mapper/os-swap", "fss[2].device", "is already used by luks[0].device"),
        (("pvs", 0, "metadatacopies"), 3, "pvs[0].metadatacopies", "from 0 to 2"),
        (("pvs", 1), {"name": "/dev/md/data"}, "pvs[1].name", "is in no group's pvnames"),
        (("vgs", 0, "pvnames", 0), "/dev/sdx", "vgs[0].pvnames", "is not one of pvs"),
        (("vgs", 0, "pvnames"), [], "vgs[0].pvnames", "1 or more"),
        (("vgs", 0, "name"), "-os", "vgs[0].name", "name that LVM accepts"),
        (("lvs", 0, "vgname"), "vg9", "lvs[0].vgname", "there is no vg vg9; there are os"),
        (("lvs", 0, "size"), 0, "lvs[0].size", "must be a whole number, 1 or more"),
        (("lvs", 1, "name"), "ro-ot", "lvs[1].name", "is already that of lvs[0]"),
        (("fss", 0, "fs_type"), "ntfs", "fss[0].fs_type", "must be one of ext2"),
        (("fss", 0, "fs_label"), "a" * 12, "fss[0].fs_label", "at most 11 bytes"),
        (("fss", 0, "fs_options"), "'", "fss[0].fs_options", "cannot be split"),
        (("fss", 3, "mount"), "/boot/efi", "fss[3].mount", "is already that of fss[0]"),
        (("fss", 3, "device"), "/dev/sdx", "fss[3].device", "is not a partition, array, LUKS container or volume"),
        (("fss", 3, "keep_data"), "yes", "fss[3].keep_data", "must be true or false"),
    ],
)
def test_a_mistake_names_its_place(path, value, place, says):
    found = mistakes_of(changed(path, value))
    assert any(mistake.startswith(f"{place}: ") and says in mistake for mistake in found), found


def test_all_mistakes_are_told_at_once():
    schema = changed(("lvs", 0, "size"), -1)
    schema["fss"][0]["fs_type"] = "ntfs"
    schema["parteds"][0]["partitions"][2]["end"] = "x"
    assert len(mistakes_of(schema)) == 3
    with pytest.raises(SchemaMistakes, match="3 mistakes in the schema:\n- "):
        parse_static_schema(schema)


@pytest.mark.parametrize("schema", [None, [], "x", 3])
def test_what_is_no_schema_is_one_mistake(schema):
    assert len(mistakes_of(schema)) == 1


def hardware(sector=512):
    disks = [
        {"id": f"/dev/disk/by-id/wwn-{name}", "dev": f"/dev/sd{name}", "size": 20000, "logical_block": sector, "type": "hdd"}
        for name in "abcd"
    ]
    return {"ram": 8192, "firmware": "uefi", "disks": disks}


@pytest.mark.parametrize("level", ["raid0", "raid1", "raid5", "raid6", "raid10"])
@pytest.mark.parametrize("encrypt", [False, True])
def test_plans_are_read_and_their_volumes_fit(level, encrypt):
    schema = [
        {"id": "boot", "type": "raid", "level": "raid1", "legs": 2, "size": 512, "mount": "/boot", "boot": True},
        {"id": "r", "type": "raid", "level": level, "legs": 4, "min_size": 1000},
        {"id": "os", "type": "vg", "contains": ["r", "root"], "encrypt": encrypt},
        {"id": "root", "type": "lv", "min_size": 1000, "mount": "/"},
    ]
    plan = Planner(schema, Objective.FAIR, 0).plan(hardware())["schema"]
    layout = parse_static_schema(plan)
    (group,) = [group for group in layout.groups if group.name == "os"]
    room = sum(extents_of(layout, volume, group.extent) for volume in group.physical)
    assert sum(volume.size for volume in layout.volumes) <= room * 4 * MIB
    assert layout.arrays[0].metadata == "1.0"


@pytest.mark.parametrize("metadata", ["1.0", "1.2"])
@pytest.mark.parametrize("leg", [20, 127, 1000, 1024, 5000, 131072, 4000000])
@pytest.mark.parametrize("level", list(RaidLevel))
def test_room_is_counted_as_the_planner_counts_it(level, leg, metadata):
    legs = least_legs(level)
    parts = [{"name": f"/dev/sd{number}", "partitions": [{"begin": 1, "end": 1 + leg}]} for number in "abcd"[:legs]]
    devices = [f"/dev/sd{number}1" for number in "abcd"[:legs]]
    schema = {"parteds": parts, "mds": [{"name": "/dev/md/a", "level": str(level.value), "devices": devices, "metadata": metadata}]}
    data = data_legs(level, legs)
    assert capacity(parse_static_schema(schema), "/dev/md/a") == data * max(0, leg - overhead.md_reserve(leg, metadata, data)) * MIB
    assert array_head(leg * MIB, metadata) >= (overhead.md_reserve(leg, metadata, data) if metadata == "1.2" else 0) * MIB
