# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all targets share: mistakes of a plan, data that are to be kept, names of disks, what is lost."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import curtin, disko, fai, ignition, kickstart, repart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Target, Written, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import data_plan, hardware, make_plan, profile_plan

Plain = dict[str, t.Any]

TARGETS: dict[str, tuple[Target, Plain]] = {
    "kickstart": (kickstart.TARGET, {"version": "Fedora", "passphrase": None}),
    "curtin": (curtin.TARGET, {"version": "2", "key_file": "/key"}),
    "ignition": (ignition.TARGET, {"key_file": None, "tpm2": True}),
    "butane": (ignition.BUTANE_TARGET, {"variant": "flatcar", "key_file": None, "tpm2": True}),
    "fai": (fai.TARGET, {"passphrase": None}),
    "repart": (repart.TARGET, {"disk": None, "encrypt": "key-file"}),
    "disko": (disko.TARGET, {"password_file": None}),
}

UUIDS = {
    "kickstart": ("Kickstart: Anaconda gives partitions UUIDs of its own, not those of the plan",),
    "fai": ("FAI: setup-storage gives partitions UUIDs of its own, not those of the plan",),
    "disko": ("disko: disko gives partitions UUIDs of its own, not those of the plan",),
}
"""What is told of every plan."""


def written(target: str, plan: t.Any, *, facts: t.Any = None, lossy: t.Any = False) -> Written:
    chosen, options = TARGETS[target]
    return write_plan(chosen, plan, facts, lossy=lossy, **options)


def small_plan(**disk: t.Any) -> Plain:
    facts = hardware([("ssd", 10)])
    facts["disks"][0].update(disk)
    return make_plan([{"id": "data", "type": "partition", "fs_type": "xfs", "mount": "/srv"}], facts)


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_plan_gives_the_same_text_and_no_warning_but_of_uuids(target: str) -> None:
    first, second = written(target, small_plan()), written(target, small_plan())
    assert first == second
    assert first.warnings == UUIDS.get(target, ())
    assert first.value == written(target, small_plan()["schema"]).value, "the schema alone will do"


@pytest.mark.parametrize("target", TARGETS)
def test_every_mistake_of_a_plan_is_told_at_once(target: str) -> None:
    broken = copy.deepcopy(data_plan())
    broken["schema"]["fss"][0]["device"] = "/dev/nowhere"
    broken["schema"]["lvs"] = [{"name": "x", "vgname": "gone", "size": 4}]
    with pytest.raises(InputError) as caught:
        written(target, broken)
    assert {mistake.place for mistake in caught.value.mistakes} == {"plan.schema.fss[0].device", "plan.schema.lvs[0].vgname"}
    for nothing in (None, "text", {"schema": {}}, {"schema": {"parteds": "x"}}):
        with pytest.raises(InputError):
            written(target, nothing)


@pytest.mark.parametrize("target", ["kickstart", "fai", "repart", "disko"])
def test_data_that_are_to_be_kept_are_never_lost(target: str) -> None:
    plan = small_plan()
    plan["schema"]["parteds"][0]["partitions"][0]["keep_data"] = True
    for lossy in (False, True):
        with pytest.raises(InputError, match="data: its data must be kept"):
            written(target, plan, lossy=lossy)


def test_curtin_and_ignition_keep_data() -> None:
    plan = small_plan()
    plan["schema"]["parteds"][0]["partitions"][0]["keep_data"] = True
    plan["schema"]["fss"][0]["keep_data"] = True
    actions = written("curtin", plan).value["config"]
    assert [action["preserve"] for action in actions if action["type"] in {"disk", "partition", "format"}] == [True, True, True]
    assert not any("wipe" in action for action in actions)
    storage = written("ignition", plan).value["storage"]
    assert storage["disks"][0]["wipeTable"] is False
    assert "wipePartitionEntry" not in storage["disks"][0]["partitions"][0]
    assert storage["filesystems"][0]["wipeFilesystem"] is False


