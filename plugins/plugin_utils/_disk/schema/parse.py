# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The dynamic schema, a flat list as in the seed -> Schema: expressions evaluated, sizes in MiB, disks as positions.

Reads in passes, so that every mistake of a schema is found in one go: entries and their expressions, which space contains which, which
disks each may use, and then all the rest.
"""

from __future__ import annotations

import math
import typing as t
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import kind_of
from ....module_utils._data.words import listed
from ....module_utils._storage import btrfs, zfs
from ....module_utils._storage.filesystems import SECTOR
from ....module_utils._storage.raid import WRITE_MOSTLY, RaidLevel, array_options, least_legs, usual_legs, write_mostly_mistake
from ..model import Dataset, Hardware, Schema, Space, SpaceType, Subvolume
from . import lvm
from .alike import groups_of_alike
from .btrfs import legs_of_btrfs, with_btrfs
from .containers import groups_of, pools_of
from .copies import check_copies, copies
from .disks import DiskNames, UnknownDisk, as_tiers, without_repetition
from .drives import on_one_drive
from .entry import Entry
from .keep import kept_at
from .least import fitting_sectors
from .memo import Memory
from .mounts import NO_MOUNT
from .no_plan import no_size_left, no_twins, over_maximum
from .options import check_options
from .percent import Percentages
from .relations import related
from .sizes import Amount
from .values import ALL_DISKS, KEYS_OF_SOME, SPACE, Bounds, Mirror, bounds_of
from .yaql import Evaluator, ExpressionError, is_expression
from .zpool import check_least_zpool, check_zpool, legs_of_zpool, parts_of

_AS_THEY_ARE = (
    *("level", "spares", "per_disk", "none_order", "optional", "boot", "encrypt", "unlock", "keep_data"),
    *("mount", "mount_options", "fs_type", "fs_options", "fs_label", "partition_type", "partition_label"),
    *("vdev", "vdevs", "ashift", "properties"),
    *lvm.AS_THEY_ARE,
)
"""Keys that the model takes from the table without more ado."""
_PLAIN = frozenset({str, int, float, bool, type(None)})
_VOLUMES = frozenset({SpaceType.LOGICAL_VOLUME, SpaceType.THIN_POOL, SpaceType.THIN_VOLUME})
"""What a vg contains."""
_ON_LEGS = frozenset({SpaceType.RAID, SpaceType.BTRFS, SpaceType.ZPOOL})
_FLAT_TYPES = frozenset({SpaceType.LOGICAL_VOLUME, SpaceType.PARTITION, SpaceType.PARTITIONS})


def parse_schema(
    schema: t.Any, hardware: Hardware, memory: Memory | None = None, place: str = "schema", alone: Collection[str] = ()
) -> Schema:
    """Return the schema as it is for this machine; `memory` serves machines alike. Nothing given is changed.

    `alone` are the ids of spaces for whose mirrors there is no room. Raises InputError with every mistake and its place
    (`schema[3].min_size`), and NoSolution when the only fault is that minimums are over maximums, or disks are not alike.
    """
    mistakes = Mistakes()
    if not isinstance(schema, (list, tuple)):
        mistakes.add(place, f"is {kind_of(schema)}; must be a list of spaces, each with id and type")
        mistakes.check()
    if not schema:
        mistakes.add(place, "is empty; there is nothing to plan")
        mistakes.check()
    return _Reader(hardware, memory or Memory(), mistakes, frozenset(alone)).read(schema, place)


@dataclass(frozen=True)
class _Choice:
    allowed: frozenset[int]
    preferred_disks: tuple[frozenset[int], ...] = ()


@dataclass
class _Reader:
    hardware: Hardware
    memory: Memory
    mistakes: Mistakes
    alone: frozenset[str] = frozenset()
    mirrored: list[str] = field(default_factory=list)
    on_no_mirror: list[tuple[str, bool]] = field(default_factory=list)
    """Spaces that lie on one disk though a mirror is wanted where possible; whether there are twins."""
    without_twins: list[Entry] = field(default_factory=list)
    choices: dict[str, _Choice] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    contradictions: list[tuple[Entry, Bounds]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = DiskNames(self.hardware)
        self.whole: dict[int, str] = {}
        self.evaluate = Evaluator(self.hardware.facts, self.memory)
        self.flat = False
        self.apart: dict[str, tuple[str, ...]] = {}
        self.together: dict[str, tuple[str, ...]] = {}
        self.encrypted: frozenset[str] = frozenset()
        self.extents: dict[str, int] = {}
        self.pools: dict[str, str] = {}
        self.parts: dict[str, tuple[str, zfs.Part]] = {}

    def read(self, schema: Sequence[t.Any], place: str) -> Schema:
        entries = self._entries(schema, place)
        self._leave_out_members(entries)
        entries = [entry for entry in entries if entry.id not in self.left_out]
        self._take_whole_disks(entries)
        entries = [made for entry in entries for made in self._mirrored(entry, entries)]
        # An entry whose id or type is wrong is checked like the others, so that all its mistakes are reported.
        known = [entry for entry in entries if entry.id and entry.type is not None]
        groups = groups_of(known, self.left_out, self.mistakes)
        self.pools = pools_of(known, self.left_out, self.mistakes)
        groups |= {name: groups[pool] for name, pool in self.pools.items() if pool in groups}
        lvm.check_kept(known, groups, self.mistakes)
        caches = lvm.caches_of(known, groups, self.left_out, self.mistakes)
        self.parts = parts_of(known, self.left_out, self.mistakes)
        entries = [entry for entry in entries if entry.id not in self.left_out]
        types = {entry.type for entry in known}
        self.flat = SpaceType.LOGICAL_VOLUME in types and types <= _FLAT_TYPES
        self.encrypted = _encrypted(known, groups | caches)
        self._check_unlock(known, groups)
        by_id = {item.id: item for item in known}
        self.extents = {item.id: by_id[groups.get(item.id, item.id)].values["extent_size"] for item in known}
        choices = self._choices(entries, groups)
        for entry in entries:
            whole = entry.values["cache_of"] or entry.values["log_of"]
            if whole in self.left_out:
                self.left_out.setdefault(entry.id, f"left out because {whole} is")
        self._leave_out_members(entries)
        entries = [entry for entry in entries if entry.id not in self.left_out]
        self.on_no_mirror = [(name, has_twins) for name, has_twins in self.on_no_mirror if name not in self.left_out]
        self._check_mounts(entries)
        self.apart = {entry.place: related(entry, "apart_from", entries, groups, self.left_out, self.mistakes) for entry in entries}
        self.together = {entry.place: related(entry, "together_with", entries, groups, self.left_out, self.mistakes) for entry in entries}
        check_copies(entries, groups, self.mistakes)
        legs = {entry.place: self._count_legs(entry, choices[entry.place]) for entry in entries}
        percentages = Percentages(
            self.hardware.disks,
            self.hardware.drives,
            self.hardware.firmware,
            [entry for entry in entries if entry.id and entry.type not in (None, SpaceType.DISK)],
            groups,
            {entry.id: choices[entry.place].allowed for entry in entries},
            {entry.id: legs[entry.place] for entry in entries},
            self.extents,
            self.encrypted,
            self.flat,
        )
        spaces = [self._space(entry, choices[entry.place], groups.get(entry.id), legs[entry.place], percentages) for entry in entries]
        lvm.check_volumes(spaces, self.mistakes)
        if self.mistakes:
            for entry, bounds in self.contradictions:
                self.mistakes.add(f"{entry.place}.min_size", over_maximum(entry, bounds))
        self.mistakes.check()
        if self.contradictions:
            raise no_size_left(self.contradictions)
        if self.without_twins:
            raise no_twins(self.without_twins, on_one_drive(self.hardware))
        if not spaces:
            self.mistakes.add(place, "has optional spaces only, all of which are left out; there is nothing to plan")
            self.mistakes.check()
        return Schema(
            spaces=tuple(copy for space, entry in zip(spaces, entries, strict=True) for copy in copies(space, entry.values["count"])),
            flat=self.flat,
            # A machine with one disk can mirror nothing, which its plan shows.
            warnings=(
                *(_without_mirror(self.on_no_mirror, on_one_drive(self.hardware)) if self.hardware.disks[1:] else ()),
                *self.warnings,
            ),
            mirrored=tuple(self.mirrored),
            left_out=tuple(self.left_out.items()),
        )

    def _entries(self, schema: Sequence[t.Any], place: str) -> list[Entry]:
        entries: list[Entry] = []
        first: dict[str, str] = {}
        for position, raw in enumerate(schema):
            entry = self._entry(raw, f"{place}[{position}]")
            if entry is None:
                continue
            if entry.id and first.setdefault(entry.id, entry.place) != entry.place:
                self.mistakes.add(f"{entry.place}.id", f"{entry.id!r} is already the id of {first[entry.id]}; ids must differ")
                entry = replace(entry, id="")
            entries.append(entry)
        return entries

    def _entry(self, raw: t.Any, place: str) -> Entry | None:
        if not isinstance(raw, Mapping):
            SPACE.read_nested(raw, place, self.mistakes)
            return None
        raw = {str(key): value for key, value in raw.items()}
        given = {key: self._evaluated(value, f"{place}.{key}") for key, value in raw.items()}
        nothing = [key for key, value in given.items() if value is None and is_expression(raw[key])]
        values = SPACE.read_nested(given, place, self.mistakes)
        space_type = None if self.mistakes.has(f"{place}.type") else values["type"]
        self._check_keys(given, space_type, place)
        if values["keep"] is not None:
            if given.get("keep_data") is False:
                self.mistakes.add(f"{place}.keep_data", "is false together with keep; drop one of them")
            values = {**values, "keep_data": True}
        if values["subvolumes"] or space_type is SpaceType.BTRFS:
            values = with_btrfs(values, space_type, place, self.mistakes)
        for key in nothing:
            if values["optional"] and values["id"]:
                self.left_out[values["id"]] = f"{key}: the expression gives nothing here"
            elif not self.mistakes.has(f"{place}.{key}"):
                says = "the expression gives nothing here; it must give a value, or the space be one that may be left out (optional: true)"
                self.mistakes.add(f"{place}.{key}", says)
        return Entry(values["id"], space_type, place, values, given, raw)

    def _evaluated(self, value: t.Any, place: str) -> t.Any:
        """Return the value with every expression in it replaced by its result; None for one that fails."""
        if is_expression(value):
            try:
                return self.evaluate(value)
            except ExpressionError as error:
                self.mistakes.add(place, str(error))
                return None
        if value.__class__ in _PLAIN:
            return value
        if isinstance(value, Mapping):
            return {str(key): self._evaluated(item, f"{place}.{key}") for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._evaluated(item, f"{place}[{position}]") for position, item in enumerate(value)]
        return value

    def _leave_out_members(self, entries: Sequence[Entry]) -> None:
        """Leave out what is in a vg or a thin pool that is left out."""
        for container in (SpaceType.VOLUME_GROUP, SpaceType.THIN_POOL):
            for entry in entries:
                for member in entry.values["contains"] if entry.type is container and entry.id in self.left_out else ():
                    if isinstance(member, str):
                        self.left_out.setdefault(member, f"its {container} is left out")

    def _take_whole_disks(self, entries: Sequence[Entry]) -> None:
        """Note the disks that are left whole for a space: no other space may use them."""
        for entry in entries:
            if entry.type is SpaceType.DISK and entry.id:
                chosen = self._choice(entry).allowed
                shared = sorted({self.whole[position] for position in chosen if position in self.whole})
                if shared and not self.mistakes.has(f"{entry.place}.disks"):
                    says = f"gives disks that {listed(shared)} takes whole; exclude them with disks or avoid_disks"
                    self.mistakes.add(f"{entry.place}.disks", says)
                self.whole |= dict.fromkeys(chosen, entry.id)

    def _mirrored(self, entry: Entry, entries: Sequence[Entry]) -> list[Entry]:
        """Return the array that a space becomes where a mirror is wanted and possible, for a vg the vg and the array below it."""
        wish = entry.values["mirror"]
        if wish is None or not entry.id or entry.type not in KEYS_OF_SOME["mirror"] or not self._may_be_mirrored(entry, entries):
            return [entry]
        twins = self._partners(self._choice(entry), 2)
        if not twins and wish == Mirror.REQUIRED:
            self.without_twins.append(entry)
        if not twins or (wish == Mirror.WHEN_POSSIBLE and entry.id in self.alone):
            self.on_no_mirror.append((entry.id, bool(twins)))
            # A vg over several disks would be lost with any of them.
            alone = {"max_pvs": 1} if entry.type is SpaceType.VOLUME_GROUP else {}
            single = SpaceType.PARTITION if entry.type is SpaceType.BTRFS else entry.type
            return [replace(entry, type=single, values={**entry.values, **alone})]
        if wish == Mirror.WHEN_POSSIBLE:
            self.mirrored.append(entry.id)
        del self.choices[entry.place]
        on_twins = {"disks": [self.hardware.disks[at].id for at in twins], "avoid_disks": None, "best_with_disks": None}
        array = {"type": SpaceType.RAID, "level": RaidLevel.RAID1, "legs": 2, **on_twins}
        if entry.type is SpaceType.BTRFS:
            return [replace(entry, values={**entry.values, **array, "type": SpaceType.BTRFS})]
        if entry.values["log_of"] is not None:
            # ZFS mirrors its logs itself.
            return [replace(entry, values={**entry.values, **on_twins, "legs": 2})]
        if entry.type is SpaceType.PARTITION:
            return [replace(entry, type=SpaceType.RAID, values={**entry.values, **array})]
        below = f"{entry.id}_mirror"
        unbounded = dict.fromkeys(("size", "min_size", "max_size", "max_pvs")) | {"contains": (*entry.values["contains"], below)} | on_twins
        group = replace(entry, values={**entry.values, **unbounded})
        nothing = {
            "contains": (),
            "max_pvs": None,
            "encrypt": False,
            "unlock": (),
            "optional": False,
            "apart_from": (),
            "together_with": (),
        }
        values = {**entry.values, **array, "id": below, **nothing}
        return [group, Entry(below, SpaceType.RAID, f"{entry.place}.mirror", values, {}, entry.raw, mirror_of=entry.id)]

    def _may_be_mirrored(self, entry: Entry, entries: Sequence[Entry]) -> bool:
        """Return whether nothing stands against a mirror; what does is a mistake."""
        place, arrays = f"{entry.place}.mirror", {other.id for other in entries if other.type is SpaceType.RAID}
        for key in (
            "per_disk",
            "keep_data",
            "partition_type",
            "partition_label",
            *(("level", "legs") if entry.type is SpaceType.BTRFS else ()),
        ):
            if entry.values[key] and entry.given.get(key) is not None:
                self.mistakes.add(place, f"cannot be combined with {key}; leave one of them out")
        on = [member for member in entry.values["contains"] if member in arrays]
        if on:
            self.mistakes.add(place, f"{entry.id} already lies on the array {on[0]!r}; leave mirror out")
        return not self.mistakes.has(place)

    def _partners(self, choice: _Choice, least: int) -> tuple[int, ...]:
        """Return disks alike, `least` or more: those liked best, then the group that has most room, then that which comes first."""
        disks = self.hardware.disks
        groups = [group for group in groups_of_alike(disks, choice.allowed) if self._count_drives(group) >= least]
        liked = [min((at for at, tier in enumerate(choice.preferred_disks) if tier & set(group)), default=len(disks)) for group in groups]
        room = [sum(disks[at].size for at in group) for group in groups]
        best = min(range(len(groups)), key=lambda at: (liked[at], -room[at], groups[at]), default=None)
        return () if best is None else groups[best]

    def _count_drives(self, positions: Iterable[int]) -> int:
        """Return on how many drives disks are: what is to survive the loss of one has a single part on each."""
        return len({self.hardware.drives[position] for position in positions})

    def _check_keys(self, given: Mapping[str, t.Any], space_type: SpaceType | None, place: str) -> None:
        for key, value in given.items():
            if value is not None and space_type is not None and space_type not in KEYS_OF_SOME.get(key, SpaceType):
                types = ", ".join(sorted(KEYS_OF_SOME[key]))
                self.mistakes.add(f"{place}.{key}", f"makes no sense for the type {space_type}; it is for {types}")

    def _choices(self, entries: Sequence[Entry], groups: Mapping[str, str]) -> dict[str, _Choice]:
        """Return the disks of every space by its place.

        What a vg contains lies where the vg lies; what all of that likes best, the vg does, too.
        """
        choices = {entry.place: self._choice(entry) for entry in entries}
        places = {entry.id: entry.place for entry in entries if entry.id}
        for entry in entries:
            if entry.type is SpaceType.VOLUME_GROUP and not choices[entry.place].preferred_disks:
                wanted = {choices[places[member]].preferred_disks for member, group in groups.items() if group == entry.id}
                choices[entry.place] = _Choice(choices[entry.place].allowed, wanted.pop() if len(wanted) == 1 else ())
        for entry in entries:
            if entry.type in _VOLUMES and entry.id in groups and entry.id not in self.left_out:
                group, own = choices[places[groups[entry.id]]], choices[entry.place]
                if not group.allowed <= own.allowed:
                    key = "disks" if entry.given.get("avoid_disks") is None else "avoid_disks"
                    self.mistakes.add(f"{entry.place}.{key}", f"a volume lies on the disks of its vg; set this on {groups[entry.id]!r}")
                choices[entry.place] = _Choice(group.allowed, own.preferred_disks or group.preferred_disks)
        return choices

    def _choice(self, entry: Entry) -> _Choice:
        if entry.place not in self.choices:
            self.choices[entry.place] = self._chosen(entry)
        return self.choices[entry.place]

    def _chosen(self, entry: Entry) -> _Choice:
        choice = self._by_names(entry)
        if not entry.values["alike"] or entry.type not in _ON_LEGS:
            return choice
        level, legs = entry.values["level"], entry.values["legs"]
        if entry.type is SpaceType.ZPOOL:
            fewest = zfs.LEAST_WIDTH[entry.values["vdev"] or zfs.Vdev.MIRROR] * (entry.values["vdevs"] or 1)
            least = fewest if legs == ALL_DISKS else legs or fewest
        else:
            least = 2 if legs == ALL_DISKS or level is None else (legs or _usual_legs(entry, level))
        partners = frozenset(self._partners(choice, (least + entry.values["spares"]) * (entry.values["count"] or 1)))
        if choice.allowed and not partners:
            self.without_twins.append(entry)
            return choice
        return _Choice(partners, without_repetition(tier & partners for tier in choice.preferred_disks))

    def _by_names(self, entry: Entry) -> _Choice:
        allowed, place, values = frozenset(range(len(self.hardware.disks))), entry.place, entry.values
        if values["disks"] is not None:
            allowed &= self._positions(f"{place}.disks", values["disks"], self.names.positions)
        if values["avoid_disks"] is not None:
            allowed -= self._positions(f"{place}.avoid_disks", values["avoid_disks"])
        if entry.type is not SpaceType.DISK:
            allowed = allowed.difference(self.whole)
        if not allowed and values["optional"] and entry.id:
            self.left_out[entry.id] = "no disk of this machine is left for it"
        elif not allowed:
            self.warnings.append(f"{place}: no disk of this machine is left for {entry.id}")
        if values["best_with_disks"] is None or self.mistakes.concern(f"{place}.best_with_disks"):
            return _Choice(allowed)
        wanted = as_tiers(entry.raw["best_with_disks"], values["best_with_disks"])
        tiers = without_repetition(self._positions(f"{place}.best_with_disks", tier) & allowed for tier in wanted)
        if not tiers:
            self.warnings.append(f"{place}.best_with_disks: no disk matches, so {entry.id} goes wherever there is room")
        return _Choice(allowed, tiers)

    def _positions(self, place: str, value: t.Any, find: Callable[[t.Any], frozenset[int]] | None = None) -> frozenset[int]:
        try:
            return (find or self.names.positions_in_use)(value)
        except UnknownDisk as error:
            self.mistakes.add(place, str(error))
            return frozenset(range(len(self.hardware.disks)))

    def _check_mounts(self, entries: Sequence[Entry]) -> None:
        first: dict[str, str] = {}
        for entry in entries:
            inside = [(key, at) for key in ("subvolumes", "datasets") for at in range(len(entry.values[key]))]
            places = [f"{entry.place}.mount", *(f"{entry.place}.{key}[{at}].mount" for key, at in inside)]
            for place, values in zip(places, (entry.values, *(entry.values[key][at] for key, at in inside)), strict=True):
                mount = values["mount"]
                if mount in first:
                    self.mistakes.add(place, f"{mount!r} is already the mount point of {first[mount]!r}")
                elif mount is not None and mount not in NO_MOUNT:
                    first[mount] = entry.id if values is entry.values else f"{values['name']} of {entry.id}"

    def _count_legs(self, entry: Entry, choice: _Choice) -> int:
        if entry.type in _ON_LEGS:
            return self._legs(entry, self._count_drives(choice.allowed))
        return entry.values["legs"] if isinstance(entry.values["legs"], int) else 0

    def _space(self, entry: Entry, choice: _Choice, group: str | None, legs: int, percentages: Percentages) -> Space:
        values = entry.values

        def relative(amount: Amount) -> int:
            if self.mistakes or entry.type is None:
                # Of a schema with mistakes only these are said, so any room will do.
                return math.floor(amount.number * sum(self.hardware.disks[disk].size for disk in choice.allowed) / 100)
            return percentages.mib(entry, amount)

        bounds = bounds_of(values, relative, entry.place, self.mistakes)
        if bounds.contradictory:
            self.contradictions.append((entry, bounds))
        least, most = (values["size"] or values[key] for key in ("min_size", "max_size"))
        check_options(entry, self.mistakes)
        if entry.type is SpaceType.ZPOOL:
            check_zpool(entry, self.mistakes)
        if choice.allowed and not bounds.contradictory:
            choice = self._with_room(entry, choice, bounds, legs, group)
        zpool, part = self.parts.get(entry.id, (None, None))
        return Space(
            id=entry.id,
            type=entry.type or SpaceType.LOGICAL_VOLUME,
            place=entry.place,
            min_size=bounds.least,
            max_size=bounds.most,
            min_percentage="" if least is None else least.percentage,
            max_percentage="" if most is None else most.percentage,
            weight=values["weight"],
            allowed=choice.allowed,
            sector=max((self.hardware.disks[disk].logical_block for disk in choice.allowed), default=SECTOR),
            disks_given=_disks_given(entry.raw),
            preferred_disks=choice.preferred_disks,
            volume_group=group if entry.type in _VOLUMES else None,
            thin_pool=self.pools.get(entry.id) if entry.type is SpaceType.THIN_VOLUME else None,
            contains=tuple(member for member in values["contains"] if isinstance(member, str) and member not in self.left_out),
            legs=legs,
            mirror_of=entry.mirror_of,
            zpool=zpool,
            zpool_part=part,
            kept_at=kept_at(values, entry.type, entry.place, self.hardware, choice.allowed, self.mistakes),
            apart_from=self.apart[entry.place],
            together_with=self.together[entry.place],
            priority=self._priority(entry),
            subvolumes=tuple(Subvolume(**subvolume) for subvolume in values["subvolumes"]),
            datasets=tuple(Dataset(**dataset) for dataset in values["datasets"]),
            array=array_options(values),
            write_mostly=self._write_mostly(entry),
            **{key: values[key] for key in _AS_THEY_ARE}
            | ({} if zpool is None else {"cache_of": None})
            | ({"encrypt": True} if _shares_encryption(entry) and entry.id in self.encrypted else {}),
        )

    def _write_mostly(self, entry: Entry) -> frozenset[int] | None:
        values, place = entry.values, f"{entry.place}.{WRITE_MOSTLY}"
        if values[WRITE_MOSTLY] is None:
            return None
        slow = self._positions(place, values[WRITE_MOSTLY])
        legs = values["legs"] if isinstance(values["legs"], int) else len(self.hardware.disks)
        # How many of them it lies on is not known yet, and where it lies on these alone it has none.
        says = write_mostly_mistake(values["level"], legs + 1, 1 if slow else 0, values["spares"])
        if says is not None:
            self.mistakes.add(place, says)
        return slow

    def _legs(self, entry: Entry, disks: int) -> int:
        if entry.type is SpaceType.ZPOOL:
            return legs_of_zpool(entry, disks, self.mistakes)
        level, legs, place = entry.values["level"], entry.values["legs"], f"{entry.place}.legs"
        if level is None:
            if not self.mistakes.has(f"{entry.place}.level"):
                self.mistakes.add(f"{entry.place}.level", f"is missing; it is one of {', '.join(RaidLevel)}")
            return 0
        if level is RaidLevel.RAID0 and entry.values["spares"]:
            self.mistakes.add(
                f"{entry.place}.spares", "raid0 does not survive the loss of a disk, so a spare is of no use; leave spares out"
            )
        for key, says in array_options(entry.values).mistakes(level):
            self.mistakes.add(f"{entry.place}.{key}", says)
        if entry.type is SpaceType.BTRFS:
            return legs_of_btrfs(entry, level, disks, self.mistakes)
        if legs is None:
            return usual_legs(level)
        everything = legs == ALL_DISKS
        count: int = disks // (entry.values["count"] or 1) - entry.values["spares"] if everything else legs
        if count < least_legs(level):
            without = f" without {entry.values['spares']} spares" if entry.values["spares"] else ""
            says = f"all is {count} here{without}" if everything else f"{count} is too few"
            self.mistakes.add(place, f"{says}; {level} needs {least_legs(level)} disks or more")
        elif level is RaidLevel.RAID10 and count % 2:
            if not everything:
                self.mistakes.add(place, f"{count} is odd; raid10 is made of pairs")
            return count - 1
        return count

    def _with_room(self, entry: Entry, choice: _Choice, bounds: Bounds, legs: int, group: str | None) -> _Choice:
        """Return the disks on which a space is no smaller than what it is made of and what is made on it; a vg chooses for its volumes."""
        if entry.type is SpaceType.ZPOOL:
            if bounds.most is not None and not entry.values["keep_data"]:
                check_least_zpool(entry, bounds.most, legs, self.mistakes)
            return choice
        disks = self.hardware.disks
        sectors = {disks[disk].logical_block for disk in choice.allowed}
        extent = None if group is None else self.extents[entry.id]
        fitting = fitting_sectors(entry, bounds.most, legs, extent, {max(sectors)} if group else sectors, self.mistakes)
        if group is not None or not fitting:
            return choice
        return replace(choice, allowed=frozenset(disk for disk in choice.allowed if disks[disk].logical_block in fitting))

    def _check_unlock(self, known: Sequence[Entry], groups: Mapping[str, str]) -> None:
        """Note what says how to open what is not encrypted, or otherwise than another of the same group, which is opened as a whole."""
        first: dict[str, Entry] = {}
        for entry in known:
            unlock = entry.values["unlock"]
            other = first.setdefault(groups.get(entry.id, entry.id), entry) if unlock else entry
            if unlock and entry.id not in self.encrypted:
                self.mistakes.add(f"{entry.place}.unlock", "says what opens LUKS, so it needs encrypt: true")
            elif unlock and other.values["unlock"] != unlock:
                says = f"differs from that of {other.id!r}, with which it lies in one group; groups are encrypted, and opened, as a whole"
                self.mistakes.add(f"{entry.place}.unlock", says)

    def _priority(self, entry: Entry) -> int:
        if entry.given.get("priority") is not None and not entry.values["optional"]:
            says = "says in which order optional spaces are left out, so it needs optional: true"
            self.mistakes.add(f"{entry.place}.priority", says)
        return int(entry.values["priority"])


def _disks_given(raw: Mapping[str, t.Any]) -> str:
    """Return what says which disks a space may use, on one line."""
    given = {key: raw[key] for key in ("disks", "avoid_disks", "alike", "mirror") if raw.get(key) not in (None, False)}
    return "; ".join(f"{key}: {' '.join(_in_words(value).split())}" for key, value in given.items())


def _in_words(value: t.Any) -> str:
    if value is True:
        return "true"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _usual_legs(entry: Entry, level: RaidLevel) -> int:
    return btrfs.LEVELS.get(level, 2) if entry.type is SpaceType.BTRFS else usual_legs(level)


def _shares_encryption(entry: Entry) -> bool:
    """Return whether a space lies on LUKS where what it belongs together with does: a vg and the caches of its volumes."""
    return entry.type is SpaceType.VOLUME_GROUP or entry.values["cache_of"] is not None


def _encrypted(known: Sequence[Entry], groups: Mapping[str, str]) -> frozenset[str]:
    """Return the vgs that lie on LUKS, because they or what is in them are to be encrypted, and all that is in them."""
    asked = {groups.get(item.id, item.id) for item in known if item.values["encrypt"]}
    return frozenset(item.id for item in known if groups.get(item.id, item.id) in asked)


def _without_mirror(spaces: Sequence[tuple[str, bool]], shared: str) -> Iterator[str]:
    """Give the warnings about spaces on one disk that were to be mirrored if possible, those of one reason together."""
    on_one_drive = f" ({shared})" if shared else ""
    for twins, reason in ((False, "no two of the disks that {} may use are alike"), (True, "there is no room to mirror {}")):
        names = [name for name, has_twins in spaces if has_twins == twins]
        if names:
            one = len(names) == 1
            it = "it" if one else "them" if twins else "they"
            yield f"{listed(names)} {'is' if one else 'are'} not mirrored, because {reason.format(it)}{'' if twins else on_one_drive}"
