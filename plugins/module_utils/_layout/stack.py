# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A carrier of one thing, a partition or an array with its members: what reading it finds, and the plan for it."""

from __future__ import annotations

import enum
import typing as t
from dataclasses import dataclass

from .._facts.tree import Device
from .._schema.model import DesiredArray
from .._steps.step import Step
from .._storage import zfs
from .partitions import PartitionMatch, Status


class Action(enum.Enum):
    """What is to be done with a stack."""

    BUILD = "everything on it is made"
    FINISH = "all on it is complete, only its partitions are still marked as unfinished"
    KEEP = "it stays"


@dataclass(frozen=True)
class Stack:
    """A partition or an array (`device` names it in the schema), the matches of its partitions, and what is to be done with it.

    A filesystem on several partitions is one of these, too, named by the first; so are the data of a ZFS pool, with the present devices of
    all of that pool as `siblings`, and each of its logs, caches and spares, with `part` set.

    `opening` is what has to be opened to see what is on it, `taking_back` gives an array the members that it was started without. `problem`
    says why a kept one cannot stay as it is.
    """

    device: str
    matches: tuple[PartitionMatch, ...]
    array: t.Optional[DesiredArray] = None
    action: Action = Action.KEEP
    opening: t.Optional[Step] = None
    problem: t.Optional[str] = None
    siblings: frozenset[str] = frozenset()
    part: t.Optional[zfs.Part] = None
    taking_back: t.Optional[Step] = None

    @property
    def may_wipe(self) -> bool:
        """Whether all disks of its present partitions may be wiped; what was moved off another disk is never in the way."""
        kept = [match for match in self.matches if match.status is Status.KEPT]
        return all(match.disk.may_wipe and not match.receiving for match in kept)


@dataclass(frozen=True)
class Found:
    """A look at what is on a device: the device on top, what has to be opened to see more, or what is not as desired.

    `joining` are new partitions that become members of an array that is there: of one that lacks some, or of a mirror with fewer.
    `returning` are members that the array started without, and takes back.
    """

    device: t.Optional[Device] = None
    opening: t.Optional[Step] = None
    problem: t.Optional[str] = None
    joining: tuple[PartitionMatch, ...] = ()
    returning: tuple[PartitionMatch, ...] = ()
