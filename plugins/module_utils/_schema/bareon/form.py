# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a schema is in Bareon's own form; what reads that form is compiled on a host only where it is."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping


def is_bareon_list(schema: t.Any) -> bool:
    """Return whether a schema is written by hand: the list itself, or a deploy configuration that has it under `partitions`."""
    return isinstance(schema, (list, tuple)) or (isinstance(schema, Mapping) and "partitions" in schema)
