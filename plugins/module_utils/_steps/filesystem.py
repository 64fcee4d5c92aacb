# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filesystems and swap. Nothing is forced: the device of a new filesystem was cleared before."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .._facts.present import Present
from .._facts.signatures import parse_probe, parse_signatures, probe_command, signatures_command
from .._storage.btrfs import make_options
from .._storage.ext4 import OFFSET, SIZE, as_first, parse_superblock
from .._storage.filesystems import FILESYSTEMS, SWAP, Growth, fill, packages_of_tools
from .machine import LONG_PATIENCE, Machine, StepFailed
from .needs import Tool
from .partitions import WIPEFS
from .picture import Picture, changed, labelled
from .reach import Reach, whole_devices
from .step import Step, Writes

MOUNT = Tool("mount", "mount", "util-linux")
UNSHARE = Tool("unshare", "util-linux", "util-linux")
_BLKID = Tool("blkid", "util-linux", "util-linux")
_DD = Tool("dd", "coreutils", "coreutils")

TORN = " with a torn superblock"
"""What pictures add to the content of a device with one."""

MOUNTED = 'set -e; mount -o nosuid,nodev,noexec{} -- "$1" "$2"; shift; at="$1"; shift; {}; umount "$at"'
"""A shell's words, run in a mount namespace: were it killed, no mount would stay. Put in: options, and what is run with it mounted."""
_RUN_MOUNTED = MOUNTED.format("", '"$@" || { umount "$at"; exit 1; }')

_EACH_DEVICE = (
    'set -e; shown="$(btrfs filesystem show --raw "$1")"; '
    'ids="$(printf "%s\\n" "$shown" | sed -n "s/^[[:space:]]*devid *\\([0-9]*\\) .*/\\1/p")"; '
    'for id in $ids; do btrfs filesystem resize "$id:max" "$1"; done'
)
"""A shell's words that have a mounted Btrfs take the whole of each of its devices."""

EMPTY_FOLDER = "/mnt"
"""The mount point for that, where nobody else sees it: every system has it, and nothing need be written to make it."""


def tool_of(program: str) -> Tool:
    """Return the tool that makes, checks or grows a filesystem."""
    return Tool(program, *packages_of_tools()[program])


@dataclass(frozen=True)
class MakeFilesystem(Step):
    """Make an ext2, ext3, ext4, xfs, btrfs or vfat. `uuid` as blkid shows it (vfat: `1A2B-3C4D`); `options` are words for mkfs.

    `more` are the other devices of a btrfs on several, `level` how it lies on them.
    """

    device: str
    type: str
    uuid: str
    label: str
    options: tuple[str, ...]
    more: tuple[str, ...] = ()
    level: str = ""

    words: t.ClassVar[str] = "make {type} on {device}{label}"

    @property
    def says(self) -> str:
        """See Described."""
        return super().says + (f", {self.level} with {', '.join(self.more)}" if self.more else "") + _options_in_words(self.options)

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (tool_of(FILESYSTEMS[self.type].make[0]), _BLKID)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, (self.device, *self.more))

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device, *self.more))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        for device in (self.device, *self.more):
            picture = changed(picture, device, holds=labelled(self.type, self.label), subvolumes={}, uuid=self.uuid)
        return picture

    def run(self, machine: Machine) -> None:
        """Make the filesystem, and see that it is there with its identity."""
        options = (*make_options(self.level), *self.options) if self.more else self.options
        if self.more:
            # The kernel still knows the devices of a removed btrfs with this UUID. Kernels before 5.0 cannot forget any.
            for command in (("btrfs", "device", "scan", "--forget"), ("btrfs", "device", "scan")):
                machine.run(command)
        make = FILESYSTEMS[self.type].make_command(self.device, self.uuid, self.label, options)
        machine.change([*make, *self.more], patience=LONG_PATIENCE)
        for device in (self.device, *self.more):
            _check(machine, device, self.type, self.uuid, self.label)


@dataclass(frozen=True)
class MakeSwap(Step):
    """Make swap; it is not switched on."""

    device: str
    uuid: str
    label: str
    options: tuple[str, ...]

    words: t.ClassVar[str] = "make swap on {device}{label}"

    @property
    def says(self) -> str:
        """See Described."""
        return super().says + _options_in_words(self.options)

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (tool_of(FILESYSTEMS[SWAP].make[0]), _BLKID)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device])

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device,))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return changed(picture, self.device, holds=labelled(SWAP, self.label))

    def run(self, machine: Machine) -> None:
        """Make swap, and see that it is there with its identity; it is not switched on."""
        machine.change(FILESYSTEMS[SWAP].make_command(self.device, self.uuid, self.label, self.options), patience=LONG_PATIENCE)
        _check(machine, self.device, SWAP, self.uuid, self.label)


