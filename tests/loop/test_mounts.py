# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An ext4 as a power cut leaves it while it grows: the kernel refuses it until it was checked, as a start would check it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._mounting import MOUNTINFO, Entry, carry_out, plan_mounts
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine
from ansible_collections.bareon.allocator.tests.loop.layout_runs import leave_descriptors_in_the_journal, run


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file system whose superblock has grown, and whose last descriptor lies in the journal alone."""
    (tmp_path / "content").mkdir()
    (tmp_path / "content" / "kept").write_text("kept", encoding="utf-8")
    file = tmp_path / "disk.img"
    run("truncate", "--size=284M", str(file))
    run("mkfs.ext4", "-q", "-b", "1024", "-d", str(tmp_path / "content"), str(file))
    leave_descriptors_in_the_journal(str(file))
    return file


def test_an_ext4_that_was_cut_off_as_it_grew_is_checked_and_mounted(image: Path, tmp_path: Path) -> None:
    device = run("losetup", "--find", "--show", str(image)).strip()
    place, fstab, machine = tmp_path / "mounted", tmp_path / "fstab", LocalMachine()
    entry = Entry(device, str(place), "ext4", passno="2")
    try:
        place.mkdir()
        refused = subprocess.run(["mount", "-t", "ext4", device, str(place)], capture_output=True, text=True, check=False)
        assert "needs cleaning" in refused.stderr
        fstab.write_text(f"{entry.line}\n", encoding="utf-8")
        plan = plan_mounts([entry], fstab.read_text(encoding="utf-8"), machine.read(MOUNTINFO) or "")
        carry_out(plan, str(fstab), machine, pytest.fail)
        assert (place / "kept").read_text(encoding="utf-8") == "kept"
    finally:
        subprocess.run(["umount", str(place)], capture_output=True, check=False)
        run("losetup", "--detach", device)
