# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a libvirt node is: CPUs, memory, free huge pages, machine types, CPU models, networks.

nodeinfo, nodememstats, freepages --all     CPUs; memory, its free part, free pages by their size
capabilities                                QEMU's machine types, and whether KVM is there
domcapabilities                             the CPU models that guests can have, and the flags of `host-model`
net-list                                    the active networks
"""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .....module_utils._data.containers import Values
from .....module_utils._data.errors import Mistakes
from .markup import read_markup, read_whole

_NUMBER = re.compile(r"(\d{1,18})(?:\s*KiB)?")
_PAGES = re.compile(r"\s*(\d{1,18})KiB:\s*(\d{1,18})\s*")
_KIB = 1024


@dataclass(frozen=True)
class HostModel:
    """The CPU of `host-model`: a model, the flags that are added to it, and those that are taken from it."""

    model: str = ""
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Host:
    """A node. Sizes are bytes; what it does not say is empty, None or 0."""

    cpus: int
    memory: int
    available: int | None
    """Memory that is free, or that the kernel gives up for it."""
    pages: Mapping[int, int]
    """Free huge pages by their size."""
    machines: Mapping[str, frozenset[str]]
    """QEMU's machine types, those that stand for others included, by architecture."""
    with_kvm: frozenset[str]
    """The architectures that KVM runs."""
    models: frozenset[str]
    """The CPU models that guests can have."""
    host_model: HostModel
    networks: frozenset[str]


def read_host(values: Values, place: str, mistakes: Mistakes) -> Host:
    """Return what a node says of itself, of `values` by the names in virsh.py."""
    info, memory = _numbers(values["nodeinfo"]), _numbers(values["nodememstats"])
    cpus, total = info.get("CPU(s)", 0), info.get("Memory size", 0)
    if not cpus or not total:
        mistakes.add(f"{place}.nodeinfo", "does not give CPU(s) and Memory size, as virsh nodeinfo does")
    machines, with_kvm = _read_guests(values["capabilities"], f"{place}.capabilities", mistakes)
    models, host_model = _read_processors(values["domcapabilities"], f"{place}.domcapabilities", mistakes)
    available = sum(memory.get(kind, 0) for kind in ("free", "buffers", "cached")) * _KIB if "free" in memory else None
    return Host(
        cpus=cpus,
        memory=total * _KIB,
        available=None if available is None else min(available, total * _KIB),
        pages=_free_pages(values["freepages"]),
        machines=machines,
        with_kvm=with_kvm,
        models=models,
        host_model=host_model,
        networks=frozenset(line.strip() for line in values["networks"].splitlines() if line.strip()),
    )


def _numbers(text: str) -> dict[str, int]:
    """Return the numbers of lines such as `CPU(s):  16` and `free   :  123 KiB`."""
    pairs = (line.partition(":") for line in text.splitlines())
    found = ((name.strip(), _NUMBER.fullmatch(value.strip())) for name, _colon, value in pairs)
    return {name: read_whole(number[1]) or 0 for name, number in found if name and number}


def _free_pages(text: str) -> dict[int, int]:
    """Return the free huge pages of all NUMA nodes, by their size in bytes; 4 KiB are no huge page."""
    found: collections.Counter[int] = collections.Counter()
    for line in filter(None, map(_PAGES.fullmatch, text.splitlines())):
        if int(line[1]) > 4:
            found[int(line[1]) * _KIB] += read_whole(line[2]) or 0
    return dict(found)


def _read_guests(text: str, place: str, mistakes: Mistakes) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """Return the machine types by architecture, and the architectures with KVM."""
    if not text.strip():
        return {}, frozenset()
    machines: dict[str, set[str]] = collections.defaultdict(set)
    with_kvm = set()
    for arch in read_markup(text, "capabilities", place, mistakes).iterfind("guest/arch"):
        name = arch.get("name", "")
        for machine in arch.iter("machine"):
            machines[name] |= {(machine.text or "").strip(), machine.get("canonical", "")} - {""}
        if any(domain.get("type") == "kvm" for domain in arch.iterfind("domain")):
            with_kvm.add(name)
    return {name: frozenset(found) for name, found in machines.items()}, frozenset(with_kvm)


def _read_processors(text: str, place: str, mistakes: Mistakes) -> tuple[frozenset[str], HostModel]:
    """Return the CPU models that guests can have, and that of the host."""
    if not text.strip():
        return frozenset(), HostModel()
    root = read_markup(text, "domainCapabilities", place, mistakes)
    usable = frozenset(
        (model.text or "").strip() for model in root.iterfind("cpu/mode[@name='custom']/model") if model.get("usable") == "yes"
    )
    mode = root.find("cpu/mode[@name='host-model']")
    if mode is None or mode.get("supported") != "yes":
        return usable, HostModel()
    flags: dict[str, set[str]] = collections.defaultdict(set)
    for feature in mode.iterfind("feature"):
        flags[feature.get("policy", "require")].add(feature.get("name", ""))
    model = (mode.findtext("model") or "").strip()
    return usable, HostModel(model, frozenset(flags["require"]), frozenset(flags["disable"]))
