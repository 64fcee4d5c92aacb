# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM: physical volumes, volume groups and logical volumes. Commands name what they work on; other groups of the host are never touched."""

from __future__ import annotations

import abc
import typing as t
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .._facts.present import Present
from .._storage.lvm import CLEARED, EXTENT, UNFINISHED, mapper_node, parse_report, stripe_options, stripe_segments
from .._storage.units import KIB, MIB, in_mib
from .filesystem import shrink_filesystem, tools_to_shrink
from .machine import Machine, StepFailed
from .needs import DEVICE_MAPPER, Ability, Tool
from .partitions import device_size
from .picture import Picture, Piece, changed, holding, without_dependents
from .reach import NOTHING, Reach, whole_devices
from .step import Step, Writes

LVM = Tool("pvcreate", "lvm2", "lvm2", name="lvm2")

_MIXED_BLOCKS = ("--config", "devices{allow_mixed_block_sizes=1}")
"""LVM asks for it where a group is on disks of 512 and of 4096 bytes a sector; it changes nothing else."""

Row = dict[str, str]


class _LvmStep(Step):
    """A step with LVM's tools."""

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (LVM,)


class GroupStep(_LvmStep):
    """A step on a volume group."""

    group: str

    def writes(self) -> Writes:
        """See Step."""
        return Writes(group=self.group)


class VolumeStep(GroupStep):
    """A step on a logical volume."""

    name: str

    @property
    def node(self) -> str:
        """The volume's mapper node."""
        return mapper_node(self.group, self.name)

    @property
    def path(self) -> str:
        """The volume in LVM's words."""
        return f"{self.group}/{self.name}"

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.node,), self.group)


class NewVolumeStep(VolumeStep):
    """A step that makes a logical volume in free room."""

    def reaches(self, present: Present) -> Iterable[Reach]:
        """See Step."""
        return NOTHING


class KeptVolumeStep(VolumeStep):
    """A step that changes a present logical volume, and keeps its content."""

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return volumes(present, self.group, [self.name], keeps=True)


# ---- physical volumes and volume groups


@dataclass(frozen=True)
class CreatePhysicalVolume(_LvmStep):
    """Make a device a physical volume. `metadata_size` in bytes, 0 for LVM's default.

    `aligned`: it is on an array, whose stripes LVM follows; else the data alignment is 1 MiB.
    """

    device: str
    metadata_size: int
    metadata_copies: int
    aligned: bool

    words: t.ClassVar[str] = "make {device} a physical volume"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device])

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device,))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return changed(picture, self.device, holds=physical_volume())

    def run(self, machine: Machine) -> None:
        """Write label and metadata area; extents follow the stripes of an array, else they begin at a whole MiB."""
        size = [f"--metadatasize={self.metadata_size}b"] if self.metadata_size else []
        begin = [] if self.aligned else ["--dataalignment=1m"]
        machine.change(["pvcreate", "--yes", "--quiet", *size, *begin, f"--pvmetadatacopies={self.metadata_copies}", self.device])
        report(machine, "pv", "pv_uuid", self.device)


@dataclass(frozen=True)
class ResizePhysicalVolume(_LvmStep):
    """Let a physical volume take the whole of its device, which has grown."""

    device: str

    words: t.ClassVar[str] = "grow the physical volume {device} to the size of its device"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device,))

    def run(self, machine: Machine) -> None:
        """Let the physical volume follow its device."""
        machine.change(["pvresize", "--quiet", self.device])


class JoiningStep(GroupStep):
    """A step that makes one group of several devices.

    LVM flushes nothing that it writes, so that a power cut could leave a group on one disk, and nothing of its physical volume on another:
    disks are flushed before it.
    """

    flushes_before: t.ClassVar[bool] = True
    devices: tuple[str, ...]

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, self.devices)

    def writes(self) -> Writes:
        """See Step."""
        return Writes(self.devices, self.group)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return holding(picture, self.devices, physical_volume(self.group))

    def run(self, machine: Machine) -> None:
        """Have the devices join, and see that they have."""
        machine.change(self.command())
        found = {machine.resolve(row["pv_name"]) for row in report(machine, "vg", "pv_name", self.group)}
        missing = [device for device in self.devices if machine.resolve(device) not in found]
        if missing:
            raise StepFailed(f"the volume group {self.group} lacks {', '.join(missing)} after it was given")

    @abc.abstractmethod
    def command(self) -> list[str]:
        """Return the command that has the devices join."""


