# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ZFS pools of a simulated host."""

from __future__ import annotations

import typing as t
from collections.abc import Callable

from ansible_collections.bareon.allocator.plugins.module_utils._steps.zfs import (
    CreateDataset,
    CreateZpool,
    ExportZpool,
    ExtendZpool,
    ReplaceVdev,
    SetProperties,
    ShrinkZpool,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import Block
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers.basics import (
    Performers,
    Pieces,
    clean_block,
    copy_range,
    need,
)


def _create_zpool(host: SimulatedHost, step: CreateZpool) -> Pieces:
    blocks = [clean_block(host, node) for node in step.devices]
    need(all(pool.name != step.name for pool in host.present().zpools), f"there is a pool {step.name}")
    guid = new_uuid()
    vdevs = tuple(_vdev(host, number, *part) for number, part in enumerate(_parts_of(step)))
    named = {name for part, _vdev_name, names in vdevs if part not in _UNNAMED for name in names}
    label = (step.name, len(named), (("", step.properties),), vdevs)
    for block in (block for block in blocks if block.name in named):
        host.media.sign(block, "zfs_member", (guid, block.size, *label))
        yield
    host.zpools.add(guid)
    yield


_UNNAMED = ("cache", "spare")
"""Devices of a pool that do not say which one they are of."""


def _parts_of(step: CreateZpool) -> list[tuple[str, str, tuple[str, ...]]]:
    data = [("", kind, nodes) for kind, nodes in step.vdevs if kind != "stripe"]
    data += [("", kind, (node,)) for kind, nodes in step.vdevs if kind == "stripe" for node in nodes]
    return [*data, *step.parts]


def _vdev(host: SimulatedHost, number: int, part: str, kind: str, nodes: t.Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    return part, f"{kind}-{number}" if kind != "stripe" else nodes[0], tuple(host.by_node(node).name for node in nodes)


def _change_vdevs(host: SimulatedHost, pool: str, vdevs: t.Sequence[tuple[str, str, tuple[str, ...]]], new: t.Sequence[Block]) -> None:
    """Write other vdevs into the labels of a pool, at once, as a transaction does."""
    guid = next(known.guid for known in host.present().zpools if known.name == pool)
    members = [block for block in host.zpool_members()[guid] if "zfs_member" in host.media.signatures(block)]
    named = {name for part, _vdev_name, names in vdevs if part not in _UNNAMED for name in names}
    _guid, _size, name, _count, datasets, _vdevs = host.media.signatures(members[0])["zfs_member"][0]
    for block in (*members, *new):
        if block.name in named:
            host.media.sign(block, "zfs_member", (guid, block.size, name, len(named), datasets, tuple(vdevs)))
        elif block in members:
            host.media.wipe(block)


def _extend_zpool(host: SimulatedHost, step: ExtendZpool) -> Pieces:
    blocks = [clean_block(host, node) for node in step.devices]
    (pool,) = [known for known in host.present().zpools if known.name == step.name]
    there = [(str(vdev.part or ""), vdev.name, vdev.devices) for vdev in pool.vdevs]
    new = [_vdev(host, len(there) + at, step.part, kind, nodes) for at, (kind, nodes) in enumerate(step.vdevs)]
    _change_vdevs(host, step.name, [*there, *new], blocks)
    yield


def _shrink_zpool(host: SimulatedHost, step: ShrinkZpool) -> Pieces:
    (pool,) = [known for known in host.present().zpools if known.name == step.name]
    need(any(vdev.name == step.vdev and vdev.part is not None for vdev in pool.vdevs), f"{step.vdev} cannot be taken out of {step.name}")
    _change_vdevs(host, step.name, [(str(vdev.part or ""), vdev.name, vdev.devices) for vdev in pool.vdevs if vdev.name != step.vdev], ())
    yield


def _change_datasets(host: SimulatedHost, pool: str, change: Callable[[dict[str, dict[str, str]]], None]) -> None:
    """Change the datasets of an imported pool, on all its devices at once, as a transaction does."""
    guid = next(known.guid for known in host.present().zpools if known.name == pool)
    for block in (block for block in host.zpool_members()[guid] if "zfs_member" in host.media.signatures(block)):
        _guid, size, name, count, datasets, vdevs = host.media.signatures(block)["zfs_member"][0]
        found = {dataset: dict(properties) for dataset, properties in datasets}
        change(found)
        told = tuple((dataset, tuple(properties.items())) for dataset, properties in found.items())
        host.media.sign(block, "zfs_member", (guid, size, name, count, told, vdevs))


def _create_dataset(host: SimulatedHost, step: CreateDataset) -> Pieces:
    pool, _slash, dataset = step.name.partition("/")

    def change(datasets: dict[str, dict[str, str]]) -> None:
        need(dataset not in datasets, f"{step.name} is there")
        need(dataset.rpartition("/")[0] in datasets, f"what {step.name} is to be in is not there")
        datasets[dataset] = dict(step.properties)

    _change_datasets(host, pool, change)
    yield


def _set_properties(host: SimulatedHost, step: SetProperties) -> Pieces:
    pool, _slash, dataset = step.name.partition("/")
    for name, value in step.properties:
        _change_datasets(host, pool, lambda datasets, name=name, value=value: datasets[dataset].update({name: value}))  # type: ignore[misc]
        yield


def _export_zpool(host: SimulatedHost, step: ExportZpool) -> Pieces:
    host.zpools -= {pool.guid for pool in host.present().zpools if pool.name == step.name}
    yield


def _replace_vdev(host: SimulatedHost, step: ReplaceVdev) -> Pieces:
    old, new = host.by_node(step.old), host.by_node(step.new)
    (pool,) = [known for known in host.present().zpools if known.name == step.name]
    need(any(old.name in vdev.devices for vdev in pool.vdevs), f"{old.name} is not in {step.name}")
    need(new.size >= old.size and not host.media.signatures(new), f"{new.name} cannot take {old.name}")
    copy_range(host, old, 0, new, 0, old.size)
    host.media.wipe(new)
    yield
    names = {old.name: new.name}
    vdevs = [
        (str(vdev.part or ""), names.get(vdev.name, vdev.name), tuple(names.get(name, name) for name in vdev.devices))
        for vdev in pool.vdevs
    ]
    _change_vdevs(host, step.name, vdevs, [new])
    yield


PERFORMERS: Performers = {
    ReplaceVdev: _replace_vdev,
    CreateZpool: _create_zpool,
    ExtendZpool: _extend_zpool,
    ShrinkZpool: _shrink_zpool,
    CreateDataset: _create_dataset,
    SetProperties: _set_properties,
    ExportZpool: _export_zpool,
}
