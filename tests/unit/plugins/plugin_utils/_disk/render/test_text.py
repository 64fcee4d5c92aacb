# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table: what it says, that it stays within its width, that hosts of many disks stay short."""

from __future__ import annotations

import json
import pathlib

import hypothesis
import hypothesis.strategies as st
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.table import WIDTH
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.picture import picture, short_id
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import present_layout, summary
from ansible_collections.bareon.allocator.tests.support.house.terminal import too_wide

PLANS = pathlib.Path(__file__).parents[4] / "data" / "plans"


def load(name):
    return json.loads((PLANS / f"{name}.json").read_text())


@pytest.mark.parametrize("name", ["web", "mirror", "storage", "bare"])
def test_fits_a_terminal(name):
    case = load(name)
    lines = summary(case["plan"], case["hardware"]).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines)
    assert all(character.isprintable() for line in lines for character in line)


LENGTHS = st.integers(1, 40)


@hypothesis.given(st.lists(st.tuples(LENGTHS, LENGTHS, LENGTHS), min_size=1, max_size=5), LENGTHS)
def test_names_of_any_length_fit_a_terminal(spaces, length):
    disk = "d" * length
    names = [f"{'n' * name}{at}" for at, (name, _mount, _word) in enumerate(spaces)]
    plan = {
        "disks": [{"disk_id": disk, "size": 10**6, "spaces": [{"space_id": name, "size": 10**5} for name in names]}],
        "schema": {
            "parteds": [{"name": disk, "partitions": [{"name": f"p{at}", "space_id": name} for at, name in enumerate(names)]}],
            "fss": [{"device": f"p{at}", "mount": f"/{'m' * mount}", "fs_type": "xfs"} for at, (_name, mount, _word) in enumerate(spaces)],
        },
        "warnings": [" ".join(["w" * word] * 6) for _name, _mount, word in spaces],
    }
    hardware = {"disks": [{"id": disk, "type": "ssd", "model": " ".join(["o" * length] * 3), "size": 10**6}]}
    assert too_wide(summary(plan, hardware)) == []


def test_one_disk_with_a_group():
    case = load("web")
    assert summary(case["plan"], case["hardware"]).splitlines() == [
        "sda        447 GiB        SATA SSD SAMSUNG MZ7L3480HCHQ-00A07",
        "│  wwn-0x50025387cc75da43",
        "├─ esp     512 MiB  0.1%  EFI system       /boot/efi vfat",
        "├─ boot      1 GiB  0.2%  partition        /boot     ext4",
        "└─ os      446 GiB 99.7%  volume group",
        "   ├─ root  30 GiB  6.7%  logical volume   /         ext4",
        "   ├─ var  200 GiB 44.9%  logical volume   /var      xfs",
        "   ├─ home 212 GiB 47.5%  encrypted volume /home     ext4",
        "   └─ swap   4 GiB  0.9%  logical volume             swap",
    ]


def test_disks_that_carry_the_same_share_an_entry():
    case = load("storage")
    text = summary(case["plan"], case["hardware"])
    assert "12 disks alike" in text
    assert text.count("osd") == 1
    assert "│  sdc sdd sde sdf sdg sdh sdi sdj sdk sdl sdm sdn" in text
    assert "│  └─ free " in text
    assert "! not proven optimal" in text


def test_a_mirror_shows_what_lies_on_it():
    case = load("mirror")
    lines = summary(case["plan"], case["hardware"]).splitlines()
    system = next(at for at, line in enumerate(lines) if "system" in line)
    assert "raid1, 2 disks" in lines[system]
    assert [line.split()[1:3] for line in lines[system + 1 : system + 3]] == [["└─", "os"], ["├─", "root"]]


def test_a_group_over_several_entries_has_its_own():
    plan = {
        "disks": [
            {"disk_id": "a", "size": 100, "spaces": [{"space_id": "os", "size": 90}], "unallocated": 8},
            {"disk_id": "b", "size": 200, "spaces": [{"space_id": "os", "size": 198}], "unallocated": 0},
        ],
        "schema": {
            "vgs": [{"name": "os", "pvnames": ["a1", "b1"]}],
            "lvs": [{"name": "root", "vgname": "os", "size": 280}],
        },
    }
    blocks = summary(plan).split("\n\n")
    assert len(blocks) == 3
    assert blocks[2].splitlines()[0].split()[:3] == ["os", "288", "MiB"]
    assert "97.2%" in blocks[2]


def group_on_arrays(arrays):
    disks = [{"id": f"d{at:02}", "path": f"p{at:02}", "type": "hdd", "size": 20000} for at in range(2 * arrays)]
    mirrors = [{"id": f"m{at}", "type": "raid", "level": "raid1", "disks": [f"d{2 * at:02}", f"d{2 * at + 1:02}"]} for at in range(arrays)]
    group = {"id": "g", "type": "vg", "contains": [*(mirror["id"] for mirror in mirrors), "v", "w"]}
    schema = [*mirrors, group, {"id": "v", "type": "lv"}, {"id": "w", "type": "lv", "size": 4096}]
    return Planner(schema).plan({"disks": disks}), {"disks": disks}


