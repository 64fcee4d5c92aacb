# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Protected disks: what protects one, and that nothing is written to it, neither directly nor through what it is a member of."""

from __future__ import annotations

import dataclasses
import os

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.hardware import read_hardware
from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import LocalHost
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import Signature
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Filesystem
from ansible_collections.bareon.allocator.plugins.module_utils._layout.disks import find_disks
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.protected import (
    PROTECTED_FILE,
    Protection,
    protections_of,
    protections_of_node,
    read_protections,
    unmatched,
)
from ansible_collections.bareon.allocator.plugins.module_utils._layout.written import write_refusals
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import ExtendLogicalVolume, ExtendVolumeGroup
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import (
    MIB,
    host_with_table,
    installed,
    maker_on,
    new_host,
    plan,
    refusal,
    simple,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out

SDA = (Protection(f"{BY_ID}sda", "protect"),)
SDB = (Protection("wwn-sdb", f"{PROTECTED_FILE}:3"),)


def with_row(present, name, **values):
    """The state with values in the row of a disk, as the readers leave it: the disk and the tree have the same device."""
    device = dataclasses.replace(present.tree.devices[name], row={**present.tree.devices[name].row, **values})
    disks = tuple(
        dataclasses.replace(disk, device=device, source=device, paths=(device,)) if disk.device.name == name else disk
        for disk in present.disks
    )
    return dataclasses.replace(present, tree=present.tree.with_devices([device]), disks=disks)


def disk_of(present, name):
    return next(disk for disk in present.disks if disk.device.name == name)


@pytest.mark.parametrize(
    "entry",
    [
        f"{BY_ID}sda",
        "wwn-sda",
        "S3Z8NB0K1",
        "s3z8nb0k1",
        "S3Z8NB0K1   # the database",
        "0x5000c500a1b2c3d4",
        "5000C500A1B2C3D4",
        "naa.5000c500a1b2c3d4",
        "wwn-0x5000c500a1b2c3d4",
        "/dev/disk/by-id/wwn-0x5000C500A1B2C3D4",
        "/dev/disk/by-id/WWN-SDA",
        "//dev/disk//by-id/wwn-sda",
        "precious # 1",
        "'precious # 1'",
        'LABEL="precious # 1"',
        "SERIAL=S3Z8NB0K1 # the database",
        "wwn=0x5000c500a1b2c3d4",
        "/dev/sda",
    ],
)
def test_an_entry_protects_by_id_serial_number_wwn_and_label(entry):
    present = with_row(new_host().present(), "sda", serial="S3Z8NB0K1", wwn="0x5000c500a1b2c3d4")
    labelled = dataclasses.replace(present.tree.devices["sda"], filesystem=Filesystem("xfs", None, "precious # 1"))
    tree = present.tree.with_devices([labelled])
    protections = (Protection(entry, "protect"),)

    assert protections_of(disk_of(present, "sda"), tree, protections) == protections
    assert protections_of(disk_of(present, "sdb"), tree, protections) == ()


@pytest.mark.parametrize(
    "entry",
    [
        "caf\u00e9 data",
        "cafe\u0301 data",
        "PARTLABEL=caf\u00e9 data",
        "UUID=12ab-34cd",
        'UUID="12ab-34cd"',
        "5c4d",
        "partuuid=5c4d # x",
        "luks",
        "12AB-34CD",
        "UUID=12AB-34CD",
        "/dev/disk/by-uuid/12AB-34CD",
        "/dev/disk/by-partlabel/caf\u00e9\\x20data",
        "disk/by-partuuid/5C4D",
        "12ab-34cd\u200b",
        "\ufeffLUKS",
    ],
)
def test_an_entry_protects_by_the_name_of_a_partition_and_by_uuids(entry):
    present = host_with_table("sda", (1, 1, 50, "caf\u00e9 data")).present()
    part = next(child for child in present.tree.children("sda"))
    known = dataclasses.replace(
        part,
        filesystem=Filesystem("vfat", "12ab-34cd", None),
        partition=dataclasses.replace(part.partition, uuid="5c4d"),
        signatures=(Signature("crypto_LUKS", "u", "luks"),),
    )
    tree = present.tree.with_devices([known])
    assert protections_of(disk_of(present, "sda"), tree, [Protection(entry, "protect")])
    assert not protections_of(disk_of(present, "sda"), tree, [Protection(f"x{entry}", "protect")])


def test_a_label_on_a_volume_protects_all_disks_of_it():
    host = installed(simple())
    volume = next(device for device in host.present().tree.devices.values() if device.title == "data")
    present = host.present()
    labelled = present.tree.with_devices([dataclasses.replace(volume, filesystem=Filesystem("xfs", "u", "pgdata"))])
    group, title = volume.group, volume.title
    for entry in ("pgdata", f"{group}/{title}", f"/dev/{group}/{title}", "sda", volume.dev):
        assert protections_of(disk_of(present, "sda"), labelled, [Protection(entry, "protect")]), entry
    assert not protections_of(disk_of(present, "sda"), labelled, [Protection(f"{group}/other", "protect")])
    (moving,) = unmatched(present.disks, labelled, [Protection("sda", "protect")])
    assert "can be another disk after a reboot" in moving


def test_an_entry_without_a_disk_and_one_that_may_move_are_warnings():
    present = new_host().present()
    missing, node, good = Protection("nowhere", "protect"), Protection("/dev/sda", f"{PROTECTED_FILE}:2"), Protection("wwn-sdb", "protect")
    said = list(unmatched(present.disks, present.tree, [missing, node, good]))
    assert [text.split(" ")[0] for text in said] == ["'nowhere'", "'/dev/sda'"]
    assert f"{PROTECTED_FILE}:2" in said[1]
    found = plan(new_host(), simple().schema, protections=(missing,))
    assert found.steps
    assert any("nowhere" in note for note in found.notes)


def test_nothing_is_written_to_a_protected_disk_even_an_empty_one():
    said = refusal(new_host(), simple().schema, protections=SDA)
    assert f"{BY_ID}sda (/dev/sda)" in said
    assert f"'{BY_ID}sda' of protect" in said


def test_protection_wins_over_wipe_and_the_refusal_does_not_ask_for_it():
    host = host_with_table("sda", (1, 1, 50, "old"))
    assert plan(host, simple().schema, ["sda"]).steps
    for wipe in ([], ["sda"]):
        said = refusal(host, simple().schema, wipe, protections=SDA)
        assert "of protect" in said
        assert "in wipe if" not in said


def test_a_protected_disk_that_stays_as_it_is_does_not_matter():
    maker = simple()
    found = plan(installed(maker), maker.schema, ["sda"], protections=SDA, keep_unlisted=False)
    assert (found.steps, found.refusals) == ((), ())


def test_a_label_of_our_own_file_system_protects_what_a_changed_layout_would_grow():
    maker = simple()
    host = installed(maker)
    maker.schema["lvs"][0]["size"] += 8
    assert plan(host, maker.schema).steps
    assert f"{PROTECTED_FILE}:3" in refusal(host, maker.schema, protections=(Protection("wwn-sda", f"{PROTECTED_FILE}:3"),))


def one_group_on(*disks):
    """A volume group on several disks, with a volume."""
    maker = maker_on(*disks)
    for disk in disks:
        maker.fill(maker.partition(disk, 100, "os"), 100, "pv", "os", "ext4")
    maker.schema["vgs"] = [{"name": "vg0", "pvnames": [volume["name"] for volume in maker.schema["pvs"]]}]
    maker.volume("vg0", "data", 20, False, "xfs")
    return maker.schema


def test_a_group_with_a_member_on_a_protected_disk_does_not_change():
    two, three = one_group_on("sda", "sdb"), one_group_on("sda", "sdb", "sdc")
    host = new_host()
    for step in plan(host, two).steps:
        carry_out(host, step)
    assert any(isinstance(step, ExtendVolumeGroup) for step in plan(host, three).steps)
    said = refusal(host, three, protections=SDB)
    assert "(/dev/sdb)" in said
    assert "extend the volume group" in said


def test_an_array_with_a_member_on_a_protected_disk_is_not_made_and_not_started():
    maker = maker_on("sda", "sdb")
    maker.mirror(("sda", "sdb"), 100, "data", "1.2")
    assert "(/dev/sdb)" in refusal(new_host(), maker.schema, protections=SDB)


def test_a_protected_disk_outside_of_the_schema_is_reached_through_its_group():
    two = one_group_on("sda", "sdb")
    host = new_host()
    for step in plan(host, two).steps:
        carry_out(host, step)
    smaller = {
        **two,
        "parteds": two["parteds"][:1],
        "pvs": two["pvs"][:1],
        "vgs": [{"name": "vg0", "pvnames": two["vgs"][0]["pvnames"][:1]}],
    }
    layout, present = parse_static_schema(smaller), host.present()
    step = ExtendLogicalVolume("vg0", "data", 88 * MIB, 80 * MIB)
    found, _refusals = find_disks(layout, present, ())
    (said,) = write_refusals(layout, present, found, [step], SDB)
    assert said.startswith(f"{BY_ID}sdb (/dev/sdb) is protected")


def test_the_file_of_the_host_has_comments_and_blank_lines():
    host = RecordedHost({"files": {PROTECTED_FILE: "# the database\n\nS3Z8NB0K1  # first\n  pgdata\n"}})
    found, mistakes = read_protections(host, ["wwn-0x5000c500a1b2c3d4"])
    assert not mistakes
    assert [(each.entry, each.origin) for each in found] == [
        ("wwn-0x5000c500a1b2c3d4", "protect"),
        ("S3Z8NB0K1  # first", f"{PROTECTED_FILE}:3"),
        ("pgdata", f"{PROTECTED_FILE}:4"),
    ]
    assert read_protections(RecordedHost({}), []) == ((), ())


@pytest.mark.parametrize(
    ("files", "option", "place"),
    [
        ({PROTECTED_FILE: PermissionError(13, "Permission denied")}, [], PROTECTED_FILE),
        ({PROTECTED_FILE: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")}, [], PROTECTED_FILE),
        ({PROTECTED_FILE: "sda\nsd\x00b"}, [], f"{PROTECTED_FILE}:2"),
        ({}, ["sda", " "], "protect[1]"),
        ({}, ["sd\x1ba"], "protect[0]"),
    ],
)
def test_what_cannot_be_read_is_a_mistake_and_not_an_empty_list(files, option, place):
    _found, mistakes = read_protections(RecordedHost({"files": files}), option)
    assert [text.partition(": ")[0] for text in mistakes] == [place]


def test_a_file_of_settings_is_a_regular_file_of_text(tmp_path):
    host = LocalHost()
    (tmp_path / "good").write_bytes(b"\xef\xbb\xbfsda\n")
    assert host.read_setting(str(tmp_path / "good")) == "sda\n"
    assert host.read_setting(str(tmp_path / "none")) is None
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    (tmp_path / "null").symlink_to("/dev/null")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b"sd\xff")
    for name in ("folder", "link", "null", "pipe"):
        with pytest.raises(OSError, match=r"."):
            host.read_setting(str(tmp_path / name))
    with pytest.raises(UnicodeDecodeError):
        host.read_setting(str(tmp_path / "bytes"))


def test_a_read_only_disk_only_matters_where_something_is_to_be_done_on_it():
    maker = simple()
    locked = with_row(installed(maker).present(), "sda", ro=True)
    layout = parse_static_schema(maker.schema)
    assert (plan_steps(layout, locked).steps, plan_steps(layout, locked).refusals) == ((), ())
    maker.schema["lvs"][0]["size"] += 8
    (said,) = plan_steps(parse_static_schema(maker.schema), locked).refusals
    assert said.startswith(f"{BY_ID}sda (/dev/sda) is read-only")


def test_a_node_is_protected_with_the_disk_that_it_is_on():
    host = RecordedHost.load("vm-storage.json")
    serial = next(disk["serial"] for disk in read_hardware(host)[0]["disks"] if disk["dev"] == "/dev/sda")
    protections = (Protection(str(serial), "protect"),)
    assert protections_of_node(host, "/dev/sda1", protections) == protections
    assert protections_of_node(host, "/dev/nvme0n1p2", protections) == ()
    assert protections_of_node(host, "/dev/sda1", ()) == ()
