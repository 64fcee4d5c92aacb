# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a step is. A kind of step is a frozen dataclass in its technology's file, which states all facts of that kind.

Sizes and positions are bytes. Devices are nodes of this boot (`/dev/sda1`), which hold for one run; what a step makes is named by its
future node (`/dev/md/mirror`, `/dev/mapper/vg0-root`). No step contains a key or a passphrase.

Unfinished work is marked where a power cut cannot part the mark from the work: a new partition has a PARTUUID derived from its final
one until FinishPartitions, a new logical volume the tag UNFINISHED until FinishLogicalVolumes.
"""

from __future__ import annotations

import abc
import typing as t
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from .._facts.present import Present
from .._storage.units import in_mib
from .machine import Machine
from .needs import Ability, Tool
from .picture import Picture
from .reach import Reach


@dataclass(frozen=True)
class Described:
    """Data of one thing to do. `says` is one line for humans (made of the kind's `words`), `plain` the step as data for results."""

    words: t.ClassVar[str] = ""

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        return self.words.format_map({name: _worded(name, value) for name, value in vars(self).items()})

    def plain(self) -> dict[str, t.Any]:
        """Return it as plain data: `step` (the name of its kind), its fields, and `says`."""
        return {"step": type(self).__name__, **asdict(self), "says": self.says}


class Writes(t.NamedTuple):
    """Where a step writes: on nodes, on all physical volumes of a volume group, on all devices of a ZFS pool."""

    nodes: tuple[str, ...] = ()
    group: t.Optional[str] = None
    zpool: t.Optional[str] = None


class Judged(t.Protocol):
    """What the gate judges: all that is done to a disk, by a step of a layout or otherwise."""

    @property
    def says(self) -> str:
        """What is done, in the imperative."""

    def reaches(self, present: Present) -> Iterable[Reach]:
        """Give the bytes of present devices that it reaches."""

    def writes(self) -> Writes:
        """Return where it writes."""


class Step(Described, abc.ABC):
    """A step of a layout. Only `run` needs a machine: planning, the gate, previews and check mode read the rest.

    With `flushes_before` disks are flushed before it.
    """

    flushes_before: t.ClassVar[bool] = False

    @abc.abstractmethod
    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that it needs; of the tools of LVM pvcreate stands for all."""

    def abilities(self) -> tuple[Ability, ...]:
        """Return what the kernel has to be able to do for it."""
        return ()

    @abc.abstractmethod
    def reaches(self, present: Present) -> Iterable[Reach]:
        """Give the bytes of present devices that it reaches."""

    @abc.abstractmethod
    def writes(self) -> Writes:
        """Return where it writes, also on disks that the layout does not have."""

    def after(self, picture: Picture) -> Picture:
        """Return the picture after the step."""
        return picture

    @abc.abstractmethod
    def run(self, machine: Machine) -> None:
        """Carry the step out and verify it; raises StepFailed, after which it may be half done, which a later run sees and completes."""


def _worded(name: str, value: t.Any) -> t.Any:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if name == "label":
        return f", label {value}" if value else ""
    if name == "chunk":
        return f"{value // 1024} KiB"
    return in_mib(value) if name in ("size", "before", "metadata") and isinstance(value, int) else value
