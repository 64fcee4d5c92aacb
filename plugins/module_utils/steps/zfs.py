# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the steps on ZFS pools and datasets. Nothing is forced: what a pool is made on was cleared before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..storage.zfs import LIST_POOLS, Vdev, get_properties, plain_value, read_properties, read_rows
from .kinds import CreateDataset, CreateZpool, ExportZpool, SetProperties
from .machine import LONG_PATIENCE, Machine, StepFailed

_WHOLE = ("ONLINE",)


def create_zpool(step: CreateZpool, machine: Machine) -> None:
    """Make the pool, and see that it is there, whole, with its properties."""
    names = dict(step.names)
    machine.settle()
    machine.wait_for(names.values())
    vdevs = [
        word
        for kind, nodes in step.vdevs
        for word in (*(() if kind == Vdev.STRIPE else (kind,)), *(names.get(node, node) for node in nodes))
    ]
    options = ("-o", f"ashift={step.ashift}", *_options("-O", step.properties))
    machine.change(["zpool", "create", *options, step.name, *vdevs], patience=LONG_PATIENCE)
    health = {name: state for name, _guid, state in read_rows(machine.change(LIST_POOLS), 3)}
    if health.get(step.name) not in _WHOLE:
        raise StepFailed(f"the ZFS pool {step.name} is {health.get(step.name, 'not there')} after it was made, instead of {_WHOLE[0]}")
    _check(machine, step.name, step.properties)


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


def _options(option: str, properties: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in properties:
        yield from (option, f"{name}={value}")


def _check(machine: Machine, dataset: str, properties: Iterable[tuple[str, str]]) -> None:
    found = read_properties(machine.change(get_properties([dataset]))).get(dataset, {})
    for name, value in properties:
        there = found.get(name)
        if there is None or plain_value(there) != plain_value(value):
            raise StepFailed(f"{name} of {dataset} is {there} after it was set to {value}; write it in the schema as zfs get shows it")
