# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a LUKS container is to be opened, `unlock: [{method, ...}]` -> the methods; the same in a schema and in the options of disk_keys."""

from __future__ import annotations

import typing as t

from .._storage.unlock import KEYS_OF_METHODS, Method, doubles_in, method_of, mistakes_in
from .fields import Item

METHOD_KEYS = ("method", *dict.fromkeys(key for keys in KEYS_OF_METHODS.values() for key in keys))


def read_methods(item: Item) -> tuple[Method, ...]:
    """Return the methods below `unlock`; what is wrong with them is added to the item's mistakes."""
    read = [(part, _values(part)) for part in item.items("unlock", METHOD_KEYS)]
    right = [(part, values) for part, values in read if part.is_right(*METHOD_KEYS)]
    for part, values in right:
        for key, says in mistakes_in(values):
            part.mistake(key, says)
    for at, says in doubles_in([values for _part, values in right]):
        right[at][0].mistake("method", says)
    return tuple(method_of(values) for part, values in right if part.is_right(*METHOD_KEYS))


def _values(part: Item) -> dict[str, t.Any]:
    values: dict[str, t.Any] = {"method": part.chosen("method", KEYS_OF_METHODS)}
    others: dict[str, t.Callable[[str], t.Any]] = {"pcrs": part.wholes, "pin": part.flag}
    read = {key: others.get(key, part.text) for key in METHOD_KEYS[1:]}
    return {**values, **{key: of_kind(key) for key, of_kind in read.items() if part.has(key)}}
