# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The least sizes of file systems are those of their programs, and less is a mistake of the schema before anything is written."""

from __future__ import annotations

import hashlib
import subprocess
import uuid
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS, least_size
from ansible_collections.bareon.allocator.tests.loop.layout_runs import MIB, attempt
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

OTHER_OPTIONS = {
    "vfat": [("-F", "16"), ("-F", "12")],
    "btrfs": [("-M",)],
    "ext4": [("-O", "^has_journal")],
}
CASES = [
    (fs_type, sector, options) for fs_type in FILESYSTEMS for sector in (512, 4096) for options in [(), *OTHER_OPTIONS.get(fs_type, [])]
]
NOT_AS_IT_IS_TO_BE = ("too small for a journal", "less then suggested minimum")
"""What mkfs.ext4 and mkfs.vfat say of what they make all the same."""


def is_made(fs_type: str, device: str, options: tuple[str, ...]) -> bool:
    # mkfs.btrfs takes no UUID that another device has.
    identity = "1A2B-3C4D" if fs_type == "vfat" else str(uuid.uuid4())
    command = FILESYSTEMS[fs_type].make_command(device, identity, "x", options)
    made = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return made.returncode == 0 and not any(words in made.stdout + made.stderr for words in NOT_AS_IT_IS_TO_BE)


@pytest.mark.parametrize(("fs_type", "sector", "options"), CASES)
def test_the_least_is_made_and_less_is_not(loops: Loops, fs_type: str, sector: int, options: tuple[str, ...]) -> None:
    least = least_size(fs_type, options, sector)
    sizes = [least * MIB, *([(least - 1) * MIB] if least > 1 else [])]
    made = [is_made(fs_type, disk["dev"], options) for disk in loops.hardware(sizes, sector)["disks"]]
    assert made == [True, False][: len(made)]


def schema_of(device: str, mib: int, fs_type: str) -> dict[str, object]:
    parts = [{"name": f"{device}p1", "begin": 1, "end": 1 + mib}]
    return {"parteds": [{"name": device, "disk_id": device, "partitions": parts}], "fss": [{"device": f"{device}p1", "fs_type": fs_type}]}


@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize("fs_type", [name for name in FILESYSTEMS if least_size(name) > 1])
def test_too_small_a_file_system_is_a_mistake_and_destroys_nothing(loops: Loops, tmp_path: Path, fs_type: str, sector: int) -> None:
    (disk,) = loops.hardware([700 * MIB], sector)["disks"]
    subprocess.run(["mkfs.ext4", "-q", "-F", disk["dev"]], check=True)
    before = hashlib.sha256((tmp_path / "disk0").read_bytes()).hexdigest()
    least = least_size(fs_type, (), sector)
    for check in (True, False):
        result = attempt({"schema": schema_of(disk["dev"], least - 1, fs_type), "wipe": [disk["dev"]]}, check=check)
        assert result.get("failed"), result
        assert not result.get("changed")
        assert "fss[0].device: " in result["msg"]
        assert f"{least} or more" in result["msg"]
    assert hashlib.sha256((tmp_path / "disk0").read_bytes()).hexdigest() == before
    made = attempt({"schema": schema_of(disk["dev"], least, fs_type), "wipe": [disk["dev"]]})
    assert not made.get("failed"), made


@pytest.mark.parametrize("sector", [512, 4096])
def test_the_superblock_of_xfs_says_the_size_that_its_program_says(loops: Loops, sector: int) -> None:
    (disk,) = loops.hardware([411 * MIB], sector)["disks"]
    assert is_made("xfs", disk["dev"], ())
    growth = FILESYSTEMS["xfs"].growth
    assert growth is not None
    assert growth.measure.superblock is not None
    said = subprocess.run(["xfs_info", disk["dev"]], capture_output=True, text=True, check=True).stdout
    with open(disk["dev"], "rb") as file:
        assert growth.measure.superblock.read(file.read(growth.measure.superblock.fields.size)) == growth.measure.read(said)
    assert growth.measure.superblock.read(b"XFSX" + bytes(12)) is None
