# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a comparison finds: what is alike, could grow, differs, is gone or new."""

from __future__ import annotations

import typing as t
from enum import StrEnum


class State(StrEnum):
    """How something is against its plan, the worst last."""

    ALIKE = "alike"
    COULD_GROW = "could_grow"
    NEW = "new"
    DIFFERS = "differs"
    GONE = "gone"


ORDER = tuple(State)


class Finding(t.NamedTuple):
    """One difference: `place` is a disk's id, or a volume as GROUP/NAME; `says` a sentence."""

    place: str
    state: State
    says: str
