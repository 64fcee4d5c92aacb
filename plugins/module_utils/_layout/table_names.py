# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""By which names a line of fstab or crypttab calls a device of this host, and no other one. Pure."""

from __future__ import annotations

import typing as t
from collections import Counter
from collections.abc import Iterator, Mapping

from .._facts.tree import Device, Tree
from .._storage.fstab import plain_source
from .._storage.lvm import mapper_node


def table_names(tree: Tree) -> Mapping[str, tuple[str, ...]]:
    """Return the names of each device (by its kernel name) as they are compared; what two devices are called is a name of neither."""
    named = {device.name: tuple(dict.fromkeys(map(plain_source, _names(device)))) for device in tree.devices.values()}
    count = Counter(name for names in named.values() for name in names)
    return {device: tuple(name for name in names if count[name] == 1) for device, names in named.items()}


def _names(device: Device) -> Iterator[str]:
    yield from device.links
    if device.dev is not None:
        yield from (device.dev, f"/dev/{device.name}")
    if device.group and device.title and device.kind == "lvm":
        yield from (mapper_node(device.group, device.title), f"/dev/{device.group}/{device.title}")
    if device.filesystem is not None:
        yield from _tags(("UUID", device.filesystem.uuid), ("LABEL", device.filesystem.label))
    if device.partition is not None:
        yield from _tags(("PARTUUID", device.partition.uuid), ("PARTLABEL", device.partition.name))


def _tags(*tags: tuple[str, t.Optional[str]]) -> Iterator[str]:
    return (f"{tag}={value}" for tag, value in tags if value)
