# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The script that keeps EFI system partitions alike asks lsblk on which disk one is, and keeps those that the host's list names."""

from __future__ import annotations

import subprocess
import unicodedata

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._booting import esp_sync

GIB = 1024**3
LABEL, NAME = "caf\u00e9 data", "pr\u00e9cieux"


@pytest.fixture
def partition(loops):
    """An EFI system partition, on a disk with another one that has a label and a name with accents."""
    (disk,) = loops.hardware([GIB])["disks"]
    node = disk["id"]
    subprocess.run(["sgdisk", "-n1:0:+256M", "-t1:ef00", "-c1:esp", "-n2:0:0", f"-c2:{NAME}", node], check=True, capture_output=True)
    subprocess.run(["partx", "--add", node], check=False, capture_output=True)
    subprocess.run(["mkfs.vfat", "-n", "EFI-ONE", f"{node}p1"], check=True, capture_output=True)
    subprocess.run(["mkfs.ext4", "-q", "-L", LABEL, f"{node}p2"], check=True, capture_output=True)
    return f"{node}p1"


def is_protected(partition, folder, *entries):
    listed = folder / "protected"
    listed.write_text("".join(f"{entry}\n" for entry in entries))
    begin, end = esp_sync.TEXT.index("comparable() {"), esp_sync.TEXT.index("# The old file stays open")
    script = f"export LC_ALL=C work={folder} protected={listed}\n{esp_sync.TEXT[begin:end]}\nis_protected {partition}\n"
    done = subprocess.run(["sh", "-uc", script], capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode in (0, 1)) == ("", True)
    return done.returncode == 0


def test_what_names_anything_on_its_disk_protects_it(partition, tmp_path):
    disk = partition.removesuffix("p1")
    command = ["blkid", "-p", "-o", "value", "-s", "UUID", "-s", "PART_ENTRY_UUID", f"{disk}p2"]
    uuids = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert len(uuids) == 2
    forms = [unicodedata.normalize(form, text) for text in (LABEL, NAME) for form in ("NFC", "NFD")]
    for entry in (partition, f"{disk}p2", disk, disk.rsplit("/", 1)[-1], "EFI-ONE", "esp", *uuids, *forms):
        for line in (entry, f"{entry} # mine", f'LABEL="{entry}"', f"'{entry.upper()}'"):
            assert is_protected(partition, tmp_path, "# others", "other", line), line


def test_what_names_nothing_on_it_does_not(partition, tmp_path):
    assert not is_protected(partition, tmp_path, f"# {partition}", "cafe", "data", f"{partition}1", "EFI-ON", "/dev/loop")


def test_what_lsblk_does_not_know_is_protected(tmp_path):
    assert is_protected("/dev/nothing", tmp_path, "other")
