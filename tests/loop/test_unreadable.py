# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A disk that has errors of reading is refused, whatever may be wiped: wipefs and blkid take what they cannot read for nothing."""

from __future__ import annotations

import json
import os
import subprocess
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.loop.layout_runs import EXT4, MIB, refuse, run, schema

SIZE = 300 * MIB
SPOILT = {"the first sector": 0, "the superblock of an ext4": 2, "the last sector": SIZE // 512 - 1, "where a first partition begins": 2048}


@pytest.fixture
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> t.Iterator[str]:
    """A disk with an ext4, of which one sector cannot be read."""
    medium, served = tmp_path / "medium.img", tmp_path / "served.img"
    for file in (medium, served):
        with open(file, "wb") as image:
            image.truncate(SIZE)
    run("mkfs.ext4", "-q", str(medium))
    error = {"event": "none", "iotype": "read", "sector": request.param, "errno": 5}
    spoilt = {"driver": "blkdebug", "node-name": "spoilt", "image": "medium", "inject-error": [error]}
    blocks = [f"file,node-name=medium,filename={medium}", json.dumps(spoilt)]
    daemon = subprocess.Popen(
        ["qemu-storage-daemon", *(word for block in blocks for word in ("--blockdev", block))]
        + ["--export", f"fuse,id=disk,node-name=spoilt,mountpoint={served},writable=on"]
    )
    try:
        end = time.monotonic() + 60
        while not run("stat", "--file-system", "--format=%T", str(served)).startswith("fuse"):
            assert time.monotonic() < end, f"{served} is not served: is there /dev/fuse?"
            time.sleep(0.05)
        device = run("losetup", "--find", "--show", str(served)).strip()
        yield device
        run("losetup", "--detach", device)
    finally:
        daemon.terminate()
        daemon.wait(60)


@pytest.mark.parametrize("disk", SPOILT.values(), ids=SPOILT, indirect=True)
def test_a_disk_with_errors_of_reading_is_refused_wipe_or_not(disk: str) -> None:
    wanted = schema(disk, {"name": "boot", "size": 100, **EXT4})
    for options in ({"schema": wanted}, {"schema": wanted, "wipe": [disk]}):
        said = refuse(options)
        assert f"{disk} has something unreadable at" in said
        assert os.strerror(5) in said
