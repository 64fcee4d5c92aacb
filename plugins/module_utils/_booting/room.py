# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether what is in an archive has room in the file systems of a layout.

Only certain problems count: the archive's size is compared with a file system's whole device, though file systems reserve a part.
"""

from __future__ import annotations

import typing as t
from collections import Counter
from collections.abc import Iterator, Mapping

from .._layout.capacity import capacity
from .._schema.model import DesiredFilesystem, Layout
from .._schema.static import parse_static_schema
from .._storage.units import MIB
from .system import Archive


def why_no_room(schema: Mapping[str, t.Any], archive: Archive, brought: int) -> tuple[str, ...]:
    """Return a sentence for each file system that is smaller than what the archive has for it; raises SchemaMistakes.

    `brought` are the bytes of the archive where it is copied into the root file system to be unpacked there.
    """
    if not any(str(entry.get("mount")).startswith("/") for entry in schema.get("fss") or ()):
        return ()
    layout = parse_static_schema(schema)
    mounted = {mount: filesystem for filesystem in layout.filesystems for mount in _mounts(filesystem)}
    compressed = {filesystem.place for filesystem in layout.filesystems if any("compress" in words for words in _options(filesystem))}
    # How much ZFS makes of its devices follows from its own settings.
    places = [*mounted, *(dataset.mount for pool in layout.zpools for dataset in (pool.root, *pool.datasets) if dataset.mount != "none")]
    taken = Counter({_place_of("", places): brought})
    for path, size in archive.sizes.items():
        taken[_place_of(path, places)] += size
    needed: Counter[DesiredFilesystem] = Counter()
    for place, size in taken.items():
        if place in mounted and mounted[place].place not in compressed:
            needed[mounted[place]] += size
    return tuple(_sentences(layout, needed, archive.place))


def _sentences(layout: Layout, needed: Mapping[DesiredFilesystem, int], archive: str) -> Iterator[str]:
    for filesystem, size in sorted(needed.items(), key=lambda pair: pair[0].place):
        room = sum(capacity(layout, device) for device in filesystem.devices)
        if size > room:
            place = min(_mounts(filesystem))
            missing = f"{archive} takes {-(-size // MIB)} MiB in {place}, which has {room // MIB} MiB"
            yield f"{missing}: make {place} larger, or the archive smaller"


def _mounts(filesystem: DesiredFilesystem) -> Iterator[str]:
    for mount in (filesystem.mount, *(subvolume.mount for subvolume in filesystem.subvolumes)):
        if mount.startswith("/"):
            yield mount


def _options(filesystem: DesiredFilesystem) -> Iterator[str]:
    """Give the mount options of a file system and its subvolumes."""
    yield filesystem.mount_options
    yield from (subvolume.mount_options for subvolume in filesystem.subvolumes)


def _place_of(path: str, places: list[str]) -> str:
    """Return the mount point that a path of the archive lies below, which is the longest; empty where there is none."""
    return max((place for place in places if f"/{path}/".startswith(f"{place.rstrip('/')}/")), key=len, default="")
