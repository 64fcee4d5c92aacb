# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the steps on LVM. Commands name what they work on; other groups of the host are never touched."""

from __future__ import annotations

from .._storage.cache import name_of
from .._storage.lvm import CLEARED, UNFINISHED, mapper_node, parse_report
from .filesystem import shrink_filesystem
from .kinds import (
    ActivateGroup,
    AttachCache,
    ChangeCacheMode,
    CreateCacheVolume,
    CreateLogicalVolume,
    CreatePhysicalVolume,
    CreateThinPool,
    CreateThinVolume,
    CreateVolumeGroup,
    DeactivateGroup,
    ExtendLogicalVolume,
    ExtendPoolMetadata,
    ExtendVolumeGroup,
    FinishLogicalVolumes,
    MarkCleared,
    RemoveLogicalVolume,
    ResizePhysicalVolume,
    RewriteGroup,
    ShrinkLogicalVolume,
)
from .machine import Machine, StepFailed
from .partition_table import device_size

_MIXED_BLOCKS = ("--config", "devices{allow_mixed_block_sizes=1}")
"""LVM asks for it where a group is on disks of 512 and of 4096 bytes a sector; it changes nothing else."""

Row = dict[str, str]


def activate_group(step: ActivateGroup, machine: Machine) -> None:
    """Activate the group's volumes, or some of them."""
    some = [f"{step.group}/{name}" for name in step.names]
    machine.change(["lvchange", "--activate", "y", *some] if some else ["vgchange", "--activate", "y", step.group])
    machine.settle()


def deactivate_group(step: DeactivateGroup, machine: Machine) -> None:
    """Deactivate the group's volumes; by UUID where it is known, for disks of another machine can bring a group of the same name."""
    which = [step.group] if step.uuid is None else ["--select", f"vg_uuid={step.uuid}"]
    machine.change(["vgchange", "--activate", "n", *which])
    machine.settle()


def create_physical_volume(step: CreatePhysicalVolume, machine: Machine) -> None:
    """Write label and metadata area; extents follow the stripes of an array, else they begin at a whole MiB whatever the disk asks for."""
    size = [f"--metadatasize={step.metadata_size}b"] if step.metadata_size else []
    begin = [] if step.aligned else ["--dataalignment=1m"]
    machine.change(["pvcreate", "--yes", "--quiet", *size, *begin, f"--pvmetadatacopies={step.metadata_copies}", step.device])
    _report(machine, "pv", "pv_uuid", step.device)


def resize_physical_volume(step: ResizePhysicalVolume, machine: Machine) -> None:
    """Let the physical volume follow its device."""
    machine.change(["pvresize", "--quiet", step.device])


def create_volume_group(step: CreateVolumeGroup, machine: Machine) -> None:
    """Make the group, and see that it has all its physical volumes."""
    machine.change(["vgcreate", "--yes", "--quiet", *_MIXED_BLOCKS, f"--physicalextentsize={step.extent}b", step.group, *step.devices])
    _check_members(machine, step.group, step.devices)


def extend_volume_group(step: ExtendVolumeGroup, machine: Machine) -> None:
    """Let the physical volumes join, and see that they have."""
    machine.change(["vgextend", "--yes", "--quiet", *_MIXED_BLOCKS, step.group, *step.devices])
    _check_members(machine, step.group, step.devices)


def rewrite_group(step: RewriteGroup, machine: Machine) -> None:
    """Have LVM commit the group's metadata once more, which reaches those physical volumes that lack it."""
    machine.change(["vgck", "--updatemetadata", step.group])


def create_logical_volume(step: CreateLogicalVolume, machine: Machine) -> None:
    """Make the volume, without what lay in its room before: LVM wipes it before it lets udev look, which would bring it to life."""
    unseen = ["--wipesignatures", "y", "--zero", "y"]
    named = ["--addtag", UNFINISHED, "--name", step.name, "--size", f"{step.size}b", step.group]
    machine.change(["lvcreate", "--yes", "--quiet", *unseen, *named])
    # LVM has waited for udev to make the node.
    machine.wait_for([step.device])
    _check_size(machine, step.device, step.size)


def create_thin_pool(step: CreateThinPool, machine: Machine) -> None:
    """Make the pool with chunks that are zeroed before they are given out, and see that data and metadata have their sizes."""
    parts = [f"--size={step.size}b", f"--poolmetadatasize={step.metadata}b", f"--chunksize={step.chunk}b"]
    kind = ["--type=thin-pool", "--zero=y", "--poolmetadataspare=y"]
    machine.change(["lvcreate", "--yes", "--quiet", *kind, *parts, "--addtag", UNFINISHED, "--name", step.name, step.group])
    which = f"{step.group}/{step.name}"
    (found,) = _report(machine, "lv", "lv_size,lv_metadata_size", which)
    if int(found["lv_size"]) < step.size or int(found["lv_metadata_size"]) < step.metadata:
        raise StepFailed(f"{which} has {found['lv_size']} bytes and {found['lv_metadata_size']} of metadata instead of {step.size}")


def extend_pool_metadata(step: ExtendPoolMetadata, machine: Machine) -> None:
    """Grow the metadata while the pool is in use."""
    which = f"{step.group}/{step.name}"
    machine.change(["lvextend", "--yes", "--quiet", f"--poolmetadatasize={step.size}b", which])
    (found,) = _report(machine, "lv", "lv_metadata_size", which)
    if int(found["lv_metadata_size"]) < step.size:
        raise StepFailed(f"{which} has {found['lv_metadata_size']} bytes of metadata after they were grown to {step.size}")


