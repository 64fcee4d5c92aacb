# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what lies where a partition of the layout would begin that the table of its disk does not have: somebody may have deleted it."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Sequence

from .._facts.host import Host
from .._facts.present import Present
from .._facts.select import Disk
from .._facts.signatures import Signature, TablePartition, parse_probe, probe_command
from .._schema.model import DesiredPartition, Layout
from .._storage.units import KIB
from .disks import names_of

_ENDS = 128 * KIB
"""In so much of either end all signatures lie."""

Missing = dict[tuple[str, int], Signature]


def read_missing(host: Host, present: Present, layout: Layout, listed: Sequence[Disk]) -> Missing:
    """Return what has a signature in the room of a partition that is missing, by the name of the disk and the offset in bytes."""
    found: Missing = {}
    for disk in listed:
        device = present.tree.devices[disk.device.name]
        table = device.table
        if table is None or table.type != "gpt" or device.dev is None:
            continue
        for part in _without_entry(layout, disk, table.partitions):
            signature = _in_room(host, device.dev, part)
            found.update({} if signature is None else {(device.name, part.start): signature})
    return found


def _without_entry(layout: Layout, disk: Disk, entries: Sequence[TablePartition]) -> Iterator[DesiredPartition]:
    """Give the partitions of the layout on a disk in whose room its table has none."""
    for part in (part for desired in layout.disks if desired.id in names_of(disk) for part in desired.partitions):
        if not any(entry.start < part.end and part.start < entry.start + entry.size for entry in entries):
            yield part


def _in_room(host: Host, node: str, part: DesiredPartition) -> t.Optional[Signature]:
    try:
        ends = (host.read_bytes(node, place, _ENDS) for place in (part.start, max(part.start, part.end - _ENDS)))
        if not any(content.count(0) != len(content) for content in ends):
            return None
    except OSError:
        return None
    outcome = host.run(probe_command(node, part.start, part.size))
    said = parse_probe(outcome.stdout) if outcome is not None and outcome.code == 0 else {}
    return Signature(said["TYPE"], said.get("UUID"), said.get("LABEL"), (part.start,)) if "TYPE" in said else None
