# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the actions of the room answer, looked through whatever its form."""

from __future__ import annotations

from collections.abc import Iterator


def found_in(answer: object, *keys: str) -> Iterator[dict]:
    """Yield all dictionaries of an answer, at any depth, that have these keys."""
    if isinstance(answer, dict):
        if answer.keys() >= set(keys):
            yield answer
        for value in answer.values():
            yield from found_in(value, *keys)
    elif isinstance(answer, (list, tuple)):
        for value in answer:
            yield from found_in(value, *keys)
