# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Loop devices that are gone after the test."""

from __future__ import annotations

import os
import shutil
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

TOOLS = {
    "losetup": "mount",
    "partx": "util-linux",
    "sfdisk": "fdisk",
    "sgdisk": "gdisk",
    "parted": "parted",
    "mdadm": "mdadm",
    "/lib/systemd/system-generators/systemd-fstab-generator": "systemd",
    "/lib/systemd/system-generators/systemd-cryptsetup-generator": "systemd-cryptsetup",
    "pvcreate": "lvm2",
    "cryptsetup": "cryptsetup-bin",
    "strace": "strace",
    "sshd": "openssh-server",
    "localedef": "libc-bin",
    "/lib/systemd/systemd-journald": "systemd",
    "mkfs.vfat": "dosfstools",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "mkfs.btrfs": "btrfs-progs",
    "mkfs.f2fs": "f2fs-tools",
    "clevis": "clevis",
    "clevis-luks-pass": "clevis-luks",
    "/usr/libexec/tangd": "tang-common",
}


def pytest_configure() -> None:
    if os.geteuid() != 0:
        pytest.exit("tests/loop makes loop devices and partitions on them, which only root may do: sudo make test-loop", returncode=1)
    missing = sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})
    if missing:
        pytest.exit(f"tests/loop needs tools that are not here: apt-get install --no-install-recommends {' '.join(missing)}", returncode=1)


@pytest.fixture
def loops(tmp_path: Path) -> t.Iterator[Loops]:
    found = Loops(tmp_path)
    yield found
    found.remove()
