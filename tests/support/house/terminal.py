# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How wide a text may be that is shown on a terminal and in the log of a job."""

from __future__ import annotations

MOST = 72
"""Columns."""


def too_wide(text: str) -> list[str]:
    """Return the lines of more columns, except those that are a single word, with what is drawn before it."""
    return [line for line in text.splitlines() if len(line) > MOST and len(line.strip(" │├└─-!").split()) > 1]
