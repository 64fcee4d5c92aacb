# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One disk from the first byte to its record: interrupted, resumed, lied to, and left alone when it is erased already."""

from __future__ import annotations

import dataclasses
import json
import os
import stat

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._erase import carry_out
from ansible_collections.bareon.allocator.plugins.module_utils._erase.carry_out import Stopped, Workplace, erase, finished
from ansible_collections.bareon.allocator.plugins.module_utils._erase.plan import Target
from ansible_collections.bareon.allocator.plugins.module_utils._erase.record import Records
from ansible_collections.bareon.allocator.plugins.module_utils._erase.ways import CLEAR, DISCARD, ZERO, Way, choose, ways_of
from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import Disk
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device
from ansible_collections.bareon.allocator.plugins.module_utils._layout.disks import FoundDisk
from ansible_collections.bareon.allocator.plugins.module_utils._schema.model import DesiredDisk
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import StepFailed
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine
from ansible_collections.bareon.allocator.tests.support.host.self_erasing import MIB, Flash, SelfErasing

SIZE = 24 * MIB
BY_WRITING = {ZERO: Way(ZERO, CLEAR, "zeros on all blocks"), DISCARD: Way(DISCARD, CLEAR, "discard of all blocks")}
STAT = "/sys/class/block/nvme0n1/stat"
BOOT = "/proc/sys/kernel/random/boot_id"


def flash(**options):
    return Flash(bytearray(os.urandom(SIZE)), **options)


def found(size=SIZE, serial="S1"):
    device = Device("nvme0n1", "/dev/nvme0n1", "disk", size, row={"serial": serial, "wwn": "eui.1", "model": "M  1"})
    disk = Disk(device, "/dev/disk/by-id/nvme-eui.1", None, (), "nvme", device, (device,))
    return FoundDisk(DesiredDisk("disks[0]", disk.id, disk.id, None, ()), disk, device, may_wipe=True)


def place(tmp_path, disk, machine=None, **options):
    machine = machine or RecordingMachine()
    return Workplace(machine, Records(str(tmp_path / "erase")), open=disk.opened, pause=lambda _seconds: None, now=lambda: 0.0, **options)


def after(count):
    """A signal that comes when it was asked after so often."""
    left = [count]

    def asked():
        left[0] -= 1
        return left[0] < 0

    return asked


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(carry_out, "_SAVED_EVERY", 8 * MIB)


def test_zeros_are_written_read_back_and_recorded(tmp_path):
    disk = flash()
    record = erase(place(tmp_path, disk), Target(found(), BY_WRITING[ZERO]))
    assert disk.content == bytes(SIZE)
    assert (record.verified, record.level, record.serial, record.model, record.size) == (True, "clear", "S1", "M 1", SIZE)
    assert record.ended == "1970-01-01T00:00:00Z"
    (file,) = (tmp_path / "erase").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("moment", range(12))
def test_stopped_at_any_moment_the_next_run_goes_on(tmp_path, moment):
    disk = flash()
    with pytest.raises(Stopped):
        erase(place(tmp_path, disk, stop_asked=after(moment)), Target(found(), BY_WRITING[ZERO]))
    before = disk.written
    record = erase(place(tmp_path, disk), Target(found(), BY_WRITING[ZERO]))
    assert record.verified
    assert disk.content == bytes(SIZE)
    if 0 < before < SIZE:
        assert disk.written == SIZE + before % (8 * MIB)


def test_what_was_written_over_since_is_found_and_written_again(tmp_path):
    disk = flash()
    with pytest.raises(Stopped):
        erase(place(tmp_path, disk, stop_asked=after(5)), Target(found(), BY_WRITING[ZERO]))
    disk.content[1000:1010] = b"new tenant"
    assert erase(place(tmp_path, disk), Target(found(), BY_WRITING[ZERO])).verified
    assert disk.content == bytes(SIZE)


def test_a_disk_that_keeps_its_data_is_an_error_and_has_no_record_of_success(tmp_path):
    disk = flash(keeps=True)
    with pytest.raises(StepFailed):
        erase(place(tmp_path, disk), Target(found(), BY_WRITING[ZERO]))
    assert finished(place(tmp_path, disk), found().disk, "auto") is None


