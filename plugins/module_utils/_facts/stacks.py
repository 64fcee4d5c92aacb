# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM, md and LUKS as their own tools report them, beyond what the kernel has assembled (inactive groups, stopped arrays)."""

from __future__ import annotations

import re
import struct
import typing as t
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from .._storage.lvm import parse_report
from .lsblk import to_integer

_REPORT = ("--readonly", "--reportformat", "json", "--units", "b", "--nosuffix")
"""Read-only: takes no lock, asks no daemon, writes no cache."""

PHYSICAL_VOLUMES_COMMAND = ("pvs", *_REPORT, "--options", "pv_name,pv_uuid,pv_size,pv_free,pe_start,vg_name,vg_uuid,vg_extent_size")
LOGICAL_VOLUMES_COMMAND = (
    "lvs",
    *_REPORT,
    "--all",
    "--options",
    "vg_name,vg_uuid,lv_name,lv_uuid,lv_size,lv_layout,lv_dm_path,devices,metadata_devices,metadata_lv,pool_lv,origin",
)

_PLACES = ("devices", "metadata_devices", "metadata_lv", "pool_lv", "origin")
"""What a logical volume cannot be without."""

_EXTENT = re.compile(r"\([0-9]*\)\Z")

_PLACE = re.compile(r"spare|(?:Active|Replacement) device (?P<role>[0-9]+)")


@dataclass(frozen=True)
class PhysicalVolume:
    """A physical volume; bytes. `group` is None when it belongs to none."""

    device: str
    uuid: str
    size: int
    free: int
    data_start: int
    group: t.Optional[str]
    group_uuid: t.Optional[str]
    extent_size: int


@dataclass(frozen=True)
class LogicalVolume:
    """A logical volume, hidden ones too; bytes. `on` are nodes of physical volumes and names of volumes of its group."""

    group: str
    group_uuid: str
    name: str
    uuid: str
    size: int
    layout: str
    mapper_path: str
    hidden: bool
    on: tuple[str, ...]
    stripes: int = 0
    """In how many stripes its segments lie, 0 where they differ in that, or are of other kinds."""

    @property
    def details(self) -> dict[str, t.Any]:
        """Facts in addition to those of every device: in how many stripes it lies, if that is more than one."""
        return {"stripes": self.stripes} if self.stripes > 1 else {}


@dataclass(frozen=True)
class Array:
    """An md array as its superblock has it; the UUID is written as libblkid writes it. `metadata` is the version of the superblock."""

    level: str
    uuid: str
    name: t.Optional[str]
    devices: int
    metadata: t.Optional[str] = None


@dataclass(frozen=True)
class Superblock:
    """What the md superblock of a member says of its array: its UUID, and its `events` when the member was last written.

    md counts an event whenever an array goes from rest to writing or back, and whenever it gains or loses a member. `role` is the member's
    place in the array, None for a spare. `missing` are the roles without which it was written to. `partial`: md was still building it up.
    """

    uuid: str
    events: int
    role: t.Optional[int]
    missing: frozenset[int] = frozenset()
    partial: bool = False

    @property
    def is_copy(self) -> bool:
        """Whether the member has all that it is to have of the array, of whatever time."""
        return self.role is not None and not self.partial


@dataclass(frozen=True)
class Legs:
    """What a running md array takes of each of its members, and where its data begin on them at the latest; bytes."""

    used: int
    begin: int


@dataclass(frozen=True)
class Luks:
    """A LUKS header; `data_start` is where the data begin on the device, in bytes."""

    version: int
    cipher: t.Optional[str]
    key_slots: int
    data_start: t.Optional[int] = None


def parse_physical_volumes(text: str) -> tuple[PhysicalVolume, ...]:
    """Return the physical volumes of a `pvs` report; raises ValueError when it is none."""
    return tuple(
        PhysicalVolume(
            device=row["pv_name"],
            uuid=row["pv_uuid"],
            size=to_integer(row["pv_size"]) or 0,
            free=to_integer(row["pv_free"]) or 0,
            data_start=to_integer(row["pe_start"]) or 0,
            group=row["vg_name"] or None,
            group_uuid=row["vg_uuid"] or None,
            extent_size=to_integer(row["vg_extent_size"]) or 0,
        )
        for row in parse_report(text, "pv", PHYSICAL_VOLUMES_COMMAND[-1])
        if row["pv_uuid"]
    )


def parse_logical_volumes(text: str) -> tuple[LogicalVolume, ...]:
    """Return the logical volumes of an `lvs` report, which has a row for every segment; raises ValueError when it is none."""
    volumes: dict[str, LogicalVolume] = {}
    for row in parse_report(text, "lv", LOGICAL_VOLUMES_COMMAND[-1]):
        on = (place for column in _PLACES for place in _devices(row[column]))
        known = volumes.get(row["lv_uuid"])
        stripes = len(_devices(row["devices"])) if row["lv_layout"] in ("linear", "striped") else 0
        volumes[row["lv_uuid"]] = LogicalVolume(
            group=row["vg_name"],
            group_uuid=row["vg_uuid"],
            name=row["lv_name"].strip("[]"),
            uuid=row["lv_uuid"],
            size=to_integer(row["lv_size"]) or 0,
            layout=row["lv_layout"],
            mapper_path=row["lv_dm_path"],
            hidden=row["lv_name"].startswith("["),
            on=tuple(dict.fromkeys((*(known.on if known else ()), *on))),
            stripes=stripes if known is None or known.stripes == stripes else 0,
        )
    return tuple(volumes.values())


