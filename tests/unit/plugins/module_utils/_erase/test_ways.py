# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ways that a disk offers, as it reports them to its tools."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._erase.ways import (
    CRYPTO,
    DISCARD,
    SANITIZE,
    ZERO,
    choose,
    other_namespaces,
    ways_of,
)
from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import Disk
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine
from ansible_collections.bareon.allocator.tests.support.host.self_erasing import MIB, Flash, SelfErasing

# Lines of `hdparm -I`, of a disk that has sanitize and one whose block erase is not enabled.
HDPARM = (
    "Commands/features:\n\tEnabled\tSupported:\n"
    "\t   *\tSMART feature set\n\t   *\tSANITIZE feature set\n\t   *\tCRYPTO_SCRAMBLE_EXT command\n"
    "\t    \tBLOCK_ERASE_EXT command\n\t   *\tOVERWRITE_EXT command\n"
)
SUPPORTED = "\n Opcode=0x48, service_action 3\n  Command is supported [conforming to SCSI standard]\n"
NOT_SUPPORTED = "\n Opcode=0x48, service_action 3\n  Command is NOT supported\n"


def disk(name, transport, multipath=False):
    device = Device(name, f"/dev/{name}", "mpath" if multipath else "disk", 64 * MIB, row={"serial": "S1"})
    return Disk(device, f"/dev/disk/by-id/{name}", None, (), transport, device, (device,), multipath)


def methods(ways):
    return [(way.method, way.name.split(",")[0], way.whole_drive) for way in ways]


@pytest.mark.parametrize(
    ("sanicap", "fna", "oacs", "expected"),
    [
        pytest.param(0, 0, 0, [], id="nothing"),
        pytest.param(0b111, 0, 0, [(SANITIZE, "NVMe sanitize", True), (CRYPTO, "NVMe sanitize", True)], id="sanitize"),
        pytest.param(0, 0, 0b10, [(SANITIZE, "NVMe format", False)], id="format of one namespace"),
        pytest.param(0, 0b01, 0b10, [(SANITIZE, "NVMe format", True)], id="format of all"),
        pytest.param(0, 0b10, 0b10, [(SANITIZE, "NVMe format", True)], id="secure erase of all"),
        pytest.param(0, 0b100, 0b10, [(CRYPTO, "NVMe format", False), (SANITIZE, "NVMe format", False)], id="crypto format"),
    ],
)
def test_what_an_nvme_reports_is_offered(sanicap, fna, oacs, expected):
    machine = SelfErasing(Flash(bytearray(MIB)), sanicap, fna, oacs)
    found = ways_of(machine, disk("nvme0n1", "nvme"))
    assert methods(found) == [*expected, (ZERO, "zeros on all blocks", False)]
    # Blocks and metadata stay as they are: the disk would have another size otherwise.
    assert all({"--lbaf=1", "--ms=1", "--pi=1", "--pil=1"} <= set(way.command) for way in found if "format" in way.name)
    assert all(way.command[-1] == "/dev/nvme0n1" for way in found if way.command)


def test_no_tool_and_any_answer_but_its_own_leave_writing():
    for answer in ("", "[]", "{", '{"sanicap": "7", "oacs": [2]}', "[" * 100_000):
        machine = RecordingMachine({"nvme id-ctrl --output-format=json /dev/nvme0n1": answer})
        assert methods(ways_of(machine, disk("nvme0n1", "nvme"))) == [(ZERO, "zeros on all blocks", False)]


def test_an_ata_disk_offers_what_is_enabled_and_nothing_while_it_is_frozen():
    answers = {"hdparm -I /dev/sda": HDPARM, "hdparm --sanitize-status /dev/sda": "State:    SD0 Sanitize Idle"}
    found = ways_of(RecordingMachine(answers), disk("sda", "sata"))
    assert [way.method for way in found] == [CRYPTO, SANITIZE, ZERO]
    assert "--sanitize-overwrite" in found[1].command
    frozen = {**answers, "hdparm --sanitize-status /dev/sda": "State:    SD1 Sanitize Frozen"}
    assert [way.method for way in ways_of(RecordingMachine(frozen), disk("sda", "sata"))] == [ZERO]


def test_a_scsi_disk_offers_the_operations_that_it_supports():
    answers = {f"sg_opcodes --opcode=0x48,{number} /dev/sda": said for number, said in ((1, SUPPORTED), (2, NOT_SUPPORTED), (3, SUPPORTED))}
    found = ways_of(RecordingMachine(answers), disk("sda", "sas"))
    assert [way.method for way in found] == [CRYPTO, SANITIZE, ZERO]
    assert found[1].command == ("sg_sanitize", "--overwrite", "--zero", "--quick", "/dev/sda")


def test_a_disk_with_several_paths_is_only_written_to():
    answers = {f"sg_opcodes --opcode=0x48,{number} /dev/dm-0": SUPPORTED for number in (1, 2, 3)}
    assert [way.method for way in ways_of(RecordingMachine(answers), disk("dm-0", "sas", multipath=True))] == [ZERO]


def test_auto_is_never_a_discard():
    files = {"/sys/class/block/vda/queue/discard_max_bytes": "2147483648"}
    found = ways_of(RecordingMachine(files=files), disk("vda", "virtio"))
    assert [way.method for way in found] == [DISCARD, ZERO]
    assert choose(found, "auto").method == ZERO
    assert choose(found, "discard").method == DISCARD
    assert choose(found, "crypto") is None
    assert choose([dataclasses.replace(found[1], method=SANITIZE), *found], "auto").method == SANITIZE


def test_namespaces_that_no_controller_shows_are_counted():
    assert other_namespaces(SelfErasing(Flash(bytearray(MIB)), namespaces=3), "/dev/nvme0n1") == 2
    assert other_namespaces(RecordingMachine(), "/dev/nvme0n1") == 0