def test_discarded_blocks_that_read_otherwise_are_not_verified(tmp_path):
    record = erase(place(tmp_path, flash(keeps=True)), Target(found(), BY_WRITING[DISCARD]))
    assert not record.verified
    assert erase(place(tmp_path / "other", flash()), Target(found(), BY_WRITING[DISCARD])).verified


def test_a_disk_that_came_into_use_is_not_touched(tmp_path):
    disk = flash(in_use=True)
    before = bytes(disk.content)
    with pytest.raises(StepFailed):
        erase(place(tmp_path, disk), Target(found(), BY_WRITING[ZERO]))
    machine = SelfErasing(disk)
    with pytest.raises(StepFailed):
        erase(place(tmp_path, disk, machine), Target(found(), choose(ways_of(machine, found().disk), "sanitize")))
    assert disk.content == before
    assert machine.commands == []


# ---- a disk that erases itself


def self_erasing(tmp_path, disk, sanicap=0b10, **options):
    machine = SelfErasing(disk, sanicap)
    machine.files = dict(machine_with(7).files)
    return place(tmp_path, disk, machine, **options), Target(found(), choose(ways_of(machine, found().disk), "sanitize"))


@pytest.mark.parametrize("sanicap", [0b10, 0], ids=["sanitize", "format"])
def test_a_disk_erases_itself(tmp_path, sanicap):
    disk = flash()
    where, target = self_erasing(tmp_path, disk, sanicap)
    record = erase(where, target)
    assert (record.verified, record.level) == (True, "purge")
    assert disk.content == bytes(SIZE)
    assert disk.written == 0


@pytest.mark.parametrize("sanicap", [0b10, 0], ids=["sanitize", "format"])
def test_a_disk_that_lies_is_found_out(tmp_path, sanicap):
    where, target = self_erasing(tmp_path, flash(keeps=True), sanicap)
    with pytest.raises(StepFailed):
        erase(where, target)
    assert finished(where, found().disk, "auto") is None


@pytest.mark.parametrize("moment", [0, 1, 2])
def test_a_run_that_is_stopped_finds_the_disk_at_work_or_done(tmp_path, moment):
    disk = flash(looks=4)
    where, target = self_erasing(tmp_path, disk, stop_asked=after(moment))
    with pytest.raises(Stopped):
        erase(where, target)
    where, target = self_erasing(tmp_path, disk)
    record = erase(where, target)
    assert record.verified
    # It was told once.
    assert where.machine.commands == []


@pytest.mark.parametrize(("written", "boot"), [(8, "b1"), (7, "b2")], ids=["written since", "started since"])
def test_what_came_after_the_end_of_a_stopped_run_is_erased_too(tmp_path, written, boot):
    disk = flash(looks=4)
    where, target = self_erasing(tmp_path, disk, stop_asked=after(0))
    with pytest.raises(Stopped):
        erase(where, target)
    while disk.look() == "active":
        pass
    disk.content[:10] = b"new tenant"
    where, target = self_erasing(tmp_path, disk)
    where.machine.files = dict(machine_with(written, boot).files)
    assert erase(where, target).verified
    assert disk.content == bytes(SIZE)


def test_discards_that_were_stopped_begin_again(tmp_path):
    disk = flash()
    with pytest.raises(Stopped):
        erase(place(tmp_path, disk, stop_asked=after(5)), Target(found(), BY_WRITING[DISCARD]))
    disk.content[:10] = b"new tenant"
    assert erase(place(tmp_path, disk), Target(found(), BY_WRITING[DISCARD])).verified
    assert disk.content == bytes(SIZE)


def test_a_signal_while_an_erased_disk_is_read_is_a_failure_in_words(tmp_path):
    disk = flash()
    erase(place(tmp_path, disk), Target(found(), BY_WRITING[ZERO]))
    with pytest.raises(StepFailed):
        finished(place(tmp_path, disk, stop_asked=after(0)), found().disk, "zero")