@dataclass(frozen=True)
class CreateVolumeGroup(JoiningStep):
    """Make a volume group of physical volumes, with extents of this many bytes."""

    group: str
    devices: tuple[str, ...]
    extent: int = EXTENT * MIB

    words: t.ClassVar[str] = "create the volume group {group} on {devices}"

    @property
    def says(self) -> str:
        """See Described."""
        return super().says + (f", with extents of {in_mib(self.extent)}" if self.extent != EXTENT * MIB else "")

    def command(self) -> list[str]:
        """See JoiningStep."""
        return ["vgcreate", "--yes", "--quiet", *_MIXED_BLOCKS, f"--physicalextentsize={self.extent}b", self.group, *self.devices]


@dataclass(frozen=True)
class ExtendVolumeGroup(JoiningStep):
    """Let physical volumes join a volume group."""

    group: str
    devices: tuple[str, ...]

    words: t.ClassVar[str] = "extend the volume group {group} by {devices}"

    def command(self) -> list[str]:
        """See JoiningStep."""
        return ["vgextend", "--yes", "--quiet", *_MIXED_BLOCKS, self.group, *self.devices]


@dataclass(frozen=True)
class RewriteGroup(GroupStep):
    """Write a group's metadata to all its physical volumes: a run that was cut off may have left some without."""

    group: str

    words: t.ClassVar[str] = "write the metadata of the volume group {group} to all its physical volumes"

    def reaches(self, present: Present) -> Iterable[Reach]:
        """See Step. Groups are named as the layout has them, and judged by their physical volumes."""
        return NOTHING

    def run(self, machine: Machine) -> None:
        """Have LVM commit the group's metadata once more, which reaches those physical volumes that lack it."""
        machine.change(["vgck", "--updatemetadata", self.group])


@dataclass(frozen=True)
class ActivateGroup(GroupStep):
    """Activate all logical volumes of a group, or those with `names`, where others cannot be activated.

    A start that did not wait for a disk may have activated some without their parts on it. They get these back by being refreshed.
    """

    group: str
    names: tuple[str, ...] = ()

    words: t.ClassVar[str] = "activate the volume group {group}"

    @property
    def says(self) -> str:
        """See Described."""
        return super().says + (f": {', '.join(self.names)}" if self.names else "")

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (DEVICE_MAPPER,)

    def reaches(self, present: Present) -> Iterable[Reach]:
        """See Step. Groups are named as the layout has them, and judged by their physical volumes."""
        return NOTHING

    def run(self, machine: Machine) -> None:
        """Activate the group's volumes, or some of them."""
        some = [f"{self.group}/{name}" for name in self.names]
        command = ["lvchange", *some] if some else ["vgchange", self.group]
        machine.change([*command, "--activate", "y"])
        machine.change([*command, "--refresh"])
        machine.settle()


@dataclass(frozen=True)
class DeactivateGroup(GroupStep):
    """Deactivate all logical volumes of a group; it may lack physical volumes. `uuid` distinguishes groups of one name."""

    group: str
    uuid: t.Optional[str] = None

    words: t.ClassVar[str] = "deactivate the volume group {group}"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step. Closed volumes are destroyed later."""
        found = [volume for volume in present.logical if volume.group == self.group and self.uuid in (None, volume.group_uuid)]
        return (Reach(device.name) for volume in found for device in present.devices_of(volume) if device.running)

    def run(self, machine: Machine) -> None:
        """Deactivate the group's volumes; by UUID where it is known, for disks of another machine can bring a group of the same name."""
        which = [self.group] if self.uuid is None else ["--select", f"vg_uuid={self.uuid}"]
        machine.change(["vgchange", "--activate", "n", *which])
        machine.settle()


# ---- logical volumes


class _MadeVolume(NewVolumeStep):
    """A step that makes a volume of `size` in the room of its group; `device` is its mapper node."""

    size: int
    device: str

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (DEVICE_MAPPER,)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return {**picture, self.device: volume_piece(self.group, self.name, self.size, members_of(picture, self.group))}


@dataclass(frozen=True)
class CreateLogicalVolume(_MadeVolume):
    """Make a linear logical volume with the tag UNFINISHED, without reading its contents; `device` is its mapper node."""

    group: str
    name: str
    size: int
    device: str

    words: t.ClassVar[str] = "create the logical volume {group}/{name} with {size}"

    def run(self, machine: Machine) -> None:
        """Make the volume, without the previous contents of its room: LVM wipes it before udev looks, which would bring them to life."""
        unseen = ["--wipesignatures", "y", "--zero", "y"]
        named = ["--addtag", UNFINISHED, "--name", self.name, "--size", f"{self.size}b", self.group]
        machine.change(["lvcreate", "--yes", "--quiet", *unseen, *named])
        # LVM has waited for udev to make the node.
        machine.wait_for([self.device])
        check_size(machine, self.device, self.size)


