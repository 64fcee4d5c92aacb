# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plain data: what comes from a task may carry tags, what comes from a solver may be NumPy's; neither may pass the door."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping


def plain(value: t.Any) -> t.Any:
    """Return `value` built of dict, list, str, int, float, bool and None only; mappings get string keys, tuples become lists.

    Raises TypeError for anything else.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} is not plain data")


def is_literal(value: t.Any) -> bool:
    """Return whether a variable stands for itself: nothing in it could be a template, or has to be decrypted."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if "{" in one:
                return False
        elif isinstance(one, dict):
            waiting.extend(one)
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        elif one is not None and not isinstance(one, (bool, int, float)):
            return False
    return True
