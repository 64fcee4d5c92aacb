# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration of a guest of Proxmox VE, as far as it says where the guest can be: disks, drives, devices, the CPU, memory.

What ties a guest is what `qm migrate` and `pct migrate` refuse (QemuMigrate.pm of qemu-server, Migrate.pm of pve-container).
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .....module_utils._data.containers import Row, Table, Values
from .....module_utils._data.errors import Mistakes
from .....module_utils._data.kinds import Anything

_DISK = re.compile(r"(scsi|virtio|sata|ide|efidisk|tpmstate|rootfs|mp|unused)\d*")
_DEVICE = re.compile(r"(hostpci|usb|parallel|serial|dev|virtiofs)\d+|ivshmem|hostpci|hostusb")
_HARMLESS = {"usb": "spice", "serial": "socket"}
"""What such a device may be without belonging to the machine."""
_UNITS = {"": 1 / 2**20, "K": 1 / 2**10, "M": 1.0, "G": 2.0**10, "T": 2.0**20}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)")
_LINKED = re.compile(r"(^|/)base(vol)?-\d+-[^/]*/")
"""In the name of a volume that is a clone of a template's, and lies on the same storage for that."""
_CLOUD_INIT = re.compile(r"vm-\d+-cloudinit")
"""In the name of a drive that Proxmox VE makes itself: it is taken along, wherever its storage is there."""
_DIGITS = 16
"""Digits that no size in MiB has."""
_COPIED = frozenset({"dir", "btrfs", "zfspool", "lvmthin", "lvm"})
"""The types of local storages that disks are copied from to another node."""


@dataclass(frozen=True)
class ConfiguredDisk:
    """A disk: its name, the storage that it lies on, MiB, and why it cannot be moved to another storage (empty if it can)."""

    name: str
    storage: str
    size: int
    stays: str
    volume: str = ""
    """What the storage calls it."""

    @property
    def is_clone(self) -> bool:
        """Whether it is a clone of a template's disk."""
        return bool(_LINKED.search(self.volume))


@dataclass(frozen=True)
class Processor:
    """A type of CPU, and the flags that are added to it."""

    kind: str
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Config:
    """The disks in their order, storages of ISO images and of drives that are made for it, what ties it to its machine."""

    disks: tuple[ConfiguredDisk, ...]
    images: tuple[str, ...]
    made: tuple[str, ...]
    devices: tuple[str, ...]
    cpu: Processor
    balloon: int
    """The MiB that it keeps when memory is short; 0 where it keeps all."""
    snapshots: bool
    mappings: tuple[tuple[str, str], ...]
    """The mapped devices, by kind (pci, usb) and name."""
    machine: str
    hugepages: str

    @property
    def storages(self) -> tuple[str, ...]:
        """The storage of each disk."""
        return tuple(disk.storage for disk in self.disks)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The MiB of each disk."""
        return tuple(disk.size for disk in self.disks)

    def why_not_copied(self, local: Mapping[str, str], guest: Values) -> str:
        """Return why its disks on local storages, whose types are given by name, cannot be copied to another node; empty if they can."""
        whys = (self._why_not(disk, local[disk.storage], guest) for disk in self.disks if disk.storage in local)
        return next(filter(None, whys), "")

    def _why_not(self, disk: ConfiguredDisk, kind: str, guest: Values) -> str:
        if disk.is_clone:
            return f"{disk.name} on {disk.storage} is a clone of a template's disk"
        if kind and kind not in _COPIED:
            return f"{disk.name} lies on {disk.storage}, and disks cannot be copied from a storage of type {kind}"
        if not self.snapshots:
            return ""
        if guest["type"] == "qemu" and guest["status"] == "running":
            return f"{disk.name} on {disk.storage} has snapshots, so it cannot be copied while its machine runs"
        with_them = kind == "zfspool" or (guest["type"] == "qemu" and (kind == "btrfs" or disk.volume.endswith(".qcow2")))
        return "" if with_them else f"{disk.name} on {disk.storage} has snapshots, which cannot be copied from there"


def read_config(documents: Mapping[str, t.Any], guest: Values, mistakes: Mistakes) -> Config | None:
    """Return what a guest's configuration says; None where it is not among the documents."""
    path = f"/nodes/{guest['node']}/{guest['type']}/{guest['vmid']}/config"
    if documents.get(path) is None:
        return None
    Table("a configuration", [Row("cpu", Anything())], others=True).read_nested(documents[path], path, mistakes)
    given = documents[path] if isinstance(documents[path], Mapping) else {}
    disks, images, made = [], [], []
    devices = list(_running_ties(guest, given))
    mappings = []
    bound = _why_all_stay(guest, given)
    for name, value in given.items():
        if not isinstance(value, str):
            continue
        volume, options = _property(value, "file", "volume")
        if _DISK.fullmatch(str(name)):
            storage, colon, rest = volume.partition(":")
            if options.get("media") == "cdrom":
                if _CLOUD_INIT.search(rest):
                    made.append(storage)
                elif colon:
                    images.append(storage)
                elif volume != "none":
                    devices.append(f"{name} is {'a drive of its node' if volume == 'cdrom' else volume}")
            elif colon and not volume.startswith("/"):
                why = bound or _why_it_stays(str(name), rest, guest)
                disks.append(ConfiguredDisk(str(name), storage, _mib(options.get("size", "0")), why, rest))
            elif volume != "none" and options.get("shared") != "1":
                devices.append(f"{name} is {volume}")
        elif mapped := _mapped(str(name), value):
            mappings.append(mapped)
        elif found := _DEVICE.fullmatch(str(name)):
            devices += _device(str(name), found[1], value)
    kind, options = _property(str(given.get("cpu") or ""), "cputype")
    flags = tuple(flag[1:] for flag in options.get("flags", "").split(";") if flag.startswith("+"))
    machine, _options = _property(str(given.get("machine") or ""), "type")
    return Config(
        disks=tuple(disks),
        images=tuple(images),
        made=tuple(made),
        devices=tuple(devices),
        cpu=Processor(kind, flags),
        balloon=_balloon(given),
        snapshots=bool(given.get("parent")),
        mappings=tuple(mappings),
        machine=machine,
        hugepages=str(given.get("hugepages") or ""),
    )


