# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keys of arrays of md in a dynamic schema beyond level, legs and spares; module_utils/_storage/raid.py says what they mean."""

from __future__ import annotations

import typing as t

from ....module_utils._data.containers import Row
from ....module_utils._data.kinds import Json, Kind, Word
from ....module_utils._data.units import SIZE_PATTERN
from ....module_utils._storage.raid import ALL_LAYOUTS, BITMAPS, LARGEST_CHUNK, LEAST_CHUNK, is_chunk
from ....module_utils._storage.units import KIB
from .sizes import SpaceSize


class _Chunk(Kind):
    """What is written to one member before the next, in KiB."""

    wanted = f"a power of two from {LEAST_CHUNK} KiB to {LARGEST_CHUNK} KiB, such as 64 KiB; a number without a unit is MiB"

    def read(self, value: t.Any) -> int:
        size = SpaceSize().read(value)
        in_kib = size.number * KIB
        if size.relative or in_kib.denominator != 1 or not is_chunk(int(in_kib)):
            self.refuse(value)
        return int(in_kib)

    def json_schema(self) -> Json:
        bounds = {"minimum": LEAST_CHUNK / KIB, "maximum": LARGEST_CHUNK / KIB}
        return {"anyOf": [{"type": "number", **bounds}, {"type": "string", "pattern": SIZE_PATTERN}]}


ARRAY_ROWS = (
    Row("bitmap", Word(BITMAPS), "Whether md notes which regions of an array are being written: internal, as by default, or none."),
    Row("chunk", _Chunk(), f"How much of an array is on one disk before the next one begins; by default {LARGEST_CHUNK} KiB."),
    Row(
        "layout",
        Word(ALL_LAYOUTS),
        "How an array lies on its disks; by default as md has it.",
    ),
)
