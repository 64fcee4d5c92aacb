# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON of the tools of a host: what has another shape than it should is one error, ValueError, whatever is wrong with it.

A host may run a newer tool than anybody has seen, a wrapper, or something that means harm.
"""

from __future__ import annotations

import functools
import json
import typing as t
from collections.abc import Callable, Mapping

T = t.TypeVar("T")

_MISREAD = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError)
"""What reading data as something else raises."""


def reads(tool: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return what makes a parser raise ValueError, naming the tool, for everything that is not what the tool writes."""

    def made(parse: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(parse)
        def parsed(*given: t.Any, **options: t.Any) -> T:
            try:
                return parse(*given, **options)
            except _MISREAD as error:
                raise ValueError(f"not what {tool} writes ({type(error).__name__}: {error})") from error

        return parsed

    return made


def read_mapping(text: str) -> Mapping[str, t.Any]:
    """Return the mapping that a JSON text holds; raises ValueError when it holds none."""
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    if not isinstance(found, Mapping):
        raise ValueError("the JSON is no mapping")
    return found


def as_text(value: t.Any) -> t.Optional[str]:
    """Return a text or a number as text, None for nothing; raises TypeError for lists, mappings and truths."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise TypeError(f"{type(value).__name__} where text should be")


def as_rows(value: t.Any) -> list[Mapping[str, t.Any]]:
    """Return a list of mappings, an empty one for nothing; raises TypeError for anything else."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        raise TypeError("no list of mappings")
    return value
