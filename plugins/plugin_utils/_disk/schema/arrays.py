# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keys of arrays of md in a dynamic schema beyond level, legs and spares; module_utils/_storage/raid.py says what they mean."""

from __future__ import annotations

from ....module_utils._data.containers import Row
from ....module_utils._data.kinds import Word
from ....module_utils._storage.raid import BITMAPS

ARRAY_ROWS = (
    Row("bitmap", Word(BITMAPS), "Whether md notes which regions of an array are being written: internal, as by default, or none."),
)
