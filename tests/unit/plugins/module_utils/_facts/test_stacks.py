# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import json
import struct
import uuid

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts import stacks
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import DATA

MDADM = dict(part.split("\n", 1) for part in (DATA / "mdadm.txt").read_text(encoding="utf-8").split("### ")[1:])


def report(kind, *rows):
    return json.dumps({"report": [{kind: list(rows)}]})


def volume(name, devices="", group="vg0", **more):
    row = {
        "vg_name": group,
        "vg_uuid": f"uuid-{group}",
        "lv_name": name,
        "lv_uuid": f"uuid-{group}-{name}",
        "lv_size": "4194304",
        "lv_layout": "linear",
        "lv_dm_path": f"/dev/mapper/{group}-{name}",
    }
    return {**row, "devices": devices, "metadata_devices": "", "metadata_lv": "", "pool_lv": "", "origin": "", **more}


def test_physical_volumes():
    row = {"pv_name": "/dev/sda2", "pv_uuid": "SHgO0P", "pv_size": "1069547520", "pv_free": "12582912", "pe_start": "1048576"}
    used = {**row, "vg_name": "vg0", "vg_uuid": "QcMmv3", "vg_extent_size": "4194304"}
    unused = {**row, "pv_name": "/dev/sdb2", "vg_name": "", "vg_uuid": "", "vg_extent_size": ""}
    not_one = {**unused, "pv_name": "/dev/sdc", "pv_uuid": ""}

    first, second = stacks.parse_physical_volumes(report("pv", used, unused, not_one))

    assert first == stacks.PhysicalVolume("/dev/sda2", "SHgO0P", 1069547520, 12582912, 1048576, "vg0", "QcMmv3", 4194304)
    assert (second.device, second.group, second.extent_size) == ("/dev/sdb2", None, 0)


def test_a_volume_of_two_segments_is_one():
    (found,) = stacks.parse_logical_volumes(report("lv", volume("data", "/dev/sda2(0)"), volume("data", "/dev/sdb2(25)")))

    assert found.on == ("/dev/sda2", "/dev/sdb2")
    assert found.size == 4194304
    assert not found.hidden


def test_volumes_are_traced_through_pools_mirrors_and_snapshots_to_their_disks():
    volumes = stacks.parse_logical_volumes(
        report(
            "lv",
            volume("thin", pool_lv="pool"),
            volume("pool", "pool_tdata(0)", metadata_lv="[pool_tmeta]"),
            volume("[pool_tdata]", "/dev/sda2(10)"),
            volume("[pool_tmeta]", "/dev/sdb2(10)"),
            volume("mirror", "mirror_rimage_0(0),mirror_rimage_1(0)"),
            volume("[mirror_rimage_0]", "/dev/sda2(0)"),
            volume("[mirror_rimage_1]", "/dev/sdc2(0)"),
            volume("snapshot", "/dev/sdd2(0)", origin="mirror"),
            volume("thin", "/dev/sdz(0)", group="other"),
        )
    )
    by_name = {(found.group, found.name): found for found in volumes}

    def disks(name, group="vg0"):
        return set(stacks.physical_volumes_of(by_name[group, name], volumes))

    assert disks("thin") == {"/dev/sda2", "/dev/sdb2"}
    assert disks("mirror") == {"/dev/sda2", "/dev/sdc2"}
    assert disks("snapshot") == {"/dev/sda2", "/dev/sdc2", "/dev/sdd2"}
    assert disks("thin", "other") == {"/dev/sdz"}
    assert by_name["vg0", "pool_tmeta"].hidden


def test_volumes_that_refer_to_each_other_do_not_hang():
    volumes = stacks.parse_logical_volumes(report("lv", volume("a", "b(0)"), volume("b", "a(0)")))

    assert stacks.physical_volumes_of(volumes[0], volumes) == ()


@pytest.mark.parametrize("text", ["", "{}", '{"report": 1}'])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is json's or ours
        stacks.parse_physical_volumes(text)


