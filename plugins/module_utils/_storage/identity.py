# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disk it is: its most durable name, its place, how it is attached and what it is made of. Pure functions."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable

BY_ID = "/dev/disk/by-id/"
BY_PATH = "/dev/disk/by-path/"

_DURABILITY = (
    r"wwn-0x(?!0+$)|nvme-eui\.|nvme-uuid\.",
    r"dm-uuid-mpath-|scsi-3(?!0+$)",
    r"nvme-nvme\.",
    r"(ata|nvme|virtio|mmc|usb|ieee1394|cciss|memstick|ccw)-",
    r"scsi-",
)
"""Patterns of by-id names, the most durable first: world wide names, what multipath and SCSI make of them, what the kernel makes of
an NVMe's serial and namespace, serial numbers. Names made of what is written on the disk (lvm-pv-uuid-, md-uuid-) do not name the disk."""

_OF_WWN = re.compile(r"wwn-|nvme-(eui|uuid)\.|scsi-3|dm-uuid-mpath-3")

_LASTING = re.compile(
    r"(?P<wwn>wwn-0x|nvme-(eui|uuid)\.|dm-uuid-mpath-3?|scsi-3)|nvme-nvme\.(?!1b36-)|(ata|nvme|mmc|cciss|memstick|ccw)-(?!QEMU_|nvme\.)|"
    r"virtio-.{16}"
)
"""QEMU gives its disks (vendor 1b36 among those of NVMe) what serial numbers the user likes."""
"""by-id names that one disk in the world has. Others repeat: what a virtual machine calls its disks (drive-scsi1, QM00001, short serial
numbers of virtio), what cloud providers do (persistent-disk-0), and the serial numbers of USB bridges."""

NO_DISKS = (
    ("loop", r"z?loop[0-9]"),
    ("zram", r"zram[0-9]"),
    ("ram", r"ram[0-9]"),
    ("optical", r"(sr|scd)[0-9]"),
    ("floppy", r"fd[0-9]"),
    ("null_blk", r"nullb[0-9]"),
    ("ublk", r"ublkb[0-9]"),
    ("nbd", r"r?nbd[0-9]"),
    ("rbd", r"rbd[0-9]"),
    ("aoe", r"etherd[/!]e[0-9]"),
    ("mtd", r"(mtdblock|ubiblock|inftl|nftl|ftl|rfd|ssfdc)[0-9a-z]"),
)
"""Transports by the names of kernel disks that are none to install on: memory, files, bare flash, disks of other hosts."""

LEFT_OUT = tuple(transport for transport, _pattern in NO_DISKS)
"""Transports of what is no disk to install on; asked for by name only."""

_TRANSPORT_OF_NAME = (
    *NO_DISKS,
    ("nvme", r"nvme[0-9]"),
    ("mmc", r"mmcblk[0-9]"),
    ("pmem", r"pmem[0-9]"),
    ("dasd", r"dasd[a-z]"),
    ("xen", r"xvd[a-z]"),
    ("virtio", r"vd[a-z]"),
)

_TRANSPORT_OF_PLACE = (
    ("usb", r"/usb[0-9]"),
    ("iscsi", r"/session[0-9]"),
    ("fc", r"/rport-"),
    ("sas", r"/end_device-"),
    ("sata", r"/ata[0-9]"),
    ("scsi", r"/host[0-9]"),
)
"""The kernel's device tree shows how a SCSI disk is attached; a RAID controller's and a virtual disk show nothing more than SCSI."""

_NEVER_ROTATES = frozenset({"nvme", "mmc", "pmem", "virtio", "xen"})
"""Flash by nature, or virtual disks that always say `rotational` because their protocol has no way to say anything else."""

_PART_OF_OTHERS = re.compile(
    r"mmcblk[0-9]+(boot[0-9]+|rpmb)|nvme[0-9]+c[0-9]+n[0-9]+|zd[0-9]+|drbd[0-9]+|bcache[0-9]+|md[0-9_]|dm-[0-9]|mapper/"
)
"""Kernel disks that are part of another disk or built on others: an eMMC's boot areas, single paths to an NVMe namespace, ZFS volumes,
DRBD, bcache, md, device-mapper."""

