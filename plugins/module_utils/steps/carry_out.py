# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out one step of a layout with the standard tools, and reads back what came of it; which file does what, and what each needs."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Mapping

from . import filesystem as steps_filesystem
from . import kinds
from . import luks as steps_luks
from . import lvm as steps_lvm
from . import md as steps_md
from . import partition_table as steps_table
from . import signatures as steps_clear
from .kinds import Step
from .luks import Key
from .machine import Machine

_WITHOUT_KEY: Mapping[type[Step], Callable[[t.Any, Machine], None]] = {
    kinds.WritePartitionTable: steps_table.write_partition_table,
    kinds.FinishPartitions: steps_table.finish_partitions,
    kinds.ClearGaps: steps_table.clear_gaps,
    kinds.ClearSignatures: steps_clear.clear_signatures,
    kinds.CreateArray: steps_md.create_array,
    kinds.StartArray: steps_md.start_array,
    kinds.StopArray: steps_md.stop_array,
    kinds.ActivateGroup: steps_lvm.activate_group,
    kinds.DeactivateGroup: steps_lvm.deactivate_group,
    kinds.CreatePhysicalVolume: steps_lvm.create_physical_volume,
    kinds.ResizePhysicalVolume: steps_lvm.resize_physical_volume,
    kinds.CreateVolumeGroup: steps_lvm.create_volume_group,
    kinds.ExtendVolumeGroup: steps_lvm.extend_volume_group,
    kinds.RewriteGroup: steps_lvm.rewrite_group,
    kinds.CreateLogicalVolume: steps_lvm.create_logical_volume,
    kinds.ExtendLogicalVolume: steps_lvm.extend_logical_volume,
    kinds.RemoveLogicalVolume: steps_lvm.remove_logical_volume,
    kinds.FinishLogicalVolumes: steps_lvm.finish_logical_volumes,
    kinds.MakeFilesystem: steps_filesystem.make_filesystem,
    kinds.MakeSwap: steps_filesystem.make_swap,
    kinds.GrowFilesystem: steps_filesystem.grow_filesystem,
    kinds.CloseMapping: steps_luks.close_mapping,
}

_WITH_KEY: Mapping[type[Step], Callable[[t.Any, Machine, Key], None]] = {
    kinds.FormatLuks: steps_luks.format_luks,
    kinds.OpenLuks: steps_luks.open_luks,
    kinds.ResizeLuks: steps_luks.resize_luks,
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
