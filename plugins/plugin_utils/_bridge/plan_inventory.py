# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bridge from disks to providers: what an applied plan leaves free and what a host has become inventories.

The tree follows what OpenStack does with hosts and NUMA nodes (spec "NUMA topology with resource providers"): the host is the root,
NUMA nodes are below it with the trait HW_NUMA_ROOT; each volume group, pool, Btrfs or partition is a provider of its own, so that one
amount never spans two.
"""

from __future__ import annotations

import math
import re
import typing as t
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...module_utils._data.containers import ListOf, Row, Table, Values
from ...module_utils._data.errors import Mistakes, suggest
from ...module_utils._data.kinds import Anything, Checked, Kind, Size, Text, Whole, is_whole
from .._common.libraries import os_traits
from .._provider.world.model import LARGEST_AMOUNT
from .._provider.world.names import LONGEST_NAME, custom_trait, why_no_provider_name
from .._provider.world.parse import INVENTORY
from .planned_groups import PlannedGroup, planned_groups
from .planned_rooms import PlannedRoom, planned_rooms

Plain = dict[str, t.Any]

_VCPU, _MEMORY, _DISK, _GPU, _FUNCTION, _OUT, _IN = CLASSES = (
    "VCPU",
    "MEMORY_MB",
    "DISK_GB",
    "PGPU",
    "SRIOV_NET_VF",
    "NET_BW_EGR_KILOBIT_PER_SEC",
    "NET_BW_IGR_KILOBIT_PER_SEC",
)
_KILOBITS = 1000
_MOST_OVERCOMMITTED = 1000
_MIB_OF_GIB = 1024
_TRAITS_OF_DISKS = {"ssd": os_traits.STORAGE_DISK_SSD, "hdd": os_traits.STORAGE_DISK_HDD}
_CPU_LIST = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*")


class _Cpus(Kind):
    """A number of CPUs, or a list of the kernel; a node without CPUs has the empty list."""

    wanted, blank = "a number of CPUs, or a list such as '0-3,8-11'", 0

    def read(self, value: t.Any) -> int:
        if not isinstance(value, str):
            return int(value) if is_whole(value) and 0 <= value <= LARGEST_AMOUNT else self.refuse(value)
        if value and _CPU_LIST.fullmatch(value) is None:
            self.refuse(value)
        ends = [part.split("-") for part in value.split(",") if part]
        return len({cpu for end in ends for cpu in range(int(end[0]), int(end[-1]) + 1)})


class _Limits(Kind):
    """What holds for all inventories of a class."""

    wanted = "a mapping with keys such as reserved and allocation_ratio"

    def read(self, value: t.Any) -> Mapping[str, t.Any]:
        return value if isinstance(value, Mapping) else self.refuse(value)


class _Times(Kind):
    """How far a thin pool is overcommitted."""

    wanted, blank = "a number from 1 to 1000", 1.0

    def read(self, value: t.Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= _MOST_OVERCOMMITTED:
            self.refuse(value)
        return float(value)


_COUNT = Whole(1)


def _why_no_number(value: t.Any) -> str:
    """Return what is wrong with the number of a maker or a model of PCI devices."""
    return "" if isinstance(value, str) and re.fullmatch("[0-9a-fA-F]{4}", value) else f"is {value!r}; must be four hexadecimal digits"


_HEXADECIMAL = Checked(_why_no_number, "four hexadecimal digits")
_FACTS = Table(
    "the facts",
    [
        *(Row(name, _COUNT) for name in ("processor_vcpus", "processor_count", "memtotal_mb")),
        *(Row(name, _COUNT, default=1) for name in ("processor_cores", "processor_threads_per_core")),
        Row("bareon_hardware", Anything()),
        Row("bareon_node", Anything()),
    ],
    others=True,
)
_HARDWARE = Table("the hardware", [Row("ram", Size(math.floor)), Row("disks", Anything())], others=True)
_NUMA_NODE = Table("a NUMA node", [Row("cpus", _Cpus(), required=True), Row("memory", Size(math.floor), required=True)])
_PCI = (
    Row("address", Text(filled=True), required=True),
    *(Row(name, _HEXADECIMAL) for name in ("vendor", "device")),
    Row("numa_node", Whole(0)),
)
_GPU_TABLE = Table("a GPU", _PCI, others=True)
_NIC_TABLE = Table(
    "a network card",
    [*_PCI, Row("name", Text(filled=True), required=True), Row("speed", Whole(1)), Row("vfs", Whole(0), default=0)],
    others=True,
)
_NODE = Table(
    "the node",
    [
        Row("cpus", _COUNT),
        Row("memory", _COUNT),
        Row("numa", Anything()),
        Row("gpus", ListOf(_GPU_TABLE, "GPUs"), default=()),
        Row("nics", ListOf(_NIC_TABLE, "network cards"), default=()),
    ],
    others=True,
)
_NUMA = ListOf(_NUMA_NODE, "nodes, each with cpus and memory")
_NAMES = ListOf(Text(filled=True), "names")
_STORAGE = Table("the options", [Row("offered", _NAMES, default=()), Row("overcommit", _Times(), default=1.0)])
_LIMITS = Table("the limits", [Row(name, _Limits()) for name in CLASSES])


@dataclass(frozen=True)
class _Machine:
    """CPUs and MiB of memory of a host or of one of its NUMA nodes; None where unknown."""

    cpus: int | None
    memory: int | None


def plan_to_providers(
    plan: t.Any,
    host: t.Any,
    facts: t.Any,
    numa: t.Any = None,
    hardware: t.Any = None,
    limits: t.Any = None,
    volume_groups: t.Any = None,
    node: t.Any = None,
    offered: t.Any = None,
    overcommit: t.Any = None,
) -> list[Plain]:
    """Return a host as the option `providers` of the module `provider` takes it: root, NUMA nodes, storage, GPUs, network cards.

    `plan` is a plan of disk_plan. `facts` has processor_vcpus (or processor_count, processor_cores, processor_threads_per_core) and
    memtotal_mb as Ansible gathers them; where they lack memory, `hardware` (of disk_facts; default facts.bareon_hardware) has it.
    `node` is what node_facts returns (default facts.bareon_node). `numa`, by default that of the node where it has more than one, is
    [{cpus: number or list of the kernel, such as `0-3,8-11`; memory: MiB or a size}].
    `limits` {class: {reserved, allocation_ratio, min_unit, max_unit, step_size}} holds for each provider with that class.
    `volume_groups` names those that are offered, with their thin pools, default all; `offered` are the ids of spaces, Btrfs or partitions,
    that are, too. `overcommit` is how many times its size a thin pool gives, default 1. DISK_GB is whole GiB, rounded down.
    Raises InputError with everything that is wrong.
    """
    mistakes = Mistakes()
    known = _FACTS.read_nested(facts, "facts", mistakes)
    server = _NODE.read_nested((known["bareon_node"] or {}) if node is None else node, "node", mistakes)
    if not numa and isinstance(server["numa"], (list, tuple)) and len(server["numa"]) > 1:
        numa = server["numa"]
    disks = _HARDWARE.read_nested((known["bareon_hardware"] or {}) if hardware is None else hardware, "hardware", mistakes)
    read = [] if numa is None else _NUMA.read_nested(numa, "numa", mistakes)
    nodes = [_Machine(node["cpus"], node["memory"]) for node in read]
    whole = _machine(_with_node(known, server), disks, bool(nodes), mistakes)
    _refuse_too_large(nodes, whole, mistakes)
    groups = _chosen(planned_groups(plan, mistakes), volume_groups, mistakes)
    rules = _limits(limits, mistakes)
    storage = {"offered": offered, "overcommit": overcommit}
    more = _STORAGE.read_nested({key: value for key, value in storage.items() if value is not None}, "", mistakes)
    chosen = {group.name for group in groups}
    rooms = [room for room in planned_rooms(plan, more["offered"], mistakes) if room.group is None or room.group in chosen]
    _check_names(host, groups, rooms, mistakes)
    parts = [*map(_Part.of_gpu, server["gpus"]), *map(_Part.of_nic, server["nics"])]
    _check_parts(host, parts, mistakes)
    mistakes.check()
    providers = [
        {"name": host, "inventories": {} if nodes else _computing(whole, rules)},
        *(_numa_provider(host, number, node, rules) for number, node in enumerate(nodes)),
        *(_group_provider(host, group, _disk_types(disks), rules) for group in groups),
        *(_room_provider(host, room, _disk_types(disks), rules, more["overcommit"]) for room in rooms),
        *(_part_provider(host, part, len(nodes), rules) for part in parts),
    ]
    # The ledger takes a fleet whole or not at all: a host that it would refuse must not keep the others out.
    for provider in providers:
        for name, entry in provider["inventories"].items():
            INVENTORY.read_nested(entry, f"{provider['name']}.{name}", mistakes)
    mistakes.check()
    return providers


@dataclass(frozen=True)
class _Part:
    """A device of a host: what its provider is called after the host's name, its totals, its model, and its NUMA node."""

    name: str
    totals: Mapping[str, int]
    model: tuple[str | None, str | None]
    numa_node: int | None
    traits: tuple[str, ...] = ()

    @classmethod
    def of_gpu(cls, gpu: Values) -> _Part:
        """Return the part that a GPU is."""
        return cls(f"gpu_{gpu['address']}", {_GPU: 1}, (gpu["vendor"], gpu["device"]), gpu["numa_node"])

    @classmethod
    def of_nic(cls, nic: Values) -> _Part:
        """Return the part that a network card is."""
        bandwidth = (nic["speed"] or 0) * _KILOBITS
        totals = {_FUNCTION: nic["vfs"], _OUT: bandwidth, _IN: bandwidth}
        traits = (os_traits.HW_NIC_SRIOV,) if nic["vfs"] else ()
        return cls(f"nic_{nic['name']}", totals, (nic["vendor"], nic["device"]), nic["numa_node"], traits)