class _StripedStep(VolumeStep):
    """A step that takes room for a striped volume, on the nodes of physical volumes that are wanted, where all of them have it."""

    size: int
    stripes: int
    stripe_size: int
    on: tuple[str, ...]

    @property
    def says(self) -> str:
        """See Described."""
        of = f" of {self.stripe_size // KIB} KiB" if self.stripe_size else ""
        return f"{super().says}, in {self.stripes} stripes{of}" + (f" on {', '.join(self.on)}" if self.on else "")

    def take_room(self, machine: Machine, before: int, create: Sequence[str] = ()) -> None:
        """Let the volume grow from `before` bytes, by a command that makes it at first where it has none, and see what it has become.

        Each segment names its physical volumes: LVM takes the first ones that it finds.
        """
        rows = [row for row in report(machine, "pv", "pv_name,pv_free,vg_name,vg_extent_size") if row["vg_name"] == self.group]
        extent = int(rows[0]["vg_extent_size"]) if rows else 1
        room = {row["pv_name"]: int(row["pv_free"]) // extent for row in rows}
        asked = {machine.resolve(node) for node in self.on}
        wanted = [node for node in room if machine.resolve(node) in asked]
        segments = stripe_segments(room, self.stripes, (self.size - before) // extent // self.stripes, wanted)
        if segments is None:
            raise StepFailed(f"{self.group} has no room for {self.path} in {self.stripes} stripes, on as many physical volumes")
        size, options = before, stripe_options(self.stripes, self.stripe_size)
        for nodes, extents in segments:
            size += extents * extent * self.stripes
            program, *rest = ("lvextend", self.path) if before else ("lvcreate", *create)
            machine.change([program, "--yes", "--quiet", *options, f"--size={size}b", *rest, *nodes])
            before = size
        # There is a row for every segment.
        found = report(machine, "lv", "lv_size,stripes", self.path)
        kinds = sorted({int(row["stripes"]) for row in found})
        if kinds != [self.stripes] or int(found[0]["lv_size"]) < self.size:
            says = f"{self.path} has {found[0]['lv_size']} bytes in segments of {', '.join(map(str, kinds))} stripes"
            raise StepFailed(f"{says}, not {self.size} in {self.stripes}")


@dataclass(frozen=True)
class CreateStripedVolume(_StripedStep, _MadeVolume):
    """Make a striped logical volume as CreateLogicalVolume makes a linear one; `stripe_size` 0 is LVM's default."""

    group: str
    name: str
    size: int
    device: str
    stripes: int
    stripe_size: int
    on: tuple[str, ...]

    words: t.ClassVar[str] = CreateLogicalVolume.words

    def run(self, machine: Machine) -> None:
        """Make the volume, without the previous contents of its room."""
        unseen = ["--wipesignatures", "y", "--zero", "y"]
        self.take_room(machine, 0, [*unseen, "--addtag", UNFINISHED, "--name", self.name, self.group])
        machine.wait_for([self.device])
        check_size(machine, self.device, self.size)


@dataclass(frozen=True)
class ExtendStripedVolume(_StripedStep, KeptVolumeStep):
    """Grow a striped logical volume to `size` in as many stripes as it has, online; its filesystem grows by a step of its own."""

    group: str
    name: str
    size: int
    before: int
    stripes: int
    stripe_size: int
    on: tuple[str, ...]

    words: t.ClassVar[str] = "grow the logical volume {group}/{name} from {before} to {size}"

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return changed(picture, self.node, size=self.size)

    def run(self, machine: Machine) -> None:
        """Grow the volume while it is in use."""
        self.take_room(machine, self.before)


@dataclass(frozen=True)
class ExtendLogicalVolume(KeptVolumeStep):
    """Grow a logical volume, or the data of a thin pool, to `size`, online; its filesystem grows by a step of its own."""

    group: str
    name: str
    size: int
    before: int

    words: t.ClassVar[str] = "grow the logical volume {group}/{name} from {before} to {size}"

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return changed(picture, self.node, size=self.size)

    def run(self, machine: Machine) -> None:
        """Grow the volume while it is in use."""
        machine.change(["lvextend", "--yes", "--quiet", "--size", f"{self.size}b", self.path])
        (found,) = report(machine, "lv", "lv_size", self.path)
        if int(found["lv_size"]) < self.size:
            raise StepFailed(f"{self.path} has {found['lv_size']} bytes after it was grown to {self.size}")


@dataclass(frozen=True)
class ShrinkLogicalVolume(KeptVolumeStep):
    """Make the filesystem on a logical volume (`device` is its node), which is not mounted, no larger than `size`, then the volume."""

    group: str
    name: str
    size: int
    before: int
    device: str
    type: str

    words: t.ClassVar[str] = "shrink the {type} on the logical volume {group}/{name}, and then the volume, from {before} to {size}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (LVM, *tools_to_shrink(self.type))

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device, self.node), self.group)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return changed(picture, self.node, size=self.size)

    def run(self, machine: Machine) -> None:
        """Shrink the filesystem, verify it, and cut off the end of the volume, which it does not use any more."""
        shrink_filesystem(self.device, self.type, self.size, machine)
        machine.change(["lvreduce", "--yes", "--quiet", "--size", f"{self.size}b", self.path])
        (found,) = report(machine, "lv", "lv_size", self.path)
        if int(found["lv_size"]) != self.size:
            raise StepFailed(f"{self.path} has {found['lv_size']} bytes after it was made smaller, to {self.size}")


