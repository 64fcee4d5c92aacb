# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ZFS pools and datasets. Nothing is forced: the devices of a new pool were cleared before."""

from __future__ import annotations

import abc
import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .._facts.present import Present
from .._storage.units import in_mib
from .._storage.zfs import LIST_POOLS, MEMBER, WHOLE, Vdev, get_properties, plain_value, read_properties, read_rows
from .machine import LONG_PATIENCE, Machine, StepFailed
from .needs import Ability, Tool
from .picture import Picture, Piece, changed, holding, labelled
from .reach import NOTHING, Reach, whole_devices
from .step import Step, Writes

ZPOOL = Tool("zpool", "zfsutils-linux (of contrib)", "zfs (of OpenZFS's repository)")

_SIZES = ("quota", "reservation")
"""Properties that are bytes."""


def _answers(machine: Machine) -> bool:
    """Return whether ZFS answers: it may be a module of the kernel, or a program of its own (zfs-fuse). A missing tool is named apart."""
    if not machine.has(ZPOOL.program):
        return True
    outcome = machine.run(LIST_POOLS)
    return outcome is not None and outcome.code == 0


_ZFS = Ability("zfs", _answers, "ZFS does not run on this host, and there is no module zfs for this kernel; zpool list says more")


class _PoolStep(Step):
    """A step on a pool, or on a dataset in it."""

    name: str

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (ZPOOL,)

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (_ZFS,)

    def writes(self) -> Writes:
        """See Step."""
        return Writes(zpool=self.name.partition("/")[0])


class _ImportedPoolStep(_PoolStep):
    """A step on an imported pool, which was judged by its devices."""

    def reaches(self, present: Present) -> Iterable[Reach]:
        """See Step."""
        return NOTHING


class _DeviceStep(_PoolStep):
    """A step that gives cleared devices to a pool."""

    @property
    @abc.abstractmethod
    def devices(self) -> tuple[str, ...]:
        """All nodes."""

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, self.devices)

    def writes(self) -> Writes:
        """See Step."""
        return Writes(self.devices, zpool=self.name)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return holding(picture, self.devices, labelled(MEMBER, self.name))


@dataclass(frozen=True)
class CreateZpool(_DeviceStep):
    """Make a ZFS pool of cleared partitions; ZFS remembers it for the next start, and mounts it where it has a mount point.

    `vdevs` are (type, nodes), where stripe is each node for itself. `names` are lasting names of nodes, by which the pool is to know them.
    `properties` are those of its own dataset. `parts` are (what for, type, nodes) next to the data: log, cache, spare.
    """

    name: str
    vdevs: tuple[tuple[str, tuple[str, ...]], ...]
    ashift: int
    properties: tuple[tuple[str, str], ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """All nodes."""
        return tuple(node for *_kinds, nodes in (*self.vdevs, *self.parts) for node in nodes)

    @property
    def says(self) -> str:
        """See Described."""
        each = [f"{kind} of {', '.join(nodes)}" for kind, nodes in self.vdevs]
        each += [_part_in_words(part, kind, nodes) for part, kind, nodes in self.parts]
        return f"create the ZFS pool {self.name}: {'; '.join(each)}{_with_properties(self.properties)}"

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return {**super().after(picture), self.name: dataset_piece(self.name, self.devices, dict(self.properties))}

    def run(self, machine: Machine) -> None:
        """Make the pool, and see that it is there, whole, with its properties."""
        names = dict(self.names)
        machine.settle()
        machine.wait_for(names.values())
        parts = (word for part, kind, nodes in self.parts for word in (part, *_vdev_words([(kind, nodes)], names)))
        options = ("-o", f"ashift={self.ashift}", *_options("-O", self.properties))
        machine.change(["zpool", "create", *options, self.name, *_vdev_words(self.vdevs, names), *parts], patience=LONG_PATIENCE)
        _check_health(machine, self.name, "made")
        _check(machine, self.name, self.properties)


@dataclass(frozen=True)
class ExtendZpool(_DeviceStep):
    """Add cleared partitions to a present ZFS pool: a log, a cache or a spare, or with an empty `part` further vdevs for data."""

    name: str
    part: str
    vdevs: tuple[tuple[str, tuple[str, ...]], ...]
    names: tuple[tuple[str, str], ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """All nodes."""
        return tuple(node for _kind, nodes in self.vdevs for node in nodes)

    @property
    def says(self) -> str:
        """See Described."""
        return f"add to the ZFS pool {self.name}: {'; '.join(_part_in_words(self.part, kind, nodes) for kind, nodes in self.vdevs)}"

    def run(self, machine: Machine) -> None:
        """Add to the pool, and see that it is whole."""
        names = dict(self.names)
        machine.settle()
        machine.wait_for(names.values())
        part = [self.part] if self.part else []
        machine.change(["zpool", "add", self.name, *part, *_vdev_words(self.vdevs, names)], patience=LONG_PATIENCE)
        _check_health(machine, self.name, "added to")


@dataclass(frozen=True)
class ShrinkZpool(_ImportedPoolStep):
    """Take a log, a cache or a spare, `vdev` as ZFS calls it, out of a ZFS pool, which loses no data by that."""

    name: str
    part: str
    vdev: str

    words: t.ClassVar[str] = "take the {part} {vdev} out of the ZFS pool {name}"

    def run(self, machine: Machine) -> None:
        """Take a part out of the pool, and see that the pool is whole."""
        machine.change(["zpool", "remove", self.name, self.vdev], patience=LONG_PATIENCE)
        _check_health(machine, self.name, "made smaller")


@dataclass(frozen=True)
class ReplaceVdev(_ImportedPoolStep):
    """Move a ZFS pool off a device onto a cleared one. `old` is what ZFS calls the one, `known` the lasting name of the other."""

    name: str
    old: str
    new: str
    known: str

    words: t.ClassVar[str] = "replace {old} in the ZFS pool {name} by {known}"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.old, self.new], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.new,), zpool=self.name)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        picture = holding(holding(picture, [self.new], labelled(MEMBER, self.name)), [self.old], "")
        on = {key: tuple(self.new if node == self.old else node for node in piece.on) for key, piece in picture.items()}
        return {key: replace(piece, on=on[key]) for key, piece in picture.items()}

    def run(self, machine: Machine) -> None:
        """Have ZFS replace the device, unless it does so already, and wait until it has."""
        if not self._is_replacing(machine):
            machine.change(["zpool", "replace", self.name, self.old, self.known], patience=LONG_PATIENCE)
        # A second look every time: a resilver begins some seconds after it was asked for.
        while self._is_replacing(machine):
            machine.give_way()
        _check_health(machine, self.name, "moved off a device")

    def _is_replacing(self, machine: Machine) -> bool:
        outcome = machine.run(["zpool", "status", self.name])
        if outcome is None or outcome.code:
            raise StepFailed(f"zpool status {self.name} does not say whether {self.old} is replaced")
        return any(line.split()[:1] and line.split()[0].startswith("replacing") for line in outcome.stdout.splitlines())