def _part_provider(host: str, part: _Part, nodes: int, rules: Mapping[str, Plain]) -> Plain:
    at_node = part.numa_node is not None and part.numa_node < nodes
    models = [f"CUSTOM_PCI_{part.model[0]}_{part.model[1]}".upper()] if all(part.model) else []
    return {
        "name": f"{host}_{part.name}",
        "parent": f"{host}_numa{part.numa_node}" if at_node else host,
        "inventories": _inventories(part.totals, rules),
        "traits": [*models, *part.traits],
    }


def _check_parts(host: t.Any, parts: Sequence[_Part], mistakes: Mistakes) -> None:
    for name, count in Counter(part.name for part in parts).items():
        says = why_no_provider_name(f"{host}_{name}")
        if says or count > 1:
            mistakes.add("node", says or f"has {name} {count} times")


def _with_node(facts: Values, node: Values) -> Values:
    """Return facts, with CPUs and memory of the node where they lack them."""
    counted = facts["processor_vcpus"] or facts["processor_count"]
    return {
        **facts,
        "processor_vcpus": facts["processor_vcpus"] if counted else node["cpus"],
        "memtotal_mb": facts["memtotal_mb"] or node["memory"],
    }


def _numa_provider(host: str, number: int, node: _Machine, rules: Mapping[str, Plain]) -> Plain:
    name = f"{host}_numa{number}"
    return {"name": name, "parent": host, "inventories": _computing(node, rules), "traits": [os_traits.HW_NUMA_ROOT]}


