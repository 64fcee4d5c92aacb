# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`lshw -json`: a tree of all hardware, in which disks are nodes of the class disk."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterator, Mapping

from ....module_utils._data.errors import InputError, Mistake
from ....module_utils._data.kinds import is_whole, shown
from .machine import IN_USE, Recorded, RecordedDisk, whole

_Node = Mapping[str, t.Any]
_CHARACTER = re.compile(r"/dev/(ng[0-9]+n[0-9]+|nvme[0-9]+|hwmon[0-9]+)")
"""Other nodes of NVMes than namespaces in the class disk."""
_OPTICAL = re.compile(r"^(cdrom|dvd)")


def read(data: t.Any) -> Recorded:
    """Return the machine; raises InputError when there is no tree."""
    tops = data if isinstance(data, list) else [data]
    if not tops or not all(isinstance(top, Mapping) for top in tops):
        raise InputError([Mistake("", f"is {shown(data)}; must be the tree that lshw -json prints, or a list with it")])
    nodes = [node for top in tops for node in _walk(top, None)]
    memory = next((node["size"] for node, _above in nodes if node.get("id") == "memory" and is_whole(node.get("size"))), 0)
    capabilities = [node.get("capabilities") for node, _above in nodes if node.get("id") == "firmware"]
    firmware = None
    if capabilities:
        firmware = "uefi" if any(isinstance(one, Mapping) and one.get("uefi") for one in capabilities) else "bios"
    disks = [(node, above) for node, above in nodes if _is_disk(node)]
    sizeless = [_name(node) for node, _above in disks if not is_whole(node.get("size"))]
    return Recorded(
        source="lshw",
        disks=tuple(_disk(node, above) for node, above in disks if is_whole(node.get("size"))),
        unknown=(IN_USE, "what is on the disks apart from partitions", "world wide names of disks other than NVMe"),
        ram=memory // 1024**2 or None,
        firmware=firmware,
        warnings=tuple(f"lshw gives no size for {name}, which is left out; run it as root" for name in sizeless),
    )


def _walk(node: _Node, above: _Node | None) -> Iterator[tuple[_Node, _Node | None]]:
    """Give all nodes with those that they lie in."""
    stack: list[tuple[_Node, _Node | None]] = [(node, above)]
    while stack:
        here, parent = stack.pop()
        yield here, parent
        children = here.get("children")
        stack += [(child, here) for child in reversed(children if isinstance(children, list) else []) if isinstance(child, Mapping)]


def _is_disk(node: _Node) -> bool:
    named = str(node.get("id", ""))
    return node.get("class") == "disk" and bool(_name(node)) and not _OPTICAL.match(named)


def _name(node: _Node) -> str:
    names = node.get("logicalname")
    found = names if isinstance(names, list) else [names]
    return next((name for name in found if isinstance(name, str) and name.startswith("/dev/") and not _CHARACTER.fullmatch(name)), "")


def _disk(node: _Node, above: _Node | None) -> RecordedDisk:
    settings = node.get("configuration")
    configuration: _Node = settings if isinstance(settings, Mapping) else {}
    features = node.get("capabilities")
    rotates = any(re.fullmatch(r"[0-9]+rpm", str(name)) for name in (features if isinstance(features, Mapping) else {}))
    nvme = _name(node).startswith("/dev/nvme")
    about: _Node = above if nvme and above is not None else node
    bus = str(node.get("businfo", ""))
    wwid = configuration.get("wwid")
    return RecordedDisk(
        dev=_name(node),
        size=int(node["size"]),
        wwn=wwid if isinstance(wwid, str) else None,
        serial=_text(about.get("serial")),
        model=_text(about.get("product")),
        vendor=_text(about.get("vendor")),
        transport="usb" if bus.startswith("usb") else None,
        rotational=True if rotates else None,
        logical_block=whole(configuration.get("logicalsectorsize")),
        physical_block=whole(configuration.get("sectorsize")),
    )


def _text(value: t.Any) -> str | None:
    return value if isinstance(value, str) else None
