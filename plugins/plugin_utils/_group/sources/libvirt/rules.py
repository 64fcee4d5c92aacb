# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules of libvirt clusters: where a guest may run, and why not elsewhere. libvirt has none of its own.

    devices of the node, snapshots, images     it stays
    KVM, the machine type, huge pages, CPUs that it is bound to, networks, the CPU model      a pin to the nodes that have them
    pools of several disks                     a pin to the nodes that have all

A requirement that a node says nothing of counts as met.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence

from ...cluster.model import Rule, RuleKind
from ...cluster.pins import pins_to_others
from .domain import Processor
from .guests import Guest
from .host import Host

_AS_ITS_NODE = frozenset({"host-passthrough", "maximum"})


def read_rules(guests: Sequence[Guest], hosts: Mapping[str, Host], nodes: Sequence[str]) -> tuple[Rule, ...]:
    """Return every rule; `hosts` are the nodes that answer."""
    return tuple(rule for guest in guests for rule in (*_tied(guest), *_requirements(guest, hosts, nodes)))


def _tied(guest: Guest) -> Iterator[Rule]:
    if guest.ties:
        yield Rule(f"{guest.name}: {', '.join(guest.ties)}", RuleKind.IGNORE, (guest.name,), reason=guest.tied_by)


def _requirements(guest: Guest, hosts: Mapping[str, Host], nodes: Sequence[str]) -> Iterator[Rule]:
    """Yield pins: what a guest cannot be started without, and what it cannot take along while it runs."""
    domain, name, home = guest.domain, guest.name, guest.node
    cannot_start: dict[str, list[str]] = collections.defaultdict(list)
    cannot_move: dict[str, list[str]] = collections.defaultdict(list)
    for node, host in hosts.items():
        if domain.accelerated and host.machines and domain.arch not in host.with_kvm:
            cannot_start[f"it needs KVM for {domain.arch}"].append(node)
        if domain.machine and domain.arch in host.machines and domain.machine not in host.machines[domain.arch]:
            cannot_start[f"its machine is {domain.machine}"].append(node)
        if domain.page_size is not None and host.pages and _free_pages(host, domain.page_size) < domain.memory:
            cannot_start["it needs free huge pages for all its memory"].append(node)
        if domain.highest_cpu >= host.cpus > 0:
            cannot_start[f"it is bound to CPU {domain.highest_cpu}"].append(node)
        if not domain.networks <= host.networks:
            cannot_start[f"it is in the network {', '.join(sorted(domain.networks))}"].append(node)
        if guest.pools - guest.offered.get(node, guest.pools):
            cannot_start[f"it has disks in {', '.join(sorted(guest.pools))}"].append(node)
        if domain.accelerated and home in hosts and domain.cpu.model in hosts[home].models - host.models and host.models:
            cannot_start[f"its CPU is {domain.cpu.model}"].append(node)
        elif domain.accelerated and guest.runs and home in hosts and _lacks(domain.cpu, hosts[home], host):
            cannot_move[f"its CPU is that of {home} ({domain.cpu.mode})"].append(node)
    yield from pins_to_others(name, cannot_start, nodes, home, hardware=True)
    yield from pins_to_others(name, cannot_move, nodes, home, hardware=False)


def _free_pages(host: Host, size: int) -> int:
    """Return the bytes of free huge pages, of one size or of the best one."""
    return max((one * count for one, count in host.pages.items() if size in (0, one)), default=0)


def _lacks(cpu: Processor, home: Host, other: Host) -> bool:
    """Return whether a node surely lacks flags of a CPU that runs on `home`.

    Flags are given relative to a model, whose own are not listed. So they are compared where both nodes have the same one.
    """
    mine, theirs = home.host_model, other.host_model
    if not mine.model or not theirs.model:
        return False
    if cpu.mode in _AS_ITS_NODE:
        return mine != theirs
    if mine.model != theirs.model:
        return bool(cpu.flags & theirs.removed)
    return bool(cpu.flags & ((mine.added - theirs.added) | theirs.removed))
