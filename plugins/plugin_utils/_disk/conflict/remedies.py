# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What would help, as words and as changes of schema and disks, so that a remedy is planned before it is shown."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....module_utils._data.units import format_mib, with_percentage
from ....module_utils._data.words import listed
from ..model import Disk, Hardware
from ..problem.model import Problem

Entry = Mapping[str, t.Any]
"""An entry of a dynamic schema as it is written."""
_CONTAINERS = ("vg", "thin_pool")
_WHOLES = ("cache_of", "log_of")
"""Keys that name a space without which theirs cannot be."""
_LISTS = ("contains", "apart_from", "together_with")
"""Keys that name spaces."""
_OWN_FACTS = frozenset(
    {"path", "dev", "links", "serial", "wwn", "drive", "enclosure", "slot", "partitions", "content", "holders", "table", "in_use", "empty"}
)
"""Facts of a disk that no other has."""


@dataclass(frozen=True)
class TooFewDrives:
    """A space (id) that needs `legs` drives, of which `spares` stand by, may use `usable`, and is on a machine with `drives`.

    `copies` is its `count`, 0 without one; `like` is the id of the disk that a further one is to be like.
    """

    name: str
    legs: int
    spares: int
    copies: int
    usable: int
    drives: int
    like: str


@dataclass(frozen=True)
class FromTo:
    """MiB of a minimum or of a disk as they are, and as they would have to be; `percentage` is what they are written as, if that is one."""

    before: int
    after: int
    percentage: str = ""


@dataclass(frozen=True)
class Remedy:
    """New minimums by the id in the schema (0: the space is left out), new sizes of disks by id, spaces to leave out, new keys, more disks.

    `keys` has values of keys by id of the space, None for a key that is to go; `says` are the words for them. `added` says how many
    disks are added that are like the one of an id.
    """

    says: tuple[str, ...] = ()
    minimums: Mapping[str, FromTo] = field(default_factory=dict)
    sizes: Mapping[str, FromTo] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    keys: Mapping[str, Mapping[str, t.Any]] = field(default_factory=dict)
    added: Mapping[str, int] = field(default_factory=dict)

    def and_then(self, other: Remedy) -> Remedy:
        """Return both; what the other says comes later."""
        return Remedy(
            tuple(dict.fromkeys((*self.says, *other.says))),
            _one_after_another(self.minimums, other.minimums),
            _one_after_another(self.sizes, other.sizes),
            tuple(dict.fromkeys((*self.gone, *other.gone))),
            {name: {**self.keys.get(name, {}), **other.keys.get(name, {})} for name in (*self.keys, *other.keys)},
            {disk: self.added.get(disk, 0) + other.added.get(disk, 0) for disk in (*self.added, *other.added)},
        )

    @property
    def is_exact(self) -> bool:
        """Whether it says all that has to be done."""
        return bool(self.minimums or self.sizes or self.gone or self.keys or self.added)

    @property
    def amount(self) -> int:
        """How many MiB minimums are lowered by, and disks are larger, in all."""
        return sum(abs(change.after - change.before) for change in (*self.minimums.values(), *self.sizes.values()))

    @property
    def left_out(self) -> tuple[str, ...]:
        """The spaces that are to be left out."""
        return tuple(dict.fromkeys((*self.gone, *(name for name, change in self.minimums.items() if not change.after))))

    def words(self, goes_with: Callable[[str], str]) -> str:
        """Return the sentence; `goes_with` gives what is added to the name of a space that is left out."""
        lowered = [_lowered(name, change, goes_with) for name, change in self.minimums.items() if name not in self.gone]
        gone = [f"leave out {listed([f'{name}{goes_with(name)}' for name in self.gone])}"] if self.gone else []
        new = {name for disk, count in self.added.items() for name in _new_names(disk, count)}
        larger = [
            f"use a disk of at least {change.after} MiB instead of {disk}"
            f" ({change.before} MiB, {format_mib(change.after - change.before)} more)"
            for disk, change in self.sizes.items()
            if disk not in new
        ]
        return listed([*gone, *lowered, *larger, *self._more(), *self.says])

    def _more(self) -> list[str]:
        """Return which disks are to be added."""
        said = []
        for disk, count in self.added.items():
            sizes = [self.sizes[name].after for name in _new_names(disk, count) if name in self.sizes]
            of_size = f", of at least {max(sizes)} MiB" if sizes else ""
            said.append(f"add {count} {'disk' if count == 1 else 'disks'} like {disk}{of_size}")
        return said


def _new_names(disk: str, count: int) -> list[str]:
    return [f"{disk} (new{f' {number}' if number > 1 else ''})" for number in range(1, count + 1)]


def _one_after_another(first: Mapping[str, FromTo], then: Mapping[str, FromTo]) -> dict[str, FromTo]:
    return {**first, **{name: replace(first.get(name, change), after=change.after) for name, change in then.items()}}