_SERIALS_OF_NOBODY = frozenset(
    {
        *("none", "null", "unknown", "n/a", "na", "default string", "to be filled by o.e.m.", "serial number", "not specified"),
        *("12345678", "123456789", "1234567890", "0123456789", "0123456789ab", "0123456789abcdef"),
    }
)
"""What makers without serial numbers write."""
_FEWEST_DIGITS = 2

_UUIDS_OF_NOBODY = frozenset(
    {
        *("03000200040005000006000700080009", "00020003000400050006000700080009"),
        *("000102030405060708090a0b0c0d0e0f", "030201000504070608090a0b0c0d0e0f"),
        *("123456781234567890abcddeefaabbcc", "785634123412785690abcddeefaabbcc", "12345678123456781234567812345678"),
        *("deadbeefdeadbeefdeadbeefdeadbeef", "efbeaddeaddeefbedeadbeefdeadbeef"),
    }
)
"""Placeholders for the UUID of a host's firmware, in both orders of bytes; those of one or two digits are not listed."""
_LEAST_DIGITS_OF_UUID = 3
_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")

_PCI_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]"
_TOKENS = re.compile(rf"({_PCI_ADDRESS})|([0-9]+)|([^0-9]+?(?=[0-9]|{_PCI_ADDRESS}|\Z))")


def is_disk(name: str, kind: str) -> bool:
    """Return whether a device that is built on no other is a disk of its own."""
    return kind in {"disk", "loop", "rom"} and not is_part_of_others(name)


def is_part_of_others(name: str) -> bool:
    """Return whether a kernel name (with or without /dev/) is that of a part of another disk, or of something built on disks."""
    return _PART_OF_OTHERS.match(name.removeprefix("/dev/")) is not None


def is_left_out(name: str) -> bool:
    """Return whether a kernel name (with or without /dev/) is that of no disk, or of none to install on."""
    name = name.removeprefix("/dev/")
    return is_part_of_others(name) or any(re.match(pattern, name) for _transport, pattern in NO_DISKS)


def is_own_wwn(wwn: str) -> bool:
    """Return whether a world wide name can be that of one disk alone.

    Makers that have none write zeros or a counter, and the kernel has a list of such devices.
    """
    found = re.fullmatch(r"(?:0x|naa\.|eui\.|uuid\.|nvme\.)?([0-9a-f]+)", wwn.strip().lower().replace("-", ""))
    digits = found[1] if found else ""
    return len(digits.strip("0")) > _FEWEST_DIGITS and len(set(digits)) > 1


def is_own_serial(serial: str) -> bool:
    """Return whether a serial number can be that of one disk alone, and not what makers without serial numbers write."""
    text = serial.strip().lower()
    return len(set(text.replace(" ", ""))) > 1 and text not in _SERIALS_OF_NOBODY


def is_own_uuid(text: str) -> bool:
    """Return whether a text is a UUID, or a machine-id, that can be that of one host alone, and no placeholder of a maker of firmware."""
    plain = text.strip().lower()
    digits = plain.replace("-", "")
    return _UUID.fullmatch(plain) is not None and len(set(digits)) >= _LEAST_DIGITS_OF_UUID and digits not in _UUIDS_OF_NOBODY


def best_id(links: Iterable[str], dev: str) -> str:
    """Return the most durable name of a disk: world wide name, serial number, place, and only where there is no link its node.

    Of equals the longest: `nvme-MODEL_SERIAL_1` names the namespace, `nvme-MODEL_SERIAL` does not.
    """
    links = tuple(links)
    by_id = [link for link in links if link.startswith(BY_ID)]
    for pattern in _DURABILITY:
        matching = [link for link in by_id if re.match(pattern, link[len(BY_ID) :])]
        if matching:
            return min(matching, key=lambda link: (-len(link), link))
    return best_path(links, None) or dev