@dataclass(frozen=True)
class CreateDataset(_ImportedPoolStep):
    """Make a dataset, by its path with that of its pool; ZFS mounts it where it has a mount point."""

    name: str
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def says(self) -> str:
        """See Described."""
        return f"create the dataset {self.name}{_with_properties(self.properties)}"

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return {**picture, self.name: dataset_piece(self.name, (self.name.rpartition("/")[0],), dict(self.properties))}

    def run(self, machine: Machine) -> None:
        """Make the dataset, and see that it has its properties."""
        machine.change(["zfs", "create", *_options("-o", self.properties), self.name])
        _check(machine, self.name, self.properties)


@dataclass(frozen=True)
class SetProperties(_ImportedPoolStep):
    """Set properties of a present dataset."""

    name: str
    properties: tuple[tuple[str, str], ...]

    @property
    def says(self) -> str:
        """See Described."""
        return f"set on the dataset {self.name}: {_in_words(self.properties)}"

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        there = picture.get(self.name)
        return picture if there is None else changed(picture, self.name, sizes={**there.sizes, **_sizes_among(dict(self.properties))})

    def run(self, machine: Machine) -> None:
        """Set the properties, and see that they are set."""
        for name, value in self.properties:
            machine.change(["zfs", "set", f"{name}={value}", self.name])
        _check(machine, self.name, self.properties)


@dataclass(frozen=True)
class ExportZpool(_ImportedPoolStep):
    """Have ZFS let go of a pool, whose datasets are unmounted."""

    name: str

    words: t.ClassVar[str] = "export the ZFS pool {name}"

    def run(self, machine: Machine) -> None:
        """Have ZFS let go of the pool."""
        machine.change(["zpool", "export", self.name], patience=LONG_PATIENCE)
        machine.settle()


def dataset_piece(name: str, on: tuple[str, ...], properties: Mapping[str, str]) -> Piece:
    """Return a dataset of a picture; of its properties the picture has those that are sizes."""
    return Piece(f"ZFS pool {name.partition('/')[0]}", (0, name), name, 0, on, "dataset", sizes=_sizes_among(properties))


def _sizes_among(properties: Mapping[str, str]) -> dict[str, int]:
    found = {name: plain_value(properties[name]) for name in _SIZES if name in properties}
    return {name: int(value) for name, value in found.items() if value.isdigit() and value != "0"}


def _part_in_words(part: str, kind: str, nodes: tuple[str, ...]) -> str:
    listed = ", ".join(nodes)
    if not part:
        return f"{kind} of {listed}"
    return f"{part} {listed}" if kind == "stripe" else f"{part} {kind} of {listed}"


def _with_properties(properties: tuple[tuple[str, str], ...]) -> str:
    return f", with {_in_words(properties)}" if properties else ""


def _in_words(properties: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name}={in_mib(int(value)) if name in _SIZES else value}" for name, value in properties)


def _vdev_words(vdevs: Iterable[tuple[str, Sequence[str]]], names: Mapping[str, str]) -> list[str]:
    """Return the words for vdevs; a stripe has none of its own."""
    return [
        word
        for kind, nodes in vdevs
        for word in (*(() if kind == Vdev.STRIPE else (str(kind),)), *(names.get(node, node) for node in nodes))
    ]


def _check_health(machine: Machine, pool: str, done: str) -> None:
    health = {name: state for name, _guid, state in read_rows(machine.change(LIST_POOLS), 3)}
    if health.get(pool) not in WHOLE:
        raise StepFailed(f"the ZFS pool {pool} is {health.get(pool, 'not there')} after it was {done}, instead of {WHOLE[0]}")


def _options(option: str, properties: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in properties:
        yield from (option, f"{name}={value}")


def _check(machine: Machine, dataset: str, properties: Iterable[tuple[str, str]]) -> None:
    found = read_properties(machine.change(get_properties([dataset]))).get(dataset, {})
    for name, value in properties:
        there = found.get(name)
        if there is None or plain_value(there) != plain_value(value):
            raise StepFailed(f"{name} of {dataset} is {there} after it was set to {value}; write it in the schema as zfs get shows it")
