# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that make good partners: attached in the same way, of one kind, with blocks of one size, and of about one size.

An array is as slow as its slowest member and as small as its smallest, so it is made of such disks.
"""

from __future__ import annotations

import typing as t
from collections.abc import Hashable, Iterable, Mapping, Sequence

from ....module_utils._storage.drives import SHARED_DRIVE
from ..model import Disk

Item = t.TypeVar("Item")

TOLERANCE = 0.02
"""Disks sold as one size differ by less than this share."""
_DEFAULT_BLOCK = 512


def groups_of_alike(disks: Sequence[Disk], positions: Iterable[int]) -> list[tuple[int, ...]]:
    """Return some of a machine's disks (positions) in groups of alike ones, all of them in ascending order.

    Those on one drive may be in one group.
    """
    return _grouped(sorted(positions), lambda at: _kind(disks[at].facts, disks[at].logical_block), lambda at: disks[at].size)


def groups_of_alike_facts(disks: Iterable[Mapping[str, t.Any]]) -> list[tuple[Mapping[str, t.Any], ...]]:
    """Return disks, as the facts have them, in groups of alike ones, one of each drive. Raises KeyError for a disk without `size`."""
    groups = _grouped(list(disks), lambda disk: _kind(disk, disk.get("logical_block") or _DEFAULT_BLOCK), lambda disk: disk["size"])
    return [_one_each(group) for group in groups]


def groups_of_kind_facts(disks: Iterable[Mapping[str, t.Any]]) -> list[tuple[Mapping[str, t.Any], ...]]:
    """Return disks, as the facts have them, in groups attached in the same way, of one kind and block size, one of each drive."""
    groups: dict[Hashable, list[Mapping[str, t.Any]]] = {}
    for disk in disks:
        groups.setdefault(_kind(disk, disk.get("logical_block") or _DEFAULT_BLOCK), []).append(disk)
    return [_one_each(group) for group in groups.values()]


def _one_each(group: Sequence[Mapping[str, t.Any]]) -> tuple[Mapping[str, t.Any], ...]:
    """Return the first disk of each drive: two of one drive are no partners."""
    drives = [disk.get(SHARED_DRIVE) for disk in group]
    return tuple(disk for at, disk in enumerate(group) if drives[at] is None or drives[at] not in drives[:at])


def _kind(facts: Mapping[str, t.Any], block: t.Any) -> Hashable:
    return (facts.get("transport"), facts.get("type"), block)


def _grouped(items: Sequence[Item], kind: t.Callable[[Item], Hashable], size: t.Callable[[Item], float]) -> list[tuple[Item, ...]]:
    """Return the items in groups of one kind, in which the largest is at most TOLERANCE larger than the smallest; order is kept."""
    group_of: dict[int, tuple[Hashable, float]] = {}
    smallest: dict[Hashable, float] = {}
    for at in sorted(range(len(items)), key=lambda at: size(items[at])):
        own = kind(items[at])
        if own not in smallest or size(items[at]) > smallest[own] * (1 + TOLERANCE):
            smallest[own] = size(items[at])
        group_of[at] = (own, smallest[own])
    groups: dict[tuple[Hashable, float], list[Item]] = {}
    for at, item in enumerate(items):
        groups.setdefault(group_of[at], []).append(item)
    return [tuple(group) for group in groups.values()]