def test_a_group_on_six_arrays_is_told_of_once():
    table = summary(*group_on_arrays(6))
    lines = table.splitlines()
    assert [line.split("  ")[0] for line in lines if "volume group" in line] == ["g"]
    assert next(line for line in lines if line.startswith("g ")).endswith("volume group on m0, m1, m2, m3, m4, m5")
    assert sum(" v " in line for line in lines) == 1
    assert all(float(word[:-1]) <= 100 for word in table.split() if word.endswith("%"))


def test_each_array_shows_its_part_of_what_is_in_the_group():
    plan, hardware = group_on_arrays(6)
    drawn = picture(plan, hardware)
    arrays = {disk.segments[0].space_id: disk.segments[0] for disk in drawn.disks}
    assert list(arrays) == [f"m{at}" for at in range(6)]
    shown = {name: sum(part.size for segment in arrays.values() for part in segment.slices if part.space_id == name) for name in "vw"}
    assert shown == {volume["space_id"]: volume["size"] for volume in plan["schema"]["lvs"]}
    assert all(sum(part.size for part in segment.slices) <= segment.size for segment in arrays.values())


def test_a_host_without_disks():
    assert summary({"disks": []}) == "no disks"


def test_picture_of_partitions_on_every_disk_names_first_and_last_mount():
    plan = {
        "disks": [{"disk_id": name, "size": 100, "spaces": [{"space_id": "data", "size": 98}]} for name in ("a", "b", "c")],
        "schema": {
            "parteds": [{"name": name, "partitions": [{"name": f"{name}1", "space_id": "data"}]} for name in ("a", "b", "c")],
            "fss": [{"device": f"{name}1", "mount": f"/data{at}", "fs_type": "xfs"} for at, name in enumerate("abc", start=1)],
        },
    }
    (space,) = picture(plan).spaces
    assert (space.mount, space.fs_type, space.disks, space.size) == ("/data1 … /data3", "xfs", 3, 294)


def test_volumes_fill_the_disks_of_their_group_in_order():
    case = load("storage")
    first, second = picture(case["plan"], case["hardware"]).disks[-2:]
    assert [part.space_id for part in first.segments[0].slices][-1] == [part.space_id for part in second.segments[0].slices][0] == "db7"
    volumes = {volume["space_id"]: volume["size"] for volume in case["plan"]["schema"]["lvs"] if volume["vgname"] == "ceph-db"}
    shown = {}
    for disk in (first, second):
        for part in disk.segments[0].slices:
            shown[part.space_id] = shown.get(part.space_id, 0) + part.size
    assert shown == volumes


def test_a_group_in_luks_on_an_array_is_found():
    plan = {
        "disks": [{"disk_id": name, "size": 100, "spaces": [{"space_id": "m", "size": 98}]} for name in ("a", "b")],
        "schema": {
            "mds": [{"name": "/dev/md/m", "level": "raid1", "devices": ["a1", "b1"], "space_id": "m"}],
            "luks": [{"name": "os-crypt", "device": "/dev/md/m", "space_id": "os"}],
            "vgs": [{"name": "os", "pvnames": ["/dev/mapper/os-crypt"], "space_id": "os"}],
            "lvs": [{"name": "root", "vgname": "os", "size": 49, "space_id": "root"}],
        },
    }
    host = picture(plan)
    assert [(space.id, space.inside, host.depth(space)) for space in host.spaces] == [("m", None, 0), ("os", "m", 1), ("root", "os", 2)]
    assert host.by_id()["os"].encrypted
    (leg,) = host.disks[0].segments
    assert [(part.space_id, part.size) for part in leg.slices] == [("root", 49)]


@pytest.mark.parametrize(
    ("disk_id", "short"),
    [
        ("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", "wwn-0x5000c500a1b2c3d4"),
        ("/dev/disk/by-id/nvme-eui.000000000000000100a075226379202e", "nvme-eui.000…5226379202e"),
        ("sda", "sda"),
    ],
)
def test_long_links_are_shortened_in_the_middle(disk_id, short):
    assert short_id(disk_id) == short
    assert len(short) <= 24


def test_facts_may_have_sizes_as_text():
    """As `disk_plan` takes them: the present layout is shown beside the plan."""
    part = {"number": 1, "start": "1 MiB", "size": "500 MiB", "fs_type": "ext4", "mountpoints": ["/"]}
    disks = [{"id": "sda", "size": "40 GiB", "partitions": [part]}, {"id": "sdb", "size": "512"}]
    assert present_layout({"disks": disks}, ["sda", "sdb"]).splitlines() == [
        "sda (40 GiB)",
        "  1: 500 MiB at 1 MiB ext4 /",
        "sdb (512 MiB)",
        "  nothing",
    ]
