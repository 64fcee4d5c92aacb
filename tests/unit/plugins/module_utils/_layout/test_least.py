# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout.least import too_small, too_small_here
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS, least_size
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner

Plain = dict[str, t.Any]
DISK = "/dev/sda"


def on_partition(mib: int, fs_type: str, **more: t.Any) -> Plain:
    parts = [{"name": f"{DISK}1", "begin": 1, "end": 1 + mib}]
    return {"parteds": [{"name": DISK, "partitions": parts}], "fss": [{"device": f"{DISK}1", "fs_type": fs_type, **more}]}


def places(schema: Plain) -> list[str]:
    return [mistake.split(": ")[0] for mistake in too_small(parse_static_schema(schema))]


@pytest.mark.parametrize("fs_type", FILESYSTEMS)
def test_a_file_system_has_its_least_size(fs_type: str) -> None:
    least = least_size(fs_type)
    assert places(on_partition(least, fs_type)) == []
    if least > 1:
        assert places(on_partition(least - 1, fs_type)) == ["fss[0].device"]
        assert places(on_partition(least - 1, fs_type, keep_data=True)) == []


def test_options_that_make_do_with_less_count() -> None:
    assert places(on_partition(16, "btrfs", fs_options="-M")) == []
    assert places(on_partition(20, "vfat", fs_options="-F 16")) == []
    assert places(on_partition(20, "vfat", fs_options="-F 32")) == ["fss[0].device"]


def test_what_lies_between_counts() -> None:
    schema = on_partition(315, "xfs")
    schema |= {"luks": [{"name": "safe", "device": f"{DISK}1"}], "fss": [{"device": "/dev/mapper/safe", "fs_type": "xfs"}]}
    assert places(schema) == ["fss[0].device"]
    schema["parteds"][0]["partitions"][0]["end"] += 1
    assert places(schema) == []


@pytest.mark.parametrize(("size", "wrong"), [(15, True), (16, True), (17, False)])
def test_a_container_takes_more_than_its_header(size: int, wrong: bool) -> None:
    schema = on_partition(size, "xfs")
    schema |= {"luks": [{"name": "safe", "device": f"{DISK}1"}], "fss": []}
    assert places(schema) == (["luks[0].device"] if wrong else [])
    schema["luks"][0]["keep_data"] = True
    assert places(schema) == []


def test_volumes_are_of_whole_extents() -> None:
    schema = on_partition(2000, "xfs")
    schema |= {"pvs": [{"name": f"{DISK}1"}], "vgs": [{"name": "os", "pvnames": [f"{DISK}1"]}]}
    for size, wrong in ((297, []), (296, ["fss[0].device"])):
        schema["lvs"] = [{"name": "a", "vgname": "os", "size": size}]
        schema["fss"] = [{"device": "/dev/os/a", "fs_type": "xfs"}]
        assert places(schema) == wrong


def test_larger_sectors_take_more_of_what_is_made() -> None:
    layout = parse_static_schema(on_partition(100, "vfat"))
    made = {layout.filesystem_uuid(f"{DISK}1", layout.filesystems[0])}
    assert [mistake.split(": ")[0] for mistake in too_small_here(layout, {DISK: 4096}, made)] == ["fss[0].device"]
    assert list(too_small_here(layout, {DISK: 4096}, ())) == []
    assert list(too_small_here(layout, {DISK: 512}, made)) == []


@pytest.mark.parametrize("encrypt", [False, True])
@pytest.mark.parametrize("fs_type", FILESYSTEMS)
@pytest.mark.parametrize("kind", ["partition", "lv", "raid"])
def test_the_least_that_is_planned_is_enough(kind: str, fs_type: str, encrypt: bool) -> None:
    disks = [{"id": f"/dev/disk/by-id/wwn-{name}", "dev": f"/dev/sd{name}", "size": 20000, "type": "hdd"} for name in "ab"]
    least = least_size(fs_type)
    space: Plain = {"id": "a", "type": kind, "fs_type": fs_type, **({"level": "raid1"} if kind == "raid" else {})}
    room = {"lv": 0, "partition": 16, "raid": 16}[kind] * encrypt + (2 if kind == "raid" else 0)
    schema = [{**space, "size": least + room, "encrypt": encrypt}]
    schema += [{"id": "g", "type": "vg", "contains": ["a"]}] if kind == "lv" else []
    plan = Planner(schema).plan({"ram": 8192, "firmware": "uefi", "disks": disks})
    assert places(plan["schema"]) == []