def test_a_power_cut_between_the_command_and_its_note(tmp_path):
    disk = flash(looks=4)
    where, target = self_erasing(tmp_path, disk)
    carry_out._begun(where, target)
    disk.erase()
    assert erase(where, target).verified


# ---- a second run


def machine_with(written, boot="b1"):
    return RecordingMachine(files={STAT: f"1 2 3 4 5 6 {written} 8 9 10 11", BOOT: boot})


def test_a_second_run_finds_the_disk_as_it_was_left(tmp_path):
    disk = flash()
    erase(place(tmp_path, disk, machine_with(100)), Target(found(), BY_WRITING[ZERO]))
    for method, stands in (("auto", True), ("zero", True), ("discard", False), ("crypto", False)):
        assert (finished(place(tmp_path, disk, machine_with(100)), found().disk, method) is not None) is stands
    assert finished(place(tmp_path, disk, machine_with(0, "b2")), found().disk, "auto") is not None
    disk.content[SIZE - 1] = 1
    assert finished(place(tmp_path, disk, machine_with(101)), found().disk, "auto") is None
    assert finished(place(tmp_path, disk, machine_with(0, "b2")), found().disk, "auto") is None


def test_a_command_is_given_again_where_something_may_have_been_written(tmp_path):
    disk = flash()
    machine = SelfErasing(disk)
    machine.files = dict(machine_with(7).files)
    target = Target(found(), choose(ways_of(machine, found().disk), "sanitize"))
    erase(place(tmp_path, disk, machine), target)
    assert finished(place(tmp_path, disk, machine_with(7)), found().disk, "auto") is not None
    assert finished(place(tmp_path, disk, machine_with(8)), found().disk, "auto") is None
    assert finished(place(tmp_path, disk, machine_with(7, "b2")), found().disk, "sanitize") is None


def test_discards_alone_do_not_stand_for_auto(tmp_path):
    disk = flash()
    erase(place(tmp_path, disk, machine_with(1)), Target(found(), BY_WRITING[DISCARD]))
    assert finished(place(tmp_path, disk, machine_with(1)), found().disk, "discard") is not None
    assert finished(place(tmp_path, disk, machine_with(1)), found().disk, "auto") is None


@pytest.mark.parametrize(
    "other",
    [pytest.param(found(size=SIZE // 2), id="size"), pytest.param(found(serial="S2"), id="serial number")],
)
def test_a_record_is_of_one_disk(tmp_path, other):
    where = place(tmp_path, flash())
    erase(where, Target(found(), BY_WRITING[ZERO]))
    assert where.records.load(other.disk.id, str(other.device.row["serial"]), other.device.size) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: "",
        lambda data: "[" * 100_000,
        lambda data: json.dumps([data]),
        lambda data: json.dumps({**data, "position": -1}),
        lambda data: json.dumps({**data, "position": "7"}),
        lambda data: json.dumps({**data, "record": {**data["record"], "verified": 1}}),
        lambda data: json.dumps({**data, "record": {**data["record"], "more": 1}}),
        lambda data: json.dumps({**data, "record": {}}),
        lambda data: json.dumps({**data, "samples": [1]}),
    ],
)
def test_a_damaged_record_is_none(tmp_path, damage):
    where = place(tmp_path, flash())
    erase(where, Target(found(), BY_WRITING[ZERO]))
    (file,) = (tmp_path / "erase").iterdir()
    file.write_text(damage(json.loads(file.read_text())))
    assert where.records.load(found().disk.id, "S1", SIZE) is None
    assert erase(where, Target(found(), BY_WRITING[ZERO])).verified


def test_names_of_disks_stay_in_the_folder(tmp_path):
    where = place(tmp_path, flash())
    disk = dataclasses.replace(found().disk, id="/dev/disk/by-id/..\n\x1b[31m\u202e")
    erase(where, Target(dataclasses.replace(found(), disk=disk), BY_WRITING[ZERO]))
    (file,) = (tmp_path / "erase").iterdir()
    assert file.name.isascii()
    assert file.name.isprintable()
