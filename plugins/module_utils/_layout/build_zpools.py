# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that make ZFS pools and datasets, and add to them what they lack. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterator, Mapping, Sequence

from .._schema.model import DesiredZpool
from .._steps.signatures import ClearSignatures
from .._steps.step import Step
from .._steps.zfs import CreateDataset, CreateZpool, ExtendZpool, SetProperties
from .._storage import zfs
from .._storage.units import MIB
from .build_contents import Site, kept_device
from .contents import joining_vdevs
from .stack import Action, Stack


def new_zpool(site: Site, stack: Stack) -> Iterator[Step]:
    """Give the steps that make a ZFS pool and all datasets in it, or add to it what it lacks; `stack` is that of its data."""
    desired = site.layout.zpool_on(stack.device)
    if desired is None or stack.part is not None:
        return
    built = {other.device for other in site.stacks if other.action is Action.BUILD}
    parts = tuple((str(part.part), part.type, _nodes_of(site, part.devices)) for part in desired.parts if part.devices[0] in built)
    if stack.action is Action.BUILD:
        vdevs = tuple((vdev.type, _nodes_of(site, vdev.devices)) for vdev in desired.vdevs)
        yield CreateZpool(desired.name, vdevs, desired.ashift, desired.root.properties, _lasting(site, desired), parts)
        yield from _datasets(desired, {})
        return
    joining = joining_vdevs(site.layout, site.present, stack)
    if joining:
        yield ClearSignatures(tuple(match.node for match in joining), MIB)
        devices = {match.desired.device for match in joining}
        new = tuple((vdev.type, _nodes_of(site, vdev.devices)) for vdev in desired.vdevs if set(vdev.devices) <= devices)
        yield ExtendZpool(desired.name, "", new, _lasting(site, desired, devices))
    for part, kind, nodes in parts:
        known = _lasting(site, desired, [device for device in desired.devices if site.node(device) in nodes])
        yield ExtendZpool(desired.name, part, ((kind, nodes),), known)


def _nodes_of(site: Site, devices: Sequence[str]) -> tuple[str, ...]:
    return tuple(site.node(device) for device in devices)


def _lasting(site: Site, pool: DesiredZpool, among: t.Optional[Collection[str]] = None) -> tuple[tuple[str, str], ...]:
    """Return the lasting names of nodes: kernel names are another disk's after a restart, which would confuse ZFS."""
    devices = [device for device in pool.devices if among is None or device in among]
    return tuple((site.node(device), device) for device in devices if device.startswith("/dev/disk/"))


def kept_zpool(site: Site, stack: Stack) -> Iterator[Step]:
    """Give the steps that make the datasets which a pool lacks, and set what is set otherwise."""
    desired, device = site.layout.zpool_on(stack.device), kept_device(site, stack)
    pool = site.present.zpool_on(device) if desired is not None and device is not None else None
    if desired is None or pool is None or stack.part is not None:
        return
    for dataset in (desired.root, *desired.datasets):
        there = pool.datasets.get(dataset.name)
        changed = tuple((name, value) for name, value in dataset.properties if there is not None and not _is_set(there, name, value))
        if changed:
            yield SetProperties(_path(desired, dataset.name), changed)
    yield from _datasets(desired, pool.datasets)


def _is_set(there: Mapping[str, str], name: str, value: str) -> bool:
    return zfs.plain_value(there.get(name, "")) == zfs.plain_value(value)


def _datasets(desired: DesiredZpool, present: Mapping[str, t.Any]) -> Iterator[Step]:
    properties = {dataset.name: dataset.properties for dataset in desired.datasets}
    for name in zfs.outer_first(name for name in properties if name not in present):
        yield CreateDataset(_path(desired, name), properties[name])


def _path(pool: DesiredZpool, dataset: str) -> str:
    return f"{pool.name}/{dataset}" if dataset else pool.name
