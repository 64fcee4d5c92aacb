# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users of block devices that no visible mount, swap or holder shows, by device name.

These are mounts in the mount namespaces of other processes (containers, services), exports to other hosts by nvmet and LIO, journals and
logs of file systems that are mounted from other devices, devices that bcache has registered, and the data of LUKS containers with detached
headers, which look like nothing. What may not be read is left out: the kernel's own claim (`Device.claimed`) still shows that there is a
user, but not which.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from .._storage.crypttab import read_containers
from .._storage.fstab import without_escapes
from .._storage.options.words import words_of
from .host import Host
from .mounts import parse_mounts
from .reader import is_visibly_used
from .select import Disk, is_reached_on_paths
from .sysfs import BLOCK
from .tree import Device, Tree

_MOST_NAMESPACES = 1024
"""How many mount namespaces are read: far more than a host with containers has."""

_NVMET = "/sys/kernel/config/nvmet/subsystems"
_LIO = "/sys/kernel/config/target/core"
_EXT4 = "/sys/fs/ext4"
_ANONYMOUS = "0:"
"""What numbers of devices begin with that are no block devices, as those of a mounted Btrfs."""

_LIO_DEVICE = re.compile(r"(?:UDEV PATH|File): (/dev/\S+)")
_JOURNAL = re.compile(r"jbd2/(?P<device>.+?)(?:-[0-9]+)?")
_OWN_JOURNAL = re.compile(r"jbd2/.+-[0-9]+")
_LOG = re.compile(r"\b(logdev|rtdev)=([^,\s]+)")
_CRYPTTAB = "/etc/crypttab"
_HEADER = "header="
_OPEN_LUKS = "CRYPT-LUKS"
"""What the UUID of a device-mapper device begins with that cryptsetup has made from a LUKS header."""
_KINDS = {"logdev": "log", "rtdev": "realtime section"}

Uses = Iterator[tuple[str, str]]
"""Pairs of a device's name in the tree and its use in words."""


def read_uses(host: Host, tree: Tree, disks: Iterable[Disk] = ()) -> Tree:
    """Return the tree with `uses` known, of all its devices."""
    elsewhere = {process: host.read(f"/proc/{process}/mountinfo") or "" for process in _other_namespaces(host)}
    found: dict[str, dict[str, None]] = {}
    for uses in (
        _other_paths(tree, disks),
        _mounts_elsewhere(host, tree, elsewhere),
        _logs_of_mounts(host, tree, (host.read("/proc/self/mountinfo") or "", *elsewhere.values())),
        _exports_by_nvmet(host, tree),
        _exports_by_lio(host, tree),
        _journals(host, tree),
        _registered_with_bcache(host, tree),
        _data_without_header(host, tree),
    ):
        for name, words in uses:
            found.setdefault(name, {})[words] = None
    return tree.with_devices(replace(tree.devices[name], uses=tuple(words)) for name, words in found.items())


def _other_paths(tree: Tree, disks: Iterable[Disk]) -> Uses:
    """Return disks that may be second paths to disks in use: two disks of one identity cannot be distinguished."""
    for disk in disks:
        for name in disk.twins if is_reached_on_paths(disk) else ():
            if is_visibly_used(tree.devices[name], tree.descendants(name)):
                yield disk.device.name, f"perhaps a second path to {tree.devices[name].dev}, which is in use"


def _mounts_elsewhere(host: Host, tree: Tree, elsewhere: Mapping[str, str]) -> Uses:
    """Give what is mounted in other mount namespaces and not in this one: services have copies of all that is mounted here.

    `elsewhere` is mountinfo by a process of each of them.
    """
    numbers = {str(device.row["maj:min"]): device for device in tree.devices.values() if device.row.get("maj:min")}
    for process, mountinfo in elsewhere.items():
        mounts = parse_mounts(mountinfo)
        for key, targets in mounts.targets.items():
            device = numbers.get(key)
            if key.startswith("/dev/") and mounts.types[key] == "btrfs":
                device = tree.by_node(key)
            for each in _of_one_filesystem(tree, device):
                if not each.mountpoints:
                    name = host.read(f"/proc/{process}/comm") or "a process"
                    yield each.name, f"mounted on {', '.join(targets)} in the mount namespace of {name} ({process})"


def _other_namespaces(host: Host) -> Iterator[str]:
    """Give one process of each mount namespace but this one, the first by number."""
    seen = {_namespace(host, "self")}
    for process in sorted((name for name in host.names("/proc") if name.isdigit()), key=int):
        namespace = _namespace(host, process)
        if namespace is not None and namespace not in seen and len(seen) <= _MOST_NAMESPACES:
            seen.add(namespace)
            yield process


def _namespace(host: Host, process: str) -> t.Optional[str]:
    found = host.resolve(f"/proc/{process}/ns/mnt")
    return found.rsplit("/", 1)[-1] if found is not None else None