@dataclass(frozen=True)
class GrowFilesystem(Step):
    """Let an ext*, xfs or btrfs take the whole of its device.

    `mountpoint` is where it is mounted, else None: it is mounted then for the time of the growing, in a place of its own.
    `several`: it is a btrfs on several devices, and takes the whole of each.
    """

    device: str
    type: str
    mountpoint: t.Optional[str]
    several: bool = False

    words: t.ClassVar[str] = "grow the {type} on {device} to the size of its device"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        growth = FILESYSTEMS[self.type].growth
        if growth is None:
            return ()
        apart = (UNSHARE, MOUNT) if growth.mounted and not self.mountpoint else ()
        commands = (growth.mounted or growth.unmounted, () if self.mountpoint else growth.check)
        return (*(tool_of(command[0]) for command in commands if command), *apart)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device,))

    def run(self, machine: Machine) -> None:
        """Let the filesystem take its whole device: where it is mounted, or mounted for it after a check.

        Where that does not work it grows unmounted. An ext4 is not safe then: a power cut can leave errors that e2fsck -p does not repair.
        The kernel lets few containers grow one that is mounted.
        """
        growth = FILESYSTEMS[self.type].growth
        if growth is None or not (growth.mounted or self.mountpoint is None):
            raise StepFailed(f"the {self.type} on {self.device} cannot be grown{' while it is mounted' if growth else ''}")
        if self.mountpoint is None and growth.check:
            _check_unmounted(self.device, growth, machine)
        if not growth.mounted:
            machine.change(fill(growth.unmounted, device=self.device), patience=LONG_PATIENCE)
            return
        place = self.mountpoint or EMPTY_FOLDER
        growing = fill(growth.mounted, device=self.device, mountpoint=place)
        if self.several:
            growing = ["sh", "-c", _EACH_DEVICE, "sh", place]
        apart = ["unshare", "--mount", "--", "sh", "-c", _RUN_MOUNTED, "sh", self.device, place]
        try:
            machine.change(growing if self.mountpoint else [*apart, *growing], patience=LONG_PATIENCE)
        except StepFailed:
            if self.mountpoint or not growth.unmounted:
                raise
            # It was mounted since the check.
            _check_unmounted(self.device, growth, machine)
            machine.change(fill(growth.unmounted, device=self.device), patience=LONG_PATIENCE)


@dataclass(frozen=True)
class CopyContents(Step):
    """Move what nobody uses from a device onto another one by copying it whole, with its UUIDs; then the old one's signatures go.

    As long as the old one has all of them the copy is made again from the start: it may have been used meanwhile.
    """

    device: str
    new: str
    size: int
    content: str

    words: t.ClassVar[str] = "copy the {content} on {device} ({size}) to {new}, and clear its signatures on {device}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (WIPEFS,)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        yield from whole_devices(present, [self.device], keeps=True)
        yield from whole_devices(present, [self.new])

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device, self.new))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        old = picture.get(self.device)
        if old is None:
            return picture
        return changed(changed(picture, self.new, holds=old.holds, uuid=old.uuid), self.device, holds="", uuid="")

    def run(self, machine: Machine) -> None:
        """Copy, and only then clear the signatures of the old one: two copies of one UUID must not stay."""
        if not self._is_half_cleared(machine):
            machine.copy(self.device, self.new, self.size)
        machine.change(["wipefs", "--all", "--quiet", self.device])
        machine.settle()
        found, left = (parse_probe(outcome.stdout) if outcome is not None else {} for outcome in map(machine.run, self._probes()))
        if found.get("TYPE") != self.content or left.get("TYPE"):
            raise StepFailed(f"{self.new} has {found.get('TYPE')}, and {self.device} has {left.get('TYPE')}, after the one was copied")

    def _is_half_cleared(self, machine: Machine) -> bool:
        """Return whether a run was cut off while it cleared the old one, as LUKS and FAT have several signatures: the copy is whole then.

        wipefs overwrites the magic bytes of each with zeros; FAT has one of a single byte.
        """
        found, left = (
            parse_signatures(outcome.stdout) if outcome is not None and outcome.code == 0 else ()
            for outcome in map(machine.run, (signatures_command(self.new), signatures_command(self.device)))
        )
        try:
            magics, kept = (
                [
                    tuple(machine.read_bytes(device, offset, 1) for device in (self.device, self.new))
                    for signature in signatures
                    for offset in signature.offsets
                ]
                for signatures in (found, left)
            )
        except OSError as error:
            raise StepFailed(f"cannot compare {self.new} with {self.device}: {error.strerror}") from error
        # What the new one has from before a first copy is no copy: it lacks what the old one has.
        return all(old == new for old, new in kept) and any(any(new) and not any(old) for old, new in magics)

    def _probes(self) -> tuple[Sequence[str], Sequence[str]]:
        return probe_command(self.new), probe_command(self.device)


