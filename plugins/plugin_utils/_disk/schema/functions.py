# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Functions on hardware that expressions may call in addition to YAQL's own: disks that suit a system, disks that suit an array.

Disks are mappings, as the facts have them. Those that choose by kind take types and transports: `ssd`, `hdd`, `nvme`, `sas`.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ..._common.libraries import yaql_contexts, yaql_specs, yaqltypes
from .alike import groups_of_alike_facts, groups_of_kind_facts

Facts = Mapping[str, t.Any]

SYSTEM_DISK_MIB = 32768
"""An SSD of less is a cache or a boot stick rather than the disk of an operating system."""


def register(context: yaql_contexts.ContextBase) -> None:
    """Add all functions to a context under their names in camel case."""
    of_systems = (order_for_system, system_disks, system_pair, with_twin, recommended_swap)
    for function in (*of_systems, data_disks, array_disks, prefer, alike, same_kind):
        context.register_function(function)
    for name in ("now", "random"):
        context.register_function(_refused, name=name)


def _refused(*_arguments: t.Any) -> t.NoReturn:
    raise ValueError("a plan must follow from its inputs, so nothing that differs from run to run can be used")


@yaql_specs.parameter("disks", yaqltypes.Iterable())
@yaql_specs.name("orderForSystem")
@yaql_specs.method
def order_for_system(disks: Iterable[Facts]) -> list[Facts]:
    """Return the disks, the fittest for an operating system first: SSDs of 32 GiB or more, then others, each from small to large.

    Of equals those come first that nothing is on. Disks that are removable or read-only come last. Raises KeyError for a disk without
    `type` or `size`.
    """
    return sorted(disks, key=_unfitness)


@yaql_specs.parameter("disks", yaqltypes.Iterable())
@yaql_specs.name("systemDisks")
@yaql_specs.method
def system_disks(disks: Iterable[Facts]) -> list[Facts]:
    """Return the disk that is the fittest for an operating system and, where it has one, its twin: see `orderForSystem`, `alike`.

    Raises KeyError for a disk without `type` or `size`.
    """
    return _first_and_twin(order_for_system(disks))


@yaql_specs.parameter("disks", yaqltypes.Iterable())
@yaql_specs.name("systemPair")
@yaql_specs.method
def system_pair(disks: Iterable[Facts]) -> list[Facts]:
    """Return the two disks that are the fittest for an operating system on a mirror: alike, else of one kind.

    Where no two disks are of one kind, it is the fittest alone. Raises KeyError for a disk without `type` or `size`.
    """
    ordered = order_for_system(disks)
    groups = [*groups_of_alike_facts(ordered), *groups_of_kind_facts(ordered)]
    return next((list(group[:2]) for group in groups if len(group) > 1), ordered[:1])


@yaql_specs.parameter("disks", yaqltypes.Iterable())
@yaql_specs.name("withTwin")
@yaql_specs.method
def with_twin(disks: Iterable[Facts]) -> list[Facts]:
    """Return the first of the disks and, where it has one, its twin. Raises KeyError for a disk without `size`."""
    return _first_and_twin(list(disks))


@yaql_specs.parameter("disks", yaqltypes.Iterable())
@yaql_specs.name("dataDisks")
@yaql_specs.method
def data_disks(disks: Iterable[Facts]) -> list[Facts]:
    """Return the disks that `systemDisks` leaves over, all where it leaves none. Raises KeyError for a disk without `type` or `size`."""
    everything = list(disks)
    system = system_disks(everything)
    return [disk for disk in everything if not any(disk is one for one in system)] or everything


@yaql_specs.parameter("disks", yaqltypes.Iterable())
@yaql_specs.parameter("kinds", yaqltypes.String())
@yaql_specs.name("arrayDisks")
@yaql_specs.method
def array_disks(disks: Iterable[Facts], *kinds: str) -> list[Facts]:
    """Return disks for an array of data: the largest group of two or more alike `dataDisks`, of the first kind that has one.

    Where none of the kinds has, any kind does; where no two data disks are alike, those of the system are taken in; where no two of
    all are, it is the two largest of one kind, and a disk alone where there are no such. Raises KeyError for a disk without `type` or
    `size`.
    """
    everything = list(disks)
    data = data_disks(everything)
    choices = [*([disk for disk in data if _is_of(disk, kind)] for kind in kinds), data, everything]
    groups = [_largest(groups_of_alike_facts(choice)) for choice in choices]
    two = sorted(_largest(groups_of_kind_facts(everything)), key=lambda disk: -t.cast("int", disk["size"]))[:2]
    return next((group for group in groups if len(group) > 1), two)


@yaql_specs.parameter("disks", yaqltypes.Iterable())
@yaql_specs.parameter("kinds", yaqltypes.String())
@yaql_specs.method
def prefer(disks: Iterable[Facts], *kinds: str) -> list[Facts]:
    """Return the disks of the first of the kinds that there are any of, all disks where there are none.

    Raises KeyError for a disk without `type`.
    """
    everything = list(disks)
    choices = ([disk for disk in everything if _is_of(disk, kind)] for kind in kinds)
    return next((choice for choice in choices if choice), everything)


@yaql_specs.parameter("disks", yaqltypes.Iterable())
@yaql_specs.method
def alike(disks: Iterable[Facts]) -> list[Facts]:
    """Return the largest group of disks of one transport, kind, block size and, within 2 %, size; of equals that with most room.

    Raises KeyError for a disk without `size`.
    """
    return _largest(groups_of_alike_facts(disks))


@yaql_specs.parameter("disks", yaqltypes.Iterable())
@yaql_specs.name("sameKind")
@yaql_specs.method
def same_kind(disks: Iterable[Facts]) -> list[Facts]:
    """Return the largest group of disks of one transport, kind and block size, of whatever sizes; of equals that with most room.

    Raises KeyError for a disk without `size`.
    """
    return _largest(groups_of_kind_facts(disks))


@yaql_specs.parameter("ram", yaqltypes.Number())
@yaql_specs.name("recommendedSwap")
def recommended_swap(ram: float) -> float:
    """Return whole MiB of swap for MiB of memory: twice of up to 2 GiB, as much as up to 8 GiB, half of up to 64 GiB, else 4 GiB.

    The steps are the seed's ("Dynamic parameters"), with the gap closed that it leaves at exactly 8 GiB.
    """
    if ram <= 2048:
        return ram * 2
    if ram <= 8192:
        return ram
    return ram // 2 if ram <= 65536 else 4096


def _unfitness(disk: Facts) -> tuple[bool, bool, int, bool]:
    size = disk["size"]
    unsuited = bool(disk.get("removable") or disk.get("read_only"))
    return unsuited, not _is_of(disk, "ssd") or size < SYSTEM_DISK_MIB, size, disk.get("empty") is False


def _first_and_twin(disks: Sequence[Facts]) -> list[Facts]:
    groups = groups_of_alike_facts(disks)
    return list(groups[0][:2]) if groups else []


def _is_of(disk: Facts, kind: str) -> bool:
    # Hardware written by hand may call an NVMe drive `ssd`.
    return kind in (disk["type"], disk.get("transport")) or (kind == "ssd" and disk["type"] == "nvme")


def _largest(groups: Sequence[Sequence[Facts]]) -> list[Facts]:
    ordered = sorted(groups, key=lambda group: (-len(group), -sum(disk["size"] for disk in group)))
    return list(ordered[0]) if ordered else []
