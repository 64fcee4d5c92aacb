# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""To which nodes a running machine of Proxmox VE can be moved, by its type of CPU.

    host, max                                   what its node has: the flags, and the vendor
    x86-64-v2, -v2-AES, -v3, -v4                the flags of the level (CPUConfig.pm of qemu-server)
    EPYC, Skylake-Server, custom-...            the vendor; their flags are unknown
    kvm64, qemu64, none                         anything
    flags=+aes;+pcid                            these as well; nested virtualisation is the same with one vendor only

What a machine has got on its node is enough, so a flag that this node does not report is not looked up on others.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .....module_utils._data.containers import Row, Table
from .....module_utils._data.errors import Mistakes
from ...._common.lenient import NAME
from ...cluster.model import Rule, RuleKind
from .config import Processor
from .guests import Guests

_STATUS = Table("a node's status", [Row("cpuinfo", Table("a CPU", [Row("flags", NAME), Row("model", NAME)], others=True))], others=True)
_V2 = frozenset({"popcnt", "pni", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | {"aes", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
_LEVELS: Mapping[str, frozenset[str]] = {
    "x86-64-v2": _V2,
    "x86-64-v2-AES": _V2 | {"aes"},
    "x86-64-v3": _V3,
    "x86-64-v4": _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
_OF_ITS_NODE = frozenset({"host", "max"})
_ANYWHERE = frozenset({"", "kvm32", "kvm64", "qemu32", "qemu64"})
_NESTED = frozenset({"nested-virt", "vmx", "svm"})
_VENDORS = ("Intel", "AMD")


@dataclass(frozen=True)
class _Machine:
    """The CPU of a node; empty where it is unknown."""

    flags: frozenset[str]
    vendor: str


def processor_rules(documents: Mapping[str, t.Any], guests: Guests, nodes: Sequence[str], mistakes: Mistakes) -> Iterator[Rule]:
    """Yield a pin for each running machine whose CPU another node does not have."""
    machines = {node: _machine(documents, node, mistakes) for node in nodes}
    for number, config in guests.configs.items():
        values = guests.values[number]
        if config is None or values["type"] != "qemu" or values["status"] != "running" or values["node"] not in machines:
            continue
        flags, vendor = _needs(config.cpu, machines[values["node"]])
        less = [node for node, machine in machines.items() if machine.flags and not flags <= machine.flags]
        other = [node for node, machine in machines.items() if vendor and machine.vendor not in ("", vendor)]
        if less or other:
            name = guests.names[number]
            whys = [f"more than {', '.join(less)} can give"] if less else []
            whys += [f"of {vendor}, which {', '.join(other)} {'are' if len(other) > 1 else 'is'} not"] if other else []
            allowed = tuple(node for node in nodes if node not in {*less, *other})
            yield Rule(f"{name}: its CPU type {config.cpu.kind or 'kvm64'} is {' and '.join(whys)}", RuleKind.PIN, (name,), allowed)


def _machine(documents: Mapping[str, t.Any], node: str, mistakes: Mistakes) -> _Machine:
    path = f"/nodes/{node}/status"
    cpu = {} if documents.get(path) is None else _STATUS.read_nested(documents[path], path, mistakes)["cpuinfo"] or {}
    model = cpu.get("model") or ""
    return _Machine(frozenset((cpu.get("flags") or "").split()), next((vendor for vendor in _VENDORS if vendor in model), ""))


def _needs(cpu: Processor, home: _Machine) -> tuple[frozenset[str], str]:
    """Return the flags and the vendor that a machine needs of a node; empty where any will do."""
    added = frozenset(flag.replace("-", "_") for flag in cpu.flags)
    flags = home.flags if cpu.kind in _OF_ITS_NODE else (_LEVELS.get(cpu.kind, frozenset()) | added) & home.flags
    any_vendor = (cpu.kind in _LEVELS or cpu.kind in _ANYWHERE) and not _NESTED & frozenset(cpu.flags)
    return flags, "" if any_vendor else home.vendor
