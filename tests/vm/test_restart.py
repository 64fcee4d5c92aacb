# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The least that has to be seen on a real machine: volumes in LUKS on a mirror, made by the playbook, are all back after a restart.

One of them has grown in use before that, with its ext4: loop devices do not show that everywhere. That a second run changes nothing is
seen in test_role.py and test_profiles.py: here every minute counts, for this runs at every change.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.ansible_run import ROOT, play
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, Machine, machine

DISKS = [Disk(name, 512 * 1024**2, "scsi") for name in ("LEFT", "RIGHT")]
PROFILE = """---
- {id: mirror, type: raid, level: raid1, legs: 2, min_size: 200}
- {id: safe, type: vg, contains: [mirror, data, swap], encrypt: true}
- {id: data, type: lv, size: 100, mount: /srv/data, fs_type: ext4}
- {id: swap, type: lv, size: 64, fs_type: swap}
"""
STACK = ["lvm", "crypt", "raid1", "part", "disk", "part", "disk"]


@pytest.fixture
def host(image: Path, tmp_path: Path) -> t.Iterator[Machine]:
    with machine(image, tmp_path, DISKS) as started:
        started.run("sh", "-c", "umask 377; mkdir --mode=700 /etc/keys; head --bytes=64 /dev/urandom >/etc/keys/disks")
        yield started


def check(host: Machine) -> None:
    source = host.run("findmnt", "--noheadings", "--output", "SOURCE", "/srv/data").strip()
    assert host.run("lsblk", "--noheadings", "--inverse", "--list", "--output", "TYPE", source).split() == STACK
    assert len(host.run("swapon", "--show", "--noheadings").splitlines()) == 1


def room(host: Machine) -> int:
    """Return the MiB that the file system of the data has."""
    return int(host.run("df", "--block-size=1M", "--output=size", "/srv/data").split()[-1])


def test_all_is_back_after_a_restart(host: Machine, tmp_path: Path) -> None:
    (tmp_path / "profile.yml").write_text(PROFILE, encoding="utf-8")
    given = {
        "bareon_profile": str(tmp_path / "profile.yml"),
        "bareon_devices": [disk.link for disk in DISKS],
        "bareon_become": False,
        "bareon_luks_key_file": "/etc/keys/disks",
    }
    play(host, tmp_path, ROOT / "playbooks" / "apply.yml", given)
    check(host)
    host.run("sh", "-c", "echo kept >/srv/data/file; sync")
    small = room(host)
    play(host, tmp_path, ROOT / "playbooks" / "apply.yml", {**given, "bareon_overrides": [{"id": "data", "size": 200}]})
    assert room(host) - small > 90
    host.restart()
    assert host.run("systemctl", "--failed", "--quiet", "--plain") == ""
    check(host)
    assert host.run("cat", "/srv/data/file").strip() == "kept"
    assert room(host) - small > 90
