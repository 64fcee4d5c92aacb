# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What would be lost: a disk's content in words, for refusals. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator

from ..facts.tree import PARTITION_TABLES, Device, Tree
from ..steps.kinds import in_mib
from .layout_match import entry_of

_TABLES = frozenset({"gpt", "dos"})


def describe(tree: Tree, device: Device) -> str:
    """Return what is on a device and on all that is built on it, with sizes, names and labels."""
    return "; ".join(_parts(tree, device)) or "something that cannot be read"


def _parts(tree: Tree, device: Device) -> Iterator[str]:
    children = tree.children(device.name)
    if device.table is not None:
        count = len([child for child in children if child.partition is not None])
        yield f"a {device.table.type} table with {count or 'no'} partition{'' if count == 1 else 's'}"
    for signature in device.signatures:
        if signature.type not in PARTITION_TABLES:
            yield _content(signature.type, signature.label)
        elif device.table is None and signature.type in _TABLES:
            yield f"what is left of a {signature.type} table"
    if device.mountpoints:
        yield f"mounted on {', '.join(device.mountpoints)}"
    if device.claimed:
        yield "held by the kernel for something that is not visible here"
    for child in children:
        yield describe_one(tree, child)


def describe_one(tree: Tree, device: Device) -> str:
    """Return a device with its size, its name and what is on it."""
    size = f" ({in_mib(device.size)})" if device.size else ""
    inside = "; ".join(_parts(tree, device))
    return f"{_name(device)}{size}{f': {inside}' if inside else ''}"


def _name(device: Device) -> str:
    if device.partition is not None:
        entry = entry_of(device)
        return f"partition {entry.number}{f' {entry.name!r}' if entry.name else ''}"
    if device.kind == "lvm":
        return f"volume {device.group}/{device.title}"
    return f"{device.kind} {device.dev or device.title or device.name}"


def _content(kind: str, label: t.Optional[str]) -> str:
    return f"{kind}{f' {label!r}' if label else ''}"
