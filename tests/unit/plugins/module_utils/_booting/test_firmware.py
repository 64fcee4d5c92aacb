# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Boot entries of a firmware, as efibootmgr 17 and 18 list them, and a program in its place for what is written."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._booting.firmware import EFIVARS, Entry, Partition, read_entries, steps
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import StepFailed
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine

ONE, TWO, GONE = (f"{number}a4e1f00-1111-4222-8333-444444444444" for number in (1, 2, 3))
SAID = f"""BootCurrent: 0001
Timeout: 0 seconds
BootOrder: 0003,0001,0004
Boot0000* UiApp\tFvVol(7cb8bdc9-f8eb-4f34-aaea-3ee4af6516a1)/FvFile(462caa21-7614-4503-836e-8ab6f4662331)
Boot0001* debian\tHD(1,GPT,{ONE},0x800,0x100000)/File(\\EFI\\debian\\shimx64.efi)
Boot0003  UEFI PXEv4\tPciRoot(0x0)/Pci(0x2,0x0)/MAC(525400123456,1)/IPv4(0.0.0.0,0,0){{auto_created_boot_option}}
      dp: 02 01 0c 00 d0 41 03 0a 00 00 00 00
Boot0004* bareon {GONE[:8]}\tHD(1,GPT,{GONE.upper()},0x800,0x100000)/\\EFI\\BOOT\\BOOTX64.EFI
Boot000A* other\tHD(1,GPT,{GONE},0x800,0x100000)/\\EFI\\other.efi
"""
PARTITIONS = (Partition("/dev/a", 1, ONE, "/dev/a1"), Partition("/dev/b", 2, TWO, "/dev/b2"))
TALKS = {"efibootmgr --verbose": SAID}
VARIABLES = {EFIVARS: ["Boot0001-8be4df61-93ca-11d2-aa0d-00e098032b8c"]}


def test_entries_are_read_with_what_they_start_from():
    assert read_entries(SAID) == (
        Entry("0000", "UiApp", ""),
        Entry("0001", "debian", ONE),
        Entry("0003", "UEFI PXEv4", ""),
        Entry("0004", f"bareon {GONE[:8]}", GONE),
        Entry("000A", "other", GONE),
    )


def test_what_lacks_an_entry_gets_one_and_ours_that_start_from_nothing_go():
    add, remove = steps(PARTITIONS, "x86_64", RecordingMachine(TALKS, folders=VARIABLES))
    assert add.command[4:] == (f"bareon {TWO[:8]}", "\\EFI\\BOOT\\BOOTX64.EFI", "/dev/b", "2")
    assert remove.command == ("efibootmgr", "--quiet", "--bootnum", "0004", "--delete-bootnum")
    assert add.on_host
    assert remove.on_host
    right = SAID.replace(GONE, TWO).replace(GONE.upper(), TWO.upper())
    assert list(steps(PARTITIONS, "x86_64", RecordingMachine({"efibootmgr --verbose": right}, folders=VARIABLES))) == []


def test_a_new_entry_is_the_last_one_in_the_order(tmp_path):
    add, _remove = steps(PARTITIONS, "x86_64", RecordingMachine(TALKS, folders=VARIABLES))
    tool = tmp_path / "efibootmgr"
    tool.write_text(
        '#!/bin/sh\ncd "$(dirname "$0")"\necho "$*" >>asked\ncase "$*" in\n'
        "*--create-only*) echo 'Boot0002* new' >>entries ;;\n--quiet*) ;;\n*) cat order entries ;;\nesac\n"
    )
    tool.chmod(0o755)
    (tmp_path / "order").write_text("BootOrder: 0003,0001\n")
    (tmp_path / "entries").write_text("Boot0001* debian\nBoot0003  UEFI PXEv4\n")
    subprocess.run(add.command, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)
    assert (tmp_path / "asked").read_text().splitlines()[-1] == "--quiet --bootorder 0003,0001,0002"
    (tmp_path / "order").write_text("")
    (tmp_path / "entries").write_text("")
    subprocess.run(add.command, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)
    assert (tmp_path / "asked").read_text().splitlines()[-1] == "--quiet --bootorder 0002"


@pytest.mark.parametrize(
    ("answers", "folders", "processor", "says"),
    [
        (TALKS, {}, "x86_64", "not started by UEFI"),
        ({}, VARIABLES, "x86_64", "no efibootmgr"),
        (TALKS, VARIABLES, "riscv64", "riscv64 is not known"),
    ],
)
def test_what_has_no_entries_is_said(answers, folders, processor, says):
    with pytest.raises(StepFailed, match=says):
        list(steps(PARTITIONS, processor, RecordingMachine(answers, folders=folders)))
