# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration of a guest of Proxmox VE, as far as it says where the guest can be: disks, ISO images, devices, the type of CPU."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from ...common.errors import Mistakes
from ...common.fields import Anything, Row, Table, Values

_DISK = re.compile(r"(scsi|virtio|sata|ide|efidisk|tpmstate|rootfs|mp|unused)\d*")
_DEVICE = re.compile(r"(hostpci|usb|parallel|serial|dev)\d+")
_HARMLESS = {"usb": "spice", "serial": "socket"}
"""What such a device may be without belonging to the machine."""
_UNITS = {"": 1 / 2**20, "K": 1 / 2**10, "M": 1.0, "G": 2.0**10, "T": 2.0**20}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)")


_LINKED = re.compile(r"(^|/)base(vol)?-\d+-[^/]*/")
"""In the name of a volume that is a clone of a template's, and lies on the same storage for that."""


@dataclass(frozen=True)
class ConfiguredDisk:
    """A disk: its name, the storage that it lies on, MiB, and why it cannot be moved to another storage (empty if it can)."""

    name: str
    storage: str
    size: int
    stays: str


@dataclass(frozen=True)
class Config:
    """The disks in their order, storages of ISO images, what ties it to its machine, and its type of CPU."""

    disks: tuple[ConfiguredDisk, ...]
    images: tuple[str, ...]
    devices: tuple[str, ...]
    cpu: str
    local_disks_move: bool
    """Whether its local disks can be copied: those of a container cannot be while they are bound to a directory of the machine."""

    @property
    def storages(self) -> tuple[str, ...]:
        """The storage of each disk."""
        return tuple(disk.storage for disk in self.disks)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The MiB of each disk."""
        return tuple(disk.size for disk in self.disks)


def read_config(documents: Mapping[str, t.Any], guest: Values, mistakes: Mistakes) -> Config | None:
    """Return what a guest's configuration says; None where it is not among the documents."""
    path = f"/nodes/{guest['node']}/{guest['type']}/{guest['vmid']}/config"
    if documents.get(path) is None:
        return None
    Table("a configuration", [Row("cpu", Anything())], others=True).read_nested(documents[path], path, mistakes)
    given = documents[path] if isinstance(documents[path], Mapping) else {}
    disks, images, devices = [], [], []
    bound = _why_all_stay(guest, given)
    for name, value in given.items():
        if not isinstance(value, str):
            continue
        volume, *rest = value.split(",")
        options = dict(option.partition("=")[::2] for option in rest)
        if _DISK.fullmatch(str(name)):
            storage = volume.removeprefix("file=").removeprefix("volume=").partition(":")
            if options.get("media") == "cdrom":
                images += [storage[0]] if storage[1] else []
            elif storage[1] and not volume.startswith("/"):
                why = bound or _why_it_stays(str(name), storage[2], guest)
                disks.append(ConfiguredDisk(str(name), storage[0], _mib(options.get("size", "0")), why))
            elif volume != "none" and options.get("shared") != "1":
                devices.append(f"{name} is {volume}")
        elif (found := _DEVICE.fullmatch(str(name))) and _HARMLESS.get(found[1]) != volume.removeprefix("host="):
            devices.append(f"{name} is passed through")
    cpu = str(given.get("cpu") or "").partition(",")[0].removeprefix("cputype=")
    return Config(tuple(disks), tuple(images), tuple(devices), cpu, local_disks_move=not devices)


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
