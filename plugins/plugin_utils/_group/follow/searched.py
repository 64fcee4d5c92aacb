# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A mark of what a search evaluated, so that a search that found nothing is not repeated while nothing changes.

    mark(cluster, group, options)       # text; the same as long as the search would look at the same

What is measured differs a little each time that it is read. It is taken to about a percent, so that only what may matter to a search
makes another mark.
"""

from __future__ import annotations

import dataclasses
import hashlib
import typing as t

from ..cluster.model import Cluster, Instance, Load, Node, StoragePool

_SHARES = 100
"""Into how many equal parts what is free is divided."""
_DIGITS = 16


def mark(cluster: Cluster, group: int, *asked: t.Any) -> str:
    """Return a mark of a group, of the limits of the whole cluster and of the question, all given as frozen dataclasses or plain data."""
    here = cluster.groups[group]
    nodes = [node for node in cluster.nodes if node.group == here.name]
    names = {node.name for node in nodes}
    instances = [one for one in cluster.instances if one.primary in names or one.secondary in names]
    seen = (here, list(map(_node, nodes)), list(map(_instance, instances)), cluster.tags, cluster.policy, cluster.rules, asked)
    return hashlib.sha256(repr(seen).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _node(node: Node) -> Node:
    storage = tuple(map(_pool, node.storage))
    return dataclasses.replace(node, free_memory=_share(node.free_memory, node.total_memory), storage=storage)


def _pool(pool: StoragePool) -> StoragePool:
    return pool if pool.free is None else dataclasses.replace(pool, free=_share(pool.free, pool.total or 0))


def _share(free: float, total: float) -> int:
    return round(free * _SHARES / total) if total > 0 else int(free)


def _instance(instance: Instance) -> Instance:
    load = Load(**{name: float(f"{value:.2g}") for name, value in vars(instance.load).items()})
    return dataclasses.replace(instance, load=load)
