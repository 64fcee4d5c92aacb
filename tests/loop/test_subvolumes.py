# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subvolumes of Btrfs on real (loop) disks: made, limited, mounted by the lines of fstab, added to, and completed after a cut."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.host_files import Settings, host_files
from ansible_collections.bareon.allocator.tests.loop.layout_runs import (
    MIB,
    Mounted,
    apply,
    attempt,
    new_disk,
    probe,
    run,
    says,
    schema,
    stand_in,
    tools,
)

__all__ = ["tools"]
SUBVOLUMES = [
    {"name": "@", "mount": "/"},
    {"name": "@/.snapshots"},
    {"name": "@home", "mount": "/home", "mount_options": "nodev", "quota": "64 MiB"},
]


def with_subvolumes(disk, *subvolumes):
    return schema(disk, {"name": "system", "size": 400, "fs_type": "btrfs", "mount": "none", "subvolumes": list(subvolumes)})


def there(device, folder):
    """What btrfs says of the subvolumes of a file system, and of their limits."""
    with Mounted(device, folder) as place:
        listed = run("btrfs", "subvolume", "list", str(place))
        limits = subprocess.run(["btrfs", "qgroup", "show", "-r", "--raw", str(place)], capture_output=True, text=True, check=False).stdout
    names = {line.split()[1]: line.split(" path ")[1] for line in listed.splitlines()}
    rows = [line.split() for line in limits.splitlines() if line.startswith("0/")]
    return {name: next((row[3] for row in rows if row[0] == f"0/{number}"), "none") for number, name in names.items()}


def test_a_plan_with_subvolumes_is_made_once_and_mounted_by_its_lines(loops, tmp_path):
    hardware = loops.hardware([700 * MIB])
    spaces = [{"id": "system", "type": "partition", "mount_options": "compress=zstd:1", "subvolumes": SUBVOLUMES}]
    plan = Planner(spaces).plan(hardware)
    options = {"schema": plan["schema"], "fingerprint": plan["fingerprint"]}

    seen = apply(options, check=True)
    made = apply(options)
    assert [seen["diff"], says(seen)] == [made["diff"], says(made)]
    device = plan["schema"]["fss"][0]["device"]
    # It is mounted for them: that shows on it, so it is finished before.
    assert [step["kind"] for step in made["steps"]][-4:] == [
        "make_filesystem",
        "finish_partitions",
        "create_subvolumes",
        "limit_subvolumes",
    ]
    assert says(made)[-2:] == [
        f"create subvolumes in the btrfs on {device}: @, @home, @/.snapshots",
        f"limit subvolumes of the btrfs on {device}: @home to 64 MiB",
    ]
    assert there(device, tmp_path / "at") == {"@": "none", "@/.snapshots": "none", "@home": str(64 * MIB)}

    again = apply(options)
    assert (again["changed"], again["steps"]) == (False, [])
    assert again["diff"] == [{**made["diff"][0], "before": made["diff"][0]["after"]}]
    assert "btrfs with @ @/.snapshots @home (64 MiB at most)" in made["diff"][0]["after"]

    mounts = host_files(made, Settings(root=str(tmp_path / "root")))["mounts"]
    assert [(mount["opts"], mount["active"]) for mount in mounts] == [
        ("compress=zstd:1,subvol=@", False),
        ("compress=zstd:1,nodev,subvol=@home", False),
    ]
    folders = [mount["target"] for mount in mounts]
    try:
        for mount, folder in zip(mounts, folders, strict=True):
            run("mkdir", "-p", folder)
            run("mount", "-t", "btrfs", "-o", mount["opts"], device, folder)
        full = subprocess.run(
            ["dd", "if=/dev/urandom", f"of={folders[1]}/x", "bs=1M", "count=80"], capture_output=True, text=True, check=False
        )
        assert "quota" in full.stderr.lower()
        # Mounted it is looked into where it is mounted; a further subvolume and another limit are made beside that.
        assert not apply(options)["changed"]
        more = [{**SUBVOLUMES[2], "quota": 96}, {"name": "@var/log"}]
        second = Planner([{**spaces[0], "subvolumes": [*SUBVOLUMES[:2], *more]}]).plan(hardware)
        changed = apply({"schema": second["schema"], "fingerprint": second["fingerprint"]})
        assert [step["kind"] for step in changed["steps"]] == ["create_subvolumes", "limit_subvolumes"]
        assert [mount["active"] for mount in host_files(changed, Settings(root=str(tmp_path / "root")))["mounts"]] == [True, True]
    finally:
        for folder in reversed(folders):
            subprocess.run(["umount", folder], capture_output=True, check=False)
    assert there(device, tmp_path / "at") == {"@": "none", "@/.snapshots": "none", "@home": str(96 * MIB), "@var/log": "none"}


