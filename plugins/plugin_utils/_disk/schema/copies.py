# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spaces that are wanted several times (`count`): what stands against that, and the copies, each with its number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ....module_utils._data.errors import Mistakes
from ....module_utils._storage import gpt
from ....module_utils._storage.filesystems import FILESYSTEMS
from ..model import Space
from .entry import Entry
from .mounts import NO_MOUNT


def check_copies(entries: Sequence[Entry], groups: Mapping[str, str], mistakes: Mistakes) -> None:
    """Note what cannot be made several times."""
    ids = {entry.id: entry.place for entry in entries}
    for entry in entries:
        count, place = entry.values["count"], f"{entry.place}.count"
        if count is None or not entry.id:
            continue
        for key in ("per_disk", "mirror"):
            if entry.values[key]:
                mistakes.add(place, f"cannot be combined with {key}; leave one of them out")
        if entry.id in groups:
            mistakes.add(place, f"{entry.id!r} is in the vg {groups[entry.id]!r}, which must name each of its arrays; leave count out")
        taken = next((name for name in _names_of_copies(entry.id, count) if name in ids), None)
        if taken is not None:
            mistakes.add(place, f"one of them is called {taken!r}, which is already the id of {ids[taken]}; ids must differ")


def _names_of_copies(space_id: str, count: int) -> list[str]:
    return [f"{space_id}{number}" for number in range(1, count + 1)]


def copies(space: Space, count: int | None) -> Iterator[Space]:
    """Give a space as many times as it is wanted, each with its number in id, mount and label."""
    if count is None:
        yield space
        return
    longest = FILESYSTEMS[space.fs_type].label_length if space.fs_type is not None else None
    for number, name in enumerate(_names_of_copies(space.id, count), start=1):
        subvolumes = tuple(replace(subvolume, mount=_numbered_mount(subvolume.mount, number)) for subvolume in space.subvolumes)
        label = _numbered(space.fs_label, number, longest)
        called = _numbered(space.partition_label, number, gpt.LONGEST_NAME)
        yield replace(
            space,
            id=name,
            copy_of=space.id,
            mount=_numbered_mount(space.mount, number),
            fs_label=label,
            partition_label=called,
            subvolumes=subvolumes,
        )


def _numbered_mount(mount: str | None, number: int) -> str | None:
    return mount if mount is None or mount in NO_MOUNT else f"{mount.rstrip('/')}{number}"


def _numbered(label: str | None, number: int, longest: int | None) -> str | None:
    if label is None:
        return None
    return f"{label[: None if longest is None else longest - len(str(number))]}{number}"
