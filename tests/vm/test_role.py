# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role on a machine: what is encrypted opens by itself after a restart, is not waited for when it may be missing, and all grows."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.ansible_run import ROOT, Played, play
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, Machine, machine

GIB = 1024**3
OTHER = Disk("OTHER", GIB, "scsi")
HDD = Disk("HDD", 2 * GIB, "scsi", rotational=True)
NVME = Disk("NVME0", 2 * GIB, "nvme")
PROFILE = """---
- {id: keys, type: partition, size: 100, encrypt: true, mount: /srv/keys, fs_type: ext4, disks: yaql=$.disks.where($.transport = nvme)}
- {id: fast, type: vg, contains: [cache, swap], disks: yaql=$.disks.where($.transport = nvme)}
- {id: cache, type: lv, size: 400, mount: /srv/cache, fs_type: xfs, mount_options: noatime}
- {id: swap, type: lv, size: 64, fs_type: swap}
- {id: bulk, type: vg, contains: [data, log], encrypt: true, disks: yaql=$.disks.where($.rotational)}
- {id: data, type: lv, size: 300, mount: /srv/data, fs_type: ext4}
- {id: log, type: lv, size: 200, mount: /srv/data/log, fs_type: btrfs}
"""
MOUNTS = {"/srv/cache": "xfs", "/srv/data": "ext4", "/srv/data/log": "btrfs", "/srv/keys": "ext4"}
FILES = " ".join(f"{mount}/kept" for mount in MOUNTS)


@pytest.fixture
def host(image: Path, tmp_path: Path) -> t.Iterator[Machine]:
    with machine(image, tmp_path, [OTHER, HDD, NVME]) as started:
        for key in ("disks", "keys"):
            started.run("sh", "-c", f"umask 377; mkdir --parents --mode=700 /etc/keys; head --bytes=64 /dev/urandom >/etc/keys/{key}")
        yield started


def applied(host: Machine, folder: Path, **variables: t.Any) -> Played:
    (folder / "profile.yml").write_text(PROFILE, encoding="utf-8")
    given = {
        "bareon_profile": str(folder / "profile.yml"),
        "bareon_devices": [disk.link for disk in (OTHER, HDD, NVME)],
        "bareon_become": False,
        "bareon_nofail": ["/srv/keys"],
        "bareon_luks_key_file": "/etc/keys/disks",
        "bareon_luks_key_files": {"keys-crypt": "/etc/keys/keys"},
        **variables,
    }
    return play(host, folder, ROOT / "playbooks" / "apply.yml", given)


def mounted(host: Machine) -> dict[str, str]:
    lines = [line.split() for line in host.run("findmnt", "--raw", "--noheadings", "--output", "TARGET,FSTYPE").splitlines()]
    return {line[0]: line[1] for line in lines if line[0].startswith("/srv/")}


def check(host: Machine) -> None:
    assert mounted(host) == MOUNTS
    assert len(host.run("swapon", "--show", "--noheadings").splitlines()) == 1
    assert host.run("lsblk", "--noheadings", "--list", "--output", "TYPE").split().count("crypt") == 2
    assert host.run("wipefs", "--noheadings", OTHER.link) == "", "the disk that has no part in the plan"


def test_encrypted_spaces_open_after_a_restart_and_all_grows(host: Machine, tmp_path: Path) -> None:
    applied(host, tmp_path)
    check(host)
    containers = [line.split() for line in host.run("cat", "/etc/crypttab").splitlines() if not line.startswith("#")]
    assert [(line[0], line[2], line[3]) for line in containers] == [
        ("keys-crypt", "/etc/keys/keys", "luks,nofail"),
        ("bulk-crypt", "/etc/keys/disks", "luks"),
    ]
    host.run("sh", "-c", f"echo kept | tee {FILES}; sync")

    host.restart()
    assert host.run("systemctl", "--failed", "--quiet", "--plain") == ""
    check(host)
    assert host.run("sh", "-c", f"cat {FILES}").split() == ["kept"] * len(MOUNTS)
    assert applied(host, tmp_path).changed == 0

    grown = applied(host, tmp_path, bareon_overrides=[{"id": "data", "size": 500}, {"id": "cache", "size": 800}])
    assert grown.changed == 1
    sizes = host.run("df", "--block-size=M", "--output=size", "/srv/data", "/srv/cache").split()[1:]
    assert [int(size[:-1]) > least for size, least in zip(sizes, (440, 700), strict=True)] == [True, True]
    assert host.run("sh", "-c", f"cat {FILES}").split() == ["kept"] * len(MOUNTS)