@pytest.mark.parametrize("target", TARGETS)
def test_a_name_that_may_change_is_replaced_by_a_link_of_the_hardware_or_told(target: str) -> None:
    links = ["/dev/disk/by-path/pci-0000:00:17.0-ata-1", "/dev/disk/by-id/ata-DISK_1", "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"]
    plan = small_plan(id="/dev/sda")
    told = written(target, plan)
    assert any("/dev/sda is a name that may change" in warning for warning in told.warnings)
    durable = written(target, plan, facts={"disks": [{"id": "/dev/sda", "dev": "/dev/sda", "links": links}]})
    assert durable.warnings == UUIDS.get(target, ())
    assert "/dev/sda" not in str(durable.value)
    assert target == "repart" or "wwn-0x5000c500a1b2c3d4" in str(durable.value)


@pytest.mark.parametrize("target", TARGETS)
def test_a_loss_is_an_error_or_a_warning_of_the_same_space(target: str) -> None:
    plan = data_plan()
    try:
        written(target, plan)
        errors: set[str] = set()
    except InputError as error:
        errors = {mistake.place for mistake in error.mistakes if "with lossy: true" in mistake.says}
    if target == "repart":
        return
    warned = written(target, plan, lossy=True).warnings
    assert {warning.split(": ")[1] for warning in warned if warning.endswith("left out")} == errors


def test_lvm_is_beyond_ignition_and_repart() -> None:
    plan = profile_plan("general")
    for target in ("ignition", "repart"):
        with pytest.raises(InputError, match="LVM"):
            written(target, plan)


@pytest.mark.parametrize("no", ["false", "no", 0])
def test_lossy_as_text_loses_nothing_unless_it_says_yes(no: t.Any) -> None:
    with pytest.raises(InputError, match="LVM"):
        written("ignition", profile_plan("general"), lossy=no)
    with pytest.raises(InputError, match="lossy: .*must be true or false"):
        written("ignition", profile_plan("general"), lossy="perhaps")


def hand_written(**changes: t.Any) -> Plain:
    """Return a static schema as people write it: a partition with a file system, and a volume group on another."""
    disk = "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"
    part = {"name": f"{disk}-part1", "begin": 1, "end": 1001, "space_id": "data"}
    schema: Plain = {
        "parteds": [{"disk_id": disk, "disk_size": 5000, "partitions": [part, {"name": f"{disk}-part2", "begin": 1001, "end": 2001}]}],
        "fss": [{"device": f"{disk}-part1", "mount": "/data", "fs_type": "ext4", "space_id": "data"}],
        "pvs": [{"name": f"{disk}-part2"}],
        "vgs": [{"name": "os", "pvnames": [f"{disk}-part2"]}],
    }
    for path, value in changes.items():
        *steps, last = [int(step) if step.isdecimal() else step for step in path.split("__")]
        place: t.Any = schema
        for step in steps:
            place = place[step]
        place[last] = value
    return schema


@pytest.mark.parametrize("target", ["kickstart", "curtin", "ignition", "butane", "fai", "disko"])
def test_the_uuid_of_a_file_system_becomes_an_option_of_its_program(target: str) -> None:
    own = "0f31cc3b-d2c4-4af9-8a35-a2ab05e7f3f0"
    assert own in str(written(target, hand_written(fss__0__uuid=own), lossy=True).value)
    assert own not in str(written(target, hand_written(), lossy=True).value)


def test_repart_takes_no_uuid_of_a_file_system() -> None:
    with pytest.raises(InputError, match="data: systemd-repart takes options of mkfs .* as -U 0f31cc3b"):
        written("repart", hand_written(fss__0__uuid="0f31cc3b-d2c4-4af9-8a35-a2ab05e7f3f0"))