def _room_provider(host: str, room: PlannedRoom, types: Mapping[str, str], rules: Mapping[str, Plain], overcommit: float) -> Plain:
    """Return the provider of a pool, a Btrfs or a partition; what the plan gives to spaces is reserved."""
    ratio = overcommit if room.kind == "pool" else 1.0
    total = room.size // _MIB_OF_GIB
    # What is given out takes its share of what is overcommitted: the capacity is the size times the ratio, less what is given out.
    left = max(0, math.floor((room.size - room.given / ratio) / _MIB_OF_GIB))
    own = rules.get(_DISK, {})
    reserved = total - min(total, left) + own.get("reserved", 0)
    rule = {**own, **({"reserved": reserved} if reserved else {}), **({"allocation_ratio": ratio} if ratio > 1 else {})}
    return {
        "name": _room_name(host, room),
        "parent": host if room.group is None else _group_name(host, room.group),
        "inventories": _inventories({_DISK: total}, {_DISK: rule}),
        "traits": [_room_trait(room), *_types(room.disks, types)],
    }


def _types(disks: frozenset[str], types: Mapping[str, str]) -> list[str]:
    """Return the trait of the type that all disks have."""
    kinds = {types.get(disk) for disk in disks}
    alike = kinds.pop() if len(kinds) == 1 else None
    return [_TRAITS_OF_DISKS[alike]] if alike in _TRAITS_OF_DISKS else []


