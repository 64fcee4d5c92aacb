# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The domains of all nodes as guests: each one once, with the storage of its disks and what ties it to its node."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...cluster.model import Disk, DiskTemplate, Instance, PoolKind, PoolName, Status
from .domain import Domain, DomainDisk, sizes_of_disks
from .markup import in_mib, read_whole
from .pools import Pool, Volume

_STOPPED = frozenset({"5", "6"})
"""The states `shut off` and `crashed` of domstats; all others take memory."""


@dataclass(frozen=True)
class Guest:
    """A domain on a node."""

    domain: Domain
    name: str
    node: str
    place: str
    runs: bool
    used: int
    """Bytes of memory that the node sees it take; 0 where that is unknown."""
    disks: tuple[Disk, ...]
    pools: frozenset[str]
    """The pools of its disks, by name."""
    offered: Mapping[str, frozenset[str]]
    """The pools of each node that answers."""
    stays: str
    """Why its disks keep it on its node."""
    ties: tuple[str, ...]
    tied_by: str

    def as_instance(self) -> Instance:
        """Return it as the model has it."""
        pools = sorted({disk.storage for disk in self.disks if disk.storage is not None}, key=lambda name: name.kind == PoolKind.EXTERNAL)
        return Instance(
            name=self.name,
            memory=in_mib(self.domain.memory),
            disk=sum(disk.size for disk in self.disks),
            vcpus=self.domain.vcpus,
            primary=self.node,
            status=Status.RUNNING if self.runs else Status.ADMIN_DOWN,
            disk_template=DiskTemplate.PLAIN if self.stays else DiskTemplate.EXT,
            disks=self.disks,
            storage=pools[0] if pools else None,
            tags=self.domain.tags,
            stays=self.stays,
        )


@dataclass(frozen=True)
class Storages:
    """The pools of every node that answers, its volumes by path, and the names of the pools that are shared."""

    pools: Mapping[str, Sequence[Pool]]
    volumes: Mapping[str, Mapping[str, Volume]]
    shared: frozenset[str]

    def pool_of(self, node: str, disk: DomainDisk) -> Pool | None:
        """Return the pool that a disk lies in."""
        by_name = {pool.name: pool for pool in self.pools[node]}
        if disk.pool or disk.path in self.volumes[node]:
            return by_name.get(disk.pool or self.volumes[node][disk.path].pool)
        above = [pool for pool in by_name.values() if pool.path and disk.path.startswith(f"{pool.path}/")]
        return max(above, key=lambda pool: len(pool.path), default=None)

    def size_of(self, node: str, disk: DomainDisk) -> int:
        """Return the bytes of a disk by the list of volumes, 0 where it is not there."""
        ends = f"/{disk.path}"
        for path, volume in self.volumes[node].items():
            if path == disk.path or (disk.pool == volume.pool and disk.pool and path.endswith(ends)):
                return volume.size
        return 0


def make_guest(
    domain: Domain, node: str, place: str, statistics: Mapping[str, str], storages: Storages, snapshots: bool, local_disks: bool
) -> Guest:
    """Return a domain as a guest; `local_disks` lets those that run be copied."""
    state = statistics.get("state.state", "")
    runs = domain.has_id if not state else state not in _STOPPED
    sizes = sizes_of_disks(statistics)
    lies = [(disk, storages.pool_of(node, disk)) for disk in domain.disks]
    disks = [(disk, pool) for disk, pool in lies if not disk.is_drive]
    used = read_whole(statistics.get("balloon.rss", "")) or read_whole(statistics.get("balloon.current", "")) or 0
    ties = [*domain.ties, *_images(lies, storages.shared), *(["it has snapshots"] if snapshots else [])]
    return Guest(
        domain=domain,
        name=domain.name,
        node=node,
        place=place,
        runs=runs,
        # Huge pages count as taken, used or not, and are no part of what a process is seen to use.
        used=0 if not runs else domain.memory if domain.page_size is not None else used * 1024,
        disks=tuple(
            Disk(
                in_mib(sizes.get(disk.name) or storages.size_of(node, disk)),
                name=disk.name,
                storage=None if pool is None else _name_of(pool, storages.shared),
            )
            for disk, pool in disks
        ),
        pools=frozenset(pool.name for _disk, pool in disks if pool is not None),
        offered={name: frozenset(pool.name for pool in pools) for name, pools in storages.pools.items()},
        stays=_why_it_stays(disks, storages.shared, runs=runs, local_disks=local_disks),
        ties=tuple(ties),
        tied_by="snapshots" if snapshots and len(ties) == 1 else "devices",
    )


def _name_of(pool: Pool, shared: frozenset[str]) -> PoolName:
    return PoolName(PoolKind.EXTERNAL if pool.name in shared else PoolKind.INTERNAL, pool.name)


def _images(lies: Sequence[tuple[DomainDisk, Pool | None]], shared: frozenset[str]) -> Iterator[str]:
    """Yield the images in drives that other nodes do not have."""
    for disk, pool in lies:
        if disk.is_drive and not disk.networked and (pool is None or pool.name not in shared):
            yield f"an image of its node is in {disk.name or 'a drive'}"


def _why_it_stays(disks: Sequence[tuple[DomainDisk, Pool | None]], shared: frozenset[str], *, runs: bool, local_disks: bool) -> str:
    """Return why disks keep a guest on its node, empty if they do not.

    `virsh migrate --copy-storage-all` copies every disk, those in shared pools onto themselves, so that it is for guests without these.
    """
    local = [(disk, pool) for disk, pool in disks if not disk.networked and (pool is None or pool.name not in shared)]
    if not local:
        return ""
    lost = [disk.name for disk, pool in local if pool is None]
    if lost:
        return f"{', '.join(lost)}: in no storage pool, so that no other node is known to have it"
    pools = ", ".join(sorted({pool.name for _disk, pool in local if pool}))
    names = f"{', '.join(disk.name for disk, _pool in local)}: local to its node, in {pools}"
    if not local_disks:
        return f"{names}; copied only with source.local_disks"
    if not runs:
        return f"{names}; libvirt copies disks of guests that run"
    if len(local) < len(disks):
        return f"{names}; it has shared disks as well, which would be copied onto themselves"
    if not all(pool.copies for _disk, pool in local if pool):
        return f"{names}; a device cannot be copied"
    return ""


def once_each(guests: Sequence[Guest]) -> list[Guest]:
    """Return the guests, those that several nodes have by the same name tied to where they are.

    One that is stopped where another runs is its definition, and takes nothing. Of others all but the first get the name of their node.
    """
    by_name = collections.defaultdict(list)
    for guest in guests:
        by_name[guest.name].append(guest)
    found = []
    for same in by_name.values():
        kept = [guest for guest in same if guest.runs] or same
        for number, guest in enumerate(kept):
            if len(same) > 1:
                where = " and ".join(other.node for other in same)
                tie = f"it is defined on {where}: undefine it where it does not run"
                name = guest.name if not number else f"{guest.name}.{guest.node}"
                found.append(dataclasses.replace(guest, name=name, ties=(*guest.ties, tie), tied_by="twice"))
            else:
                found.append(guest)
    return found
