# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM's thin pools and their volumes."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._storage.lvm import UNFINISHED, mapper_node
from .._storage.units import in_mib
from .lvm import LVM, KeptVolumeStep, NewVolumeStep, check_size, members_of, report, volume_piece
from .machine import Machine, StepFailed
from .needs import DEVICE_MAPPER, Ability, Tool, listed_ability
from .picture import Picture, changed
from .step import Writes

THIN_CHECK = Tool("thin_check", "thin-provisioning-tools", "device-mapper-persistent-data")
_THIN = listed_ability("dm_thin_pool", "/sys/module/dm_thin_pool/initstate", "live", "thin pools (dm-thin)")


@dataclass(frozen=True)
class CreateThinPool(NewVolumeStep):
    """Make a thin pool with the tag UNFINISHED, `size` for data and `metadata` for its own; LVM makes or grows their spare by itself."""

    group: str
    name: str
    size: int
    metadata: int
    chunk: int

    words: t.ClassVar[str] = "create the thin pool {group}/{name} with {size}, {metadata} of metadata and chunks of {chunk}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return LVM, THIN_CHECK

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return DEVICE_MAPPER, _THIN

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        members = members_of(picture, self.group)
        return {**picture, self.node: volume_piece(self.group, self.name, self.size, members, pool_content(self.metadata))}

    def run(self, machine: Machine) -> None:
        """Make the pool with chunks that are zeroed before they are given out, and verify the sizes of data and metadata."""
        parts = [f"--size={self.size}b", f"--poolmetadatasize={self.metadata}b", f"--chunksize={self.chunk}b"]
        kind = ["--type=thin-pool", "--zero=y", "--poolmetadataspare=y"]
        machine.change(["lvcreate", "--yes", "--quiet", *kind, *parts, "--addtag", UNFINISHED, "--name", self.name, self.group])
        (found,) = report(machine, "lv", "lv_size,lv_metadata_size", self.path)
        if int(found["lv_size"]) < self.size or int(found["lv_metadata_size"]) < self.metadata:
            has = f"{found['lv_size']} bytes and {found['lv_metadata_size']} of metadata"
            raise StepFailed(f"{self.path} has {has} instead of {self.size}")


@dataclass(frozen=True)
class ExtendPoolMetadata(KeptVolumeStep):
    """Grow the metadata of a thin pool to `size`, online."""

    group: str
    name: str
    size: int
    before: int

    words: t.ClassVar[str] = "grow the metadata of the thin pool {group}/{name} from {before} to {size}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return LVM, THIN_CHECK

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (_THIN,)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return changed(picture, self.node, holds=pool_content(self.size))

    def run(self, machine: Machine) -> None:
        """Grow the metadata while the pool is in use."""
        machine.change(["lvextend", "--yes", "--quiet", f"--poolmetadatasize={self.size}b", self.path])
        (found,) = report(machine, "lv", "lv_metadata_size", self.path)
        if int(found["lv_metadata_size"]) < self.size:
            raise StepFailed(f"{self.path} has {found['lv_metadata_size']} bytes of metadata after they were grown to {self.size}")


@dataclass(frozen=True)
class CreateThinVolume(NewVolumeStep):
    """Make a volume in a thin pool with the tag UNFINISHED; `size` is its virtual size, `device` its mapper node."""

    group: str
    name: str
    pool: str
    size: int
    device: str

    words: t.ClassVar[str] = "create the thin volume {group}/{name} with {size} in {pool}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return LVM, THIN_CHECK

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (_THIN,)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device, self.node), self.group)

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        pool = mapper_node(self.group, self.pool)
        return {**picture, self.device: volume_piece(self.group, self.name, self.size, (pool,))}

    def run(self, machine: Machine) -> None:
        """Make the volume; it reads as zeros where nothing was written, so there are no previous contents to wipe."""
        named = ["--addtag", UNFINISHED, "--name", self.name, f"--virtualsize={self.size}b"]
        machine.change(["lvcreate", "--yes", "--quiet", "--type=thin", *named, "--thinpool", self.pool, self.group])
        machine.wait_for([self.device])
        check_size(machine, self.device, self.size)


def pool_content(metadata: int) -> str:
    """Return the content of a thin pool in pictures."""
    return f"thin pool with {in_mib(metadata)} of metadata"
