# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM: the extents that groups are made with, what the nodes of volumes are called, and what its tools report."""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Mapping

from .tool_output import as_rows, as_text, read_mapping, reads

EXTENT = 4
"""LVM's default extent, in MiB."""
LARGEST_EXTENT = 16 * 1024
LEAST_STRIPE = 4
"""KiB; LVM takes no smaller ones."""
MOST_STRIPES = 128
PV_HEAD = 1
"""MiB before the first extent of a PV (`pe_start` of a default `pvcreate`)."""

MAPPER = "/dev/mapper/"
"""The folder of the nodes of volumes and LUKS containers."""

UNFINISHED = "bareon.unfinished"
"""The tag of a logical volume that is not complete yet: what is in it is our own work and may be made again."""

CLEARED = "bareon.cleared"
"""The tag of an unfinished logical volume that has nothing of what lay in its room before: what is in it now came later."""


def pv_extents(size: int, head: int = PV_HEAD, extent: int = EXTENT) -> int:
    """Return how many extents a PV of `size` MiB gives when `head` MiB come before the first one."""
    return max(0, (size - head) // extent)


def is_extent(size: int) -> bool:
    """Return whether extents may have `size` MiB: LVM takes powers of two."""
    return 0 < size <= LARGEST_EXTENT and size & (size - 1) == 0


def is_stripe(size: int) -> bool:
    """Return whether stripes may have this number of KiB: LVM takes powers of two, up to an extent."""
    return size >= LEAST_STRIPE and size & (size - 1) == 0


def stripe_options(stripes: int, size: int) -> tuple[str, ...]:
    """Return the options of lvcreate and lvextend for stripes of that many bytes each; 0 for LVM's default."""
    return (f"--stripes={stripes}", *([f"--stripesize={size // 1024}k"] if size else []))


Room = t.TypeVar("Room")


def stripe_segments(
    room: Mapping[Room, int], stripes: int, extents: int, wanted: Collection[Room] = ()
) -> t.Optional[list[tuple[tuple[Room, ...], int]]]:
    """Return the physical volumes of each segment of a striped volume with so many extents in each stripe, and how many of these it has.

    One segment on those that are wanted, if they have the room; else segment after segment, each on those with most room. None where
    that does not suffice. LVM takes any room of physical volumes that its command names, as many as there are stripes.
    """
    left, found = dict(room), []
    while extents:
        fits = len(wanted) == stripes and all(left.get(volume, 0) >= extents for volume in wanted)
        chosen = tuple(wanted if fits else sorted(left, key=lambda volume: -left[volume])[:stripes])
        taken = min([extents, *(left[volume] for volume in chosen)])
        if len(chosen) < stripes or taken <= 0:
            return None
        left.update({volume: left[volume] - taken for volume in chosen})
        found.append((chosen, taken))
        extents -= taken
    return found


def mapper_node(group: str, name: str) -> str:
    """Return the device-mapper node of a logical volume; dashes of names are doubled."""
    return f"{MAPPER}{group.replace('-', '--')}-{name.replace('-', '--')}"


@reads("LVM")
def parse_report(text: str, kind: str, needed: str) -> list[dict[str, str]]:
    """Return the rows of what `pvs`, `vgs` or `lvs` (`kind` pv, vg, lv) write as JSON.

    Raises ValueError when it is no report, or one whose rows lack a column that is `needed` (names with commas between them).

    Where a power cut tore the metadata of one physical volume they look again, and say so in the middle of the report.
    """
    document = read_mapping("\n".join(line for line in text.splitlines() if not line.lstrip()[:1].isalpha()))
    if not isinstance(document.get("report"), list):
        raise ValueError("no LVM report")
    rows = [row for part in as_rows(document["report"]) for row in as_rows(part.get(kind))]
    columns = needed.split(",")
    if any(column not in row for row in rows for column in columns):
        raise ValueError(f"a row of LVM's report lacks one of {needed}")
    return [{column: as_text(value) or "" for column, value in row.items()} for row in rows]
