# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests and nodes of the stand-in, and what users may."""

from __future__ import annotations

from dataclasses import dataclass, field

GIB = 2**30
AUDITOR = {"Datastore.Audit", "Mapping.Audit", "Pool.Audit", "SDN.Audit", "Sys.Audit", "VM.Audit"}
"""The role PVEAuditor."""
MOVER = AUDITOR | {"VM.Migrate", "Sys.Console", "VM.Config.Disk", "Datastore.AllocateSpace"}


@dataclass
class Guest:
    """A machine or a container."""

    vmid: int
    node: str
    name: str = ""
    kind: str = "qemu"
    status: str = "running"
    memory: int = 4
    """GiB"""
    used: float = 1.0
    """GiB that it really uses."""
    cores: int = 2
    cpu: float = 0.1
    pressure: float = 0.0
    config: dict = field(default_factory=lambda: {"scsi0": "ceph:vm-disk-0,size=10G"})
    tags: str = ""
    pool: str = ""
    template: bool = False
    ha: str = ""
    """The state that HA is asked for; empty where it is no resource of HA. What is `ignored` behaves as if it were none."""
    fails: str = ""
    """How its migrations fail."""
    lock: str = ""
    replicas: list = field(default_factory=list)
    """The nodes that its disks are replicated to."""
    rebalanced: bool = True
    """Whether HA may balance it, if HA balances at all."""

    @property
    def sid(self) -> str:
        """How HA calls it."""
        return f"{'vm' if self.kind == 'qemu' else 'ct'}:{self.vmid}"

    @property
    def under_ha(self) -> bool:
        """Whether HA manages it."""
        return self.ha not in ("", "ignored")


@dataclass
class Machine:
    """A node."""

    memory: int = 64
    """GiB"""
    cpus: int = 16
    online: bool = True
    away: bool = False
    """It is said to be online, but does not answer."""
    maintenance: bool = False
    storages: dict = field(default_factory=lambda: {"ceph": {"shared": 1}, "local-lvm": {"shared": 0}, "local": {"content": "iso"}})
    cpu_model: str = "Intel(R) Xeon(R) Gold 6130"
    flags: str = "fpu sse2 avx2 avx512f"
    machines: tuple = ("9.2", "10.0", "10.1")
    """The versions of QEMU's machines that it has."""


def may(rights: dict[str, set[str]], where: str, privilege: str) -> bool:
    """Return whether rights by path let somebody use a privilege; the longest path above counts, as in the real one."""
    above = [path for path in rights if where == path or where.startswith(path.rstrip("/") + "/")]
    return bool(above) and privilege in rights[max(above, key=len)]