@pytest.mark.parametrize(("cut", "kind"), [("subvolume create", "create_subvolumes"), ("quota enable", "limit_subvolumes")])
def test_a_run_that_was_cut_off_among_subvolumes_is_completed(loops, tools, tmp_path, cut, kind):
    disk = new_disk(loops)
    options = {"schema": with_subvolumes(disk, {"name": "@"}, {"name": "@home", "quota": 32})}
    stand_in(tools, "btrfs", f'[ "$1 $2" = "{cut}" ] && {{ echo no >&2; exit 3; }}; exec {run("which", "btrfs").strip()} "$@"')
    failed = attempt(options, tools=tools)
    assert failed["failed_step"]["kind"] == kind
    assert "quota" not in failed["failed_step"]["says"]

    made = apply(options)
    assert there(f"{disk}p1", tmp_path / "at") == {"@": "none", "@home": str(32 * MIB)}
    assert made["changed"]
    assert not apply(options)["changed"]


def test_what_others_made_stays_and_grows(loops, tmp_path):
    disk = new_disk(loops)
    first = with_subvolumes(disk, {"name": "@"})
    apply({"schema": first})
    with Mounted(f"{disk}p1", tmp_path / "at") as place:
        run("btrfs", "subvolume", "create", str(place / "mine"))
    first["parteds"][0]["partitions"][0]["end"] += 200
    grown = apply({"schema": first})
    assert [step["kind"] for step in grown["steps"]] == ["write_partition_table", "grow_filesystem"]
    assert there(f"{disk}p1", tmp_path / "at") == {"@": "none", "mine": "none"}


def test_a_btrfs_on_two_disks_is_made_mounted_and_grown(loops, tmp_path):
    hardware = loops.hardware([800 * MIB, 800 * MIB])
    spaces = [{"id": "data", "type": "btrfs", "size": 300, "mount": "/srv", "subvolumes": [{"name": "@a", "quota": 100}]}]
    plan = Planner(spaces).plan(hardware)
    options = {"schema": plan["schema"], "fingerprint": plan["fingerprint"]}
    seen = apply(options, check=True)
    made = apply(options)
    assert [seen["diff"], says(seen)] == [made["diff"], says(made)]
    again = apply(options)
    assert (again["changed"], again["diff"][0]["before"]) == (False, made["diff"][0]["after"])

    first, second = plan["schema"]["fss"][0]["devices"]
    assert probe(first)["UUID"] == probe(second)["UUID"] == made["filesystems"][0]["uuid"]
    with Mounted(first, tmp_path / "at") as place:
        told = run("btrfs", "filesystem", "df", str(place))
        assert "Data, RAID1" in told
        assert "Metadata, RAID1" in told
        assert apply(options)["filesystems"][0]["mountpoints"] == [str(place)]
    # Made once more with the same identity, while the kernel still knows the devices of before.
    for disk in hardware["disks"]:
        run("partx", "--delete", disk["dev"])
        run("wipefs", "--all", disk["dev"])
    assert apply({**options, "wipe": [disk["id"] for disk in hardware["disks"]]})["changed"]
    bigger = Planner([{**spaces[0], "size": 600}]).plan(hardware)
    grown = apply({"schema": bigger["schema"], "fingerprint": bigger["fingerprint"]})
    assert [step["kind"] for step in grown["steps"]] == ["write_partition_table", "write_partition_table", "grow_filesystem"]
    assert run("btrfs", "filesystem", "show", "--raw", first).count(f"size {600 * MIB}") == 2
    assert not apply({"schema": bigger["schema"], "fingerprint": bigger["fingerprint"]})["changed"]
