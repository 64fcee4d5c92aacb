# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM's caches of volumes (dm-cache)."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator
from dataclasses import dataclass

from .._facts.present import Present
from .._storage.cache import name_of
from .._storage.lvm import UNFINISHED, mapper_node
from .lvm import LVM, KeptVolumeStep, NewVolumeStep, VolumeStep, report, volume_piece, volumes
from .machine import Machine, StepFailed
from .needs import Ability, Tool, listed_ability
from .picture import Picture, changed
from .reach import Reach
from .step import Writes

CACHE_CHECK = Tool("cache_check", "thin-provisioning-tools", "device-mapper-persistent-data")
_CACHE = listed_ability("dm_cache", "/sys/module/dm_cache/initstate", "live", "caches of volumes (dm-cache)")
_CACHED_BY = "cached by "


@dataclass(frozen=True)
class CreateCacheVolume(NewVolumeStep):
    """Make a volume of all of a physical volume, with the tag UNFINISHED: it becomes a cache."""

    group: str
    name: str
    device: str

    words: t.ClassVar[str] = "create the cache {group}/{name} on {device}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return LVM, CACHE_CHECK

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (_CACHE,)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device, self.node), self.group)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return {**picture, self.node: volume_piece(self.group, self.name, 0, (self.device,))}

    def run(self, machine: Machine) -> None:
        """Make the volume, of all of the physical volume, so that no other one comes to lie there.

        That its beginning is zeros is made sure of before it is attached: something else there would be taken for broken metadata.
        """
        unseen = ["--wipesignatures", "y", "--zero", "y"]
        named = ["--addtag", UNFINISHED, "--name", self.name, "--extents", "100%PVS", self.group, self.device]
        machine.change(["lvcreate", "--yes", "--quiet", *unseen, *named])
        machine.wait_for([self.node])
        machine.change(["sync", self.node])


@dataclass(frozen=True)
class AttachCache(VolumeStep):
    """Attach a new cache to a volume, which may be in use; the volume of the cache is none of its own any more."""

    group: str
    name: str
    cache: str
    mode: str

    words: t.ClassVar[str] = "cache the logical volume {group}/{name} by {cache}, {mode}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return LVM, CACHE_CHECK

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (_CACHE,)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return volumes(present, self.group, [self.cache], keeps=False)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        gone = mapper_node(self.group, self.cache)
        left = {key: piece for key, piece in picture.items() if key != gone}
        return changed(left, self.node, cache=cached_by(self.cache, self.mode))

    def run(self, machine: Machine) -> None:
        """Let LVM make it a cache, and see that the volume has it; LVM wipes its contents."""
        by = f"{self.group}/{self.cache}"
        machine.change(["lvconvert", "--yes", "--quiet", "--type=cache", f"--cachevol={by}", f"--cachemode={self.mode}", self.path])
        (found,) = report(machine, "lv", "pool_lv", self.path)
        if name_of(found["pool_lv"]) != self.cache:
            raise StepFailed(f"{self.path} has the cache {found['pool_lv'] or '(none)'} after it was given {self.cache}")
        machine.settle()


@dataclass(frozen=True)
class ChangeCacheMode(KeptVolumeStep):
    """Change how a volume is cached; unwritten data of writeback are written first."""

    group: str
    name: str
    mode: str

    words: t.ClassVar[str] = "change the cache of the logical volume {group}/{name} to {mode}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return LVM, CACHE_CHECK

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (_CACHE,)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        origin = picture.get(self.node)
        by = origin.cache.partition(" (")[0].removeprefix(_CACHED_BY) if origin is not None else ""
        return changed(picture, self.node, cache=cached_by(by, self.mode))

    def run(self, machine: Machine) -> None:
        """Change the mode; LVM waits until all is written."""
        machine.change(["lvchange", "--yes", "--quiet", f"--cachemode={self.mode}", self.path])
        (found,) = report(machine, "lv", "cache_mode", self.path)
        if found["cache_mode"] != self.mode:
            raise StepFailed(f"{self.path} is cached by {found['cache_mode']} after it was changed to {self.mode}")


def cached_by(cache: str, mode: str) -> str:
    """Return the cache of a volume in pictures."""
    return f"{_CACHED_BY}{cache} ({mode})"
