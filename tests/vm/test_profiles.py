# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every profile, applied by the playbook to a machine with disks that it fits: as planned, once, and all is back after a restart.

The disks are sparse and can be large, for file systems are made without being written from end to end. All is mounted below /target.
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, load_profile
from ansible_collections.bareon.allocator.tests.support.vm.ansible_run import play
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

GIB = 1024**3
ROOT = Path(__file__).parents[2]
TARGET = "/target"

Plain = dict[str, t.Any]

SYSTEM = [Disk("SYSTEM", 48 * GIB, "scsi")]
MORE_SSDS = [Disk(f"SSD-{number}", 72 * GIB, "scsi") for number in range(4)]
HDDS = [Disk(f"HDD-{number}", 120 * GIB, "scsi", rotational=True) for number in range(6)]
NVMES = [Disk(f"NVME-{number}", 80 * GIB, "nvme") for number in range(2)]

HARDWARE: dict[str, list[Disk]] = {
    "ceph-osd": [*SYSTEM, *HDDS[:3], *NVMES],
    "ceph-osd-nvme": NVMES,
    "cis-hardened": SYSTEM,
    "database": [*SYSTEM, *MORE_SSDS, *NVMES],
    "elasticsearch-hot": [*SYSTEM, *NVMES],
    "elasticsearch-warm": [*SYSTEM, *HDDS],
    "file-server": [*SYSTEM, *HDDS],
    "general": [Disk("SMALL", 8 * GIB, "scsi", rotational=True)],
    "hadoop-jbod": [*SYSTEM, *HDDS[:4]],
    "kafka-jbod": [*SYSTEM, *HDDS[:3]],
    "kubernetes-node": [*SYSTEM, MORE_SSDS[0]],
    "kvm-host": [*SYSTEM, *MORE_SSDS],
    "lab-host": [*SYSTEM, *MORE_SSDS],
    "software-raid-boot": MORE_SSDS[:2],
    "web-vm": [Disk("VIRTUAL", 10 * GIB, "scsi", block=4096)],
}


def test_every_profile_has_hardware() -> None:
    assert set(HARDWARE) == {file.stem for file in PROFILES.glob("*.yml")}


@pytest.mark.parametrize("profile", HARDWARE)
def test_a_profile_is_applied_once_and_is_back_after_a_restart(
    profile: str, layout_host: t.Callable[[list[Disk]], LayoutHost], tmp_path: Path
) -> None:
    host = layout_host(HARDWARE[profile])
    plan = host.plan(load_profile(PROFILES / f"{profile}.yml"))
    variables = {
        "bareon_profile": profile,
        "bareon_devices": [disk.link for disk in HARDWARE[profile]],
        "bareon_root": TARGET,
        "bareon_become": False,
    }
    first = play(host.machine, tmp_path, ROOT / "playbooks" / "apply.yml", variables)
    assert first.changed > 0
    host.check(plan)
    filesystems = [entry for entry in plan["schema"]["fss"] if entry["mount"].startswith("/")]
    mounts = {f"{TARGET}{entry['mount'].rstrip('/')}": entry["fs_type"] for entry in filesystems}
    assert mounted(host) == mounts
    assert len(swaps(host)) == sum(entry["fs_type"] == "swap" for entry in plan["schema"]["fss"])
    second = play(host.machine, tmp_path, ROOT / "playbooks" / "apply.yml", variables)
    assert second.changed == 0, second.output
    files = " ".join(f"{mount}/precious" for mount in mounts)
    host.shell(f"for file in {files}; do head -c 3000000 /dev/urandom >$file; done")
    sums = host.shell(f"sha256sum {files}") if files else ""

    host.machine.restart()
    host.calm_arrays()
    host.shell("systemctl is-system-running --wait || { systemctl --failed --no-pager; false; }")
    assert mounted(host) == mounts
    assert len(swaps(host)) == sum(entry["fs_type"] == "swap" for entry in plan["schema"]["fss"])
    assert (host.shell(f"sha256sum {files}") if files else "") == sums
    again = host.apply(plan["schema"])
    assert (again["changed"], again["steps"]) == (False, [])


def mounted(host: LayoutHost) -> dict[str, str]:
    """Return the types of what is mounted below the target, by mount point."""
    found = json.loads(host.shell("findmnt --json --list --real --output TARGET,FSTYPE"))["filesystems"]
    return {entry["target"]: entry["fstype"] for entry in found if entry["target"].startswith(TARGET)}


def swaps(host: LayoutHost) -> list[str]:
    return host.shell("swapon --show=NAME --noheadings").split()
