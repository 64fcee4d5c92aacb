# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The OSDs of a plan as a service specification of Ceph's orchestrator (cephadm), which has ceph-volume make them.

ceph-volume takes whole disks and logical volumes, and refuses partitions. After ceph.deployment.drive_group.
"""

from __future__ import annotations

import fnmatch
import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._data.containers import ListOf, Row, Table, read_all
from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.kinds import Name, Text, Truth, Whole
from ....module_utils._data.words import listed
from ....module_utils._schema.model import Layout
from ....module_utils._schema.static import read_layout
from ....module_utils._storage.identity import BY_ID
from .durable import DURABLE, durable_name
from .losses import Losses
from .write import Written

Plain = dict[str, t.Any]

_NAMES = ListOf(Text(filled=True), "ids of spaces, or patterns of them", single=True)
_OPTIONS = Table(
    "options",
    [
        Row("host", Name()),
        Row("service_id", Name()),
        Row("data", _NAMES, default=("osd*",)),
        Row("db", _NAMES, default=("ceph-db*",)),
        Row("wal", _NAMES, default=("ceph-wal*",)),
        Row("encrypted", Truth(words=True), default=False),
        Row("osds_per_device", Whole(1, 100), default=1),
    ],
)
_WHOLE_DISK = Table(
    "a whole disk",
    [
        Row("disk_id", Text(filled=True), required=True),
        Row("device", Text(filled=True), required=True),
        Row("space_id", Text(filled=True), required=True),
    ],
    others=True,
)
_WHOLE_DISKS = ListOf(_WHOLE_DISK, "whole disks")
_DATA, _FAST = "data", ("db", "wal")


@dataclass(frozen=True)
class _Devices:
    """What ceph-volume may take: the paths of whole disks and of logical volumes, each by its space."""

    disks: Mapping[str, Sequence[str]]
    volumes: Mapping[str, str]

    def paths(self, spaces: Sequence[str]) -> list[str]:
        """Return the devices of some spaces."""
        return [path for space in spaces for path in (self.disks[space] if space in self.disks else [self.volumes[space]])]


def write_osds(plan: t.Any, hardware: t.Any, given: Mapping[str, t.Any]) -> Written:
    """Return the specification as plain data for `ceph orch apply`; `given` are options of the filter, None for what is not given.

    Raises InputError with all that is wrong with the plan and its options, or that ceph-volume refuses.
    """
    options = read_all(_OPTIONS, {key: value for key, value in given.items() if value is not None}, "")
    layout, devices = _read(plan, hardware)
    losses = Losses("Ceph", lossy=False)
    known = [*devices.disks, *devices.volumes]
    spaces = {role: [space for space in known if _matches(space, options[role])] for role in (_DATA, *_FAST)}
    _check_kinds(layout, options, spaces, losses)
    paths = {role: devices.paths(spaces[role]) for role in spaces}
    _check_slots(spaces, devices, len(paths[_DATA]) * options["osds_per_device"], losses)
    for space in devices.disks:
        if not any(space in names for names in spaces.values()):
            losses.note(f"{space} matches none of data, db and wal, so Ceph does not get its disks")
    for path in (path for role in paths for path in paths[role]):
        if not path.startswith((*DURABLE, *devices.volumes.values())):
            losses.note(f"{path} is a name that may change at the next boot; hardware with links gives a durable one")
    for says in _not_empty(plan, hardware):
        losses.note(says)
    placement = {"hosts": [options["host"]]} if options["host"] else _everywhere(spaces, devices, losses)
    warnings = losses.check()
    if not paths[_DATA]:
        there = f"there are {listed(known)}" if known else "it leaves no disk whole and has no logical volume"
        raise InputError([Mistake("plan", f"has no space for the data of OSDs ({', '.join(options[_DATA])}); {there}")])
    spec: Plain = {f"{role}_devices": {"paths": paths[role]} for role in paths if paths[role]}
    if options["encrypted"]:
        spec["encrypted"] = True
    if options["osds_per_device"] > 1:
        spec["osds_per_device"] = options["osds_per_device"]
    service = options["service_id"] or options["host"] or "bareon"
    return Written({"service_type": "osd", "service_id": service, "placement": placement, "spec": spec}, warnings)


def _read(plan: t.Any, hardware: t.Any) -> tuple[Layout, _Devices]:
    if not isinstance(plan, Mapping) or not isinstance(plan.get("schema"), Mapping):
        raise InputError([Mistake("plan", "must be a plan of disk_plan")])
    mistakes = Mistakes()
    layout = read_layout(plan["schema"], "plan.schema", mistakes)
    mistakes.check()
    disks: dict[str, list[str]] = {}
    for disk in read_all(_WHOLE_DISKS, plan.get("whole_disks") or (), "plan.whole_disks"):
        disks.setdefault(disk["space_id"], []).append(durable_name(disk["device"], disk["disk_id"], hardware))
    volumes = {volume.space or volume.name: f"/dev/{volume.title}" for volume in layout.volumes if not volume.pool}
    return layout, _Devices(disks, volumes)


def _matches(space: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(space, pattern) for pattern in patterns)


def _check_kinds(layout: Layout, options: Mapping[str, t.Any], spaces: Mapping[str, Sequence[str]], losses: Losses) -> None:
    """Refuse what OSDs cannot lie on, and spaces that are to be two things."""
    for role, chosen in spaces.items():
        for space in chosen:
            others = [other for other in spaces if other != role and space in spaces[other]]
            if others:
                losses.refuse(space, f"is both {role} and {others[0]}; let patterns of data, db and wal name different spaces")
        groups = {group.space or group.name for group in layout.groups}
        for thing in layout.things():
            if thing.space and _matches(thing.space, options[role]) and thing.space not in {*chosen, *groups}:
                losses.refuse(
                    thing.space, "ceph-volume takes whole disks and logical volumes alone; plan it as a disk, or as an lv in a vg"
                )
    for volume in layout.volumes:
        filesystem = layout.filesystem_on(volume.device)
        if filesystem is not None and any(volume.space in chosen for chosen in spaces.values()):
            losses.refuse(volume.space, f"has the file system {filesystem.type}, and BlueStore takes a volume with nothing on it")


def _check_slots(spaces: Mapping[str, Sequence[str]], devices: _Devices, osds: int, losses: Losses) -> None:
    """Refuse fewer volumes than OSDs: ceph-volume cuts disks into slots for them, but no volumes."""
    for role in _FAST:
        volumes = [space for space in spaces[role] if space in devices.volumes]
        if volumes and len(volumes) == len(spaces[role]) and len(volumes) < osds:
            says = f"ceph-volume needs a volume as {role} for each OSD; there are {len(volumes)} for {osds}"
            losses.refuse(volumes[0], says)


def _everywhere(spaces: Mapping[str, Sequence[str]], devices: _Devices, losses: Losses) -> Plain:
    """Return a placement on all hosts, which is sound for disks whose names no other host has."""
    shared = [path for role in spaces for path in devices.paths(spaces[role]) if not path.startswith(BY_ID)]
    if shared:
        losses.refuse(shared[0], "other hosts may have a device of this name, too; give the host as host")
    losses.note("no host is given, so all hosts are asked for these disks; host: NAME restricts it to one")
    return {"host_pattern": "*"}


def _not_empty(plan: Mapping[str, t.Any], hardware: t.Any) -> Iterator[str]:
    """Give sentences about whole disks that are not empty, as the facts say."""
    whole = {disk["disk_id"] for disk in plan.get("whole_disks") or ()}
    disks = hardware.get("disks") if isinstance(hardware, Mapping) else None
    for disk in disks if isinstance(disks, (list, tuple)) else ():
        if isinstance(disk, Mapping) and disk.get("id") in whole and disk.get("empty") is False:
            yield f"{disk['id']} is not empty, and ceph-volume makes OSDs on empty disks; ceph orch device zap, or wipefs, empties it"
