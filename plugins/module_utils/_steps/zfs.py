# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the steps on ZFS pools and datasets. Nothing is forced: what a pool is made on was cleared before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from .._storage.zfs import LIST_POOLS, WHOLE, Vdev, get_properties, plain_value, read_properties, read_rows
from .kinds import CreateDataset, CreateZpool, ExportZpool, ExtendZpool, SetProperties, ShrinkZpool
from .machine import LONG_PATIENCE, Machine, StepFailed


def create_zpool(step: CreateZpool, machine: Machine) -> None:
    """Make the pool, and see that it is there, whole, with its properties."""
    names = dict(step.names)
    machine.settle()
    machine.wait_for(names.values())
    parts = (word for part, kind, nodes in step.parts for word in (part, *_vdevs([(kind, nodes)], names)))
    options = ("-o", f"ashift={step.ashift}", *_options("-O", step.properties))
    machine.change(["zpool", "create", *options, step.name, *_vdevs(step.vdevs, names), *parts], patience=LONG_PATIENCE)
    _check_health(machine, step.name, "made")
    _check(machine, step.name, step.properties)


def extend_zpool(step: ExtendZpool, machine: Machine) -> None:
    """Add to the pool, and see that it is whole."""
    names = dict(step.names)
    machine.settle()
    machine.wait_for(names.values())
    machine.change(["zpool", "add", step.name, *([step.part] if step.part else []), *_vdevs(step.vdevs, names)], patience=LONG_PATIENCE)
    _check_health(machine, step.name, "added to")


def shrink_zpool(step: ShrinkZpool, machine: Machine) -> None:
    """Take a part out of the pool, and see that the pool is whole."""
    machine.change(["zpool", "remove", step.name, step.vdev], patience=LONG_PATIENCE)
    _check_health(machine, step.name, "made smaller")


def create_dataset(step: CreateDataset, machine: Machine) -> None:
    """Make the dataset, and see that it has its properties."""
    machine.change(["zfs", "create", *_options("-o", step.properties), step.name])
    _check(machine, step.name, step.properties)


def set_properties(step: SetProperties, machine: Machine) -> None:
    """Set the properties, and see that they are what they were set to."""
    for name, value in step.properties:
        machine.change(["zfs", "set", f"{name}={value}", step.name])
    _check(machine, step.name, step.properties)


def export_zpool(step: ExportZpool, machine: Machine) -> None:
    """Have ZFS let go of the pool."""
    machine.change(["zpool", "export", step.name], patience=LONG_PATIENCE)
    machine.settle()


def _vdevs(vdevs: Iterable[tuple[str, Sequence[str]]], names: Mapping[str, str]) -> list[str]:
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