def _of_one_filesystem(tree: Tree, device: t.Optional[Device]) -> Iterator[Device]:
    """Give a device, and the others of a Btrfs on several: the kernel names one of them."""
    if device is None:
        return
    yield device
    if device.filesystem is not None and device.filesystem.type == "btrfs" and device.filesystem.uuid is not None:
        yield from (other for other in tree.devices.values() if other is not device and other.filesystem == device.filesystem)


def _logs_of_mounts(host: Host, tree: Tree, mountinfos: Iterable[str]) -> Uses:
    """Give the logs and realtime sections of XFS that are mounted, here or in another mount namespace."""
    for mountinfo in mountinfos:
        for line in mountinfo.splitlines():
            before, _dash, after = line.partition(" - xfs ")
            for option, node in _LOG.findall(after):
                device = _by_path(host, tree, without_escapes(node))
                if device is not None and len(before.split()) > 4:
                    yield device.name, f"the {_KINDS[option]} of the xfs that is mounted on {without_escapes(before.split()[4])}"


def _exports_by_nvmet(host: Host, tree: Tree) -> Uses:
    for subsystem in host.names(_NVMET):
        for namespace in host.names(f"{_NVMET}/{subsystem}/namespaces"):
            folder = f"{_NVMET}/{subsystem}/namespaces/{namespace}"
            device = _by_path(host, tree, host.read(f"{folder}/device_path") or "")
            if device is not None and host.read(f"{folder}/enable") == "1":
                yield device.name, f"exported by nvmet as namespace {namespace} of {subsystem}"


def _exports_by_lio(host: Host, tree: Tree) -> Uses:
    for adapter in host.names(_LIO):
        for name in host.names(f"{_LIO}/{adapter}"):
            folder = f"{_LIO}/{adapter}/{name}"
            known = _LIO_DEVICE.search(host.read(f"{folder}/info") or "")
            device = _by_path(host, tree, (known[1] if known else None) or host.read(f"{folder}/udev_path") or "")
            if device is not None and host.read(f"{folder}/enable") == "1":
                yield device.name, f"exported by LIO as {adapter}/{name}"


def _journals(host: Host, tree: Tree) -> Uses:
    """Give the journals of mounted ext4 that are on other devices; the thread that writes a journal is called by its device."""
    for folder in host.names(_EXT4):
        thread = host.read(f"/proc/{host.read(f'{_EXT4}/{folder}/journal_task') or 'none'}/comm") or ""
        journal = _JOURNAL.fullmatch(thread)
        filesystem = folder.replace("!", "/")
        if journal is None or _OWN_JOURNAL.fullmatch(thread):
            continue
        name = journal["device"].replace("!", "/")
        if name in tree.devices and name != filesystem:
            place = ", ".join(tree.devices[filesystem].mountpoints) if filesystem in tree.devices else ""
            yield name, f"the journal of the ext4 on /dev/{filesystem}{f', which is mounted on {place}' if place else ''}"


def _registered_with_bcache(host: Host, tree: Tree) -> Uses:
    for name, device in tree.devices.items():
        if device.running and not tree.children(name) and host.names(f"{BLOCK}/{name.replace('/', '!')}/bcache"):
            yield name, "registered with bcache"


def _data_without_header(host: Host, tree: Tree) -> Uses:
    """Give the data of LUKS containers with detached headers: those that crypttab names, and those that are open.

    A device that shows contents of its own has been put to another use since crypttab was written.
    """
    named = set()
    for container in read_containers(host.read(_CRYPTTAB) or ""):
        header = next((word[len(_HEADER) :] for word in words_of(container.options) if word.startswith(_HEADER)), "")
        device = _by_source(host, tree, container.source)
        if header and device is not None and _shows_nothing(device):
            named.add(device.name)
            yield device.name, f"the data of the LUKS container {container.name}, whose header is {header} by {_CRYPTTAB}"
    for name, opened in tree.devices.items():
        if opened.kind == "crypt" and (host.read(f"{BLOCK}/{name.replace('/', '!')}/dm/uuid") or "").startswith(_OPEN_LUKS):
            for parent in (tree.devices[parent] for parent in opened.parents if parent in tree.devices):
                if parent.read and _shows_nothing(parent) and parent.name not in named:
                    yield parent.name, f"the data of the open LUKS container {opened.dev or name}, whose header is elsewhere"


def _shows_nothing(device: Device) -> bool:
    return device.filesystem is None and device.table is None and not device.signatures


def _by_source(host: Host, tree: Tree, source: str) -> t.Optional[Device]:
    """Return the one device that a line of crypttab names; None where there is none, or more than one."""
    tag, _equals, value = source.partition("=")
    if not value:
        return _by_path(host, tree, source)
    key = {"PARTUUID": "uuid", "PARTLABEL": "name"}.get(tag, "")
    entries = [device for device in tree.devices.values() if device.partition is not None] if key else []
    found = [device for device in entries if str(getattr(device.partition, key) or "").lower() == value.strip('"').lower()]
    return found[0] if len(found) == 1 else None


def _by_path(host: Host, tree: Tree, path: str) -> t.Optional[Device]:
    """Return the device of a node, or of any link to one."""
    return tree.by_node(host.resolve(path) or path) if path.startswith("/dev/") else None
