# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bridge from disks to providers: what an applied plan leaves free and what a host has become inventories.

The tree follows what OpenStack does with hosts and NUMA nodes (spec "NUMA topology with resource providers"): the host is the root,
NUMA nodes are below it with the trait HW_NUMA_ROOT; each volume group is a provider of its own, so that one amount never spans two.
"""

from __future__ import annotations

import math
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..common.errors import Mistakes, suggest
from ..common.libraries import os_traits
from ..common.units import parse_mib
from ..provider.world.model import LARGEST_AMOUNT
from ..provider.world.names import LONGEST_NAME, why_no_provider_name
from ..provider.world.parse import parse_inventory
from .planned_groups import PlannedGroup, planned_groups

Plain = dict[str, t.Any]

_VCPU, _MEMORY, _DISK = CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
_MIB_OF_GIB = 1024
_TRAITS_OF_DISKS = {"ssd": os_traits.STORAGE_DISK_SSD, "hdd": os_traits.STORAGE_DISK_HDD}
_NUMA_KEYS = ("cpus", "memory")
_CPU_LIST = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*")


@dataclass(frozen=True)
class _Machine:
    """CPUs and MiB of memory of a host or of one of its NUMA nodes; None where nothing tells."""

    cpus: int | None
    memory: int | None


def plan_to_providers(
    plan: t.Any, host: t.Any, facts: t.Any, numa: t.Any = None, hardware: t.Any = None, limits: t.Any = None, volume_groups: t.Any = None
) -> list[Plain]:
    """Return a host as the option `providers` of the module `provider` takes it: the root, its NUMA nodes, its volume groups.

    `plan` is a plan of disk_plan. `facts` has processor_vcpus (or processor_count, processor_cores, processor_threads_per_core) and
    memtotal_mb as Ansible gathers them; where memory is not told, `hardware` (of disk_facts; default facts.bareon_hardware) tells it.
    `numa` is [{cpus: number or list of the kernel, such as `0-3,8-11`; memory: MiB or a size}].
    `limits` {class: {reserved, allocation_ratio, min_unit, max_unit, step_size}} holds for each provider with that class.
    `volume_groups` names those that are offered, default all. DISK_GB is whole GiB, rounded down.
    Raises InputError with everything that is wrong.
    """
    mistakes = Mistakes()
    if not isinstance(facts, Mapping):
        mistakes.add("facts", f"must be a mapping, as ansible_facts is, not {facts!r}")
        facts = {}
    disks = facts.get("bareon_hardware") or {} if hardware is None else hardware
    if not isinstance(disks, Mapping):
        mistakes.add("hardware", f"must be a mapping, as bareon.allocator.disk_facts returns it, not {disks!r}")
        disks = {}
    nodes = _numa_nodes(numa, mistakes)
    whole = _machine(facts, disks, bool(nodes), mistakes)
    _refuse_too_large(nodes, whole, mistakes)
    groups = _chosen(planned_groups(plan, mistakes), volume_groups, mistakes)
    rules = _limits(limits, mistakes)
    _check_names(host, groups, mistakes)
    mistakes.check()
    return [
        {"name": host, "inventories": {} if nodes else _computing(whole, rules)},
        *(_numa_provider(host, number, node, rules) for number, node in enumerate(nodes)),
        *(_group_provider(host, group, _disk_types(disks), rules) for group in groups),
    ]


def _numa_provider(host: str, number: int, node: _Machine, rules: Mapping[str, Plain]) -> Plain:
    name = f"{host}_numa{number}"
    return {"name": name, "parent": host, "inventories": _computing(node, rules), "traits": [os_traits.HW_NUMA_ROOT]}


def _group_provider(host: str, group: PlannedGroup, types: Mapping[str, str], rules: Mapping[str, Plain]) -> Plain:
    kinds = {types.get(disk) for disk in group.disks}
    alike = kinds.pop() if len(kinds) == 1 else None
    traits = [_group_trait(group.name), *([_TRAITS_OF_DISKS[alike]] if alike in _TRAITS_OF_DISKS else [])]
    inventories = _inventories({_DISK: group.free // _MIB_OF_GIB}, rules)
    return {"name": _group_name(host, group.name), "parent": host, "inventories": inventories, "traits": traits}


def _group_name(host: str, group: str) -> str:
    return f"{host}_vg_{group}"


def _group_trait(group: str) -> str:
    """Return the trait by which a request can ask for a group of that name, on whatever host."""
    return f"CUSTOM_VG_{re.sub('[^A-Z0-9]', '_', group.upper())}"


def _computing(machine: _Machine, rules: Mapping[str, Plain]) -> Plain:
    totals = {_VCPU: machine.cpus or 0, _MEMORY: machine.memory or 0}
    return _inventories(totals, rules)


def _inventories(totals: Mapping[str, int], rules: Mapping[str, Plain]) -> Plain:
    """Return inventories of what there is; a class of which there is nothing has none, and none reserves more than there is."""
    found = {name: {"total": total, **rules.get(name, {})} for name, total in totals.items() if total > 0}
    return {
        name: {**entry, **({"reserved": min(entry["reserved"], entry["total"])} if "reserved" in entry else {})}
        for name, entry in found.items()
    }


def _machine(facts: Mapping[str, t.Any], hardware: Mapping[str, t.Any], has_nodes: bool, mistakes: Mistakes) -> _Machine:
    cpus = facts.get("processor_vcpus")
    place = "facts.processor_vcpus"
    if cpus is None and facts.get("processor_count") is not None:
        parts = ("processor_count", "processor_cores", "processor_threads_per_core")
        numbers = [_whole(facts.get(key, 1), f"facts.{key}", mistakes) for key in parts]
        cpus = None if None in numbers else math.prod(t.cast("list[int]", numbers))
    elif cpus is not None:
        cpus = _whole(cpus, place, mistakes)
    elif not has_nodes:
        mistakes.add(place, "is missing; gather the facts of the host, or give the number of its CPUs")
    memory, place = (
        (facts["memtotal_mb"], "facts.memtotal_mb") if facts.get("memtotal_mb") is not None else (hardware.get("ram"), "hardware.ram")
    )
    if memory is not None:
        memory = _whole(memory, place, mistakes)
    elif not has_nodes:
        mistakes.add("facts.memtotal_mb", "is missing; gather the facts of the host, or give its memory in MiB")
    return _Machine(cpus, memory)


def _numa_nodes(data: t.Any, mistakes: Mistakes) -> list[_Machine]:
    if data is None:
        return []
    if not isinstance(data, Sequence) or isinstance(data, str):
        mistakes.add("numa", f"must be a list of nodes, each with cpus and memory, not {data!r}")
        return []
    return [_numa_node(entry, f"numa[{number}]", mistakes) for number, entry in enumerate(data)]


def _numa_node(entry: t.Any, place: str, mistakes: Mistakes) -> _Machine:
    if not isinstance(entry, Mapping):
        mistakes.add(place, f"must be a mapping with cpus and memory, not {entry!r}")
        return _Machine(None, None)
    _refuse_unknown(entry, _NUMA_KEYS, place, mistakes)
    for key in _NUMA_KEYS:
        if key not in entry:
            mistakes.add(f"{place}.{key}", "is missing")
    return _Machine(_cpus(entry.get("cpus", 0), f"{place}.cpus", mistakes), _memory(entry.get("memory", 0), f"{place}.memory", mistakes))


def _cpus(value: t.Any, place: str, mistakes: Mistakes) -> int | None:
    """Return how many CPUs a number or a list of the kernel is; a node without CPUs has the empty list."""
    if not isinstance(value, str):
        return _whole(value, place, mistakes, least=0)
    if value and _CPU_LIST.fullmatch(value) is None:
        mistakes.add(place, f"must be a number of CPUs or a list such as '0-3,8-11', not {value!r}")
        return None
    ends = [part.split("-") for part in value.split(",") if part]
    return len({cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)})


def _memory(value: t.Any, place: str, mistakes: Mistakes) -> int | None:
    if not isinstance(value, str):
        return _whole(value, place, mistakes, least=0)
    try:
        return math.floor(parse_mib(value))
    except ValueError as error:
        mistakes.add(place, str(error))
        return None


def _refuse_too_large(nodes: Sequence[_Machine], whole: _Machine, mistakes: Mistakes) -> None:
    """A host whose nodes have more CPUs than it has is described wrongly; memory is not compared: the kernel's total leaves out its own."""
    cpus = sum(node.cpus or 0 for node in nodes)
    if whole.cpus is not None and cpus > whole.cpus:
        mistakes.add("numa", f"has {cpus} CPUs in all, but the host has {whole.cpus}")


