# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM as layouts are compared with it: what its tools say of physical volumes, groups and logical volumes. Sizes are bytes."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .._storage.cache import name_of
from .._storage.lvm import UNFINISHED, parse_report
from .._storage.units import KIB, MIB
from .host import Host, Outcome
from .lsblk import to_integer
from .tree import Tree

_REPORT = ("--config", "devices/use_devicesfile=0", "--readonly", "--reportformat", "json", "--units", "b", "--nosuffix", "--options")
"""A devices file, where LVM keeps one, names the host's own disks; what others brought counts as well."""
_PHYSICAL_COMMAND = (
    "pvs",
    *_REPORT,
    "pv_name,pv_uuid,pv_size,dev_size,pv_free,pe_start,pv_mda_count,pv_mda_size,vg_name,vg_uuid,vg_extent_size",
)
_LOGICAL_COMMAND = (
    "lvs",
    "--all",
    *_REPORT,
    "vg_name,vg_uuid,lv_name,lv_uuid,lv_size,lv_tags,lv_host,lv_layout,pool_lv,lv_metadata_size,chunk_size,cache_mode,"
    "stripes,stripe_size,seg_pe_ranges,lv_role,origin",
)
_IDENTITY_OF_PHYSICAL, _IDENTITY_OF_LOGICAL = "pv_name,pv_uuid,vg_name,vg_uuid", "vg_name,vg_uuid,lv_name,lv_uuid"


_RANGE = re.compile(r"(/\S+):([0-9]{1,12})-([0-9]{1,12})")


@dataclass(frozen=True)
class PhysicalVolume:
    """A physical volume; `device` is None when it is missing.

    `size` is what LVM uses of a device of `device_size`: all but what comes before `data_start`, and the `tail` with a copy of metadata.
    """

    device: t.Optional[str]
    group: t.Optional[str]
    group_uuid: t.Optional[str]
    size: int
    device_size: int
    data_start: int
    free: int
    extent_size: int
    tail: int = 0

    @property
    def unused(self) -> int:
        """How much of the device could be used and is not."""
        return self.device_size - self.data_start - self.size - self.tail


