# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The envelope of every answer to an IAllocator request."""

from __future__ import annotations

import typing as t

Plain = dict[str, t.Any]


def success(info: str, result: t.Any) -> Plain:
    """Return the answer that holds a result."""
    return {"success": True, "info": f"Request successful: {info}", "result": result}


def failure(info: str) -> Plain:
    """Return the answer that says why there is none."""
    return {"success": False, "info": f"Request failed: {info}", "result": []}
