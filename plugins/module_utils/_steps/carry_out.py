# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out one step of a layout with the standard tools, and reads back what came of it; which file does what, and what each needs."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Mapping

from . import filesystem, kinds, luks, lvm, md, partition_table, signatures, zfs
from .kinds import Step
from .luks import Key
from .machine import Machine

_WITHOUT_KEY: Mapping[type[Step], Callable[[t.Any, Machine], None]] = {
    kinds.WritePartitionTable: partition_table.write_partition_table,
    kinds.FinishPartitions: partition_table.finish_partitions,
    kinds.ClearGaps: partition_table.clear_gaps,
    kinds.ClearSignatures: signatures.clear_signatures,
    kinds.CreateArray: md.create_array,
    kinds.AddMembers: md.add_members,
    kinds.ReAddMembers: md.re_add_members,
    kinds.WidenArray: md.widen_array,
    kinds.GrowArray: md.grow_array,
    kinds.StartArray: md.start_array,
    kinds.StopArray: md.stop_array,
    kinds.ActivateGroup: lvm.activate_group,
    kinds.DeactivateGroup: lvm.deactivate_group,
    kinds.CreatePhysicalVolume: lvm.create_physical_volume,
    kinds.ResizePhysicalVolume: lvm.resize_physical_volume,
    kinds.CreateVolumeGroup: lvm.create_volume_group,
    kinds.ExtendVolumeGroup: lvm.extend_volume_group,
    kinds.RewriteGroup: lvm.rewrite_group,
    kinds.CreateLogicalVolume: lvm.create_logical_volume,
    kinds.CreateThinPool: lvm.create_thin_pool,
    kinds.ExtendPoolMetadata: lvm.extend_pool_metadata,
    kinds.CreateThinVolume: lvm.create_thin_volume,
    kinds.CreateCacheVolume: lvm.create_cache_volume,
    kinds.AttachCache: lvm.attach_cache,
    kinds.ChangeCacheMode: lvm.change_cache_mode,
    kinds.ExtendLogicalVolume: lvm.extend_logical_volume,
    kinds.ShrinkLogicalVolume: lvm.shrink_logical_volume,
    kinds.RemoveLogicalVolume: lvm.remove_logical_volume,
    kinds.MarkCleared: lvm.mark_cleared,
    kinds.FinishLogicalVolumes: lvm.finish_logical_volumes,
    kinds.MakeFilesystem: filesystem.make_filesystem,
    kinds.MakeSwap: filesystem.make_swap,
    kinds.GrowFilesystem: filesystem.grow_filesystem,
    kinds.RestoreSuperblock: filesystem.restore_superblock,
    kinds.CreateSubvolumes: filesystem.create_subvolumes,
    kinds.LimitSubvolumes: filesystem.limit_subvolumes,
    kinds.CreateZpool: zfs.create_zpool,
    kinds.ExtendZpool: zfs.extend_zpool,
    kinds.ShrinkZpool: zfs.shrink_zpool,
    kinds.CreateDataset: zfs.create_dataset,
    kinds.SetProperties: zfs.set_properties,
    kinds.ExportZpool: zfs.export_zpool,
    kinds.CloseMapping: luks.close_mapping,
}

_WITH_KEY: Mapping[type[Step], Callable[[t.Any, Machine, Key], None]] = {
    kinds.FormatLuks: luks.format_luks,
    kinds.OpenLuks: luks.open_luks,
    kinds.ResizeLuks: luks.resize_luks,
}


def carry_out(step: Step, machine: Machine, key: Key) -> None:
    """Carry the step out and verify it; raises StepFailed, after which it may be half done, which a later run sees and completes."""
    kind = type(step)
    if kind in _WITH_KEY:
        _WITH_KEY[kind](step, machine, key)
    else:
        _WITHOUT_KEY[kind](step, machine)


def lacks_key(step: Step, key: Key) -> bool:
    """Return whether the step takes a LUKS key that is not given."""
    return type(step) in _WITH_KEY and not key.of(vars(step)["name"]).given
