# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The clearing of devices that become ours: no signature of previous contents may come back to life."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .._facts.present import Present
from .._facts.signatures import parse_signatures, signatures_command
from .._storage.gpt import partition_node
from .._storage.samples import SAMPLE, between_ends
from .._storage.units import MIB
from .machine import Machine, Region, StepFailed
from .needs import Tool
from .partitions import PARTX, WIPEFS, device_size, disk_heading, ends
from .picture import Picture, without_dependents
from .reach import Reach, whole_devices
from .step import Step, Writes

_BLOCK = 4096
_COPIES = (1 * MIB, 2 * MIB, 4 * MIB, 64 * MIB, 256 * 1024**3)
"""Where copies lie that are in neither end: LUKS 2's second header (1, 2, 4 MiB at most), btrfs' superblocks (64 MiB, 256 GiB)."""


@dataclass(frozen=True)
class ClearSignatures(Step):
    """Remove every signature of devices that are ours and unfinished: zeros over their first `head` bytes and last MiB, then wipefs.

    In this order, for wipefs erases magic bytes alone: cut off behind it, a first sector would be left that no tool knows.

    Gone have to be md superblocks of all versions, PV labels, LUKS headers, a partition table inside it, ZFS labels, btrfs. Members of an
    array have a longer head: to behind the place where the array's data will begin, for the array would bring back the old contents.
    Copies farther inside (btrfs at 64 MiB and 256 GiB, LUKS2's second header up to 4 MiB) are cleared as well where a device has room, and
    so are samples that are no zeros yet: a thin volume is not given room for others.
    """

    devices: tuple[str, ...]
    head: int = MIB

    words: t.ClassVar[str] = "clear old signatures at both ends of {devices}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (WIPEFS,)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, self.devices)

    def writes(self) -> Writes:
        """See Step."""
        return Writes(self.devices)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        left = without_dependents(picture, self.devices)
        return {key: replace(piece, holds="") if key in self.devices else piece for key, piece in left.items()}

    def run(self, machine: Machine) -> None:
        """Clear the devices, which the kernel refuses while anything uses them, and see that no signature is left."""
        for device in self.devices:
            size = device_size(machine, device)
            written = (place for place in between_ends(size) if _has_data(machine, device, place))
            more = (Region(place, SAMPLE) for place in written)
            machine.zero(device, (*cleared_regions(size, self.head), *more), exclusively=True)
        machine.change(["wipefs", "--all", "--quiet", *self.devices])
        outcome = machine.run(signatures_command(*self.devices))
        left = parse_signatures(outcome.stdout) if outcome is not None and outcome.code == 0 else None
        if left is None or left:
            found = ", ".join(signature.type for signature in left or ())
            cleared = ", ".join(self.devices)
            raise StepFailed(f"{cleared} was cleared, but {f'still has {found}' if left else 'cannot be read back'}")


@dataclass(frozen=True)
class EmptyDisk(Step):
    """Take the table and all signatures off a disk whose contents have been moved to another; `parts` are its partitions (numbers)."""

    disk: str
    disk_id: str
    parts: tuple[int, ...]

    words: t.ClassVar[str] = "take the partitions and all signatures off {disk_id}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return WIPEFS, PARTX

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.disk])

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.disk,))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        nodes = [partition_node(self.disk, number) for number in self.parts]
        left = {key: piece for key, piece in without_dependents(picture, [self.disk, *nodes]).items() if key not in nodes}
        return {
            key: replace(piece, holds="", heading=disk_heading(self.disk_id, table=False)) if key == self.disk else piece
            for key, piece in left.items()
        }

    def run(self, machine: Machine) -> None:
        """Clear each partition, then the table: a disk that is cut off in between still has partitions without contents."""
        nodes = [partition_node(self.disk, number) for number in self.parts]
        for node in nodes:
            machine.change(["wipefs", "--all", "--quiet", node])
            machine.zero(node, cleared_regions(device_size(machine, node)), exclusively=True)
        with machine.locked(self.disk):
            if self.parts:
                machine.change(["partx", "--delete", self.disk])
            machine.change(["wipefs", "--all", "--quiet", self.disk])
            machine.zero(self.disk, ends(device_size(machine, self.disk)), exclusively=True)
        machine.settle()


def _has_data(machine: Machine, device: str, place: int) -> bool:
    try:
        return any(machine.read_bytes(device, place, SAMPLE))
    except OSError:
        return True


def cleared_regions(size: int, head: int = MIB) -> tuple[Region, ...]:
    """Return the regions to zero of a device of `size` bytes: both ends, `head` bytes, and the places of copies between them."""
    more = (Region(MIB, min(head, size) - MIB),) if min(head, size) > MIB else ()
    return (*ends(size), *more, *(Region(place, _BLOCK) for place in _COPIES if place + _BLOCK <= size - MIB))