@dataclass(frozen=True)
class RestoreSuperblock(Step):
    """Restore the torn primary superblock of an unmounted ext4 from the whole backup in a block, then check the filesystem."""

    device: str
    type: str
    block: int
    block_size: int

    words: t.ClassVar[str] = "restore the torn superblock of the {type} on {device} from its copy in block {block}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        growth = FILESYSTEMS[self.type].growth
        return (_DD, *((tool_of(growth.check[0]),) if growth and growth.check else ()))

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device,))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        there = picture.get(self.device)
        return picture if there is None else changed(picture, self.device, holds=there.holds.replace(TORN, ""))

    def run(self, machine: Machine) -> None:
        """Write the backup over the first superblock, have the filesystem checked, and see that the first one is whole.

        e2fsck by the backup itself (-b) would ignore the marks of unwritten parts: inode tables that still have previous contents of
        the disk.
        """
        growth = FILESYSTEMS[self.type].growth
        copy = machine.read_bytes(self.device, self.block * self.block_size, SIZE)
        found = parse_superblock(copy)
        if growth is None or found is None or not found.whole:
            raise StepFailed(f"the block {self.block} of {self.device} has no whole copy of the superblock of its {self.type}")
        place = [f"of={self.device}", f"bs={SIZE}", f"seek={OFFSET // SIZE}", "count=1", "iflag=fullblock"]
        machine.change(["dd", *place, "conv=notrunc,nocreat,fsync"], given=as_first(copy))
        _check_unmounted(self.device, growth, machine)
        first = parse_superblock(machine.read_bytes(self.device, OFFSET, SIZE))
        if first is None or not first.whole:
            raise StepFailed(f"the superblock of the {self.type} on {self.device} is not whole, although e2fsck did not complain")


def tools_to_shrink(kind: str) -> tuple[Tool, ...]:
    """Return the tools that shrink a filesystem."""
    row = FILESYSTEMS[kind]
    commands = (row.shrink, *((row.growth.check, row.growth.measure.command) if row.growth else ()))
    return tuple(tool_of(command[0]) for command in commands if command)


def shrink_filesystem(device: str, kind: str, size: int, machine: Machine) -> None:
    """Shrink an unmounted filesystem to at most `size` bytes, and verify it; raises StepFailed."""
    row = FILESYSTEMS[kind]
    if row.growth is None or not row.shrink:
        raise StepFailed(f"the {kind} on {device} cannot be shrunk")
    _check_unmounted(device, row.growth, machine)
    if _size(machine, device, kind) > size:
        machine.change(fill(row.shrink, device=device, kib=str(size // 1024)), patience=LONG_PATIENCE)
    found = _size(machine, device, kind)
    if found > size:
        raise StepFailed(f"the {kind} on {device} has {found} bytes after it was made smaller, to {size}")


def _check_unmounted(device: str, growth: Growth, machine: Machine) -> None:
    """Check a filesystem that is not mounted; raises StepFailed where it has errors that need somebody to decide."""
    machine.change(fill(growth.check, device=device), patience=LONG_PATIENCE, accepted=growth.checked)


def _size(machine: Machine, device: str, kind: str) -> int:
    growth = FILESYSTEMS[kind].growth
    found = growth.measure.read(machine.change(fill(growth.measure.command, device=device, mountpoint=device))) if growth else None
    if found is None:
        raise StepFailed(f"the size of the {kind} on {device} cannot be read")
    return found


def _check(machine: Machine, device: str, kind: str, uuid: str, label: str) -> None:
    """Compare what blkid reads from the device itself; FAT keeps labels in capitals."""
    outcome = machine.run(probe_command(device))
    found = parse_probe(outcome.stdout if outcome is not None else "")
    if (found.get("TYPE"), found.get("UUID", "").lower()) != (kind, uuid.lower()):
        raise StepFailed(f"{device} has {found.get('TYPE')} with the UUID {found.get('UUID')} on it instead of {kind} with {uuid}")
    if label and found.get("LABEL", "").lower() != label.lower():
        raise StepFailed(f"{device} has the label {found.get('LABEL')} instead of {label}")


def _options_in_words(options: Sequence[str]) -> str:
    return f", with {' '.join(options)}" if options else ""
