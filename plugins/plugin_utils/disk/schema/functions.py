# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What expressions may call besides YAQL's own functions.

What most schemas ask is one call here; in YAQL it takes dozens per disk, each of which looks for its overload anew.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping

from yaql.language import specs, yaqltypes
from yaql.language.contexts import ContextBase

SYSTEM_DISK_MIB = 32768
"""An SSD of less is a cache or a boot stick rather than the disk of an operating system."""


def register(context: ContextBase) -> None:
    """Add all functions to a context under their names in camel case."""
    for function in (order_for_system, recommended_swap):
        context.register_function(function)


@specs.parameter("disks", yaqltypes.Iterable())
@specs.name("orderForSystem")
@specs.method
def order_for_system(disks: Iterable[Mapping[str, t.Any]]) -> list[Mapping[str, t.Any]]:
    """Return the disks, the fittest for an operating system first: SSDs of 32 GiB or more, then others, each from small to large.

    Disks that are removable or read-only come last. Raises KeyError for a disk without `type` or `size`.
    """
    return sorted(disks, key=_unfitness)


def _unfitness(disk: Mapping[str, t.Any]) -> tuple[bool, bool, int]:
    size = disk["size"]
    unsuited = bool(disk.get("removable") or disk.get("read_only"))
    return unsuited, disk["type"] != "ssd" or size < SYSTEM_DISK_MIB, size


@specs.parameter("ram", yaqltypes.Number())
@specs.name("recommendedSwap")
def recommended_swap(ram: float) -> float:
    """Return whole MiB of swap for MiB of memory: twice of up to 2 GiB, as much as up to 8 GiB, half of up to 64 GiB, else 4 GiB.

    The steps are the seed's ("Dynamic parameters"), with the gap closed that it leaves at exactly 8 GiB.
    """
    if ram <= 2048:
        return ram * 2
    if ram <= 8192:
        return ram
    return ram // 2 if ram <= 65536 else 4096
