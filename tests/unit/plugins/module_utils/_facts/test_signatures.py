# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts import signatures
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import Signature, Table, TablePartition


def test_the_copies_of_a_gpt_are_one_signature():
    text = "# offset,uuid,label,type\n0x200,,,gpt\n0xfffffe00,,,gpt\n0x1fe,,,PMBR\n"

    assert signatures.parse_signatures(text) == (
        Signature("gpt", offsets=(0x200, 0xFFFFFE00)),
        Signature("PMBR", offsets=(0x1FE,)),
    )


def test_commas_and_blanks_in_a_label():
    text = "0x438,b1807b55-b160-42cd-b325-eb0eef25dbab,a,b\\x20c,ext4\n"

    assert signatures.parse_signatures(text) == (Signature("ext4", "b1807b55-b160-42cd-b325-eb0eef25dbab", "a,b c", (0x438,)),)


@pytest.mark.parametrize(
    ("listed", "label"),
    [(r"Gr\xc3\xb6\xc3\x9fe\x20\xc4\xb1", "Größe ı"), (r"Gr\xf6\xdfe", "Größe"), (r"\xe6\x97\xa5\x20\xe6", "\xe6\x97\xa5 \xe6")],
)
def test_labels_are_utf_8_and_what_cannot_be_is_latin_1(listed, label):
    assert signatures.parse_signatures(f"0x438,b1807b55-b160-42cd-b325-eb0eef25dbab,{listed},ext4\n")[0].label == label


def test_nothing_on_a_device():
    assert signatures.parse_signatures("") == ()


def table(label="gpt", sectorsize=None, partitions=(), **more):
    content = {"label": label, "unit": "sectors", "partitions": list(partitions), **more}
    return json.dumps({"partitiontable": {**content, **({"sectorsize": sectorsize} if sectorsize else {})}})


def test_a_table_on_sectors_of_4_kib():
    entry = {
        "node": "/dev/vdc1",
        "start": 256,
        "size": 262144,
        "type": "0FC63DAF-8483-4772-8E79-3D69D8477DE4",
        "uuid": "EA1E017D",
        "name": "k4",
    }

    parsed = signatures.parse_table(table(sectorsize=4096, partitions=[entry], id="83532641-38EC"), 4096)

    assert parsed == Table(
        "gpt",
        "83532641-38ec",
        (TablePartition(1, 1024**2, 1024**3, "0fc63daf-8483-4772-8e79-3d69d8477de4", "k4", "ea1e017d"),),
    )


def test_an_old_sfdisk_does_not_name_the_sector_size():
    entry = {"node": "/dev/vdc1", "start": 256, "size": 256, "type": "83"}

    (partition,) = signatures.parse_table(table("dos", partitions=[entry]), 4096).partitions

    assert (partition.start, partition.size, partition.type, partition.name, partition.uuid) == (1024**2, 1024**2, "0x83", None, None)


def test_partitions_come_by_number_and_a_table_may_have_none():
    entries = [{"node": node, "start": 1, "size": 1, "type": "83"} for node in ("/dev/nvme0n1p10", "/dev/nvme0n1p2")]

    assert [partition.number for partition in signatures.parse_table(table(partitions=entries), 512).partitions] == [2, 10]
    assert signatures.parse_table(table(), 512).partitions == ()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"partitiontable": []}'])
def test_what_is_no_table_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is json's or ours
        signatures.parse_table(text, 512)


def test_the_one_complaint_that_means_no_table():
    assert signatures.has_no_table("sfdisk: /dev/sda: does not contain a recognized partition table\n")
    assert not signatures.has_no_table("sfdisk: cannot open /dev/sda: Permission denied\n")


@pytest.mark.parametrize(
    ("node", "number"), [("/dev/sda1", 1), ("/dev/nvme0n1p12", 12), ("/dev/mapper/mpatha-part3", 3), ("/dev/loop0p1", 1)]
)
def test_partition_numbers(node, number):
    assert signatures.partition_number(node) == number


def test_a_node_without_a_number_is_refused():
    with pytest.raises(ValueError, match="/dev/sda does not end in a partition number"):
        signatures.partition_number("/dev/sda")


@pytest.mark.parametrize(("code", "written"), [("83", "0x83"), ("0xF", "0xf"), ("C12A7328-F81F", "c12a7328-f81f")])
def test_partition_types_are_written_as_lsblk_does(code, written):
    assert signatures.partition_type(code) == written


def test_probes_of_a_part_of_a_device():
    assert signatures.probe_command("/dev/loop0", 1048576, 8388608)[-5:] == ["--offset", "1048576", "--size", "8388608", "/dev/loop0"]
    assert signatures.parse_probe("DEVNAME=/dev/sda2\nVERSION=LVM2\\ 001\nTYPE=LVM2_member\nno pair\n") == {
        "DEVNAME": "/dev/sda2",
        "VERSION": "LVM2 001",
        "TYPE": "LVM2_member",
    }


def test_signatures_of_several_devices_are_told_apart():
    text = "# device,offset,uuid,label,type\nsda,0x200,,,gpt\nsda,0x1fe,,,PMBR\nos-root,0x438,b180,a,b\\x20c,ext4\n"

    assert signatures.parse_several(text) == {
        "sda": (Signature("gpt", offsets=(0x200,)), Signature("PMBR", offsets=(0x1FE,))),
        "os-root": (Signature("ext4", "b180", "a,b c", (0x438,)),),
    }
    assert signatures.parse_several("") == {}


@pytest.mark.parametrize(
    "table",
    [
        *(None, [], 5, {}, {"label": []}, {"label": "gpt", "partitions": {}}, {"label": "gpt", "partitions": [5]}),
        *({"label": "gpt", "partitions": [{}]}, {"label": "gpt", "partitions": [{"node": "x", "start": 1, "size": 1, "type": "y"}]}),
        {"label": "gpt", "partitions": [{"node": "x1", "start": float("inf"), "size": 1, "type": "y"}]},
        {"label": "gpt", "partitions": [{"node": "x1", "start": 1, "size": 1, "type": "y", "name": {}}]},
    ],
)
def test_an_sfdisk_that_writes_something_else_is_one_error(table):
    with pytest.raises(ValueError, match=r"."):
        signatures.parse_table(json.dumps({"partitiontable": table}), 512)


def test_lines_of_wipefs_without_an_offset_are_passed_over():
    text = "# offset,uuid,label,type\nnothing,u,l,ext4\n,,,\n0xzz,,,xfs\n0x438,u,l,ext4\n"
    assert signatures.parse_signatures(text) == (Signature("ext4", "u", "l", (0x438,)),)
