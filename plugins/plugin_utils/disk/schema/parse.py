# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The dynamic schema, a flat list as in the seed -> Schema: expressions evaluated, sizes in MiB, disks as positions.

Reads in passes, so that every mistake of a schema is found in one go: entries and their expressions, who contains whom, which
disks each may use, and then all the rest.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ....module_utils.storage import lvm, overhead
from ....module_utils.storage.filesystems import FILESYSTEMS, NOT_MOUNTED, SPELLINGS, SWAP
from ....module_utils.storage.raid import RaidLevel, least_legs, usual_legs
from ...common.errors import Mistakes, NoSolution, suggest
from ..model import Hardware, Schema, Space, SpaceType
from .disks import DiskNames, UnknownDisk, as_tiers, without_repetition
from .hardware import kind_of
from .memo import Memory
from .values import Bounds, Entry
from .yaql import Evaluator, ExpressionError, is_expression

_ALL = frozenset(SpaceType)
_CARRYING_FILES = _ALL - {SpaceType.VOLUME_GROUP, SpaceType.BIOS_GRUB}

KEYS: Mapping[str, frozenset[SpaceType]] = {
    **dict.fromkeys(("id", "type", "size", "min_size", "max_size", "weight"), _ALL),
    **dict.fromkeys(("best_with_disks", "disks", "avoid_disks", "none_order", "keep_data", "boot"), _ALL),
    **dict.fromkeys(("mount", "mount_options", "fs_type", "fs_options", "fs_label"), _CARRYING_FILES),
    **dict.fromkeys(("contains", "max_pvs"), frozenset({SpaceType.VOLUME_GROUP})),
    **dict.fromkeys(("level", "legs"), frozenset({SpaceType.RAID})),
    "per_disk": frozenset({SpaceType.PARTITION, SpaceType.PARTITIONS}),
    "encrypt": _ALL - {SpaceType.ESP, SpaceType.BIOS_GRUB},
}
"""Every key of the dynamic schema and the types that it makes sense for."""

_ID = re.compile(r"^[A-Za-z0-9_.+][A-Za-z0-9_.+-]{0,62}$")
_RESERVED_IDS = frozenset({"unallocated", ".", ".."})
_NO_MOUNT = frozenset({NOT_MOUNTED, SWAP})
_ALL_DISKS = "all"
_FLAT_TYPES = frozenset({SpaceType.LOGICAL_VOLUME, SpaceType.PARTITION, SpaceType.PARTITIONS})


def parse_schema(schema: t.Any, hardware: Hardware, memory: Memory | None = None, place: str = "spaces") -> Schema:
    """Return the schema as it is for this machine; `memory` serves machines alike. Nothing given is changed.

    Raises InputError with every mistake and its place (`spaces[3].min_size`), and NoSolution when the only fault is that
    minimums are over maximums.
    """
    mistakes = Mistakes()
    if not isinstance(schema, (list, tuple)):
        mistakes.add(place, f"is {kind_of(schema)}, but must be a list of spaces, each with 'id' and 'type'")
        mistakes.check()
    if not schema:
        mistakes.add(place, "is empty; there is nothing to plan")
        mistakes.check()
    return _Reader(hardware, memory or Memory(), mistakes).read(schema, place)


@dataclass(frozen=True)
class _Known:
    """An entry whose id and type are sound; `raw` is how it was written."""

    id: str
    type: SpaceType
    entry: Entry
    raw: Mapping[str, t.Any]


@dataclass(frozen=True)
class _Choice:
    allowed: frozenset[int]
    preferred_disks: tuple[frozenset[int], ...] = ()


