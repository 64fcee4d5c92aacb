# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Contents of disks before planning: whether a plan made them, their names, and likely misspellings of these."""

from __future__ import annotations

import difflib
import re

from ...module_utils._data.words import listed
from ...module_utils._storage.derived import salt_of_table
from .model import Disk, ExistingSpace

_CLOSE = 0.85
"""From this share of letters in common on, one name is taken for a misspelling of the other."""


def made_by_a_plan(disk: Disk) -> bool:
    """Return whether the table on a disk has the identity that disk_layout gives to those that it makes."""
    return bool(disk.facts.get("table_uuid")) and salt_of_table(disk.id, str(disk.facts["table_uuid"])) is not None


def is_used(disk: Disk) -> bool:
    """Return whether the facts know that a disk is not empty, and no plan made what is on it."""
    return disk.facts.get("empty") is False and not made_by_a_plan(disk)


def describe(disk: Disk, there: ExistingSpace) -> str:
    """Return what a partition or a volume that is there is called."""
    if there.volume_group is not None:
        return f"the volume {there.name} of {there.volume_group}"
    names = [repr(name) for name in dict.fromkeys((there.name, there.label)) if name]
    number = f"partition {there.number}" if there.number is not None else f"the partition at {there.start} MiB"
    return f"{number} of {disk.id}{f' ({listed(names)})' if names else ''}"


def are_close(one: str, other: str) -> bool:
    """Return whether one name is likely a misspelling of the other: those that differ in a number alone are not."""
    plain = [re.sub(r"[^0-9a-z]", "", name.casefold()) for name in (one, other)]
    without_numbers = [re.sub(r"[0-9]+", "", name) for name in plain]
    if plain[0] == plain[1]:
        return bool(plain[0])
    if without_numbers[0] == without_numbers[1]:
        return False
    return difflib.SequenceMatcher(None, plain[0], plain[1]).ratio() >= _CLOSE