def _chosen(groups: Sequence[PlannedGroup], names: t.Any, mistakes: Mistakes) -> list[PlannedGroup]:
    if names is None:
        return list(groups)
    if not isinstance(names, Sequence) or isinstance(names, str):
        mistakes.add("volume_groups", f"must be a list of names, not {names!r}")
        return []
    known = [group.name for group in groups]
    for number, name in enumerate(names):
        if name not in known:
            says = f"the plan has no volume group {name!r}{suggest(str(name), known)}; it has {', '.join(known) or 'none'}"
            mistakes.add(f"volume_groups[{number}]", says)
    return [group for group in groups if group.name in names]


def _limits(data: t.Any, mistakes: Mistakes) -> dict[str, Plain]:
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        mistakes.add("limits", f"must be a mapping of resource classes, not {data!r}")
        return {}
    _refuse_unknown(data, CLASSES, "limits", mistakes)
    for name, entry in data.items():
        if not isinstance(entry, Mapping):
            mistakes.add(f"limits.{name}", f"must be a mapping with keys such as reserved and allocation_ratio, not {entry!r}")
        elif "total" in entry:
            mistakes.add(f"limits.{name}.total", "comes of the plan and the facts, and cannot be given")
        else:
            parse_inventory({"total": LARGEST_AMOUNT, **entry}, f"limits.{name}", mistakes)
    return {name: dict(entry) for name, entry in data.items() if isinstance(entry, Mapping)}


def _disk_types(hardware: Mapping[str, t.Any]) -> dict[str, str]:
    disks = hardware.get("disks")
    found = [disk for disk in disks if isinstance(disk, Mapping)] if isinstance(disks, list) else []
    return {str(disk.get("id")): str(disk.get("type")) for disk in found}


def _check_names(host: t.Any, groups: Sequence[PlannedGroup], mistakes: Mistakes) -> None:
    says = why_no_provider_name(host)
    if says:
        mistakes.add("host", says)
        return
    for group in groups:
        says = why_no_provider_name(_group_name(host, group.name))
        if says or len(_group_trait(group.name)) > LONGEST_NAME:
            mistakes.add(f"volume group {group.name}", says or "has too long a name for a trait")


def _refuse_unknown(entry: Mapping[t.Any, t.Any], known: Iterable[str], place: str, mistakes: Mistakes) -> None:
    for key in entry:
        if key not in known:
            mistakes.add(place, f"has the unknown key {key!r}{suggest(str(key), known)}; known are {', '.join(known)}")


def _whole(value: t.Any, place: str, mistakes: Mistakes, least: int = 1) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        mistakes.add(place, f"must be a whole number from {least}, not {value!r}")
        return None
    return value