def _property(value: str, *keys: str) -> tuple[str, dict[str, str]]:
    """Return what comes first in a value such as `ceph:vm-1-disk-0,size=8G`, whose key may be left out, and the rest by name."""
    first, *rest = value.split(",")
    for key in keys:
        first = first.removeprefix(f"{key}=")
    return first, dict(option.partition("=")[::2] for option in rest)


def _device(name: str, kind: str | None, value: str) -> Sequence[str]:
    """Return in words what a device ties its guest by, nothing if by nothing."""
    volume, _options = _property(value, "host")
    if kind is not None and _HARMLESS.get(kind) == volume:
        return ()
    return (f"{name} is passed through",)


def _mapped(name: str, value: str) -> tuple[str, str] | None:
    """Return the kind and the name of a mapped device, None of any other."""
    kind = {"hostpci": "pci", "usb": "usb"}.get(name.rstrip("0123456789"))
    options = dict(option.partition("=")[::2] for option in value.split(","))
    return (kind, options["mapping"]) if kind and options.get("mapping") else None


def _running_ties(guest: Values, given: Mapping[str, t.Any]) -> Sequence[str]:
    """Return in words what keeps a machine that runs from a live migration, apart from devices."""
    if guest["type"] != "qemu" or guest["status"] != "running":
        return ()
    _kind, display = _property(str(given.get("vga") or ""), "type")
    found = ["its memory is encrypted (amd-sev)"] if given.get("amd-sev") else []
    return [*found, *(["it uses the clipboard of VNC"] if display.get("clipboard") == "vnc" else [])]


def _balloon(given: Mapping[str, t.Any]) -> int:
    text = str(given.get("balloon") or "")
    return int(text) if text.isdecimal() and len(text) < _DIGITS else 0


def _why_all_stay(guest: Values, given: Mapping[str, t.Any]) -> str:
    """Return why none of a guest's disks can be moved to another storage."""
    if guest["lock"]:
        return f"its guest is locked ({guest['lock']})"
    if given.get("parent"):
        return "its guest has snapshots"
    if guest["type"] == "lxc" and guest["status"] != "stopped":
        return "its container runs"
    ignored = [tag for tag in guest["tags"].replace(",", ";").split(";") if tag.startswith("plb_ignore")]
    return f"its guest has the tag {ignored[0]}" if ignored else ""


def _why_it_stays(name: str, volume: str, guest: Values) -> str:
    """Return why one disk of a guest cannot be moved."""
    if name.startswith("unused"):
        return "it is not attached"
    if name.startswith("tpmstate") and guest["status"] != "stopped":
        return "the state of a TPM only moves while its machine is stopped"
    return "it is a clone of a template's disk" if _LINKED.search(volume) else ""


def _mib(size: str) -> int:
    """Return the size of a disk as Proxmox VE writes it, such as 32G, in MiB."""
    found = _SIZE.fullmatch(size)
    return 0 if found is None else int(-(-float(found[1]) * _UNITS[found[2]] // 1))
