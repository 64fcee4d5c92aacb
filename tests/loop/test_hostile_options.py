# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No option of a schema reaches a disk that the schema does not name: two loop devices, one in the schema, the other in an option."""

from __future__ import annotations

import hashlib
import random
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS
from ansible_collections.bareon.allocator.tests.loop.layout_runs import MIB, attempt
from ansible_collections.bareon.allocator.tests.support.host.hostile_options import KNOWN_TO_DESTROY, Hostile, hostile_options
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

DRAWN = 5
"""Of the options of each file system, so many are run beside those that are known to destroy; all of them are read in a unit test."""
OWN = 64

Plain = dict[str, t.Any]


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def schema_of(device: str, hostile: Hostile) -> Plain:
    key = {"mount_options": "fstab_options"}.get(hostile.key, hostile.key)
    partition = {"name": f"{device}p1", "count": 1, "begin": 1, "end": 1 + OWN}
    filesystem = {"device": f"{device}p1", "fs_type": hostile.fs_type, "mount": "none", key: hostile.text}
    return {"parteds": [{"name": device, "disk_id": device, "partitions": [partition]}], "fss": [filesystem]}


@pytest.mark.parametrize("fs_type", FILESYSTEMS)
def test_no_option_reaches_another_disk(loops: Loops, tmp_path: Path, fs_type: str) -> None:
    own, other = (disk["dev"] for disk in loops.hardware([(OWN + 2) * MIB, 64 * MIB])["disks"])
    subprocess.run(["mkfs.ext4", "-q", "-L", "PAYROLL", other], check=True)
    before = [digest(tmp_path / name) for name in ("disk0", "disk1")]
    every = [hostile for hostile in hostile_options(other) if hostile.fs_type == fs_type]
    known = [Hostile(fs_type, "fs_options", text.format(other)) for text in KNOWN_TO_DESTROY.get(fs_type, ())]
    for hostile in (*known, *random.Random(fs_type).sample(every, DRAWN)):
        result = attempt({"schema": schema_of(own, hostile), "wipe": [own]})
        assert [digest(tmp_path / name) for name in ("disk0", "disk1")] == before, hostile
        assert result.get("failed"), hostile
        assert not result.get("changed"), hostile
        place = "fss[0].fs_options" if hostile.key == "fs_options" else "fss[0].fstab_options"
        assert all(mistake.startswith(f"{place}: ") for mistake in result["mistakes"]), result["mistakes"]
