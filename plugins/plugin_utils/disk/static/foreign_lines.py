# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of a host's tables that stand where those of a layout would, and are somebody else's: they are told, never replaced.

A line is of the layout where it names something that is on its disks, or will be. So is one with a UUID that follows from a plan
(version 5, which no mkfs gives by chance) and that nothing has any more: an earlier layout of these disks left it.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Iterator, Mapping

from ....module_utils.storage.fstab import without_escapes
from ....module_utils.storage.gpt import partition_node
from ....module_utils.storage.lvm import mapper_node
from .host_files import CRYPTTAB, FSTAB, MDADM_CONFS, below, sections, used_file_systems

Plain = Mapping[str, t.Any]

_OF_A_PLAN = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE)
_TAG = re.compile(r'(?:(?P<tag>[A-Z]+)=)?"?(?P<value>[^"]*)"?')


def foreign_lines(schema: Plain, hardware: Plain, root: str, present: str) -> list[str]:
    """Return the lines, each with its file before it: `/etc/fstab: LABEL=old /srv ext4 noauto 0 0`. `present` is as for host_files."""
    texts = sections(present)
    disks = [(disk, str(disk.get("id")) in _disks_of(schema)) for disk in hardware.get("disks") or ()]
    ours = {name for disk, own in disks if own for name in _names_on(disk)} | set(_names_in(schema))
    others = {name for disk, own in disks if not own for name in _names_on(disk)} - ours
    places = {below(root, entry["mount"]) for entry in used_file_systems(schema) if entry["mount"].startswith("/")}
    titles = {entry["name"] for entry in schema.get("luks") or ()}
    arrays = {entry["name"] for entry in schema.get("mds") or ()}
    found = [
        *(
            (FSTAB, line, fields[0])
            for line, fields in _lines(texts, FSTAB)
            if len(fields) > 1 and (fields[1].rstrip("/") or "/") in places
        ),
        *((CRYPTTAB, line, fields[1]) for line, fields in _lines(texts, CRYPTTAB) if len(fields) > 1 and fields[0] in titles),
        *(
            (path, line, _array(fields))
            for path in MDADM_CONFS
            for line, fields in _lines(texts, path)
            if len(fields) > 2 and fields[1] in arrays
        ),
    ]
    return [f"{table}: {line.strip()}" for table, line, source in found if not _is_ours(source, ours, others)]


def _is_ours(source: str, ours: Iterable[str], others: Iterable[str]) -> bool:
    named = t.cast("re.Match[str]", _TAG.fullmatch(source))
    name = _plain_uuid(named["value"]) if named["tag"] == "UUID" else source.replace('"', "")
    from_a_plan = named["tag"] == "UUID" and _OF_A_PLAN.fullmatch(name) is not None
    return name in ours or (from_a_plan and name not in others)


def _plain_uuid(text: str) -> str:
    """Return a UUID in lower case; mdadm's, which has colons, as all others write it."""
    digits = text.replace(":", "").lower()
    if ":" not in text or len(digits) != 32:
        return text.lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _array(fields: list[str]) -> str:
    return next((field for field in fields[2:] if field.upper().startswith("UUID=")), "")


def _lines(texts: Mapping[str, str], path: str) -> Iterator[tuple[str, list[str]]]:
    for line in texts.get(path, "").splitlines():
        fields = [without_escapes(field) for field in line.split()]
        if fields and not fields[0].startswith("#"):
            yield line, fields


def _disks_of(schema: Plain) -> set[str]:
    return {str(table.get("disk_id")) for table in schema.get("parteds") or ()}


def _names_in(schema: Plain) -> Iterator[str]:
    """Give the nodes that the layout has, as it calls them."""
    for kind, key in (("fss", "device"), ("luks", "device"), ("pvs", "name"), ("mds", "name")):
        yield from (str(entry[key]) for entry in schema.get(kind) or () if key in entry)
    for volume in schema.get("lvs") or ():
        yield from (mapper_node(volume["vgname"], volume["name"]), f"/dev/{volume['vgname']}/{volume['name']}")


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
