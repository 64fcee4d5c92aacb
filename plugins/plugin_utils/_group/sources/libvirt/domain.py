# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The XML of a libvirt domain, as far as it says what the guest needs of a node, and what ties it to the one that it is on.

What ties a guest is what libvirt refuses to migrate (qemuMigrationSrcIsAllowed), and what the other node does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from .....module_utils._data.errors import Mistakes
from .markup import bytes_at, read_bytes, read_markup, read_whole, text_at

_TAGS = "metadata/{*}tags"
"""Tags, words with spaces between them, as `virsh metadata DOMAIN URI --set '<tags>...</tags>'` keeps them."""
_CPU = re.compile(r"\d{1,6}")


@dataclass(frozen=True)
class DomainDisk:
    """A disk or a drive: the name of its device, the path or what stands for it, and the pool where the domain names one."""

    name: str
    path: str
    pool: str
    networked: bool
    """Whether it is reached by the network, from any node."""
    is_drive: bool
    """Whether it only reads: a CD-ROM, a floppy disk, or a disk that says so."""


@dataclass(frozen=True)
class Processor:
    """The CPU of a domain: `mode` is host-passthrough, maximum, host-model or custom, empty for the default."""

    mode: str
    model: str
    flags: frozenset[str]


@dataclass(frozen=True)
class Domain:
    """A domain. Sizes are bytes."""

    name: str
    uuid: str
    has_id: bool
    """Whether libvirt gave it an id, as to those that run."""
    accelerated: bool
    memory: int
    vcpus: int
    arch: str
    machine: str
    cpu: Processor
    disks: tuple[DomainDisk, ...]
    ties: tuple[str, ...]
    page_size: int | None
    """Of huge pages, 0 for those of any size; None where it has none."""
    highest_cpu: int
    """The highest number of a CPU that it is bound to, -1 for none."""
    networks: frozenset[str]
    tags: tuple[str, ...]


def read_domain(text: str, place: str, mistakes: Mistakes) -> Domain:
    """Return a domain."""
    root = read_markup(text, "domain", place, mistakes)
    vcpu = root.find("vcpu")
    counts = (
        [] if vcpu is None else [count for count in (read_whole(vcpu.get("current", "")), read_whole(vcpu.text or "")) if count is not None]
    )
    kind = root.find("os/type")
    memory = bytes_at(root, "memory")
    if not memory or not counts:
        mistakes.add(place, "is a domain without a memory or a vcpu")
    return Domain(
        name=text_at(root, "name"),
        uuid=text_at(root, "uuid"),
        has_id=root.get("id") is not None,
        accelerated=root.get("type") == "kvm",
        memory=memory,
        vcpus=counts[0] if counts else 0,
        arch="" if kind is None else kind.get("arch", ""),
        machine="" if kind is None else kind.get("machine", ""),
        cpu=_processor(root.find("cpu")),
        disks=tuple(_disks(root)),
        ties=tuple(_ties(root)),
        page_size=_page_size(root.find("memoryBacking/hugepages")),
        highest_cpu=max(map(int, _CPU.findall(" ".join(_bindings(root)))), default=-1),
        networks=frozenset(source.get("network", "") for source in root.iterfind("devices/interface[@type='network']/source")) - {""},
        tags=tuple(sorted({tag for element in root.iterfind(_TAGS) for tag in (element.text or "").split()})),
    )


def _processor(cpu: Element | None) -> Processor:
    if cpu is None:
        return Processor("", "", frozenset())
    model = text_at(cpu, "model")
    flags = frozenset(one.get("name", "") for one in cpu.iterfind("feature") if one.get("policy") in ("require", "force"))
    return Processor(cpu.get("mode") or ("custom" if model else ""), model, flags)


def _disks(root: Element) -> Iterator[DomainDisk]:
    """Yield the disks, and the drives with something in them."""
    for disk in root.iterfind("devices/disk"):
        source, target = disk.find("source"), disk.find("target")
        paths = [] if source is None else [source.get(key) for key in ("file", "dev", "volume", "name", "dir")]
        path = next((path for path in paths if path is not None), None)
        if source is None or path is None:
            continue
        yield DomainDisk(
            name="" if target is None else target.get("dev", ""),
            path=path,
            pool=source.get("pool", ""),
            networked=disk.get("type") == "network",
            is_drive=disk.get("device") in ("cdrom", "floppy") or disk.find("readonly") is not None,
        )


def _ties(root: Element) -> Iterator[str]:
    """Yield in words what keeps a domain on its node, but for disks."""
    for device in root.iterfind("devices/hostdev"):
        yield f"it has a device of its node ({device.get('type') or device.get('mode') or 'hostdev'})"
    if root.find("devices/interface[@type='hostdev']") is not None:
        yield "it has a network device of its node"
    for kind in ("serial", "parallel"):
        if root.find(f"devices/{kind}[@type='dev']") is not None:
            yield f"it has a {kind} port of its node"
    if root.find("devices/filesystem") is not None:
        yield "it mounts a folder of its node"
    for kind in ("nvme", "vhostuser", "vhostvdpa"):
        if root.find(f"devices/disk[@type='{kind}']") is not None:
            yield f"it has a disk of the type {kind}"
    if root.find("devices/tpm/backend[@type='passthrough']") is not None:
        yield "it has the TPM of its node"
    if root.find("launchSecurity") is not None:
        yield "its memory is encrypted (launchSecurity)"


def _page_size(pages: Element | None) -> int | None:
    if pages is None:
        return None
    return max((read_bytes(page.get("size", ""), page.get("unit", "")) for page in pages.iterfind("page")), default=0)


def _bindings(root: Element) -> Iterator[str]:
    """Yield the sets of CPUs that a domain is bound to; those taken out of a set begin with a caret, and are smaller than others of it."""
    for path in ("vcpu", "cputune/vcpupin", "cputune/emulatorpin", "cputune/iothreadpin"):
        for element in root.iterfind(path):
            yield element.get("cpuset", "")


def read_statistics(text: str) -> dict[str, Mapping[str, str]]:
    """Return what `domstats` prints: by the name of a domain, values by their names."""
    found: dict[str, dict[str, str]] = {}
    values: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("Domain: '"):
            values = found.setdefault(line[len("Domain: '") :].rstrip().removesuffix("'"), {})
        else:
            name, equals, value = line.strip().partition("=")
            if equals:
                values[name] = value
    return dict(found)


def sizes_of_disks(values: Mapping[str, str]) -> dict[str, int]:
    """Return the bytes of the disks of a domain by the names of their devices, where `domstats` gives them."""
    found = {}
    for key, name in values.items():
        prefix, dot, last = key.rpartition(".")
        if dot and last == "name" and prefix.startswith("block."):
            size = read_whole(values.get(f"{prefix}.capacity", ""))
            if size is not None:
                found[name] = size
    return found