@dataclass(frozen=True)
class LogicalVolume:
    """A logical volume that is not hidden, or a snapshot that is merged into its origin.

    `host` is the name of the host that made it, as LVM remembers it.

    One in a thin pool has its name as `pool`. A thin pool itself has a `chunk`, and `metadata` in addition to its size for data.
    `cache` is the name of what one is cached by, `mode` how. `stripes` are the numbers of stripes that its segments have, none where that
    is not known, `stripe_size` is that of the last segment. `extents` are how many it has on each physical volume, by the device's name.
    """

    group: str
    group_uuid: str
    name: str
    uuid: str
    size: int
    tags: tuple[str, ...] = ()
    host: str = ""
    pool: str = ""
    metadata: int = 0
    chunk: int = 0
    cache: str = ""
    mode: str = ""
    stripes: tuple[int, ...] = ()
    stripe_size: int = 0
    extents: Mapping[str, int] = field(default_factory=dict)
    origin: str = ""
    """What this is a snapshot of, unless it is a thin one: LVM removes it with its origin. Its `size` is its room for changes."""
    merging: bool = False

    @property
    def unfinished(self) -> bool:
        """Whether a run made it, and did not finish what is on it."""
        return UNFINISHED in self.tags

    @property
    def is_pool(self) -> bool:
        """Whether it is a thin pool."""
        return self.chunk > 0

    @property
    def entry(self) -> dict[str, t.Any]:
        """The values of a static schema; sizes in MiB, chunks in KiB."""
        named = {"name": self.name, "vgname": self.group, "size": self.size // MIB}
        if self.is_pool:
            return {**named, "metadata_size": self.metadata // MIB, "chunk_size": self.chunk // KIB}
        if self.pool:
            return {**named, "pool": self.pool}
        striped = {"stripes": self.stripes[0]} if len(self.stripes) == 1 and self.stripes[0] > 1 else {}
        return {**named, **striped, **({"stripe_size": self.stripe_size // KIB} if striped and self.stripe_size else {})}


@dataclass(frozen=True)
class VolumeGroup:
    """A volume group with what belongs to it."""

    name: str
    uuid: str
    extent_size: int
    physical: tuple[PhysicalVolume, ...]
    volumes: tuple[LogicalVolume, ...]
    spare: int = 0
    """Bytes that LVM keeps to repair the metadata of thin pools into."""

    @property
    def free(self) -> int:
        """Bytes of extents that no volume has."""
        return sum(volume.free for volume in self.physical)

    @property
    def incomplete(self) -> bool:
        """Whether a physical volume is missing."""
        return any(volume.device is None for volume in self.physical)

    def volume(self, name: str) -> t.Optional[LogicalVolume]:
        """Return the volume of this name."""
        return next((volume for volume in self.volumes if volume.name == name), None)


def has_lvm(tree: Tree) -> bool:
    """Return whether there is anything of LVM on any device of the host: its tools scan all of them, which takes a while."""
    types = {signature.type for device in tree.devices.values() for signature in device.signatures}
    types |= {device.filesystem.type for device in tree.devices.values() if device.filesystem is not None}
    return any(kind.startswith("LVM") for kind in types) or any(device.kind == "lvm" for device in tree.devices.values())


def read_lvm(host: Host, tree: Tree) -> tuple[tuple[PhysicalVolume, ...], tuple[LogicalVolume, ...], dict[str, int]]:
    """Return what LVM knows; nothing where it is not installed. read_stacks has noted that already, where it matters."""
    physical, logical = (
        _rows(host.run(command), kind, needed)
        for command, kind, needed in ((_PHYSICAL_COMMAND, "pv", _IDENTITY_OF_PHYSICAL), (_LOGICAL_COMMAND, "lv", _IDENTITY_OF_LOGICAL))
    )
    # There is a row for every segment.
    volumes = {row["lv_uuid"]: row for row in logical}.values()
    segments: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in logical:
        segments.setdefault((row["vg_uuid"], row["lv_name"].strip("[]")), []).append(row)
    return (
        tuple(_physical(host, tree, row) for row in physical if row["pv_uuid"]),
        tuple(
            _segmented(host, tree, _logical(row), segments) for row in volumes if not row["lv_name"].startswith("[") or _is_snapshot(row)
        ),
        {row["vg_uuid"]: _number(row, "lv_size") for row in volumes if row["lv_name"].endswith("_pmspare]")},
    )


def _segmented(
    host: Host, tree: Tree, volume: LogicalVolume, segments: Mapping[tuple[str, str], Sequence[dict[str, str]]]
) -> LogicalVolume:
    """Return a volume with what its segments say: where it is cached, those of what is cached."""
    cached = segments.get((volume.group_uuid, f"{volume.name}_corig")) if volume.cache else None
    rows = cached or segments[volume.group_uuid, volume.name]
    extents: dict[str, int] = {}
    for node, first, last in (match.groups() for row in rows for match in _RANGE.finditer(row.get("seg_pe_ranges") or "")):
        device = tree.by_node(host.resolve(node) or node)
        if device is not None:
            extents[device.name] = extents.get(device.name, 0) + int(last) - int(first) + 1
    stripes = tuple(sorted({_number(row, "stripes") for row in rows} - {0}))
    return replace(volume, stripes=stripes, stripe_size=_number(rows[-1], "stripe_size"), extents=extents)


def _rows(outcome: t.Optional[Outcome], kind: str, needed: str) -> list[dict[str, str]]:
    if outcome is None or outcome.code != 0:
        return []
    try:
        return parse_report(outcome.stdout, kind, needed)
    except ValueError:
        return []


def _physical(host: Host, tree: Tree, row: dict[str, str]) -> PhysicalVolume:
    node = row["pv_name"]
    device = tree.by_node(host.resolve(node) or node) or tree.by_node(node) if node.startswith("/") else None
    copies, area = _number(row, "pv_mda_count"), _number(row, "pv_mda_size")
    return PhysicalVolume(
        device=device.name if device is not None else None,
        group=row["vg_name"] or None,
        group_uuid=row["vg_uuid"] or None,
        size=_number(row, "pv_size"),
        device_size=_number(row, "dev_size"),
        data_start=_number(row, "pe_start"),
        free=_number(row, "pv_free"),
        extent_size=_number(row, "vg_extent_size"),
        tail=area if copies > 1 else 0,
    )


def _is_snapshot(row: dict[str, str]) -> bool:
    return "thicksnapshot" in (row.get("lv_role") or "").split(",")


def _number(row: dict[str, str], column: str) -> int:
    return to_integer(row.get(column)) or 0


def _logical(row: dict[str, str]) -> LogicalVolume:
    tags = tuple(tag for tag in row["lv_tags"].split(",") if tag)
    kinds = set((row.get("lv_layout") or "").split(","))
    is_pool = {"thin", "pool"} <= kinds
    return LogicalVolume(
        group=row["vg_name"],
        group_uuid=row["vg_uuid"],
        name=row["lv_name"].strip("[]"),
        uuid=row["lv_uuid"],
        size=_number(row, "lv_size"),
        tags=tags,
        host=row.get("lv_host") or "",
        pool=(row.get("pool_lv") or "") if "thin" in kinds else "",
        cache=name_of(row.get("pool_lv") or "") if "cache" in kinds else "",
        mode=(row.get("cache_mode") or "") if "cache" in kinds else "",
        metadata=_number(row, "lv_metadata_size") if is_pool else 0,
        chunk=_number(row, "chunk_size") if is_pool else 0,
        origin=(row.get("origin") or "").strip("[]") if _is_snapshot(row) else "",
        merging=_is_snapshot(row) and row["lv_name"].startswith("["),
    )
