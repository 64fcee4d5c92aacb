# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kinds of values as other programs write them: numbers as text, names that look like numbers, truths as words."""

from __future__ import annotations

from ...module_utils._data.containers import ListOf
from ...module_utils._data.kinds import Number, Text, Truth, Whole

NAME, STRINGS = Text(digits=True), ListOf(Text(), "text")
WHOLE, NUMBER, TRUTH = Whole(digits=True), Number(digits=True), Truth(words=True)