def _group_provider(host: str, group: PlannedGroup, types: Mapping[str, str], rules: Mapping[str, Plain]) -> Plain:
    traits = [_group_trait(group.name), *_types(group.disks, types)]
    inventories = _inventories({_DISK: group.free // _MIB_OF_GIB}, rules)
    return {"name": _group_name(host, group.name), "parent": host, "inventories": inventories, "traits": traits}


def _group_name(host: str, group: str) -> str:
    return f"{host}_vg_{group}"


def _room_name(host: str, room: PlannedRoom) -> str:
    return f"{host if room.group is None else _group_name(host, room.group)}_{room.kind}_{room.name}"


def _group_trait(group: str) -> str:
    """Return the trait by which a request can ask for a group of that name, on whatever host."""
    return custom_trait("VG", group)


def _room_trait(room: PlannedRoom) -> str:
    return custom_trait(room.kind, room.space or room.name)


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


def _machine(facts: Values, hardware: Values, has_nodes: bool, mistakes: Mistakes) -> _Machine:
    cpus, memory = facts["processor_vcpus"], facts["memtotal_mb"]
    if cpus is None and facts["processor_count"] is not None:
        cpus = facts["processor_count"] * facts["processor_cores"] * facts["processor_threads_per_core"]
    elif cpus is None and not has_nodes and not mistakes.has("facts.processor_vcpus"):
        mistakes.add("facts.processor_vcpus", "is missing; gather the facts of the host, or give the number of its CPUs")
    if memory is None and not mistakes.has("facts.memtotal_mb"):
        memory = hardware["ram"]
        if memory is None and not has_nodes and not mistakes.has("hardware.ram"):
            mistakes.add("facts.memtotal_mb", "is missing; gather the facts of the host, or give its memory in MiB")
    return _Machine(cpus, memory)


def _refuse_too_large(nodes: Sequence[_Machine], whole: _Machine, mistakes: Mistakes) -> None:
    """A host whose nodes have more CPUs than it has is described wrongly; memory is not compared: the kernel's total leaves out its own."""
    cpus = sum(node.cpus or 0 for node in nodes)
    if whole.cpus is not None and cpus > whole.cpus:
        mistakes.add("numa", f"has {cpus} CPUs in all, but the host has {whole.cpus}")


def _chosen(groups: Sequence[PlannedGroup], names: t.Any, mistakes: Mistakes) -> list[PlannedGroup]:
    if names is None:
        return list(groups)
    known = [group.name for group in groups]
    chosen = _NAMES.read_nested(names, "volume_groups", mistakes)
    for number, name in enumerate(chosen):
        if name and name not in known:
            says = f"the plan has no volume group {name!r}{suggest(name, known)}; it has {', '.join(known) or 'none'}"
            mistakes.add(f"volume_groups[{number}]", says)
    return [group for group in groups if group.name in chosen]


def _limits(data: t.Any, mistakes: Mistakes) -> dict[str, Plain]:
    if data is None:
        return {}
    given = _LIMITS.read_nested(data, "limits", mistakes)
    for name, entry in given.items():
        if entry is not None and "total" in entry:
            mistakes.add(f"limits.{name}.total", "comes from the plan and the facts, and cannot be given")
        elif entry is not None:
            INVENTORY.read_nested({"total": LARGEST_AMOUNT, **entry}, f"limits.{name}", mistakes)
    return {name: dict(entry) for name, entry in given.items() if entry is not None}


def _disk_types(hardware: Values) -> dict[str, str]:
    disks = hardware["disks"]
    return {str(disk.get("id")): str(disk.get("type")) for disk in disks if isinstance(disk, Mapping)} if isinstance(disks, list) else {}


def _check_names(host: t.Any, groups: Sequence[PlannedGroup], rooms: Sequence[PlannedRoom], mistakes: Mistakes) -> None:
    says = why_no_provider_name(host)
    if says:
        mistakes.add("host", says)
        return
    for group in groups:
        says = why_no_provider_name(_group_name(host, group.name))
        if says or len(_group_trait(group.name)) > LONGEST_NAME:
            mistakes.add(f"volume group {group.name}", says or "has too long a name for a trait")
    for room in rooms:
        says = why_no_provider_name(_room_name(host, room))
        if says or len(_room_trait(room)) > LONGEST_NAME:
            mistakes.add(f"{room.kind} {room.name}", says or "has too long a name for a trait")
