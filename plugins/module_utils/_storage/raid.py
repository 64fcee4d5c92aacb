# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""md arrays: the levels that are planned and made, how many members they take, and how many of these hold data."""

from __future__ import annotations

import enum
import typing as t
from collections.abc import Mapping


class RaidLevel(str, enum.Enum):
    """A level as mdadm writes it. A text as well, for hosts have Pythons without StrEnum."""

    RAID0 = "raid0"
    RAID1 = "raid1"
    RAID5 = "raid5"
    RAID6 = "raid6"
    RAID10 = "raid10"

    def __str__(self) -> str:
        return self.value


BITMAPS = ("internal", "none")
"""Where md notes which regions are being written, so that it looks through these alone after a crash."""

_LEAST_LEGS: Mapping[RaidLevel, int] = {
    RaidLevel.RAID0: 2,
    RaidLevel.RAID1: 2,
    RaidLevel.RAID5: 3,
    RaidLevel.RAID6: 4,
    # Two copies on two members: md makes and starts it (`mdadm --create` asks for two), and there are such arrays to keep.
    RaidLevel.RAID10: 2,
}
_USUAL_LEGS: Mapping[RaidLevel, int] = {RaidLevel.RAID10: 4}
_SPELLINGS = {"stripe": RaidLevel.RAID0, "mirror": RaidLevel.RAID1}


def parse_level(value: t.Any) -> t.Optional[RaidLevel]:
    """Return the level of `raid1`, `1` or mdadm's `mirror`; None when there is none like it."""
    text = str(value).lower()
    if text in _SPELLINGS:
        return _SPELLINGS[text]
    return next((level for level in RaidLevel if text in (level.value, level.value[len("raid") :])), None)


def least_legs(level: RaidLevel) -> int:
    """Return the least number of members that a level takes."""
    return _LEAST_LEGS[level]


def usual_legs(level: RaidLevel) -> int:
    """Return how many members an array has for which nobody asked a number: with two, raid10 would be a mirror and no more."""
    return _USUAL_LEGS.get(level, _LEAST_LEGS[level])


def data_legs(level: RaidLevel, legs: int) -> int:
    """Return of how many members' size the capacity of an array is made; not more than there is where raid10 has an odd number."""
    return {
        RaidLevel.RAID0: legs,
        RaidLevel.RAID1: 1,
        RaidLevel.RAID5: legs - 1,
        RaidLevel.RAID6: legs - 2,
        RaidLevel.RAID10: legs // 2,
    }[level]
