# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keys of arrays of md in a dynamic schema beyond level, legs and spares; module_utils/_storage/raid.py says what they mean."""

from __future__ import annotations

from ....module_utils._data.containers import Row
from ....module_utils._data.kinds import Word
from ....module_utils._storage.raid import ALL_LAYOUTS, BITMAPS, LARGEST_CHUNK, LEAST_CHUNK, is_chunk
from .sizes import Kib, powers_of_two

_CHUNK = Kib(
    f"a power of two from {LEAST_CHUNK} KiB to {LARGEST_CHUNK} KiB, such as 64 KiB", is_chunk, powers_of_two(LEAST_CHUNK, LARGEST_CHUNK)
)
ARRAY_ROWS = (
    Row("bitmap", Word(BITMAPS), "Whether md notes which regions of an array are being written: internal, as by default, or none."),
    Row("chunk", _CHUNK, f"How much of an array is on one disk before the next one begins; by default {LARGEST_CHUNK} KiB."),
    Row(
        "layout",
        Word(ALL_LAYOUTS),
        "How an array lies on its disks; by default as md has it.",
    ),
)
