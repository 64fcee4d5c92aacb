# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a simulated host is as a layout wants it, judged from its media and its kernel alone."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.module_utils._schema.model import (
    DesiredArray,
    DesiredContainer,
    DesiredPartition,
    DesiredVolume,
    Layout,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import HALF, SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import EXTENT, Block

ENDS_WITH_SLACK = {"ext4": 8, "xfs": 17, "btrfs": 1, "f2fs": 2}


def check_layout(host: SimulatedHost, layout: Layout, earlier: bool) -> None:
    """Raise AssertionError unless everything is there, complete, and nothing else.

    After an earlier layout something may be on what is wanted with nothing: it was there as wanted, and stayed.
    """
    for disk in layout.disks:
        name = disk.id.rsplit("-", 1)[-1]
        table = host.media.table(name)
        assert table is not None
        assert table[0] == "gpt"
        there = {entry.number: entry for entry in table[2]}
        for part in disk.partitions:
            entry = there[part.number]
            assert (entry.start, entry.size, entry.type, entry.uuid) == (part.start, part.size, part.type, part.uuid)
            assert any(known.number == part.number for known in host.partitions[name])
    found = host.blocks()
    for thing in layout.things():
        if not (earlier and _is_bare(layout, thing.device)):
            _check_content(host, layout, thing.device, block_of(found, layout, thing.device))
    for volume in layout.volumes:
        (known,) = [
            known
            for group in host.groups(found).values()
            if group.name == volume.group
            for known in group.volumes
            if known.name == volume.name
        ]
        assert known.extents == -(-volume.size // EXTENT)
        assert known.tags == ()
        assert known.pool == volume.pool
    for cache in layout.caches:
        (group,) = [group for group in host.groups(found).values() if group.name == cache.group]
        (origin,) = [known for known in group.volumes if known.name == cache.origin]
        (by,) = [known for known in group.volumes if known.name == f"[{cache.name}_cvol]"]
        uuid = host.media.signatures(block_of(found, layout, cache.device))["LVM2_member"][0][0]
        assert (origin.cache, origin.mode) == (cache.name, cache.mode)
        assert {segment[0] for segment in by.segments} == {uuid}
        assert by.extents == dict(group.physical)[uuid]
    for pool in layout.pools:
        (group,) = [group for group in host.groups(found).values() if group.name == pool.group]
        (known,) = [known for known in group.volumes if known.name == pool.name]
        spares = [volume.extents for volume in group.volumes if volume.name.endswith("_pmspare]")]
        assert known.chunk
        assert (known.extents, known.tags) == (-(-pool.size // EXTENT), ())
        assert known.metadata >= -(-pool.metadata // EXTENT)
        assert sum(spares) >= -(-pool.metadata // EXTENT)


def _is_bare(layout: Layout, device: str) -> bool:
    uses = (
        layout.array_of(device),
        layout.container_on(device),
        layout.group_of(device),
        layout.filesystem_on(device),
        layout.zpool_on(device),
    )
    return all(use is None for use in uses)


def block_of(found: dict[str, Block], layout: Layout, device: str) -> Block:
    thing = layout.thing(device)
    if isinstance(thing, DesiredPartition):
        disk, _part, number = device.rpartition("-part")
        return found[f"{disk.rsplit('-', 1)[-1]}{number}"]
    if isinstance(thing, DesiredArray):
        members = tuple(block_of(found, layout, member).name for member in thing.members)
        (array,) = [block for block in found.values() if block.kind == thing.level and set(block.parents) == set(members)]
        return array
    if isinstance(thing, DesiredContainer):
        below = block_of(found, layout, thing.below).name
        (opened,) = [block for block in found.values() if block.kind == "crypt" and block.parents == (below,)]
        return opened
    assert isinstance(thing, DesiredVolume)
    (volume,) = [block for block in found.values() if block.kind == "lvm" and (block.group, block.title) == (thing.group, thing.name)]
    return volume


def _check_content(host: SimulatedHost, layout: Layout, device: str, block: Block) -> None:
    signatures = host.media.signatures(block)
    array, container = layout.array_of(device), layout.container_on(device)
    group, filesystem = layout.group_of(device), layout.filesystem_on(device)
    if array is not None:
        # Metadata 1.0 lies at the end: what is on the array shows on its members as well.
        assert f"md-{array.metadata}" in signatures
        assert array.metadata == "1.0" or len(signatures) == 1
        return
    pool = layout.zpool_on(device)
    if pool is not None and str(pool.part_of(device)) in ("cache", "spare"):
        (known,) = [found for found in host.present().zpools if found.name == pool.name]
        assert [vdev.part for vdev in known.vdevs if block.name in vdev.devices] == [pool.part_of(device)]
        return
    wanted = "zfs_member" if pool else "crypto_LUKS" if container else "LVM2_member" if group else filesystem.type if filesystem else None
    assert list(signatures) == ([wanted] if wanted is not None else []), (device, list(signatures), wanted)
    if pool is not None:
        guid, _size, name, count, datasets, _vdevs = signatures["zfs_member"][0]
        logs = [device for log in pool.logs for device in log.devices]
        members = [block_of(host.blocks(), layout, member) for member in (*pool.data_devices, *logs)]
        assert {host.media.signatures(member)["zfs_member"][0][0] for member in members} == {guid}
        assert (name, count) == (pool.name, len(members))
        assert guid in host.zpools
        there = {dataset: dict(properties) for dataset, properties in datasets}
        assert all(dict(one.properties).items() <= there[one.name].items() for one in (pool.root, *pool.datasets))
    if group is not None:
        known = signatures["LVM2_member"][0][1]
        assert known is not None
        assert known.name == group.name
    if filesystem is not None:
        members = [block_of(host.blocks(), layout, member) for member in filesystem.more]
        assert {host.media.signatures(member)["btrfs"][0][0] for member in members} <= {signatures[filesystem.type][0][0]}
        uuid, size, *subvolumes = signatures[filesystem.type][0]
        for subvolume in filesystem.subvolumes:
            assert subvolume.limit in (None, dict(subvolumes)[subvolume.name])
        assert not uuid.startswith(HALF)
        assert size <= block.size
        assert block.size - size < ENDS_WITH_SLACK.get(filesystem.type, 1 << 20) * 1024**2


def data_places(layout: Layout) -> list[str]:
    """The devices that a user has data on."""
    return [filesystem.device for filesystem in layout.filesystems] + [device for pool in layout.zpools for device in pool.data_devices]


def write_data(host: SimulatedHost, layout: Layout) -> None:
    """Put the user's data into every filesystem, near to both ends."""
    found = host.blocks()
    for device in data_places(layout):
        block = block_of(found, layout, device)
        for offset in (3 * 1024**2 // 2, block.size - 100):
            host.media.write(block, offset, "data", f"{device}@{offset}")
        host.data[device] = (3 * 1024**2 // 2, block.size - 100)


def check_data(host: SimulatedHost, layout: Layout) -> None:
    """Raise AssertionError unless all data are where they were; swap that was replaced has none."""
    found = host.blocks()
    swaps = {filesystem.device for filesystem in layout.filesystems if filesystem.type == "swap"}
    for device, offsets in host.data.items():
        for offset in offsets if device not in swaps else ():
            mark = host.media.read(block_of(found, layout, device), offset)
            assert mark is not None, (device, offset)
            assert mark.payload == f"{device}@{offset}"
