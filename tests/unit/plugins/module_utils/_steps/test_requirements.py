# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import Outcome
from ansible_collections.bareon.allocator.plugins.module_utils._steps import requirements as needs
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import GrowFilesystem, MakeFilesystem, RestoreSuperblock
from ansible_collections.bareon.allocator.plugins.module_utils._steps.key import Key
from ansible_collections.bareon.allocator.plugins.module_utils._steps.luks import FormatLuks, OpenLuks
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import CreateLogicalVolume
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import CreateArray
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import WritePartitionTable
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine
from ansible_collections.bareon.allocator.tests.support.host.step_kinds import all_kinds, sample

MISC, DEVICES = "/proc/misc", "/proc/devices"
THIN, CACHE = "/sys/module/dm_thin_pool/initstate", "/sys/module/dm_cache/initstate"
ABLE = {
    MISC: "232 kvm\n 236 device-mapper",
    DEVICES: "Block devices:\n  7 loop\n  9 md\n253 device-mapper",
    THIN: "live\n",
    CACHE: "live\n",
}

VOLUME = CreateLogicalVolume("os", "root", 4, "/dev/mapper/os-root")
ARRAY = CreateArray("/dev/md/a", "a", "raid1", ("/dev/sda1", "/dev/sdb1"), (), "1.2", "u")


def programs(step):
    """The tools of a step, by their names."""
    return tuple(tool.program for tool in step.tools())


@pytest.mark.parametrize("kind", all_kinds())
def test_every_kind_of_step_has_known_tools_and_packages_and_can_be_carried_out(kind):
    step = sample(kind)
    said = needs.missing(RecordingMachine(files=ABLE, tools=()), [step])
    assert said
    assert all("install the package" in line for line in said)
    with contextlib.suppress(StepFailed, ValueError):
        step.run(RecordingMachine().with_key(Key(b"x")))


@pytest.mark.parametrize(
    ("says", "full"),
    [
        ("Avail Inodes IFree\n 1000 500 1\n", False),
        ("Avail Inodes IFree\n 255 500 400\n", True),
        ("Avail Inodes IFree\n 1000 500 0\n", True),
        ("Avail Inodes IFree\n 1000 0 0\n", False),
        ("Avail Inodes IFree\n 1000 - -\n", False),
    ],
)
def test_a_full_run_is_named_where_there_is_something_to_do(says, full):
    """A btrfs counts no inodes."""
    machine = RecordingMachine(files=ABLE, answers={"df --output=avail,itotal,iavail --block-size=1K /run": says})
    said = " ".join(needs.missing(machine, [VOLUME]))
    assert ("no room in /run" in said) is full
    assert needs.missing(machine, []) == ()


def test_missing_tools_are_named_with_their_packages_all_at_once():
    steps = [
        MakeFilesystem("/dev/sda1", "xfs", "u", "", ()),
        MakeFilesystem("/dev/sda2", "vfat", "u", "", ()),
        FormatLuks("/dev/sda3", "u", True),
    ]
    assert needs.missing(RecordingMachine(tools={"blkid"}), steps) == (
        "there is no cryptsetup on this host: install the package cryptsetup-bin on Debian, cryptsetup on Red Hat",
        "there is no mkfs.vfat on this host: install the package dosfstools",
        "there is no mkfs.xfs on this host: install the package xfsprogs",
    )


def test_lvm_is_one_package():
    assert needs.missing(RecordingMachine(files=ABLE, tools=()), [VOLUME]) == ("there is no lvm2 on this host: install the package lvm2",)


@pytest.mark.parametrize(
    ("kind", "mountpoint", "tools"),
    [
        ("ext4", "/srv", ("resize2fs",)),
        ("ext4", None, ("resize2fs", "e2fsck", "unshare", "mount")),
        ("xfs", "/srv", ("xfs_growfs",)),
        ("xfs", None, ("xfs_growfs", "unshare", "mount")),
        ("btrfs", None, ("btrfs", "unshare", "mount")),
        ("f2fs", None, ("resize.f2fs", "fsck.f2fs")),
    ],
)
def test_growing_takes_what_it_takes(kind, mountpoint, tools):
    assert programs(GrowFilesystem("/dev/sda1", kind, mountpoint)) == tools


def test_a_superblock_is_restored_by_e2fsck():
    assert programs(RestoreSuperblock("/dev/sda1", "ext4", 8193, 1024)) == ("dd", "e2fsck")


def test_tables_of_multipath_disks_take_kpartx():
    assert "kpartx" in programs(WritePartitionTable("/dev/mapper/mpatha", "x", "u", 512, True, ()))
    assert "kpartx" not in programs(WritePartitionTable("/dev/sda", "x", "u", 512, True, ()))


class ModularMachine(RecordingMachine):
    """A machine that has kernel modules."""

    def __init__(self, *modules, files=None):
        super().__init__(files=files)
        self.modules = modules

    def run(self, command):
        if command[0] != "modprobe":
            return super().run(command)
        self.events.append(("run", " ".join(command)))
        return Outcome(0 if command[-1] in self.modules else 1, "", "")


@pytest.mark.parametrize("step", [VOLUME, OpenLuks("/dev/sda1", "x"), ARRAY])
def test_what_the_kernel_cannot_do_is_said(step):
    assert needs.missing(RecordingMachine(files=ABLE), [step]) == ()
    assert needs.missing(ModularMachine("dm_mod", "md_mod"), [step]) == ()
    (said,) = needs.missing(RecordingMachine(files={MISC: "232 kvm", DEVICES: "7 loop"}), [step])
    assert "this kernel does not support" in said
    (said,) = needs.missing(ModularMachine(), [step])
    assert "container" in said


def test_what_is_not_loaded_is_loaded():
    machine = ModularMachine("dm_mod", "md_mod", files={MISC: "", DEVICES: ABLE[DEVICES]})
    needs.load_abilities(machine, [VOLUME, ARRAY])
    assert machine.events == [("run", "modprobe dm_mod")]


def test_a_luks_header_takes_nothing_of_the_kernel():
    assert needs.missing(RecordingMachine(), [FormatLuks("/dev/sda1", "u", aligned=False)]) == ()