def physical_volumes_of(volume: LogicalVolume, volumes: Iterable[LogicalVolume]) -> tuple[str, ...]:
    """Return the nodes of the physical volumes that a volume lies on, through the hidden volumes that it is made of.

    UUIDs distinguish groups: disks of another machine can bring a second group of the same name.
    """
    siblings = {other.name: other for other in volumes if other.group_uuid == volume.group_uuid}
    found: dict[str, None] = {}
    seen = {volume.name}
    pending = list(reversed(volume.on))
    while pending:
        place = pending.pop()
        if place.startswith("/"):
            found[place] = None
        elif place in siblings and place not in seen:
            seen.add(place)
            pending.extend(reversed(siblings[place].on))
    return tuple(found)


def detail_command(device: str) -> list[str]:
    """Return the command that describes a running array; parse_array reads its output."""
    return ["mdadm", "--detail", "--export", device]


def examine_command(device: str) -> list[str]:
    """Return the command that describes the array of a member device; parse_array reads its output."""
    return ["mdadm", "--examine", "--export", device]


def parse_array(text: str) -> t.Optional[Array]:
    """Return the array of `mdadm --export`, None when the text describes none."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    uuid = values.get("MD_UUID")
    if not uuid or "MD_LEVEL" not in values:
        return None
    name, devices = values.get("MD_NAME") or values.get("MD_DEVNAME"), to_integer(values.get("MD_DEVICES")) or 0
    return Array(values["MD_LEVEL"], array_uuid(uuid), name, devices, values.get("MD_METADATA"))


MEMBER = "linux_raid_member"
SUPERBLOCK_BYTES = 256
_MEMBER_UUID = struct.Struct("<II160x16s")
"""Of a superblock of the versions 1.x: magic, major version, and at 168 the name of the member."""
_MD_MAGIC, _MD_MAJOR = 0xA92B4EFC, 1


def member_uuid(superblock: bytes) -> t.Optional[str]:
    """Return what md calls a member, from the beginning of its superblock; None where that names none."""
    if len(superblock) < _MEMBER_UUID.size:
        return None
    magic, major, name = _MEMBER_UUID.unpack_from(superblock)
    return str(uuid.UUID(bytes=name)) if (magic, major) == (_MD_MAGIC, _MD_MAJOR) and any(name) else None


def superblock_command(device: str) -> list[str]:
    """Return the command that shows the superblock of a member; parse_superblock reads it. With --export it says nothing of the others."""
    return ["mdadm", "--examine", device]


def parse_superblock(text: str) -> t.Optional[Superblock]:
    """Return the superblock of `mdadm --examine`; None for none, a journal's, and one of version 0.90, which names no states."""
    fields = {name.strip(): value for name, _colon, value in (line.partition(" : ") for line in text.splitlines())}
    uuid, events, state = fields.get("Array UUID"), to_integer(fields.get("Events")), fields.get("Array State")
    place = _PLACE.fullmatch(fields.get("Device Role", ""))
    if not uuid or events is None or not state or place is None:
        return None
    missing = frozenset(role for role, letter in enumerate(state.split()[0]) if letter == ".")
    return Superblock(array_uuid(uuid), events, to_integer(place["role"]), missing, "Recovery Offset" in fields)


def members_of(text: str) -> tuple[str, ...]:
    """Return the nodes of the members of the array of `mdadm --detail --export`."""
    return tuple(re.findall(r"^MD_DEVICE_.*_DEV=(/.*)$", text, re.MULTILINE))


def array_uuid(uuid: str) -> str:
    """Return mdadm's `c872fca4:84f41c22:...` as libblkid writes it, `c872fca4-84f4-1c22-...`."""
    digits = uuid.replace(":", "")
    return "-".join(digits[start:end] for start, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))


def luks_command(device: str) -> list[str]:
    """Return the command whose output parse_luks reads; it asks for no key."""
    return ["cryptsetup", "luksDump", device]


def parse_luks(text: str) -> t.Optional[Luks]:
    """Return the header of `cryptsetup luksDump`, of LUKS 1 or 2; None when the text is none."""
    version = re.search(r"^Version:\s*([12])$", text, re.MULTILINE)
    if version is None:
        return None
    if version[1] == "2":
        cipher = re.search(r"^Data segments:.*?^\s+cipher:\s*(\S+)", text, re.MULTILINE | re.DOTALL)
        begin = re.search(r"^Data segments:.*?^\s+offset:\s*([0-9]+) \[bytes\]", text, re.MULTILINE | re.DOTALL)
        slots = len(re.findall(r"^\s+[0-9]+: luks2$", text, re.MULTILINE))
        return Luks(2, cipher[1] if cipher else None, slots, to_integer(begin[1]) if begin else None)
    name, mode = (re.search(rf"^Cipher {part}:\s*(\S+)$", text, re.MULTILINE) for part in ("name", "mode"))
    used = len(re.findall(r"^Key Slot [0-9]: ENABLED$", text, re.MULTILINE))
    payload = re.search(r"^Payload offset:\s*([0-9]+)$", text, re.MULTILINE)
    return Luks(1, f"{name[1]}-{mode[1]}" if name and mode else None, used, (to_integer(payload[1]) or 0) * 512 if payload else None)


def _devices(field: str) -> tuple[str, ...]:
    """Return the places of `/dev/sda2(0),tp_tdata(0)` without extents and brackets."""
    return tuple(_EXTENT.sub("", place).strip("[]") for place in field.split(",") if place)
