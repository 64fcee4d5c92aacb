# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How LUKS is to be opened, `unlock: [{method, ...}]`: the same in dynamic and static schemas, and in the options of disk_keys."""

from __future__ import annotations

import typing as t

from .._data.containers import ListOf, Row, Table
from .._data.errors import Mistakes, Place, spelled
from .._data.kinds import Json, Kind, Text, Truth, Whole, Word
from .._storage.unlock import KEYS_OF_METHODS, REQUIRED_KEYS, Method, doubles_in, method_of, mistakes_in


def _keys_of_methods() -> Json:
    """Return what JSON Schema has to say of keys that are of some methods only."""
    rules: list[Json] = []
    for method, own in KEYS_OF_METHODS.items():
        others = sorted({key for keys in KEYS_OF_METHODS.values() for key in keys} - set(own))
        wanted: Json = {"required": list(REQUIRED_KEYS[method])} if method in REQUIRED_KEYS else {}
        refused: Json = {"not": {"anyOf": [{"required": [key]} for key in others]}} if others else {}
        rules.append({"if": {"properties": {"method": {"const": method}}, "required": ["method"]}, "then": wanted | refused})
    return {"allOf": rules}


_METHOD = Table(
    "a method",
    [
        Row("method", Word(KEYS_OF_METHODS), "What opens it.", required=True),
        Row("pcrs", ListOf(Whole(0, 23), "numbers"), "Of tpm2: the registers that must be as they are when it is added; by default 7."),
        Row("pin", Truth(), "Of tpm2: whether somebody has to type a PIN at the start as well."),
        Row("url", Text(filled=True), "Of tang: the address of the server."),
        Row("thumbprint", Text(filled=True), "Of tang: the thumbprint of the server's signing key, as tang-show-keys prints it."),
        Row("path", Text(filled=True), "Of key_file: the file on the host, which is made where there is none."),
    ],
    schema=_keys_of_methods(),
)


class Unlock(Kind):
    """The methods, each of which opens the container by itself."""

    blank: t.Any = ()
    nested = True

    def __init__(self) -> None:
        self._list = ListOf(_METHOD, "methods")

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[Method, ...]:
        """Return the methods that are right."""
        found = self._list.read_nested(value, place, mistakes)
        right = [
            (f"{spelled(place)}[{at}]", values) for at, values in enumerate(found) if not mistakes.has(f"{spelled(place)}[{at}].method")
        ]
        wrong = [(where, *mistake) for where, values in right for mistake in mistakes_in(values)]
        wrong += [(right[at][0], "method", says) for at, says in doubles_in([values for _where, values in right])]
        for where, key, says in wrong:
            if not mistakes.has(f"{where}.{key}"):
                mistakes.add(f"{where}.{key}", says)
        return () if wrong else tuple(method_of(values) for _where, values in right)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return self._list.json_schema()
