# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subvolumes of a Btrfs, and its move to another device; filesystem.py makes and grows the Btrfs itself."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from .._facts.present import Present
from .._storage.btrfs import TOP_LEVEL, list_commands, read_subvolumes
from .._storage.units import in_mib
from .filesystem import EMPTY_FOLDER, MOUNT, MOUNTED, UNSHARE, tool_of
from .machine import MOVING_PATIENCE, Machine, StepFailed
from .needs import Tool
from .partitions import WIPEFS
from .picture import Picture, changed
from .reach import Reach, whole_devices
from .step import Step, Writes

_LISTED = "; ".join(" ".join(command) for command in list_commands('"$at"'))
_CREATING = 'umask 022; for name; do mkdir -p "$(dirname "$at/$name")"; btrfs subvolume create "$at/$name" >&2; done'
_LIMITING = 'btrfs quota enable "$at"; while [ $# -gt 1 ]; do btrfs qgroup limit "$2" "$at/$1"; shift 2; done'
_AND_LIST = f'; btrfs filesystem sync "$at" >&2; set +e; {_LISTED}; set -e'


class _SubvolumeStep(Step):
    """A step on subvolumes of a Btrfs. It is mounted for it where nobody else sees that, whether it is mounted elsewhere or not."""

    device: str

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return tool_of("btrfs"), MOUNT, UNSHARE

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device,))

    def _shown(self, picture: Picture, limits: Mapping[str, t.Optional[int]]) -> Picture:
        """Return the picture with subvolumes on all devices of the filesystem."""
        uuid = picture[self.device].uuid if self.device in picture else ""
        members = [key for key, piece in picture.items() if piece.uuid == uuid and uuid]
        return {**picture, **{key: replace(picture[key], subvolumes={**picture[key].subvolumes, **limits}) for key in members}}

    def _in_a_mount(self, machine: Machine, script: str, *words: str) -> Mapping[str, t.Optional[int]]:
        """Run a script with the top of the Btrfs mounted, and return its subvolumes with their limits."""
        whole = MOUNTED.format(f",{TOP_LEVEL}", script + _AND_LIST)
        return read_subvolumes(machine.change(["unshare", "--mount", "--", "sh", "-c", whole, "sh", self.device, EMPTY_FOLDER, *words]))


@dataclass(frozen=True)
class CreateSubvolumes(_SubvolumeStep):
    """Make subvolumes of a Btrfs, by their paths below its top, outer ones first; folders between them are made as well."""

    device: str
    names: tuple[str, ...]

    words: t.ClassVar[str] = "create subvolumes in the btrfs on {device}: {names}"

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return self._shown(picture, dict.fromkeys(self.names))

    def run(self, machine: Machine) -> None:
        """Make the subvolumes, and see that they are there."""
        found = self._in_a_mount(machine, _CREATING, *self.names)
        lacking = [name for name in self.names if name not in found]
        if lacking:
            raise StepFailed(f"{self.device} has no subvolume {', '.join(lacking)}, although btrfs did not complain")


_STARTING = (
    'btrfs device scan "$2" "$3" >&2 || true; set -- "$1" "$2" "$3" "$(btrfs replace status -1 "$1")"; '
    'case "$4" in *%*done*) ;; *) if btrfs filesystem show --raw "$1" | grep -q " path $2\\$"; '
    'then btrfs replace start -B "$2" "$3" "$1" >&2; fi;; esac; '
    'while btrfs replace status -1 "$1" | grep -q "% done"; do sleep 1; done; btrfs replace status -1 "$1" >&2; '
    'btrfs filesystem show --raw "$1"'
)
"""A shell's words: mount point, old and new device. A move that was cut off goes on as soon as the Btrfs is mounted."""
_IN_PLACE = f"set -e; {_STARTING}"
_IN_A_FOLDER = (
    'set -e; btrfs device scan "$1" "$2" >&2 || true; '
    f'mount -o nosuid,nodev,noexec,{TOP_LEVEL} -- "$1" "$3"; at="$3"; set -- "$at" "$1" "$2"; '
    f'({_IN_PLACE}) || {{ umount "$at"; exit 1; }}; umount "$at"'
)


@dataclass(frozen=True)
class ReplaceDevice(Step):
    """Move a Btrfs off a device onto a cleared one, mounted or not; `mountpoint` is where it is mounted, else None."""

    device: str
    new: str
    mountpoint: t.Optional[str]

    words: t.ClassVar[str] = "replace {device} in its btrfs by {new}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return tool_of("btrfs"), WIPEFS, *(() if self.mountpoint else (MOUNT, UNSHARE))

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device, self.new], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device, self.new))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        old = picture.get(self.device)
        if old is None:
            return picture
        picture = changed(picture, self.new, holds=old.holds, subvolumes=old.subvolumes, uuid=old.uuid)
        return changed(picture, self.device, holds="", subvolumes={}, uuid="")

    def run(self, machine: Machine) -> None:
        """Have the kernel move it, and see that the Btrfs is on the new device and not on the old one."""
        if self.mountpoint:
            command = ["sh", "-c", _IN_PLACE, "sh", self.mountpoint, self.device, self.new]
        else:
            command = ["unshare", "--mount", "--", "sh", "-c", _IN_A_FOLDER, "sh", self.device, self.new, EMPTY_FOLDER]
        said = machine.change(command, patience=MOVING_PATIENCE)
        machine.settle()
        devices = {words[-1] for words in (line.split() for line in said.splitlines()) if words[:1] == ["devid"]}
        there = {machine.resolve(device) or device for device in devices}
        if (machine.resolve(self.new) or self.new) not in there or (machine.resolve(self.device) or self.device) in there:
            raise StepFailed(f"the btrfs is on {', '.join(sorted(there)) or 'nothing'} after {self.device} was replaced by {self.new}")
        # The kernel has cleared the superblocks; udev, which names devices by UUID, looks again when the device was open for writing.
        machine.change(["wipefs", "--all", "--quiet", self.device])
        machine.settle()


@dataclass(frozen=True)
class LimitSubvolumes(_SubvolumeStep):
    """Have a Btrfs keep quotas, and limit the bytes that subvolumes refer to; `limits` are by the order of `names`."""

    device: str
    names: tuple[str, ...]
    limits: tuple[int, ...]

    words: t.ClassVar[str] = "limit subvolumes of the btrfs on {device}"

    @property
    def says(self) -> str:
        """See Described."""
        each = (f"{name} to {in_mib(limit)}" for name, limit in zip(self.names, self.limits))
        return f"{super().says}: {', '.join(each)}"

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return self._shown(picture, dict(zip(self.names, self.limits)))

    def run(self, machine: Machine) -> None:
        """Limit the subvolumes, and see that they are limited."""
        words = [word for name, limit in zip(self.names, self.limits) for word in (name, str(limit))]
        found = self._in_a_mount(machine, _LIMITING, *words)
        for name, limit in zip(self.names, self.limits):
            if found.get(name) != limit:
                raise StepFailed(f"the subvolume {name} on {self.device} may refer to {found.get(name)} bytes instead of {limit}")
