# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Foreign lines of a host's tables in the place of a layout's lines: they are reported, never replaced.

A line belongs to the layout where it names something that is on its disks, or will be. So is one with a UUID that follows from a plan
(version 5, which no mkfs gives by chance) and that nothing has any more: an earlier layout of these disks left it.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator, Mapping

from ....module_utils._schema.model import Layout
from ....module_utils._schema.static import layout_of
from ....module_utils._storage.boot_tables import CRYPTTAB, FSTAB, MDADM_CONFS
from ....module_utils._storage.crypttab import read_container
from ....module_utils._storage.derived import is_derived
from ....module_utils._storage.fstab import plain_source, read_entry, rows
from ....module_utils._storage.gpt import partition_node
from ....module_utils._storage.lvm import mapper_node
from ....module_utils._storage.mdadm_conf import read_array, whole_lines
from .host_files import below

Plain = Mapping[str, t.Any]
Texts = Mapping[str, str]


def foreign_lines(schema: Plain, hardware: Plain, root: str, present: Texts) -> list[str]:
    """Return the lines, each with its file before it: `/etc/fstab: LABEL=old /srv ext4 noauto 0 0`. `present` is as for host_files."""
    layout = layout_of(schema)
    own_disks = {disk.id for disk in layout.disks}
    disks = [(disk, str(disk.get("id")) in own_disks) for disk in hardware.get("disks") or ()]
    ours = {name for disk, own in disks if own for name in _names_on(disk)} | set(_names_in(layout))
    others = {name for disk, own in disks if not own for name in _names_on(disk)} - ours
    found = [*_mounts(layout, root, present), *_containers(layout, present), *_arrays(layout, present)]
    return [f"{table}: {line.strip()}" for table, line, source in found if not _is_ours(source, ours, others)]


def _mounts(layout: Layout, root: str, present: Texts) -> Iterator[tuple[str, str, str]]:
    """Give the lines of fstab at the layout's mount points, each with its source."""
    places = {below(root, mount.path) for mount in layout.mounts() if mount.path.startswith("/")}
    for line, fields in rows(present.get(FSTAB, "")):
        # A line without a type is invalid, and a start complains about it; its mount point is taken all the same.
        entry = read_entry(line) or read_entry(" ".join([*fields, "auto"]))
        if entry is not None and (entry.path.rstrip("/") or "/") in places:
            yield FSTAB, line, entry.src


def _containers(layout: Layout, present: Texts) -> Iterator[tuple[str, str, str]]:
    names = {container.name for container in layout.containers}
    for line, _fields in rows(present.get(CRYPTTAB, "")):
        container = read_container(line)
        if container is not None and container.name in names:
            yield CRYPTTAB, line, container.source


def _arrays(layout: Layout, present: Texts) -> Iterator[tuple[str, str, str]]:
    names = {array.device for array in layout.arrays}
    for path in MDADM_CONFS:
        for line in whole_lines(present.get(path, "").split("\n")):
            array = read_array(line)
            if array is not None and array.name in names and len(line.split()) > len(("ARRAY", array.name)):
                yield path, line, f"UUID={array.uuid}"


def _is_ours(source: str, ours: Iterable[str], others: Iterable[str]) -> bool:
    named = plain_source(source)
    name = _plain_uuid(named[len("UUID=") :]) if named.startswith("UUID=") else named
    from_a_plan = named.startswith("UUID=") and is_derived(name)
    return name in ours or (from_a_plan and name not in others)


def _plain_uuid(text: str) -> str:
    """Return a UUID in lower case; mdadm's, which has colons, as all others write it."""
    digits = text.replace(":", "").lower()
    if ":" not in text or len(digits) != 32:
        return text.lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _names_in(layout: Layout) -> Iterator[str]:
    """Give the nodes that the layout has, as it calls them."""
    yield from (filesystem.device for filesystem in layout.filesystems)
    yield from (container.below for container in layout.containers)
    yield from (volume.device for volume in layout.physical)
    yield from (array.device for array in layout.arrays)
    for volume in layout.volumes:
        yield from (volume.device, f"/dev/{volume.title}")


def _names_on(disk: Plain) -> Iterator[str]:
    """Give all names by which a table may call what is on a disk."""
    links = [str(link) for link in (disk.get("id"), disk.get("dev"), disk.get("path"), *(disk.get("links") or ())) if link]
    yield from links
    for part in disk.get("partitions") or ():
        yield from (partition_node(link, int(part["number"])) for link in links if "number" in part)
        yield from (f"{tag}={part[key]}" for tag, key in (("PARTUUID", "uuid"), ("PARTLABEL", "name")) if part.get(key))
    for thing in (*(disk.get("partitions") or ()), *(disk.get("holders") or ())):
        yield from [str(thing["dev"])] if thing.get("dev") else []
        yield from [_plain_uuid(str(thing["fs_uuid"]))] if thing.get("fs_uuid") else []
        yield from ([f"LABEL={thing['label']}"] if thing.get("label") else [])
    for holder in disk.get("holders") or ():
        yield from [_plain_uuid(str(holder["uuid"]))] if holder.get("uuid") else []
        name, group = holder.get("name"), holder.get("volume_group")
        yield from ([f"/dev/mapper/{name}"] if name else [])
        yield from ([mapper_node(group, name), f"/dev/{group}/{name}"] if name and group else [])
    yield from (_plain_uuid(str(content["uuid"])) for content in disk.get("content") or () if content.get("uuid"))
