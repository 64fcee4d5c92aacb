# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disks are on one drive, in words."""

from __future__ import annotations

from ....module_utils._data.words import listed
from ..model import Hardware

_MOST_NAMES = 4
_MOST_DRIVES = 3


def on_one_drive(hardware: Hardware) -> str:
    """Return which disks of a machine fail together, as a sentence without its end; nothing where every disk is a drive of its own."""
    names: dict[int, list[str]] = {}
    for disk, drive in zip(hardware.disks, hardware.drives):
        names.setdefault(drive, []).append(disk.id)
    shared = [f"{listed(own, _MOST_NAMES)} are on one drive and fail together" for own in names.values() if len(own) > 1]
    more = f"; and {len(shared) - _MOST_DRIVES} more such drives" if len(shared) > _MOST_DRIVES else ""
    return "; ".join(shared[:_MOST_DRIVES]) + more
