# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import TablePartition
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import Region, StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import (
    ClearGaps,
    FinishPartitions,
    TableEntry,
    WritePartitionTable,
    gaps,
    table_script,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.signatures import ClearSignatures, cleared_regions
from ansible_collections.bareon.allocator.plugins.module_utils._storage.samples import SAMPLE, between_ends, places_of_copies
from ansible_collections.bareon.allocator.plugins.module_utils._storage.units import MIB
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine

LINUX = "0fc63daf-8483-4772-8e79-3d69d8477de4"
UUIDS = [f"{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}" for digit in "123456"]
TABLE = UUIDS[0]

# What is kept of a table has its sector numbers in units of the disk.
FIRST = TableEntry(1, MIB, 100 * MIB, LINUX, UUIDS[1], "root", None, True)
SECOND = TableEntry(3, 101 * MIB, 50 * MIB, LINUX, UUIDS[2], 'a "quoted" \\ name', "GUID:60", False)
ROOM = (Region(MIB, MIB), Region(100 * MIB, MIB), *(Region(MIB + place, SAMPLE) for place in between_ends(100 * MIB)))
"""What is cleared of the room of the first, which begins at 1 MiB and has 100."""


def written(sector, *entries, table=TABLE, **headers):
    """The table as sfdisk lists it."""
    partitions = [
        {
            "node": f"/dev/sda{entry.number}",
            "start": entry.start // sector,
            "size": entry.size // sector,
            "type": entry.type.upper(),
            "uuid": entry.uuid.upper(),
            "name": entry.name,
        }
        for entry in entries
    ]
    document = {"label": "gpt", "id": table.upper(), "sectorsize": sector, **headers, "partitions": partitions}
    return json.dumps({"partitiontable": document})


def disk(sector, *entries, kernel=(), after=None, **more):
    """A machine with a disk of 1 GiB, the partitions that its kernel has, and what is read back of its table."""
    sizes = {f"/sys/class/block/sda{entry.number}/size": str(entry.size // 512) for entry in entries}
    numbers = {f"/sys/class/block/sda/sda{number}/partition": str(number) for number in kernel}
    return RecordingMachine(
        {"sfdisk --json /dev/sda": after or written(sector, *entries), **more.pop("answers", {})},
        {"/sys/class/block/sda/size": str(1024 * MIB // 512), **sizes, **numbers},
        {"/sys/class/block/sda": ["queue", *(f"sda{number}" for number in kernel)]},
        **more,
    )


def copies(*entries):
    """Where what was on the disk as a whole may have copies of its superblock, outside of these partitions."""
    places = [place for place in places_of_copies() if MIB <= place <= 1023 * MIB - 4096]
    return [Region(place, 4096) for place in places if not any(one.start <= place < one.start + one.size for one in entries)]


@pytest.mark.parametrize("sector", [512, 4096])
def test_a_disk_is_ours_by_an_empty_table_before_anything_old_is_cleared_and_gets_all_partitions_at_once(sector):
    machine = disk(sector, FIRST, SECOND, kernel=(1, 2))

    WritePartitionTable("/dev/sda", "disk", TABLE, sector, True, (FIRST, SECOND)).run(machine)

    assert machine.commands == [
        "partx --delete --nr 1 /dev/sda",
        "partx --delete --nr 2 /dev/sda",
        "sfdisk --quiet --no-reread --no-tell-kernel --wipe=never --wipe-partitions=never /dev/sda",
        "wipefs --all --quiet --types nogpt,noPMBR /dev/sda",
        "sfdisk --quiet --no-reread --no-tell-kernel --wipe=never --wipe-partitions=never /dev/sda",
        "partx --update --nr 1:3 /dev/sda",
    ]
    empty, script = (event[2] for event in machine.events if event[0] == "change" and event[2])
    assert empty.decode().splitlines() == ["label: gpt", f"label-id: {TABLE}", "unit: sectors", f"first-lba: {MIB // sector}"]
    start, size = MIB // sector, 100 * MIB // sector
    assert script.decode().splitlines() == [
        "label: gpt",
        f"label-id: {TABLE}",
        "unit: sectors",
        f"first-lba: {start}",
        f'1: start={start}, size={size}, type={LINUX}, uuid={UUIDS[1]}, name="root"',
        f'3: start={101 * start}, size={50 * start}, type={LINUX}, uuid={UUIDS[2]}, name="a \\x22quoted\\x22 \\x5c name", attrs="GUID:60"',
    ]
    zeros = [event[1:] for event in machine.events if event[0] == "zero"]
    table = {512: 34 * 512, 4096: 6 * 4096}[sector]
    beside = (Region(0, 440), *([Region(512, 3584)] if sector == 4096 else []))
    around = (*beside, Region(table, MIB - table), Region(1023 * MIB, MIB - table))
    assert zeros == [("/dev/sda", (), True), ("/dev/sda", (*around, *ROOM, *copies(FIRST, SECOND)), True)]
    kinds = [event[0] for event in machine.events if event[0] in ("lock", "unlock", "zero", "change", "wait")]
    assert kinds == ["lock", "change", "change", "zero", "change", "change", "zero", "change", "change", "unlock", "wait"]
    assert ("wait", ("/dev/sda1", "/dev/sda3")) in machine.events


@pytest.mark.parametrize("claimed", [True, False])
def test_a_disk_that_is_held_is_not_written_to_and_one_that_is_not_is_not_opened_for_nothing(monkeypatch, claimed):
    machine = disk(512, FIRST)
    monkeypatch.setattr(machine, "claimed", lambda _device: claimed)
    step = WritePartitionTable("/dev/sda", "disk", TABLE, 512, True, (FIRST,))
    if claimed:
        with pytest.raises(StepFailed, match="/dev/sda is in use"):
            step.run(machine)
        assert machine.commands == []
        assert not [event for event in machine.events if event[0] == "zero"]
    else:
        step.run(machine)
        assert [len(event[2]) for event in machine.events if event[0] == "zero"] == [3 + len(ROOM) + len(copies(FIRST))]


def test_a_changed_table_keeps_its_headers_and_what_is_in_use():
    # sfdisk writes the one as a number, the other as text.
    headers = {"firstlba": 34, "lastlba": 9, "table-length": "256"}
    machine = disk(512, FIRST, SECOND, kernel=(2, 3), after=written(512, FIRST, SECOND, **headers))

    WritePartitionTable("/dev/sda", "disk", TABLE, 512, False, (FIRST, SECOND), (2, 5)).run(machine)

    assert machine.commands == [
        "partx --delete --nr 2 /dev/sda",
        "sfdisk --quiet --no-reread --no-tell-kernel --wipe=never --wipe-partitions=never /dev/sda",
        "partx --update --nr 1:3 /dev/sda",
    ]
    (script,) = machine.given.values()
    assert script.decode().splitlines()[:5] == ["label: gpt", f"label-id: {TABLE}", "unit: sectors", "first-lba: 34", "table-length: 256"]
    # Other partitions are in use, and with them the disk: only the new room is cleared.
    assert [event for event in machine.events if event[0] == "zero"] == [("zero", "/dev/sda", ROOM, False)]


def test_nothing_is_written_when_the_kernel_does_not_let_a_partition_go():
    machine = disk(512, FIRST, kernel=(1,), failing={"partx --delete": 1})

    with pytest.raises(StepFailed, match="partx --delete --nr 1 /dev/sda failed with code 1: its words"):
        WritePartitionTable("/dev/sda", "disk", TABLE, 512, True, (FIRST,)).run(machine)

    assert {event[0] for event in machine.events} == {"lock", "change", "give way"}
    assert set(machine.commands) == {"partx --delete --nr 1 /dev/sda"}


def test_a_scan_that_holds_a_partition_for_an_instant_is_waited_for():
    machine = disk(512, FIRST, kernel=(1,), failing={"partx --delete": 1})
    machine.give_way = machine.failing.clear

    WritePartitionTable("/dev/sda", "disk", TABLE, 512, True, (FIRST,)).run(machine)

    assert machine.commands[:2] == ["partx --delete --nr 1 /dev/sda"] * 2


@pytest.mark.parametrize(
    "found",
    [
        written(512, FIRST),
        written(512, FIRST, SECOND, table=UUIDS[5]),
        written(512, FIRST, TableEntry(3, 101 * MIB, 51 * MIB, LINUX, UUIDS[2], SECOND.name)),
        written(512, FIRST, TableEntry(3, 101 * MIB, 50 * MIB, LINUX, UUIDS[3], SECOND.name)),
        written(512, FIRST, TableEntry(3, 101 * MIB, 50 * MIB, LINUX, UUIDS[2], "other")),
    ],
)
def test_a_table_that_reads_back_differently_is_a_failure(found):
    machine = disk(512, FIRST, SECOND, after=found)

    with pytest.raises(StepFailed, match="differs from what was written"):
        WritePartitionTable("/dev/sda", "disk", TABLE, 512, True, (FIRST, SECOND)).run(machine)


def test_a_partition_that_the_kernel_has_otherwise_is_a_failure():
    machine = disk(512, FIRST)
    machine.files["/sys/class/block/sda1/size"] = "8"

    with pytest.raises(StepFailed, match="/dev/sda1 with 4096 bytes instead of 104857600"):
        WritePartitionTable("/dev/sda", "disk", TABLE, 512, True, (FIRST,)).run(machine)


def test_partitions_of_multipath_disks_are_a_matter_of_kpartx():
    node = "/dev/mapper/mpatha"
    sizes = {f"/sys/class/block/{name}/size": str(size) for name, size in {"mpatha": 1024 * 2048, "mpatha-part1": 100 * 2048}.items()}
    machine = RecordingMachine({f"sfdisk --json {node}": written(512, FIRST)}, sizes)

    WritePartitionTable(node, "disk", TABLE, 512, True, (FIRST,)).run(machine)

    assert machine.commands[-1] == f"kpartx -u -p -part {node}"
    assert ("wait", (f"{node}-part1",)) in machine.events


THIRD = TableEntry(4, 200 * MIB, 50 * MIB, LINUX, UUIDS[3], "another's")


def finishing(sector, after, *entries):
    """A machine with a disk with these partitions, and what is read back in the end."""
    return RecordingMachine({"sfdisk --json /dev/sda": [written(sector, *entries, firstlba=34), after]})


@pytest.mark.parametrize("sector", [512, 4096])
def test_partitions_get_their_final_identities_in_one_write_of_the_whole_table(sector):
    final = [dataclasses.replace(FIRST, uuid=UUIDS[4]), dataclasses.replace(SECOND, uuid=UUIDS[5], attrs=None), THIRD]
    machine = finishing(sector, written(sector, *final), FIRST, SECOND, THIRD)

    FinishPartitions("/dev/sda", sector, (1, 3), (UUIDS[4], UUIDS[5])).run(machine)

    assert machine.commands == [
        "sfdisk --quiet --no-reread --no-tell-kernel --wipe=never --wipe-partitions=never /dev/sda",
    ]
    assert [event[0] for event in machine.events] == ["lock", "run", "change", "unlock", "run"]
    (script,) = machine.given.values()
    assert script.decode() == table_script(TABLE, sector, ["first-lba: 34"], final)


def test_an_identity_that_is_not_there_afterwards_is_a_failure():
    machine = finishing(512, written(512, FIRST), FIRST)
    with pytest.raises(StepFailed, match="differs from what was written"):
        FinishPartitions("/dev/sda", 512, (1,), (UUIDS[5],)).run(machine)


def test_a_partition_that_is_gone_is_not_finished_and_nothing_is_written():
    machine = finishing(512, written(512, FIRST), FIRST)
    with pytest.raises(StepFailed, match="no GPT with the partitions 1, 3"):
        FinishPartitions("/dev/sda", 512, (1, 3), (UUIDS[4], UUIDS[5])).run(machine)
    assert machine.commands == []


def test_gaps_spare_table_backup_and_partitions():
    size = 1024 * MIB
    partitions = [TablePartition(1, MIB // 2, MIB, LINUX), TablePartition(2, 500 * MIB, size - 500 * MIB - MIB // 4, LINUX)]
    table = 34 * 512
    assert gaps(size, table, []) == (Region(table, MIB - table), Region(size - MIB, MIB - table))
    assert gaps(size, table, partitions) == (
        Region(table, MIB // 2 - table),
        Region(size - MIB // 4, MIB // 4 - table),
    )
    full = [TablePartition(1, table, size - 2 * table, LINUX)]
    assert gaps(size, table, full) == ()


@pytest.mark.parametrize(("sector", "table"), [(512, 34 * 512), (4096, 6 * 4096)])
def test_old_signatures_are_cleared_around_a_table(sector, table):
    machine = disk(sector, FIRST)
    ClearGaps("/dev/sda", "disk", (512, 3 * MIB)).run(machine)
    assert machine.commands[:2] == ["wipefs --force --quiet --offset 512 /dev/sda", f"wipefs --force --quiet --offset {3 * MIB} /dev/sda"]
    zeros = [event[1:] for event in machine.events if event[0] == "zero"]
    assert zeros == [("/dev/sda", (Region(table, MIB - table), Region(1023 * MIB, MIB - table)), False)]


def test_a_device_is_cleared_at_both_ends_and_where_copies_lie():
    sizes = {"/sys/class/block/sda1/size": str(300 * 1024**3 // 512), "/sys/class/block/sdb1/size": "2048"}
    machine = RecordingMachine({"wipefs --parsable /dev/sda1 /dev/sdb1": ""}, sizes)
    ClearSignatures(("/dev/sda1", "/dev/sdb1")).run(machine)
    assert machine.commands == ["wipefs --all --quiet /dev/sda1 /dev/sdb1"]
    zeros = [event for event in machine.events if event[0] == "zero"]
    assert [event[1] for event in zeros] == ["/dev/sda1", "/dev/sdb1"]
    assert zeros[1][2] == (Region(0, MIB),)
    (_kind, _device, regions, exclusively), _other = zeros
    assert exclusively
    assert regions[:2] == (Region(0, MIB), Region(300 * 1024**3 - MIB, MIB))
    assert {region.start for region in regions[2:]} == {MIB, 2 * MIB, 4 * MIB, 64 * MIB, 256 * 1024**3}


def test_only_samples_with_data_are_cleared():
    """A thin volume gets no room for zeros that it has."""
    size = 100 * MIB
    machine = RecordingMachine({"wipefs --parsable /dev/sda1": ""}, {"/sys/class/block/sda1/size": str(size // 512)})
    written = between_ends(size)[3]
    machine.read_bytes = lambda _path, start, length: (b"x" if start == written else b"\0") * length
    ClearSignatures(("/dev/sda1",)).run(machine)
    ((_kind, _device, regions, _exclusively),) = [event for event in machine.events if event[0] == "zero"]
    assert Region(written, SAMPLE) in regions
    assert not {Region(place, SAMPLE) for place in between_ends(size) if place != written} & set(regions)


@pytest.mark.parametrize("head", [MIB, 3 * MIB, 130 * MIB])
@pytest.mark.parametrize("size", [512, MIB, 2 * MIB, 2 * MIB + 512, 5 * MIB, 64 * MIB + 4096, 200 * MIB])
def test_nothing_outside_of_a_small_device_is_cleared(size, head):
    regions = cleared_regions(size, head)
    assert max(region.start + region.size for region in regions if region.start <= MIB) >= min(size, head)
    assert all(region.start >= 0 and region.start + region.size <= size for region in regions)
    assert min(region.start for region in regions) == 0
    assert max(region.start + region.size for region in regions) == size


def test_what_stays_after_clearing_is_a_failure():
    small = {"/sys/class/block/sda1/size": "2048"}
    machine = RecordingMachine({"wipefs --parsable /dev/sda1": "# offset,uuid,label,type\n0x438,x,y,ext4\n"}, small)
    with pytest.raises(StepFailed, match="/dev/sda1 was cleared, but still has ext4"):
        ClearSignatures(("/dev/sda1",)).run(machine)
    with pytest.raises(StepFailed, match="cannot be read back"):
        ClearSignatures(("/dev/sda1",)).run(RecordingMachine(files=small))
