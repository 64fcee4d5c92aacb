# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server's CPUs, memory, NUMA nodes, GPUs and network cards, as the kernel shows them in sysfs."""

from __future__ import annotations

import posixpath
import re
import typing as t

from .host import Host
from .sysfs import read_memory

NODES = "/sys/devices/system/node"
PCI = "/sys/bus/pci/devices"
NETWORK = "/sys/class/net"

Plain = dict[str, t.Any]

_NODE = re.compile(r"node([0-9]+)")
_CPUS = re.compile(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*")
_MEMORY = re.compile(r"MemTotal:\s*([0-9]+) kB")
_COMPUTING = ("0x0302", "0x1200")
"""PCI classes of 3D controllers and of processing accelerators: those that compute and have no screen."""
_DISPLAYS = ("0x0300", "0x0380")
_MAKERS_OF_GPUS = ("0x10de", "0x1002")
"""A display controller of NVIDIA or AMD computes, too; those of others are a server's console, or part of its CPU."""
_ETHERNET, _INFINIBAND = "1", "32"


def read_node(host: Host) -> Plain:
    """Return {cpus, memory, numa, gpus, nics}: the number of online CPUs, and MiB; None where unknown.

    `numa` are the nodes in their order, {cpus: list of the kernel, memory: MiB}. `gpus` are {address, vendor, device, numa_node}, in the
    order of their addresses. `nics` are the functions of network cards that are no virtual ones, by name, {name, address, mac, speed, vfs,
    vendor, device, numa_node}; `speed` is in Mbit/s, None without a link, `vfs` how many virtual functions it can have.
    """
    return {
        "cpus": _count(host.read("/sys/devices/system/cpu/online")),
        "memory": read_memory(host),
        "numa": _read_numa(host),
        "gpus": [_read_pci(host, address) for address in host.names(PCI) if _is_gpu(host, f"{PCI}/{address}")],
        "nics": [nic for name in host.names(NETWORK) for nic in _read_nic(host, name)],
    }


def _count(cpus: t.Optional[str]) -> t.Optional[int]:
    """Return how many CPUs a list of the kernel names."""
    if cpus is None or _CPUS.fullmatch(cpus) is None:
        return None
    ends = [part.split("-") for part in cpus.split(",")]
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def _read_numa(host: Host) -> list[Plain]:
    numbers = sorted(int(match[1]) for match in map(_NODE.fullmatch, host.names(NODES)) if match)
    nodes = []
    for number in numbers:
        memory = _MEMORY.search(host.read(f"{NODES}/node{number}/meminfo") or "")
        cpus = host.read(f"{NODES}/node{number}/cpulist") or ""
        nodes.append({"cpus": cpus, "memory": int(memory[1]) // 1024 if memory else 0})
    return nodes


def _is_gpu(host: Host, device: str) -> bool:
    kind = (host.read(f"{device}/class") or "")[:6]
    if host.names(f"{device}/physfn"):
        return False
    return kind in _COMPUTING or (kind in _DISPLAYS and host.read(f"{device}/vendor") in _MAKERS_OF_GPUS)


def _read_pci(host: Host, address: str) -> Plain:
    device = f"{PCI}/{address}"
    node = _whole(host.read(f"{device}/numa_node"))
    return {
        "address": address,
        "vendor": (host.read(f"{device}/vendor") or "").removeprefix("0x"),
        "device": (host.read(f"{device}/device") or "").removeprefix("0x"),
        "numa_node": None if node is None or node < 0 else node,
    }


def _read_nic(host: Host, name: str) -> list[Plain]:
    """Return the interface, or nothing where it is no function of a card."""
    base = f"{NETWORK}/{name}"
    place = host.resolve(f"{base}/device")
    address = posixpath.basename(place or "")
    if place is None or address not in host.names(PCI) or host.read(f"{base}/type") not in (_ETHERNET, _INFINIBAND):
        return []
    if host.names(f"{base}/device/physfn"):
        return []
    speed = _whole(host.read(f"{base}/speed"))
    return [
        {
            "name": name,
            **_read_pci(host, address),
            "mac": host.read(f"{base}/address"),
            "speed": speed if speed is not None and speed > 0 else None,
            "vfs": _whole(host.read(f"{base}/device/sriov_totalvfs")) or 0,
        }
    ]


def _whole(text: t.Optional[str]) -> t.Optional[int]:
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,9}", text) else None
