# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plain data: what comes from a task may carry tags, what comes from a solver may be NumPy's; neither may pass the door."""

from __future__ import annotations

import datetime
import typing as t
from collections.abc import Iterator, Mapping

from ...module_utils._data.errors import InputError, Mistake, Place, spelled


def plain(value: t.Any) -> t.Any:
    """Return `value` built of dict, list, str, int, float, bool and None only; mappings get string keys, tuples become lists.

    Raises TypeError for anything else.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        # As SQLite has it where somebody has written it into a column of text.
        return value.decode("utf-8", errors="replace")
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


def plain_input(value: t.Any, place: Place = "") -> t.Any:
    """Return what came from a task as `plain` does. Raises InputError with the place of all that is no plain data."""
    try:
        return plain(value)
    except TypeError:
        raise InputError(Mistake(spelled(where), says) for where, says in _not_plain(value, place)) from None


def _not_plain(value: t.Any, place: Place) -> Iterator[tuple[Place, str]]:
    """Yield where there is what `plain` refuses, and what is wrong with it: above all what YAML takes for a date."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _not_plain(item, (place, ".", str(key)))
    elif isinstance(value, (list, tuple, set, frozenset)):
        for number, item in enumerate(value):
            yield from _not_plain(item, (place, "[", number))
    elif isinstance(value, datetime.date):
        yield place, f"is a date to YAML; put it in quotes ('{value}') to have it as text"
    elif value is not None and not isinstance(value, (str, int, float)) and not hasattr(value, "tolist"):
        yield place, f"has type {type(value).__name__}; use strings, numbers, lists or mappings"


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