def create_thin_volume(step: CreateThinVolume, machine: Machine) -> None:
    """Make the volume; it reads as zeros where nothing was written, so there is nothing of before to be wiped."""
    named = ["--addtag", UNFINISHED, "--name", step.name, f"--virtualsize={step.size}b"]
    machine.change(["lvcreate", "--yes", "--quiet", "--type=thin", *named, "--thinpool", step.pool, step.group])
    machine.wait_for([step.device])
    _check_size(machine, step.device, step.size)


def create_cache_volume(step: CreateCacheVolume, machine: Machine) -> None:
    """Make the volume, of all of the physical volume, so that no other one comes to lie there.

    That its beginning is zeros is made sure of before it is attached: something else there would be taken for broken metadata.
    """
    unseen = ["--wipesignatures", "y", "--zero", "y"]
    named = ["--addtag", UNFINISHED, "--name", step.name, "--extents", "100%PVS", step.group, step.device]
    machine.change(["lvcreate", "--yes", "--quiet", *unseen, *named])
    node = mapper_node(step.group, step.name)
    machine.wait_for([node])
    machine.change(["sync", node])


def attach_cache(step: AttachCache, machine: Machine) -> None:
    """Let LVM make it a cache, and see that the volume has it; LVM wipes what is on it."""
    which, by = f"{step.group}/{step.name}", f"{step.group}/{step.cache}"
    machine.change(["lvconvert", "--yes", "--quiet", "--type=cache", f"--cachevol={by}", f"--cachemode={step.mode}", which])
    _check_cache(machine, which, step.cache)
    machine.settle()


def change_cache_mode(step: ChangeCacheMode, machine: Machine) -> None:
    """Change the mode; LVM waits for what is not written yet."""
    which = f"{step.group}/{step.name}"
    machine.change(["lvchange", "--yes", "--quiet", f"--cachemode={step.mode}", which])
    (found,) = _report(machine, "lv", "cache_mode", which)
    if found["cache_mode"] != step.mode:
        raise StepFailed(f"{which} is cached by {found['cache_mode']} after it was changed to {step.mode}")


def extend_logical_volume(step: ExtendLogicalVolume, machine: Machine) -> None:
    """Grow the volume while it is in use."""
    which = f"{step.group}/{step.name}"
    machine.change(["lvextend", "--yes", "--quiet", "--size", f"{step.size}b", which])
    (found,) = _report(machine, "lv", "lv_size", which)
    if int(found["lv_size"]) < step.size:
        raise StepFailed(f"{which} has {found['lv_size']} bytes after it was grown to {step.size}")


def shrink_logical_volume(step: ShrinkLogicalVolume, machine: Machine) -> None:
    """Make the filesystem smaller, see that it is, and cut off of the volume what it does not have any more."""
    shrink_filesystem(step.device, step.type, step.size, machine)
    which = f"{step.group}/{step.name}"
    machine.change(["lvreduce", "--yes", "--quiet", "--size", f"{step.size}b", which])
    (found,) = _report(machine, "lv", "lv_size", which)
    if int(found["lv_size"]) != step.size:
        raise StepFailed(f"{which} has {found['lv_size']} bytes after it was made smaller, to {step.size}")


def remove_logical_volume(step: RemoveLogicalVolume, machine: Machine) -> None:
    """Remove the volume, which LVM refuses while it is in use; with force that of which not even the pool can be told that it goes."""
    force = ["--force", "--force"] if step.begun else []
    machine.change(["lvremove", "--yes", "--quiet", *force, f"{step.group}/{step.name}"])
    machine.settle()


def mark_cleared(step: MarkCleared, machine: Machine) -> None:
    """Give the volumes the tag that says so."""
    machine.change(["lvchange", "--quiet", "--addtag", CLEARED, *(f"{step.group}/{name}" for name in step.names)])


def finish_logical_volumes(step: FinishLogicalVolumes, machine: Machine) -> None:
    """Take the tags off, and see that the one that counts is gone."""
    which = [f"{step.group}/{name}" for name in step.names]
    machine.change(["lvchange", "--quiet", "--deltag", UNFINISHED, "--deltag", CLEARED, *which])
    tags = {row["lv_name"]: row["lv_tags"].split(",") for row in _report(machine, "lv", "lv_name,lv_tags", *which)}
    still = [name for name in step.names if UNFINISHED in tags.get(name, [UNFINISHED])]
    if still:
        raise StepFailed(f"{', '.join(still)} of {step.group} still has the tag {UNFINISHED} after it was taken off")


def _report(machine: Machine, kind: str, columns: str, *which: str) -> list[Row]:
    """Return the rows of `pvs`, `vgs` or `lvs` for things that have to be there; sizes are bytes."""
    how = ["--reportformat", "json", "--units", "b", "--nosuffix", "--options", columns]
    try:
        return parse_report(machine.change([f"{kind}s", *how, *which]), kind, columns)
    except ValueError as error:
        raise StepFailed(f"the output of {kind}s cannot be used: {error}") from error


def _check_members(machine: Machine, group: str, devices: tuple[str, ...]) -> None:
    rows = _report(machine, "vg", "pv_name", group)
    found = {machine.resolve(row["pv_name"]) for row in rows}
    missing = [device for device in devices if machine.resolve(device) not in found]
    if missing:
        raise StepFailed(f"the volume group {group} lacks {', '.join(missing)} after it was given")


def _check_cache(machine: Machine, which: str, cache: str) -> None:
    (found,) = _report(machine, "lv", "pool_lv", which)
    if name_of(found["pool_lv"]) != cache:
        raise StepFailed(f"{which} has the cache {found['pool_lv'] or '(none)'} after it was given {cache}")


def _check_size(machine: Machine, device: str, size: int) -> None:
    """LVM rounds up to whole extents."""
    found = device_size(machine, device)
    if found < size:
        raise StepFailed(f"{device} has {found} bytes instead of {size}")
