# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Storage pools of libvirt nodes, and which of them are the same on several.

A pool of a type whose storage lies elsewhere (NFS, RBD, iSCSI, Gluster) is shared, and one of any type that `shared_pools` names. Pools
with the same name on nodes that do not agree on their source and their target are different pools, each within its node.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from .....module_utils._data.errors import Mistakes
from .....module_utils._data.units import MIB
from ...cluster.model import PoolKind, PoolName, StoragePool
from .markup import bytes_at, read_markup, text_at

_SHARED = frozenset({"netfs", "rbd", "iscsi", "iscsi-direct", "gluster", "sheepdog", "vstorage"})
_NO_COPIES = frozenset({"mpath", "scsi", "disk"})
"""Types whose volumes are devices, which no copy to another node can make."""
_SIZE = re.compile(r"([\d.]{1,12}) ([KMGTPE]?i?B)")
_POWERS = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4, "PiB": 5, "EiB": 6}


@dataclass(frozen=True)
class Volume:
    """A volume: its pool, and bytes as virsh rounds them."""

    pool: str
    size: int


@dataclass(frozen=True)
class Pool:
    """A pool of one node. `identity` is equal on nodes that reach the same storage; sizes are bytes."""

    name: str
    kind: str
    shared: bool
    identity: tuple[str, ...]
    total: int
    free: int
    path: str

    @property
    def copies(self) -> bool:
        """Whether volumes can be copied to the pool of that name on another node."""
        return self.kind not in _NO_COPIES

    def as_storage(self, shared: Collection[str]) -> StoragePool:
        """Return it as the model has it."""
        kind = PoolKind.EXTERNAL if self.name in shared else PoolKind.INTERNAL
        return StoragePool(PoolName(kind, self.name), self.total // MIB, self.free // MIB)


def read_pools(texts: Sequence[str], shared: Collection[str], place: str, mistakes: Mistakes) -> tuple[Pool, ...]:
    """Return the pools of a node; `shared` are the names of those that are said to be."""
    return tuple(_read_pool(text, shared, f"{place}.pools[{position}]", mistakes) for position, text in enumerate(texts))


def _read_pool(text: str, shared: Collection[str], place: str, mistakes: Mistakes) -> Pool:
    root = read_markup(text, "pool", place, mistakes)
    name, kind = text_at(root, "name"), root.get("type", "")
    return Pool(
        name=name,
        kind=kind,
        shared=kind in _SHARED or name in shared,
        identity=(kind, text_at(root, "target/path"), *sorted(_source(root))),
        total=bytes_at(root, "capacity"),
        free=bytes_at(root, "available"),
        path=text_at(root, "target/path").rstrip("/"),
    )


def _source(root: Element) -> Iterator[str]:
    """Yield what says where the storage of a pool is; its secrets do not."""
    for element in root.iterfind("source/*"):
        if element.tag == "name":
            yield f"name {(element.text or '').strip()}"
        elif element.tag in ("host", "dir", "device", "adapter"):
            given = sorted(f"{name}={value}" for name, value in element.items())
            yield f"{element.tag} {' '.join(given)}"


def read_volumes(texts: Sequence[str], pools: Sequence[Pool]) -> dict[str, Volume]:
    """Return the volumes of a node by their paths; `texts` are what `vol-list --details` prints of each pool."""
    found = {}
    for text, pool in zip(texts, pools):
        for line in text.splitlines():
            path, capacity = _path_and_capacity(line)
            if path and (size := _SIZE.fullmatch(capacity)):
                found[path] = Volume(pool.name, _in_bytes(size[1], size[2]))
    return found


def _path_and_capacity(line: str) -> tuple[str, str]:
    """Return two of the columns name, path, type, capacity and allocation, which are two blanks or more apart; empty for another line."""
    columns = [column.strip() for column in line.split("  ") if column.strip()]
    if len(columns) < 5:
        return "", ""
    name, *_path, kind, capacity, allocation = columns
    path = line.strip().removeprefix(name)
    for column in (allocation, capacity, kind):
        path = path.removesuffix(column).rstrip(" ")
    return path.lstrip(" "), capacity


def _in_bytes(number: str, unit: str) -> int:
    try:
        return min(int(float(number) * 1024 ** _POWERS.get(unit, 0)), 2**53)
    except ValueError:
        return 0


def shared_names(pools: Mapping[str, Sequence[Pool]]) -> frozenset[str]:
    """Return the names of pools that are the same on all nodes that have them."""
    identities: dict[str, set[tuple[str, ...]]] = {}
    for of_node in pools.values():
        for pool in of_node:
            identities.setdefault(pool.name, set()).add((*pool.identity, str(pool.shared)))
    agreed = {name for name, found in identities.items() if len(found) == 1}
    return frozenset(pool.name for of_node in pools.values() for pool in of_node if pool.shared and pool.name in agreed)
