# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a disk is attached: the NUMA node of its controller, its enclosure, and its slot, as far as the kernel shows them."""

from __future__ import annotations

import posixpath
import re
import typing as t

from .host import Host
from .sysfs import BLOCK

PCI_SLOTS = "/sys/bus/pci/slots"
_IN_ENCLOSURE = "enclosure_device:"
_PCI_FUNCTION = re.compile(r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})\.[0-9a-f]")
_NUMBER = re.compile(r"-?[0-9]{1,9}")


def read_slots(host: Host) -> dict[str, str]:
    """Return the PCI slots of the host by the address of what is in them, without its function."""
    return {address: name for name in host.names(PCI_SLOTS) if (address := host.read(f"{PCI_SLOTS}/{name}/address"))}


def read_attachment(host: Host, name: str, devpath: t.Optional[str], slots: t.Mapping[str, str]) -> dict[str, t.Any]:
    """Return `numa_node`, `enclosure` and `slot` of a disk, by its kernel name and its place below /sys; None where they are not known."""
    place = devpath or ""
    return {"numa_node": _numa_node(host, place), **_slot(host, name, place, slots)}


def _numa_node(host: Host, place: str) -> t.Optional[int]:
    """Return the node of the nearest device above that names one."""
    while place.count("/") > 1:
        text = host.read(f"/sys{place}/numa_node")
        if text is not None and _NUMBER.fullmatch(text):
            return int(text) if int(text) >= 0 else None
        place = posixpath.dirname(place)
    return None


def _slot(host: Host, name: str, place: str, slots: t.Mapping[str, str]) -> dict[str, t.Any]:
    device = f"{BLOCK}/{name.replace('/', '!')}/device"
    for entry in host.names(device):
        if entry.startswith(_IN_ENCLOSURE):
            bay = host.resolve(f"{device}/{entry}") or ""
            enclosure = host.read(f"{posixpath.dirname(bay)}/id") or posixpath.basename(posixpath.dirname(bay))
            return {"enclosure": enclosure or None, "slot": host.read(f"{bay}/slot") or entry[len(_IN_ENCLOSURE) :]}
    functions = [match[1] for match in map(_PCI_FUNCTION.fullmatch, place.split("/")) if match]
    # A drive with its own PCI address is in that slot; what hangs on a controller card is not.
    own = functions[-1] if functions and "/nvme/" in place else ""
    return {"enclosure": None, "slot": slots.get(own)}
