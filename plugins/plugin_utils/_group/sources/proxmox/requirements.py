# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a machine of Proxmox VE needs of a node: its version of QEMU's machine, pages of 1 GiB, mapped devices; and replicas.

    /nodes/NODE/capabilities/qemu/machines     the versions of QEMU's machines that a node has
    /nodes/NODE/status                         CPU flags, of which pdpe1gb says whether there are pages of 1 GiB
    /cluster/mapping/pci, /cluster/mapping/usb the nodes that have a mapped device
    /cluster/replication                       the nodes that have replicas of a guest's disks

A requirement that no document mentions counts as met.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .....module_utils._data.containers import ListOf, Row, Table, Values
from .....module_utils._data.errors import Mistakes
from .....module_utils._data.kinds import Anything
from ...._common.lenient import NAME, STRINGS, TRUTH, WHOLE
from ...cluster.model import Rule
from ...cluster.pins import pins_to_others
from .guests import Guests

_MACHINES = ListOf(Table("a machine", [Row("id", NAME, required=True)], others=True), "machines")
_MAPPINGS = ListOf(
    Table(
        "a mapping",
        [Row("id", NAME, required=True), Row("map", STRINGS, default=()), Row("live-migration-capable", TRUTH, default=False)],
        others=True,
    ),
    "mappings",
)
_JOBS = ListOf(
    Table("a replication job", [Row("guest", WHOLE, required=True), Row("target", NAME, required=True)], others=True), "replication jobs"
)
_CPU = Table("a CPU", [Row("flags", NAME)], others=True)
_STATUS = Table("a node's status", [Row("cpuinfo", Anything())], others=True)
_VERSION = re.compile(r"(?:pc-)?(?:i440fx|q35)-(\d+)\.(\d+)")
KINDS = ("pci", "usb")


@dataclass(frozen=True)
class Mapped:
    """Of a mapped device, the nodes that have it, and whether a machine that runs can take it along."""

    nodes: frozenset[str]
    live: bool


def read_mappings(documents: Mapping[str, t.Any], mistakes: Mistakes) -> dict[tuple[str, str], Mapped]:
    """Return the mapped devices by kind and name."""
    found = {}
    for kind in KINDS:
        for values in _listed(documents, f"/cluster/mapping/{kind}", _MAPPINGS, mistakes):
            parts = (dict(part.partition("=")[::2] for part in entry.split(",")) for entry in values["map"])
            nodes = frozenset(part["node"] for part in parts if "node" in part)
            found[kind, values["id"]] = Mapped(nodes, values["live-migration-capable"])
    return found


def read_replicas(documents: Mapping[str, t.Any], mistakes: Mistakes) -> dict[int, tuple[str, ...]]:
    """Return the nodes that guests are replicated to, by number."""
    found: dict[int, tuple[str, ...]] = {}
    for job in _listed(documents, "/cluster/replication", _JOBS, mistakes):
        found[job["guest"]] = (*found.get(job["guest"], ()), job["target"])
    return found


def requirement_rules(
    documents: Mapping[str, t.Any],
    guests: Guests,
    nodes: Sequence[str],
    mappings: Mapping[tuple[str, str], Mapped],
    mistakes: Mistakes,
) -> Iterator[Rule]:
    """Yield a pin for each machine that some nodes lack something for; of replicated ones that run, to where they may go."""
    machines = {node: _machines(documents, node, mistakes) for node in nodes}
    with_pages = {node: _has_large_pages(documents, node, mistakes) for node in nodes}
    for number, config in guests.configs.items():
        values = guests.values[number]
        home, name = values["node"], guests.names[number]
        if config is None or values["type"] != "qemu":
            continue
        pinned, lacking = config.machine.partition("+")[0], dict[str, list[str]]()
        if _VERSION.match(pinned):
            lacking[f"its machine is {pinned}"] = [node for node in nodes if machines[node] and pinned not in machines[node]]
        if config.hugepages == "1024":
            lacking["it has pages of 1 GiB"] = [node for node in nodes if not with_pages[node]]
        for kind, device in config.mappings:
            if (kind, device) in mappings:
                lacking[f"it has the mapped device {device}"] = [node for node in nodes if node not in mappings[kind, device].nodes]
        yield from pins_to_others(name, lacking, nodes, home, hardware=True)
        if values["status"] == "running" and not _VERSION.match(pinned):
            newest = _newest(machines.get(home, frozenset()))
            older = [node for node in nodes if machines[node] and _newest(machines[node]) < newest]
            yield from pins_to_others(name, {"it runs on a newer QEMU": older}, nodes, home, hardware=False)
    for number, targets in guests.replicas.items():
        if number in guests.values and guests.values[number]["status"] == "running":
            home, name = guests.values[number]["node"], guests.names[number]
            elsewhere = [node for node in nodes if node not in targets]
            yield from pins_to_others(name, {f"it is replicated to {', '.join(targets)}": elsewhere}, nodes, home, hardware=False)


def _listed(documents: Mapping[str, t.Any], path: str, kind: ListOf, mistakes: Mistakes) -> tuple[Values, ...]:
    return () if documents.get(path) is None else kind.read_nested(documents[path], path, mistakes)


def _machines(documents: Mapping[str, t.Any], node: str, mistakes: Mistakes) -> frozenset[str]:
    path = f"/nodes/{node}/capabilities/qemu/machines"
    return frozenset(values["id"].partition("+")[0] for values in _listed(documents, path, _MACHINES, mistakes))


def _newest(machines: frozenset[str]) -> tuple[int, int]:
    """Return the newest version among machines, as major and minor."""
    found = (_VERSION.match(machine) for machine in machines)
    return max(((int(one[1]), int(one[2])) for one in found if one), default=(0, 0))


def _has_large_pages(documents: Mapping[str, t.Any], node: str, mistakes: Mistakes) -> bool:
    path = f"/nodes/{node}/status"
    if documents.get(path) is None:
        return True
    cpu = _STATUS.read_nested(documents[path], path, mistakes)["cpuinfo"]
    flags = (_CPU.read_nested(cpu, f"{path}.cpuinfo", mistakes)["flags"] or "") if isinstance(cpu, Mapping) else ""
    return not flags or "pdpe1gb" in flags.split()
