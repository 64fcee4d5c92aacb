# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which vg, and which thin pool, contains which space."""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Mapping, Sequence

from ....module_utils._data.errors import Mistakes, suggest
from ....module_utils._data.kinds import kind_of
from ..model import SpaceType
from .entry import Entry

_INSIDE = {
    SpaceType.VOLUME_GROUP: (
        (SpaceType.LOGICAL_VOLUME, SpaceType.THIN_POOL, SpaceType.RAID),
        "a vg contains lv and thin_pool, and any raid that it lies on",
    ),
    SpaceType.THIN_POOL: ((SpaceType.THIN_VOLUME,), "a thin_pool contains thin"),
}


def groups_of(known: Sequence[Entry], left_out: Collection[str], mistakes: Mistakes) -> dict[str, str]:
    """Return the vg of every space that a vg contains; what is left out is no member, and no mistake."""
    groups = _containers(SpaceType.VOLUME_GROUP, known, left_out, mistakes)
    some = any(item.type is SpaceType.VOLUME_GROUP for item in known)
    for item in known:
        if item.type is SpaceType.LOGICAL_VOLUME and item.id not in groups and some:
            mistakes.add(item.place, f"{item.id} is in no vg, though the schema has some; add it to the 'contains' of one")
        elif item.type is SpaceType.THIN_POOL and item.id not in groups:
            mistakes.add(item.place, f"{item.id} is in no vg; a thin_pool lies in one, so add it to the 'contains' of a vg")
    return groups


def pools_of(known: Sequence[Entry], left_out: Collection[str], mistakes: Mistakes) -> dict[str, str]:
    """Return the thin pool of every volume that one contains; what is left out is no member, and no mistake."""
    pools = _containers(SpaceType.THIN_POOL, known, left_out, mistakes)
    for item in known:
        if item.type is SpaceType.THIN_VOLUME and item.id not in pools:
            mistakes.add(item.place, f"{item.id} is in no thin_pool; add it to the 'contains' of one")
        if item.type is SpaceType.THIN_VOLUME and item.values["size"] is None and not mistakes.has(f"{item.place}.size"):
            mistakes.add(f"{item.place}.size", "is missing; a thin volume needs a size to show")
        if item.type is SpaceType.THIN_VOLUME and item.values["mount"] == "/boot":
            mistakes.add(f"{item.place}.mount", "GRUB cannot read /boot in a thin pool; put it on a partition, an lv or a raid")
    return pools


def _containers(kind: SpaceType, known: Sequence[Entry], left_out: Collection[str], mistakes: Mistakes) -> dict[str, str]:
    """Return the container of this kind of every member; a member that cannot be one is a mistake."""
    by_id = {item.id: item for item in known}
    containers: dict[str, str] = {}
    for container in known:
        for position, member in enumerate(container.values["contains"] if container.type is kind else ()):
            if isinstance(member, str) and member in left_out:
                continue
            says = _mistake(kind, container.id, member, by_id, containers)
            if says is None:
                containers[member] = container.id
            else:
                mistakes.add(f"{container.place}.contains[{position}]", says)
    return containers


def _mistake(kind: SpaceType, container: str, member: t.Any, by_id: Mapping[str, Entry], containers: Mapping[str, str]) -> str | None:
    if not isinstance(member, str):
        return f"is {kind_of(member)}; must be the id of a space, or a mapping with 'id'"
    if member not in by_id:
        return f"there is no space {member!r}{suggest(member, by_id)}"
    types, may = _INSIDE[kind]
    if by_id[member].type not in types:
        return f"{member!r} has type {by_id[member].type}; {may}"
    if member not in containers:
        return None
    twice = f"twice in this {kind}" if containers[member] == container else f"already in the {kind} {containers[member]!r}"
    return f"{member!r} is {twice}; a space is in one {kind}"