@dataclass
class _Reader:
    hardware: Hardware
    memory: Memory
    mistakes: Mistakes
    warnings: list[str] = field(default_factory=list)
    contradictions: list[tuple[_Known, Bounds]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = DiskNames(self.hardware)
        self.evaluate = Evaluator(self.hardware.facts, self.memory)
        self.writable = frozenset(at for at, disk in enumerate(self.hardware.disks) if not disk.facts.get("read_only"))
        self.flat = False
        self.encrypted: frozenset[str] = frozenset()

    def read(self, schema: Sequence[t.Any], place: str) -> Schema:
        known = self._entries(schema, place)
        groups = self._groups(known)
        types = {item.type for item in known}
        self.flat = SpaceType.LOGICAL_VOLUME in types and types <= _FLAT_TYPES
        self.encrypted = _encrypted(known, groups)
        self._warn_of_read_only_disks()
        choices = self._choices(known, groups)
        self._check_mounts(known)
        spaces = tuple(self._space(item, choices[item.id], groups.get(item.id)) for item in known)
        if self.mistakes:
            for item, bounds in self.contradictions:
                self.mistakes.add(f"{item.entry.place}.min_size", _says(bounds))
        self.mistakes.check()
        if self.contradictions:
            raise _no_size_left(self.contradictions)
        return Schema(spaces=spaces, flat=self.flat, warnings=tuple(self.warnings))

    def _warn_of_read_only_disks(self) -> None:
        for position, disk in enumerate(self.hardware.disks):
            if position not in self.writable:
                self.warnings.append(f"{disk.id} is read-only, so nothing is planned for it")

    def _entries(self, schema: Sequence[t.Any], place: str) -> list[_Known]:
        known: dict[str, _Known] = {}
        for position, raw in enumerate(schema):
            item = self._entry(raw, f"{place}[{position}]")
            if item is None:
                continue
            if item.id in known:
                item.entry.wrong("id", f"{item.id!r} is the id of {known[item.id].entry.place} already; ids must differ")
                continue
            known[item.id] = item
        return list(known.values())

    def _entry(self, raw: t.Any, place: str) -> _Known | None:
        if not isinstance(raw, Mapping):
            self.mistakes.add(place, f"is {kind_of(raw)}, but must be a mapping with 'id' and 'type'")
            return None
        values = {str(key): self._evaluated(value, f"{place}.{key}") for key, value in raw.items()}
        entry = Entry(values, place, self.mistakes)
        for key in values:
            if key not in KEYS:
                entry.wrong(key, f"is no key of a space{suggest(key, KEYS)}")
        space_id, space_type = self._id(entry), self._type(entry)
        if space_type is not None:
            _check_keys(entry, space_type, values)
        if space_id is None or space_type is None:
            return None
        return _Known(space_id, space_type, entry, {str(key): value for key, value in raw.items()})

    def _evaluated(self, value: t.Any, place: str) -> t.Any:
        """Return the value with every expression in it replaced by its result; None for one that fails."""
        if is_expression(value):
            try:
                return self.evaluate(value)
            except ExpressionError as error:
                self.mistakes.add(place, str(error))
                return None
        if isinstance(value, Mapping):
            return {str(key): self._evaluated(item, f"{place}.{key}") for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._evaluated(item, f"{place}[{position}]") for position, item in enumerate(value)]
        return value

    def _id(self, entry: Entry) -> str | None:
        if "id" not in entry:
            entry.wrong("id", "is missing; every space needs an id")
            return None
        space_id = entry.text("id")
        if space_id is None:
            return None
        if space_id in _RESERVED_IDS:
            entry.wrong("id", f"{space_id!r} is reserved; choose another")
            return None
        if not _ID.match(space_id):
            entry.wrong("id", f"{space_id!r} cannot name a volume; use at most 63 letters, digits and _ . + - (not - in front)")
            return None
        return space_id

    def _type(self, entry: Entry) -> SpaceType | None:
        words = [space_type.value for space_type in SpaceType]
        if "type" not in entry:
            entry.wrong("type", f"is missing; it is one of {', '.join(words)}")
            return None
        word = entry.one_of("type", words)
        return None if word is None else SpaceType(word)

    def _groups(self, known: Sequence[_Known]) -> dict[str, str]:
        """Return the vg of every space that a vg contains."""
        by_id = {item.id: item for item in known}
        groups: dict[str, str] = {}
        for group in known:
            if group.type is SpaceType.VOLUME_GROUP:
                for position, member in enumerate(_members(group.entry)):
                    self._join(group, f"contains[{position}]", member, by_id, groups)
        if any(item.type is SpaceType.VOLUME_GROUP for item in known):
            for item in known:
                if item.type is SpaceType.LOGICAL_VOLUME and item.id not in groups:
                    self.mistakes.add(
                        item.entry.place, f"{item.id} is in no vg, though the schema has some; add it to the 'contains' of one"
                    )
        return groups

    def _join(self, group: _Known, key: str, member: t.Any, by_id: Mapping[str, _Known], groups: dict[str, str]) -> None:
        if not isinstance(member, str):
            group.entry.wrong(key, f"is {kind_of(member)}, but must be the id of an lv or a raid, or a mapping with 'id'")
        elif member not in by_id:
            group.entry.wrong(key, f"there is no space {member!r}{suggest(member, by_id)}")
        elif by_id[member].type not in (SpaceType.LOGICAL_VOLUME, SpaceType.RAID):
            group.entry.wrong(key, f"{member!r} is of type {by_id[member].type}; a vg contains lv and, to lie on them, raid")
        elif member in groups:
            twice = "twice in this vg" if groups[member] == group.id else f"in the vg {groups[member]!r} already"
            group.entry.wrong(key, f"{member!r} is {twice}; a space is in one vg")
        else:
            groups[member] = group.id

    def _choices(self, known: Sequence[_Known], groups: Mapping[str, str]) -> dict[str, _Choice]:
        """Return the disks of every space. What a vg contains lies where the vg lies; what all of that likes best, the vg does, too."""
        choices = {item.id: self._choice(item) for item in known}
        for item in known:
            if item.type is SpaceType.VOLUME_GROUP and not choices[item.id].preferred_disks:
                wanted = {choices[member].preferred_disks for member, group in groups.items() if group == item.id}
                choices[item.id] = _Choice(choices[item.id].allowed, wanted.pop() if len(wanted) == 1 else ())
        for item in known:
            if item.type is SpaceType.LOGICAL_VOLUME and item.id in groups:
                group, own = choices[groups[item.id]], choices[item.id]
                if not group.allowed <= own.allowed:
                    item.entry.wrong(
                        "avoid_disks" if "avoid_disks" in item.entry else "disks",
                        f"an lv lies on the disks of its vg; set this on {groups[item.id]!r}",
                    )
                choices[item.id] = _Choice(group.allowed, own.preferred_disks or group.preferred_disks)
        return choices

    def _choice(self, item: _Known) -> _Choice:
        allowed = self.writable
        if "disks" in item.entry:
            allowed &= self._positions(item.entry, "disks", item.entry.raw("disks"))
        if "avoid_disks" in item.entry:
            allowed -= self._positions(item.entry, "avoid_disks", item.entry.raw("avoid_disks"))
        if not allowed:
            self.warnings.append(f"{item.entry.place}: no disk of this machine is left for {item.id}")
        if "best_with_disks" not in item.entry:
            return _Choice(allowed)
        wanted = as_tiers(item.raw["best_with_disks"], item.entry.raw("best_with_disks"))
        tiers = without_repetition(self._positions(item.entry, "best_with_disks", tier) & allowed for tier in wanted)
        if not tiers:
            self.warnings.append(f"{item.entry.place}.best_with_disks: no disk matches, so {item.id} goes wherever there is room")
        return _Choice(allowed, tiers)

    def _positions(self, entry: Entry, key: str, value: t.Any) -> frozenset[int]:
        try:
            return self.names.positions(value)
        except UnknownDisk as error:
            entry.wrong(key, str(error))
            return frozenset(range(len(self.hardware.disks)))

    def _check_mounts(self, known: Sequence[_Known]) -> None:
        seen: dict[str, str] = {}
        for item in known:
            mount = item.entry.text("mount")
            if mount is None or mount in _NO_MOUNT:
                continue
            if not mount.startswith("/") or any(character.isspace() for character in mount):
                item.entry.wrong("mount", f"{mount!r} must be an absolute path without spaces, or none")
            elif mount in seen:
                item.entry.wrong("mount", f"{mount!r} is where {seen[mount]!r} is mounted already")
            seen.setdefault(mount, item.id)

    def _space(self, item: _Known, choice: _Choice, group: str | None) -> Space:
        entry = item.entry
        bounds = entry.bounds(self._whole(item, choice.allowed))
        if bounds.contradictory:
            self.contradictions.append((item, bounds))
        level = self._level(item)
        fs_type = self._fs_type(entry)
        return Space(
            id=item.id,
            type=item.type,
            place=entry.place,
            min_size=bounds.least,
            max_size=bounds.most,
            weight=entry.weight(),
            allowed=choice.allowed,
            preferred_disks=choice.preferred_disks,
            volume_group=group if item.type is SpaceType.LOGICAL_VOLUME else None,
            contains=tuple(member for member in _members(entry) if isinstance(member, str)),
            level=level,
            legs=self._legs(item, level, len(choice.allowed)),
            per_disk=entry.flag("per_disk"),
            max_pvs=entry.count("max_pvs", 1),
            none_order=entry.flag("none_order"),
            boot=entry.flag("boot"),
            encrypt=entry.flag("encrypt"),
            keep_data=entry.flag("keep_data"),
            mount=entry.text("mount"),
            mount_options=entry.text("mount_options"),
            fs_type=fs_type,
            fs_options=entry.text("fs_options"),
            fs_label=entry.text("fs_label"),
        )

    def _whole(self, item: _Known, allowed: frozenset[int]) -> int:
        """Return what a percentage is of: the room of the disks that a space may use, for one on each disk that of the smallest."""
        rooms = [self._room(item, self.hardware.disks[position].size) for position in allowed]
        return min(rooms, default=0) if item.entry.flag("per_disk") else sum(rooms)

    def _room(self, item: _Known, size: int) -> int:
        if self.flat:
            return size
        if item.type not in (SpaceType.VOLUME_GROUP, SpaceType.LOGICAL_VOLUME):
            return overhead.usable(size)
        return lvm.pv_extents(overhead.usable(size), overhead.pv_head(item.id in self.encrypted)) * lvm.EXTENT

    def _level(self, item: _Known) -> RaidLevel | None:
        if item.type is not SpaceType.RAID:
            return None
        words = [level.value for level in RaidLevel]
        if "level" not in item.entry:
            item.entry.wrong("level", f"is missing; it is one of {', '.join(words)}")
            return None
        word = item.entry.one_of("level", words)
        return None if word is None else RaidLevel(word)

    def _legs(self, item: _Known, level: RaidLevel | None, disks: int) -> int:
        if item.type is not SpaceType.RAID or level is None:
            return 0
        if "legs" not in item.entry:
            return usual_legs(level)
        everything = item.entry.raw("legs") == _ALL_DISKS
        legs = disks if everything else item.entry.count("legs", 1)
        if legs is None:
            return 0
        says = f"all is {legs} here" if everything else f"{legs} is too few"
        if legs < least_legs(level):
            item.entry.wrong("legs", f"{says}; {level} needs {least_legs(level)} disks or more")
        elif level is RaidLevel.RAID10 and legs % 2:
            if not everything:
                item.entry.wrong("legs", f"{legs} is odd; raid10 is made of pairs")
            return legs - 1
        return legs

    def _fs_type(self, entry: Entry) -> str | None:
        """Return the kind of file system, one that disk_layout makes, its label checked."""
        word, label = entry.text("fs_type"), entry.text("fs_label")
        if word is None:
            return None
        known = FILESYSTEMS.get(word.lower())
        if known is None:
            meant = SPELLINGS.get(word.lower(), word.lower())
            entry.wrong("fs_type", f"{word!r} cannot be made; there are {', '.join(FILESYSTEMS)}{suggest(meant, FILESYSTEMS)}")
            return None
        if label is not None and len(label.encode()) > known.label_length:
            entry.wrong("fs_label", f"{label!r} is too long; a label of {known.name} has at most {known.label_length} bytes")
        return known.name


def _check_keys(entry: Entry, space_type: SpaceType, values: Mapping[str, t.Any]) -> None:
    for key in values:
        if key in entry and space_type not in KEYS.get(key, SpaceType):
            types = ", ".join(sorted(KEYS[key]))
            entry.wrong(key, f"makes no sense for the type {space_type}; it is for {types}")


def _members(entry: Entry) -> list[t.Any]:
    """Return what a vg contains: ids, or whatever stands where an id should be."""
    members = entry.raw("contains")
    if members is None:
        return []
    if not isinstance(members, (list, tuple)):
        return [members]
    return [member.get("id") if isinstance(member, Mapping) else member for member in members]


def _encrypted(known: Sequence[_Known], groups: Mapping[str, str]) -> frozenset[str]:
    """Return the vgs that lie on LUKS, because they or what is in them are to be encrypted, and all that is in them."""
    asked = {groups.get(item.id, item.id) for item in known if item.entry.raw("encrypt") is True}
    return frozenset(item.id for item in known if groups.get(item.id, item.id) in asked)


def _says(bounds: Bounds) -> str:
    return f"{bounds.least} MiB is over max_size, which is {bounds.most} MiB"


def _no_size_left(contradictions: Sequence[tuple[_Known, Bounds]]) -> NoSolution:
    lines = [f"{item.entry.place}.min_size: {_says(bounds)}" for item, bounds in contradictions]
    item, bounds = contradictions[0]
    most = bounds.most or 0
    conflict = {
        "short": bounds.least - most,
        "constraints": [
            {"name": f"min:{item.id}", "says": f"{item.id} needs at least {bounds.least} MiB"},
            {"name": f"max:{item.id}", "says": f"{item.id} may have at most {most} MiB"},
        ],
        "remedies": [
            f"reduce the minimum of {item.id} from {bounds.least} to {most} MiB",
            f"raise the maximum of {item.id} from {most} to {bounds.least} MiB",
        ],
    }
    return NoSolution("\n".join(lines), conflict)