def _lowered(name: str, change: FromTo, goes_with: Callable[[str], str]) -> str:
    wanted = change.before
    if change.after:
        before = with_percentage(wanted, change.percentage) if change.percentage else wanted
        return f"reduce the minimum of {name} from {before} to {change.after} MiB ({format_mib(wanted - change.after)} less)"
    words = "" if change.percentage or format_mib(wanted) == f"{wanted} MiB" else f" ({format_mib(wanted)})"
    return f"leave out {name}{goes_with(name)}, which needs {with_percentage(wanted, change.percentage)}{words}"


class Trial(t.Protocol):
    """Tries remedies on the machine and the schema that have no plan."""

    def helps(self, remedy: Remedy) -> bool:
        """Return whether there is a plan once a remedy was followed."""

    def after(self, remedy: Remedy) -> Problem | None:
        """Return the problem in which a remedy was followed; None where that is no input, or nothing is left to plan."""

    def goes_with(self, name: str) -> str:
        """Return in brackets what changes as well where a space is left out."""

    def ways_out(self, lack: TooFewDrives) -> Sequence[Sequence[Remedy]]:
        """Return what may help a space that needs more drives; of each group the first that helps is enough."""


class Untried:
    """Stands for a trial where only the conflict matters: takes each remedy as one that helps."""

    def helps(self, _remedy: Remedy) -> bool:
        """Return that it does."""
        return True

    def after(self, _remedy: Remedy) -> None:
        """Return that there is no such problem."""

    def goes_with(self, _name: str) -> str:
        """Return nothing."""
        return ""

    def ways_out(self, _lack: TooFewDrives) -> Sequence[Sequence[Remedy]]:
        """Return that nothing is known."""
        return ()


def with_other_disks(remedy: Remedy, hardware: Hardware) -> Hardware:
    """Return the machine with the disks that a remedy asks for."""
    new = (_new(disk, name) for disk in hardware.disks for name in _new_names(disk.id, remedy.added.get(disk.id, 0)))
    disks = tuple(
        replace(disk, size=size, facts={key: value for key, value in disk.facts.items() if key != "size_bytes"} | {"size": size})
        if (size := remedy.sizes[disk.id].after if disk.id in remedy.sizes else disk.size) != disk.size
        else disk
        for disk in (*hardware.disks, *new)
    )
    return replace(hardware, disks=disks, facts={**hardware.facts, "disks": [disk.facts for disk in disks]})


def _new(disk: Disk, name: str) -> Disk:
    """Return a disk like another with nothing on it and no name but this."""
    facts = {key: value for key, value in disk.facts.items() if key not in _OWN_FACTS}
    return replace(disk, id=name, path="", dev="", existing=(), drives=(), facts={**facts, "id": name})


def followed(remedy: Remedy, schema: Sequence[Entry]) -> list[dict[str, t.Any]]:
    """Return a dynamic schema, as it is written, in which a remedy was followed; what cannot be without what is left out goes with it."""
    gone = {*remedy.left_out, *along(remedy.left_out, schema)}
    entries = []
    for entry in schema:
        name = str(entry.get("id"))
        if name in gone:
            continue
        keys = {**entry, **remedy.keys.get(name, {})}
        if name in remedy.minimums:
            keys |= {"min_size": remedy.minimums[name].after}
            keys |= {"max_size": keys.pop("size")} if keys.get("size") is not None else {}
        keys |= {key: [other for other in _names(keys[key]) if _name(other) not in gone] for key in _LISTS if keys.get(key) is not None}
        entries.append({key: value for key, value in keys.items() if value is not None})
    return entries


def along(names: Iterable[str], schema: Sequence[Entry]) -> list[str]:
    """Return the spaces that go with others: what is in a vg or a thin pool, and caches and logs."""
    gone = set(names)
    found: list[str] = []
    while True:
        inside = {
            _name(member)
            for entry in schema
            if entry.get("id") in gone and entry.get("type") in _CONTAINERS
            for member in _names(entry.get("contains"))
        }
        more = [
            name
            for entry in schema
            if (name := str(entry.get("id"))) not in gone and (name in inside or any(entry.get(key) in gone for key in _WHOLES))
        ]
        if not more:
            return found
        gone |= {*more}
        found += more


def container_of(name: str, schema: Sequence[Entry]) -> Entry | None:
    """Return the entry that contains a space; None where none does."""
    return next((entry for entry in schema if name in map(_name, _names(entry.get("contains")))), None)


def naming(gone: Collection[str], schema: Sequence[Entry]) -> list[tuple[str, str]]:
    """Return keys of spaces that stay and name what is left out, each with the id of its space."""
    return [
        (key, str(entry.get("id")))
        for entry in schema
        for key in _LISTS
        if entry.get("id") not in gone and any(_name(other) in gone for other in _names(entry.get(key)))
    ]


def _names(value: t.Any) -> Sequence[t.Any]:
    return () if value is None else value if isinstance(value, (list, tuple)) else (value,)


def _name(member: t.Any) -> str:
    return str(member.get("id") if isinstance(member, Mapping) else member)
