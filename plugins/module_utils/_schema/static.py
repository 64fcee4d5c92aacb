# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The explicit static schema, lists of what is to be made in MiB -> the desired layout, or every mistake in it at once."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator

from .._data.errors import Mistakes
from .._storage import derived, gpt, lvm, names
from .._storage.units import MIB
from .checks import check_layout
from .entry import Entry
from .filesystems import filesystem_of
from .lvm import cache_of, group_of, physical_volume_of, pool_of, volume_of
from .md import array_of
from .model import DesiredContainer, DesiredDisk, DesiredPartition, Layout
from .table import STATIC
from .zpools import zpool_of

LEGACY_BOOT_ATTRS = "LegacyBIOSBootable"
"""sfdisk's word for the flag."""


class SchemaMistakes(ValueError):
    """The schema cannot be used; `mistakes` are all that was found, each with its place."""

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(
            "\n".join(self.mistakes)
            if len(self.mistakes) == 1
            else "\n- ".join([f"{len(self.mistakes)} mistakes in the schema:", *self.mistakes])
        )


def parse_static_schema(raw: t.Any) -> Layout:
    """Return the desired layout; raises SchemaMistakes."""
    mistakes = Mistakes()
    layout = read_layout(raw, "", mistakes)
    if mistakes:
        raise SchemaMistakes(f"{mistake.place or 'schema'}: {mistake.says}" for mistake in mistakes.found())
    return layout


def read_layout(raw: t.Any, place: str, mistakes: Mistakes) -> Layout:
    """Return the layout of a schema that stands in a place; all that is wrong with it is noted."""
    layout = _items_of(raw, place, mistakes)
    if not mistakes:
        for where, says in check_layout(layout):
            mistakes.add(where, says)
    return layout


def layout_of(schema: t.Any) -> Layout:
    """Return the layout of a schema that was carried out or made by the planner: whether its parts fit each other is not checked.

    Raises InputError with all that its table refuses.
    """
    mistakes = Mistakes()
    layout = _items_of(schema, "schema", mistakes)
    mistakes.check()
    return layout


def readable_layout(schema: t.Any) -> Layout:
    """Return the layout of a schema as far as its table accepts it: what it refuses reads as if it were not given."""
    return _items_of(schema, "schema", Mistakes())


def _items_of(raw: t.Any, place: str, mistakes: Mistakes) -> Layout:
    """Return a layout, for what is wrong in it as if it were not given."""
    schema = Entry(STATIC.read_nested(raw, place, mistakes), place, mistakes)
    aliases: dict[str, str] = {}
    physical = {volume.device: volume for volume in map(physical_volume_of, schema.items("pvs"))}
    volumes = tuple(volume_of(item, aliases) for item in schema.items("lvs"))
    return Layout(
        disks=tuple(map(_disk, schema.items("parteds"))),
        arrays=tuple(map(array_of, schema.items("mds"))),
        containers=tuple(_container(item, aliases) for item in schema.items("luks")),
        groups=tuple(group_of(item, physical) for item in schema.items("vgs")),
        volumes=volumes,
        filesystems=tuple(filesystem_of(item, aliases) for item in schema.items("fss")),
        pools=tuple(map(pool_of, schema.items("thin_pools"))),
        caches=tuple(map(cache_of, schema.items("caches"))),
        zpools=tuple(map(zpool_of, schema.items("zpools"))),
        physical=tuple(physical.values()),
    )


def why_not_shrink(layout: Layout, names: Iterable[str]) -> Iterator[str]:
    """Give what is wrong with the names of volumes that may be made smaller."""
    known = [volume.title for volume in layout.volumes]
    for name in names:
        if name not in known:
            yield f"allow_shrink: there is no logical volume {name} in the schema; there are {', '.join(known) or 'none'}"


def _disk(item: Entry) -> DesiredDisk:
    device = item["name"] or item["disk_id"] or ""
    if not device and item.is_right("name", "disk_id"):
        item.mistake("name", "is missing; must be a device")
    elif not item["name"] and item.is_right("name", "disk_id"):
        item.mistake("disk_id", names.why_no_device(device))
    disk_id = item["disk_id"] or device
    partitions = (_partition(part, number, device, disk_id) for number, part in enumerate(item.items("partitions"), 1))
    in_order = tuple(sorted(partitions, key=lambda part: part.number))
    table = derived.table_uuid(disk_id)
    return DesiredDisk(item.place, disk_id, device, item["disk_size"], in_order, table, item["install_bootloader"])


def _partition(item: Entry, position: int, disk: str, disk_id: str) -> DesiredPartition:
    number, flags, space = item["count"] or position, item["flags"], item["space_id"] or ""
    start, stop = _extent(item)
    label = item["partition_label"] or space[: gpt.LONGEST_NAME]
    if label and item.is_right("space_id", "partition_label"):
        item.mistake("partition_label", gpt.why_no_name(label))
    purpose = f"{space or 'partition'}/{number}"
    implied = next((gpt.TYPES_BY_FLAG[flag] for flag in flags if flag in gpt.TYPES_BY_FLAG), gpt.LINUX)
    device = item["name"] or (gpt.partition_node(disk, number) if disk else "")
    return DesiredPartition(
        place=item.place,
        device=device,
        number=number,
        start=start,
        size=stop - start,
        type=item["guid"] or implied,
        uuid=item["uuid"] or derived.partition_uuid(disk_id, purpose),
        label=label,
        attrs=LEGACY_BOOT_ATTRS if gpt.LEGACY_BOOT in flags else None,
        keep_data=item["keep_data"],
        purpose="" if item["uuid"] else purpose,
        space=space or device.rsplit("/", 1)[-1],
        named=bool(item["partition_label"]),
    )


def _extent(item: Entry) -> tuple[int, int]:
    """Return where a partition begins and ends, in bytes; one that is kept may do so within the first and the last of its MiB."""
    exact = {key: item[key] for key in ("start_bytes", "end_bytes") if item[key] is not None}
    begin, end = item["begin"], item["end"]
    if begin < 1 and not exact and item.is_right("begin"):
        item.mistake("begin", "is 0; must be 1 or more where there is no start_bytes")
    elif end <= begin and item.is_right("begin", "end"):
        item.mistake("end", f"must be more than begin ({begin}): the MiB where the partition ends, exclusively")
    for key, first in (("start_bytes", begin), ("end_bytes", end - 1)):
        lies = exact.get(key, first * MIB) - (key == "end_bytes" and key in exact)
        if key in exact and not item["keep_data"]:
            item.mistake(key, "is only for a partition with keep_data; others begin and end at whole MiB")
        elif item.is_right(key, "begin", "end") and not first * MIB <= lies < (first + 1) * MIB:
            where = "begin" if key == "start_bytes" else "end"
            item.mistake(key, f"is {exact[key]}, which is not in the MiB that {where} says; leave {key} out, or {where} as it was")
    return exact.get("start_bytes", begin * MIB), exact.get("end_bytes", end * MIB)


def _container(item: Entry, aliases: t.Mapping[str, str]) -> DesiredContainer:
    name = item["name"]
    return DesiredContainer(
        place=item.place,
        name=name[len(lvm.MAPPER) :] if name.startswith(lvm.MAPPER) else name,
        below=aliases.get(item["device"], item["device"]),
        keep_data=item["keep_data"],
        unlock=item["unlock"],
        space=item.space,
        key_file=item["key_file"] or "",
        crypttab_options=item["crypttab_options"] or "",
        in_crypttab=item["crypttab_enabled"],
    )