def is_made_of_wwn(link: str) -> bool:
    """Return whether a by-id link is made of a world wide name, so that of two disks with one such name either may have it."""
    return link.startswith(BY_ID) and _OF_WWN.match(link[len(BY_ID) :]) is not None


def is_lasting(name: str) -> bool:
    """Return whether an id is that of one disk in the world: a WWN or a serial number, and no place that every host has."""
    link = name[len(BY_ID) :] if name.startswith(BY_ID) else ""
    found = _LASTING.match(link)
    if found is None:
        return False
    if found["wwn"]:
        return is_own_wwn(link[found.end() :])
    last = link.rsplit("_", 1)[-1].lower()
    return last not in _SERIALS_OF_NOBODY and not re.fullmatch(r"(0x)?0+", last)


def best_path(links: Iterable[str], id_path: t.Optional[str]) -> t.Optional[str]:
    """Return the by-path link that udev names the disk's path by (`id_path`), else the first of them; None when there is none."""
    by_path = sorted(
        (link for link in links if link.startswith(BY_PATH)), key=lambda link: (link.startswith(f"{BY_PATH}virtio-"), natural_key(link))
    )
    preferred = f"{BY_PATH}{id_path}"
    if preferred in by_path:
        return preferred
    return by_path[0] if by_path else None


def transport(name: str, kind: str, said: t.Optional[str], devpath: t.Optional[str]) -> t.Optional[str]:
    """Return how a disk is attached: by its name where that is telling, by what lsblk or udev said, by its place in the device tree."""
    if kind == "rom":
        return "optical"
    for known, pattern in _TRANSPORT_OF_NAME:
        if re.match(pattern, name):
            return known
    if said:
        return said.lower()
    return next((known for known, pattern in _TRANSPORT_OF_PLACE if re.search(pattern, devpath or "")), None)


def media(transport_name: t.Optional[str], rotational: t.Optional[bool]) -> str:
    """Return `ssd` or `hdd`."""
    return "ssd" if transport_name in _NEVER_ROTATES or rotational is False else "hdd"


def attachment(path: t.Optional[str], devpath: t.Optional[str]) -> t.Optional[str]:
    """Return where a disk is attached, in udev's words: the name of its by-path link, else a path like it from the kernel's device tree.

    The numbers of SCSI hosts are left out, for they follow the order of detection. None for a disk that is attached to nothing.
    """
    if path is not None:
        return path[len(BY_PATH) :]
    place = devpath or ""
    addresses = re.findall(_PCI_ADDRESS, place)
    if not addresses:
        return None
    target = re.search(r"/[0-9]+:([0-9]+:[0-9]+:[0-9]+)/block/", place)
    namespace = re.search(r"/nvme[0-9]+n([0-9]+)\Z", place)
    tail = f"-scsi-0:{target[1]}" if target else f"-nvme-{namespace[1]}" if namespace else ""
    return f"pci-{addresses[-1]}{tail}"


def scsi_address(devpath: t.Optional[str]) -> t.Optional[str]:
    """Return `host:channel:target:lun` by the kernel's device tree; None for a disk that is not SCSI."""
    found = re.search(r"/([0-9]+:[0-9]+:[0-9]+:[0-9]+)/block/", devpath or "")
    return found[1] if found else None


def order_key(place: t.Optional[str], dev: str) -> tuple[t.Any, ...]:
    """Return what sorts disks by where they are attached; those attached to nothing come last, by name."""
    return (place is None, natural_key(place or ""), natural_key(dev))


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return what sorts text as people do: numbers by value, PCI addresses (hexadecimal, of one width) by their digits."""
    return tuple(_by_value(digits) if digits else (0, 0, address or other) for address, digits, other in _TOKENS.findall(text))


def _by_value(digits: str) -> tuple[int, int, str]:
    """Return what sorts numbers by their value; Python makes no number of thousands of digits."""
    significant = digits.lstrip("0")
    return 1, len(significant), significant