@pytest.mark.parametrize("target", ["kickstart", "curtin", "fai", "disko"])
def test_metadata_of_physical_volumes_are_a_loss(target: str) -> None:
    with pytest.raises(InputError, match="os: .* not with 64 MiB of metadata and 2 copies of the metadata"):
        written(target, hand_written(pvs__0__metadatasize=64, pvs__0__metadatacopies=2))
    assert "metadata" not in " ".join(written(target, hand_written(pvs__0__metadatasize=0, pvs__0__metadatacopies=1)).warnings)


@pytest.mark.parametrize("target", TARGETS)
def test_the_flag_of_a_partition_that_a_bios_starts_from_is_written_or_told(target: str) -> None:
    made = written(target, hand_written(parteds__0__partitions__0__flags=["legacy_boot"]), lossy=True)
    told = any("data: " in warning and "legacy_boot" in warning for warning in made.warnings)
    assert told == (target != "repart")
    if target == "repart":
        assert "Flags=0x4\n" in made.value["010-data.conf"]


@pytest.mark.parametrize(
    ("changes", "place", "says"),
    [
        ({"parteds__0__partitions__0__begin": 2000}, "parteds[0].partitions[0].end", "must be more than begin (2000)"),
        ({"parteds__0__partitions__1__end": 6000}, "parteds[0].partitions[1].end", "6000 is beyond 4999"),
        ({"parteds__0__partitions__1__begin": 900}, "parteds[0].partitions[1].begin", "900 lies in schema.parteds[0].partitions[0]"),
        ({"parteds__0__partitions__1__count": 1}, "parteds[0].partitions[1].count", "1 is already that of schema.parteds[0].partitions[0]"),
        ({"parteds__0__partitions__0__guid": "linux"}, "parteds[0].partitions[0].guid", "must be a GUID"),
        ({"parteds__0__partitions__0__flags": ["hidden"]}, "parteds[0].partitions[0].flags[0]", "must be one of"),
        ({"fss__0__mount": "/a\nreboot"}, "fss[0].mount", "must be an absolute path"),
        ({"vgs__0__name": "my group"}, "vgs[0].name", "must be a name that LVM accepts"),
        ({"vgs__0__pvnames": ["/dev/sdz1"]}, "vgs[0].pvnames", "/dev/sdz1 is not one of pvs"),
        ({"lvs": [{"name": "a", "vgname": "os", "size": 4}] * 2}, "lvs[1].name", "/dev/mapper/os-a is already that of schema.lvs[0]"),
        ({"fss__0__fs_type": "zfs"}, "fss[0].fs_type", "must be one of"),
    ],
)
@pytest.mark.parametrize("target", TARGETS)
def test_a_schema_that_is_broken_is_refused_with_its_place(target: str, changes: Plain, place: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        written(target, hand_written(**changes), lossy=True)
    assert any(mistake.place == f"schema.{place}" and says in mistake.says for mistake in caught.value.mistakes), caught.value


def test_a_disk_and_a_mount_point_are_there_once() -> None:
    schema = hand_written()
    schema["parteds"].append(schema["parteds"][0])
    schema["fss"].append({**schema["fss"][0], "device": "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part2"})
    with pytest.raises(InputError) as caught:
        written("kickstart", schema)
    places = {mistake.place for mistake in caught.value.mistakes}
    assert {"schema.parteds[1].disk_id", "schema.fss[1].mount"} <= places


@pytest.mark.parametrize(
    ("target", "option"),
    [("kickstart", "passphrase"), ("fai", "passphrase"), ("curtin", "key_file"), ("disko", "password_file"), ("repart", "disk")],
)
@pytest.mark.parametrize("value", [1234, ["x"], "two\nlines", ""])
def test_texts_are_texts_of_one_line(target: str, option: str, value: t.Any) -> None:
    chosen, options = TARGETS[target]
    with pytest.raises(InputError, match=f"{option}: is .*; must be text of one line") as caught:
        write_plan(chosen, small_plan(), None, lossy=True, **{**options, option: value})
    assert option != "passphrase" or "1234" not in str(caught.value), "a secret is not shown"
