# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The picture of a layout's disks, which steps change before they change the disks; the two sides of a diff are two pictures.

A piece is a device, a volume or a dataset; a picture has pieces by node, volumes by their mapper node.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Piece:
    """A device: its heading, its place below the heading, its title, its content, and the pieces (keys) that it lies on.

    `size` is bytes; 0 where it follows from the pieces below. `cache` describes the cache of a volume. `subvolumes` are those of a Btrfs
    with their limits, `uuid` is that of the filesystem, which may lie on several devices.
    """

    heading: str
    order: tuple[int, str]
    title: str
    size: int
    on: tuple[str, ...]
    holds: str = ""
    subvolumes: Mapping[str, t.Optional[int]] = field(default_factory=dict)
    uuid: str = ""
    cache: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Of a dataset: its limit (quota), and its own share (reservation)."""


Picture = Mapping[str, Piece]


def labelled(kind: str, label: str) -> str:
    """Return a kind of content with its label."""
    return f"{kind} {label}" if label else kind


def changed(picture: Picture, key: str, **changes: t.Any) -> Picture:
    """Return the picture with changes to one piece, if it has the piece."""
    return {**picture, key: replace(picture[key], **changes)} if key in picture else picture


def holding(picture: Picture, keys: Iterable[str], holds: str) -> Picture:
    """Return the picture with new content on these pieces."""
    for key in keys:
        picture = changed(picture, key, holds=holds)
    return picture


def without_dependents(picture: Picture, keys: Iterable[str]) -> Picture:
    """Return the picture without all that lies on these pieces."""
    gone = set(keys)
    found = {key for key, piece in picture.items() if gone & set(piece.on)}
    if not found:
        return picture
    return without_dependents({key: piece for key, piece in picture.items() if key not in found}, found)
