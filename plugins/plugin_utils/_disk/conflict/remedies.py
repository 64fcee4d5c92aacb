# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What would help, as a sentence and as the change that it means, so that the change can be planned before the sentence is shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....module_utils._data.errors import InputError
from ..model import Hardware, Schema, Space
from ..problem.formulate import formulate
from ..problem.model import Problem


@dataclass(frozen=True)
class Remedy:
    """A sentence, and what it means: new minimums (MiB by the id in the schema; 0: left out), new sizes of disks (MiB by id), no relations.

    `relaxed` are names of constraints, `apart:` or `together:` and the id of the space that asks for it.
    """

    says: str
    minimums: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    relaxed: frozenset[str] = frozenset()

    def and_then(self, other: Remedy) -> Remedy:
        """Return both; what the other says comes later."""
        minimums, sizes = {**self.minimums, **other.minimums}, {**self.sizes, **other.sizes}
        return Remedy(f"{self.says}; and {other.says}", minimums, sizes, self.relaxed | other.relaxed)

    @property
    def is_exact(self) -> bool:
        """Whether it says all that has to be done."""
        return bool(self.minimums or self.sizes or self.relaxed)


def applied(remedy: Remedy, hardware: Hardware, schema: Schema) -> tuple[Hardware, Schema]:
    """Return the machine and the schema in which a remedy was followed."""
    disks = tuple(replace(disk, size=remedy.sizes.get(disk.id, disk.size)) for disk in hardware.disks)
    gone = {space.id for space in schema.spaces if remedy.minimums.get(space.wish) == 0}
    # A volume goes with its group, and what a space has for itself alone with the space.
    while (
        inside := {space.id for space in schema.spaces if gone & {space.wish, space.volume_group, space.thin_pool, space.cache_of}} - gone
    ):
        gone |= inside
    growth = [new.size - old.size for new, old in zip(disks, hardware.disks)]
    spaces = tuple(_changed(remedy, space, gone, growth) for space in schema.spaces if space.id not in gone)
    return replace(hardware, disks=disks), replace(schema, spaces=spaces)


def left(hardware: Hardware, schema: Schema, reserve: int, remedy: Remedy) -> Problem | None:
    """Return the problem in which a remedy was followed; None where that is no input, or nothing is left to plan."""
    try:
        problem = formulate(*applied(remedy, hardware, schema), reserve)
    except InputError:
        return None
    return problem if problem.demands else None


def _changed(remedy: Remedy, space: Space, gone: Iterable[str], growth: Sequence[int]) -> Space:
    # What is a percentage grows with the disks, that of a volume with any that its group has.
    disks = range(len(growth)) if space.volume_group else space.allowed
    grown = space.min_size + math.ceil(space.min_share * sum(growth[disk] for disk in disks))
    least = remedy.minimums.get(space.wish, grown)
    return replace(
        space,
        min_size=least,
        max_size=space.max_size if space.max_size is None else max(space.max_size, grown),
        contains=tuple(name for name in space.contains if name not in gone),
        apart_from=() if f"apart:{space.wish}" in remedy.relaxed else tuple(name for name in space.apart_from if name not in gone),
        together_with=() if f"together:{space.wish}" in remedy.relaxed else tuple(name for name in space.together_with if name not in gone),
    )