@dataclass(frozen=True)
class RemoveLogicalVolume(VolumeStep):
    """Remove a logical volume (to be replaced, or not wanted any more), a thin pool with all its volumes, an origin with its snapshots.

    `begun`: it is a pool that a run was cut off at, and that may be such that nothing can activate it.
    """

    group: str
    name: str
    begun: bool = False

    words: t.ClassVar[str] = "remove the logical volume {group}/{name}"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return volumes(present, self.group, [self.name], keeps=False)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return {key: piece for key, piece in without_dependents(picture, [self.node]).items() if key != self.node}

    def run(self, machine: Machine) -> None:
        """Remove the volume, which LVM refuses while it is in use; with force a pool that even its removal cannot activate."""
        force = ["--force", "--force"] if self.begun else []
        machine.change(["lvremove", "--yes", "--quiet", *force, self.path])
        machine.settle()


class _MarkStep(GroupStep):
    """A step that changes tags of logical volumes."""

    names: tuple[str, ...]

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return volumes(present, self.group, self.names, keeps=True)


@dataclass(frozen=True)
class MarkCleared(_MarkStep):
    """Give unfinished logical volumes that were cleared the tag CLEARED."""

    group: str
    names: tuple[str, ...]

    words: t.ClassVar[str] = "mark {names} in {group} as cleared"

    def run(self, machine: Machine) -> None:
        """Add the tag."""
        machine.change(["lvchange", "--quiet", "--addtag", CLEARED, *(f"{self.group}/{name}" for name in self.names)])


@dataclass(frozen=True)
class FinishLogicalVolumes(_MarkStep):
    """Take the tags UNFINISHED and CLEARED off logical volumes; their content is the user's from now on."""

    group: str
    names: tuple[str, ...]

    words: t.ClassVar[str] = "mark {names} in {group} as finished"

    def run(self, machine: Machine) -> None:
        """Take the tags off, and see that UNFINISHED is gone."""
        which = [f"{self.group}/{name}" for name in self.names]
        machine.change(["lvchange", "--quiet", "--deltag", UNFINISHED, "--deltag", CLEARED, *which])
        tags = {row["lv_name"]: row["lv_tags"].split(",") for row in report(machine, "lv", "lv_name,lv_tags", *which)}
        still = [name for name in self.names if UNFINISHED in tags.get(name, [UNFINISHED])]
        if still:
            raise StepFailed(f"{', '.join(still)} of {self.group} still has the tag {UNFINISHED} after it was taken off")


# ---- for all files of LVM


def volumes(present: Present, group: str, names: Collection[str], keeps: bool) -> Iterator[Reach]:
    """Give the devices of volumes, and of those that are removed with them."""
    known = [volume for volume in present.logical if volume.group == group and volume.name in names]
    inside = [other for volume in known for other in present.removed_with(volume)]
    return (Reach(device.name, keeps=keeps) for volume in (*inside, *known) for device in present.devices_of(volume))


def report(machine: Machine, kind: str, columns: str, *which: str) -> list[Row]:
    """Return the rows of `pvs`, `vgs` or `lvs` (`kind` pv, vg, lv) for things that have to exist; sizes are bytes. Raises StepFailed."""
    how = ["--reportformat", "json", "--units", "b", "--nosuffix", "--options", columns]
    try:
        return parse_report(machine.change([f"{kind}s", *how, *which]), kind, columns)
    except ValueError as error:
        raise StepFailed(f"the output of {kind}s cannot be used: {error}") from error


def check_size(machine: Machine, device: str, size: int) -> None:
    """Raise StepFailed where a volume is too small; LVM rounds up to whole extents."""
    found = device_size(machine, device)
    if found < size:
        raise StepFailed(f"{device} has {found} bytes instead of {size}")


# ---- in pictures


def physical_volume(group: t.Optional[str] = None) -> str:
    """Return the content of a device that is a physical volume in pictures."""
    return f"physical volume of {group}" if group else "physical volume"


def members_of(picture: Picture, group: str) -> tuple[str, ...]:
    """Return the keys of a group's physical volumes in a picture."""
    return tuple(key for key, piece in picture.items() if piece.holds == physical_volume(group))


def volume_piece(group: str, name: str, size: int, on: tuple[str, ...], holds: str = "") -> Piece:
    """Return a logical volume of a picture."""
    return Piece(f"volume group {group}", (0, name), name, size, on, holds)