def test_recorded_arrays():
    running = stacks.parse_array(MDADM["detail --export"])
    examined = stacks.parse_array(MDADM["examine --export"])

    array = stacks.Array("raid1", "c872fca4-84f4-1c22-a569-e8970f9a3eed", "any:r1", 2)
    assert examined == array
    assert running == dataclasses.replace(array, metadata="1.2")


def test_no_array():
    assert stacks.parse_array("") is None
    assert stacks.parse_array("MD_LEVEL=container\n") is None


def test_superblocks_say_what_their_members_have_seen():
    member, spare, alone = (stacks.parse_superblock(MDADM[f"examine a {kind}"]) for kind in ("member", "spare", "member that runs alone"))
    uuid = "5bcea30f-6280-b7fd-a415-4de5b4b5a375"
    assert member == stacks.Superblock(uuid, 18, 0)
    assert spare == stacks.Superblock(uuid, 18, None)
    assert alone == stacks.Superblock(uuid, 19, 1, missing=frozenset({0}))
    assert [found.is_copy for found in (member, spare, alone)] == [True, False, True]


def test_members_have_names_of_their_own_in_superblocks_from_1_0_on():
    name = uuid.UUID(int=9)
    superblock = struct.pack("<II160x16s", 0xA92B4EFC, 1, name.bytes).ljust(stacks.SUPERBLOCK_BYTES, b"\0")
    assert stacks.member_uuid(superblock) == str(name)
    old = struct.pack("<II160x16s", 0xA92B4EFC, 0, name.bytes)
    assert [stacks.member_uuid(other) for other in (old, superblock[:100], bytes(256))] == [None, None, None]


def test_a_member_that_is_built_up_says_so():
    text = MDADM["examine a member"].replace("          State :", "Recovery Offset : 20480 sectors\n          State :")
    assert not stacks.parse_superblock(text).is_copy


def test_a_journal_has_no_place_to_come_back_to():
    assert stacks.parse_superblock(MDADM["examine a member"].replace("Active device 0", "Journal")) is None


@pytest.mark.parametrize("text", ["", "mdadm: No md superblock detected on /dev/sda1.\n", MDADM["examine a member with metadata 0.90"]])
def test_what_does_not_say_whether_it_is_whole_is_no_superblock_to_go_by(text):
    assert stacks.parse_superblock(text) is None


def test_luks_headers_of_both_versions():
    version_1, version_2 = ((DATA / "luks" / f"luksdump-{version}.txt").read_text(encoding="utf-8") for version in (1, 2))

    assert stacks.parse_luks(version_1) == stacks.Luks(1, "aes-xts-plain64", 1, 4096 * 512)
    assert stacks.parse_luks(version_2) == stacks.Luks(2, "aes-xts-plain64", 1, 16 * 1024**2)
    assert stacks.parse_luks(version_2.split("Data segments:")[0]) == stacks.Luks(2, None, 0)
    assert stacks.parse_luks("Device /dev/sda1 is not a valid LUKS device.\n") is None


OTHER_KINDS = [
    *(
        "",
        "[]",
        "5",
        "null",
        '"text"',
        "{}",
        '{"report": {}}',
        '{"report": [[]]}',
        '{"report": [{"lv": {}}]}',
        '{"report": [{"lv": [[]]}]}',
    ),
    *('{"report": [{"lv": [{}]}]}', '{"report": [{"lv": [{"lv_name": {}, "lv_uuid": []}]}]}', "[" * 100_000, "1" * 5000),
]


@pytest.mark.parametrize("text", OTHER_KINDS)
def test_lvm_that_writes_something_else_is_one_error(text):
    with pytest.raises(ValueError, match=r"."):
        stacks.parse_logical_volumes(text)
    with pytest.raises(ValueError, match=r"."):
        stacks.parse_physical_volumes(text.replace("lv", "pv"))


@pytest.mark.parametrize("digits", ["4096", "9" * 5000])
def test_numbers_that_no_header_has_end_nothing(digits):
    found = stacks.parse_luks(f"Version:       \t1\nPayload offset:\t{digits}\n")
    assert found.version == 1
