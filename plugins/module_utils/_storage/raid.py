# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""md arrays: the levels that are planned and made, how many members they take, and how many of these hold data."""

from __future__ import annotations

import enum
import typing as t
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass

from .units import KIB


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

LEAST_CHUNK, LARGEST_CHUNK = 4, 512
"""KiB. The largest is md's default, for which plans have room: LVM and LUKS on an array begin at a multiple of its stripe."""

_OF_PARITY = {"left-symmetric": 2, "left-asymmetric": 0, "right-symmetric": 3, "right-asymmetric": 1}
FAR = "f2"
"""The layout of a RAID 10 that md cannot grow."""
LAYOUTS: Mapping[RaidLevel, Mapping[str, int]] = {
    RaidLevel.RAID5: _OF_PARITY,
    RaidLevel.RAID6: _OF_PARITY,
    # With two copies each: others would give less room than data_legs says.
    RaidLevel.RAID10: {"n2": 0x102, FAR: 0x201, "o2": 0x10201},
}
"""How levels lie on their members, in mdadm's words and the kernel's numbers; md's default is the first."""
ALL_LAYOUTS = tuple(dict.fromkeys(word for words in LAYOUTS.values() for word in words))

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


@dataclass(frozen=True)
class ArrayOptions:
    """What an array is made with beyond its level: keys of both schemas, of facts, and options of mdadm.

    A field at its default leaves that open: a new array has what md gives it, another keeps what it has.
    """

    bitmap: str = ""
    """Its write-intent bitmap, one of BITMAPS; also `external` where an array has one in a file."""
    chunk: int = 0
    """KiB on one member before the next one begins; mirrors have none."""
    layout: str = ""
    """One of LAYOUTS of its level."""

    def given(self) -> dict[str, t.Any]:
        """Return the values by key, without those that are left open."""
        return {key: value for key, value in asdict(self).items() if value}

    def words(self) -> tuple[str, ...]:
        """Return the options for `mdadm --create`."""
        return tuple(f"--{key}={value}" for key, value in self.given().items())

    def described(self) -> str:
        """Return what follows the description of a new array."""
        bitmap = ", without a bitmap" if self.bitmap == "none" else ""
        chunk = f", in chunks of {self.chunk} KiB" if self.chunk else ""
        return bitmap + chunk + (f", with the layout {self.layout}" if self.layout else "")

    def mistakes(self, level: t.Optional[RaidLevel]) -> Iterator[tuple[str, str]]:
        """Give each key that does not fit the level, with what is wrong."""
        if level is RaidLevel.RAID0 and self.bitmap:
            yield "bitmap", "raid0 has nothing to look through after a crash, and no bitmap; leave bitmap out"
        if self.chunk and not is_chunk(self.chunk):
            yield "chunk", f"must be a power of two from {LEAST_CHUNK} to {LARGEST_CHUNK} KiB, not {self.chunk}"
        elif self.chunk and level is RaidLevel.RAID1:
            yield "chunk", "each disk of a raid1 has all, so that it has no chunks; leave chunk out"
        known = LAYOUTS.get(level, {}) if level is not None else {self.layout: 0}
        if self.layout and self.layout not in known:
            yield (
                "layout",
                f"must be one of {', '.join(known)} for {level}" if known else f"a {level} has only one layout; leave layout out",
            )

    def unlike(self, there: ArrayOptions) -> Iterator[tuple[str, t.Any, t.Any]]:
        """Give each key that an array has otherwise, with what it has and what is asked for; what is left open or not known is alike."""
        known = there.given()
        yield from ((key, known[key], wanted) for key, wanted in self.given().items() if known.get(key, wanted) != wanted)

    def unusual(self, level: RaidLevel) -> dict[str, t.Any]:
        """Return the values that a new array of the level would not have, and a schema may have."""
        bitmap = {"bitmap": self.bitmap} if self.bitmap == "none" and level is not RaidLevel.RAID0 else {}
        chunk = {"chunk": self.chunk} if is_chunk(self.chunk) and self.chunk != LARGEST_CHUNK else {}
        return bitmap | chunk | ({"layout": self.layout} if self.layout in list(LAYOUTS.get(level, ()))[1:] else {})


def is_chunk(kib: int) -> bool:
    """Return whether an array can have a chunk of that size."""
    return LEAST_CHUNK <= kib <= LARGEST_CHUNK and kib & (kib - 1) == 0


def array_options(values: Mapping[str, t.Any]) -> ArrayOptions:
    """Return the options among other values by key."""
    return ArrayOptions(**{key: values[key] for key in OPTION_KEYS if values.get(key)})


def read_options(read: Callable[[str], t.Optional[str]]) -> ArrayOptions:
    """Return what the kernel shows of a running array; `read` returns the text of a file in /sys/block/NAME/md."""
    location, chunk, level, layout = ((read(file) or "").strip() for file in ("bitmap/location", "chunk_size", "level", "layout"))
    layouts = next((words for each, words in LAYOUTS.items() if each.value == level), {})
    return ArrayOptions(
        bitmap="internal" if location[:1] in ("+", "-") else location if location in ("", "none") else "external",
        chunk=int(chunk) // KIB if chunk.isdecimal() else 0,
        layout=next((word for word, number in layouts.items() if str(number) == layout), ""),
    )


WRITE_MOSTLY = "write_mostly"
"""The key of both schemas and of facts that names slow members of a mirror: md reads from them only where no other member can be read."""


def write_mostly_mistake(level: t.Optional[RaidLevel], members: int, slow: int, spares: int) -> t.Optional[str]:
    """Return what is wrong with an array of so many members, of which `slow` are write-mostly."""
    if level is not None and level is not RaidLevel.RAID1:
        return f"md reads from the disks of a raid1 by choice, from those of a {level} not; leave {WRITE_MOSTLY} out"
    if slow and slow >= members:
        return "names all members, and md has to read from one; leave one out"
    return (
        f"a spare that takes the place of another member would read like a slow one; leave spares or {WRITE_MOSTLY} out"
        if slow and spares
        else None
    )


def is_write_mostly(state: t.Optional[str]) -> bool:
    """Return whether a member is write-mostly by the text of its file `state` in /sys/block/NAME/md/dev-MEMBER."""
    return WRITE_MOSTLY in (state or "").strip().split(",")


OPTION_KEYS = tuple(asdict(ArrayOptions()))
CHANGEABLE = ("bitmap",)
"""Those that are changed while an array runs. For others md would rewrite the whole array, and no run does that."""
