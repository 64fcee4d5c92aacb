# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One entry of a dynamic schema, as the passes over it hand it on."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from ....module_utils._data.containers import Values
from ..model import SpaceType


@dataclass(frozen=True)
class Entry:
    """One entry with all expressions evaluated; `id` is empty and `type` None where they are wrong. `raw` is how it was written."""

    id: str
    type: SpaceType | None
    place: str
    values: Values
    given: Mapping[str, t.Any]
    raw: Mapping[str, t.Any]
    mirror_of: str | None = None
