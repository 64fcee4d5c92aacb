# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shapes of a picture of a plan: disks, what lies on each in order, and every space with its total. Sizes are MiB."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ....module_utils._storage.lvm import EXTENT


@dataclass(frozen=True)
class Slice:
    """The part of one logical volume that is drawn inside a PV or a raid leg."""

    space_id: str
    size: float


@dataclass(frozen=True)
class Segment:
    """What one space takes of one disk; `slices` are the logical volumes inside it, `free` what no volume takes.

    `spare` says that it stands by for an array and holds nothing yet.
    """

    space_id: str
    size: int
    slices: tuple[Slice, ...] = ()
    free: float = 0
    spare: bool = False


@dataclass(frozen=True)
class DiskPicture:
    """One disk with its segments in order; `size` is the whole disk, `unallocated` what no space takes."""

    id: str
    name: str
    short_id: str
    description: str
    size: int
    unallocated: int
    segments: tuple[Segment, ...]

    def shape(self) -> tuple[t.Any, ...]:
        """Return everything but its names: disks of one shape need one drawing."""
        return (self.description, self.size, self.unallocated, self.segments)


@dataclass(frozen=True)
class SubvolumePicture:
    """A subvolume of a space with a Btrfs, or a dataset of a ZFS pool, as `what` says; `quota` in MiB."""

    name: str
    mount: str | None = None
    quota: int | None = None
    what: str = "subvolume"


@dataclass(frozen=True)
class SpacePicture:
    """One space over all disks. `size` is what it takes; of a raid, what it offers. `inside` is the space that holds it."""

    id: str
    kind: str
    label: str
    size: int
    disks: int = 0
    extent: int = EXTENT
    """Of a group: MiB below which nothing of a disk can be given out."""
    standing_by: tuple[str, ...] = ()
    """The disks whose part of an array is a spare."""
    metadata: int = 0
    """Of a thin pool: MiB that are metadata, and as many their spare; `size` includes both."""
    volumes: tuple[str, ...] = ()
    """Of a thin pool: what is in it."""
    cache: str = ""
    """Of a cache: what it is one of, and how."""
    inside: str | None = None
    lies_on: tuple[str, ...] = ()
    """Of a group that several arrays share: these."""
    mount: str | None = None
    mount_options: str | None = None
    fs_type: str | None = None
    subvolumes: tuple[SubvolumePicture, ...] = ()
    encrypted: bool = False
    reasons: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where what is on it is found: where it or its subvolumes are mounted, or that it is swap; of a thin pool what it is for."""
        if self.cache:
            return self.cache
        if self.volumes:
            return f"for {', '.join(self.volumes)}"
        mounts = (self.mount, *(subvolume.mount for subvolume in self.subvolumes))
        return ", ".join(mount for mount in mounts if mount) or ("swap" if self.fs_type == "swap" else "")


@dataclass(frozen=True)
class LeftOutPicture:
    """A disk that the plan leaves alone, and why; `reason` follows its name in a sentence."""

    name: str
    short_id: str
    description: str
    size: int
    reason: str
    kinds: tuple[str, ...] = ()
    """The words of `eligible` that take it in."""

    def shape(self) -> tuple[t.Any, ...]:
        """Return everything but its names."""
        return (self.description, self.size, self.reason)


@dataclass(frozen=True)
class IdlePicture:
    """Disks alike on which nothing lies: how many, the first and the last of them, and the override that would use them."""

    count: int
    first: str
    last: str
    description: str
    size: int
    remark: str
    override: str

    def shape(self) -> tuple[t.Any, ...]:
        """Return everything but the names."""
        return (self.count, self.description, self.size, self.override)


@dataclass(frozen=True)
class HostPicture:
    """One host: its disks, its spaces (each followed by those inside it), the plan's warnings, and the disks that it leaves alone."""

    disks: tuple[DiskPicture, ...]
    spaces: tuple[SpacePicture, ...]
    warnings: tuple[str, ...]
    left_out: tuple[LeftOutPicture, ...] = ()
    idle: tuple[IdlePicture, ...] = ()
    """Disks of a profile's plan that nothing lies on."""

    @property
    def size(self) -> int:
        """All disks together."""
        return sum(disk.size for disk in self.disks)

    def by_id(self) -> dict[str, SpacePicture]:
        """Return the spaces by id."""
        return {space.id: space for space in self.spaces}

    def inside(self, container: SpacePicture) -> tuple[SpacePicture, ...]:
        """Return the spaces that lie directly inside a space."""
        return tuple(space for space in self.spaces if space.inside == container.id)

    def holds_others(self, space: SpacePicture) -> bool:
        """Return whether a space is drawn as a frame around others."""
        # What is in a thin pool has no place of its own in it.
        if space.kind == "thin_pool":
            return False
        return bool(self.inside(space)) or any(space.id in group.lies_on for group in self.spaces)

    def painted(self) -> list[str]:
        """Return the spaces that are filled with a colour: those around no others, and arrays with a disk that stands by."""
        return [space.id for space in self.spaces if space.standing_by or not (self.holds_others(space) or space.kind == "thin")]

    def depth(self, space: SpacePicture) -> int:
        """Return how many spaces lie around a space."""
        spaces = self.by_id()
        depth = 0
        while space.inside is not None and space.inside in spaces:
            space, depth = spaces[space.inside], depth + 1
        return depth

    def shape(self) -> tuple[t.Any, ...]:
        """Return everything but the names of the disks: hosts of one shape need one drawing."""
        aside = (*(disk.shape() for disk in self.left_out), *(disks.shape() for disks in self.idle))
        return (tuple(disk.shape() for disk in self.disks), self.spaces, aside)
