# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arguments that all tasks on providers share; the doc fragment `database` describes them."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

DATABASE_ARGUMENTS: Mapping[str, t.Any] = {
    "database": {"type": "str"},
    "world": {"type": "dict"},
}

DATABASE_EXCLUSIVE: tuple[tuple[str, ...], ...] = (("database", "world"),)
