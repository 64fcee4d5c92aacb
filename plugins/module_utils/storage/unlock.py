# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may open a LUKS container as the system starts, or when somebody asks: one row per method, and what a wish for one may hold."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

PASSPHRASE, KEY_FILE, RECOVERY = "passphrase", "key_file", "recovery"
KEYS_OF_METHODS: t.Mapping[str, tuple[str, ...]] = {PASSPHRASE: (), KEY_FILE: ("path",), RECOVERY: ()}
"""The methods, and the keys that each takes beside `method`."""

REQUIRED_KEYS: t.Mapping[str, tuple[str, ...]] = {KEY_FILE: ("path",)}
_ONCE = (PASSPHRASE, RECOVERY)


@dataclass(frozen=True)
class Method:
    """One way to open a container: `path` is that of a key file on the host."""

    kind: str
    path: str = ""

    @property
    def words(self) -> str:
        """Return it in words."""
        return {PASSPHRASE: "a passphrase", KEY_FILE: f"the key file {self.path}", RECOVERY: "a recovery key"}[self.kind]

    def plain(self) -> dict[str, t.Any]:
        """Return it as it stands in a schema."""
        return {"method": self.kind, **{key: getattr(self, key) for key in KEYS_OF_METHODS[self.kind]}}


def method_of(values: Mapping[str, t.Any]) -> Method:
    """Return the method of values without mistakes."""
    return Method(values["method"], **{key: values[key] for key in KEYS_OF_METHODS[values["method"]] if values.get(key) is not None})


def mistakes_in(values: Mapping[str, t.Any]) -> Iterator[tuple[str, str]]:
    """Give what is wrong with one method, `(key, says)`; the values are of the right kinds, and its `method` is one of the methods."""
    kind = values["method"]
    for key in REQUIRED_KEYS.get(kind, ()):
        if not values.get(key):
            yield key, f"is missing; {kind} takes it"
    own = KEYS_OF_METHODS[kind]
    for key in sorted({key for keys in KEYS_OF_METHODS.values() for key in keys} - set(own)):
        if values.get(key) is not None:
            yield key, f"is nothing for {kind}, which takes {', '.join(own) or 'no more keys'}"
    if values.get("path") and "path" in own and not re.match(r"^/[^\s]*[^\s/]$", values["path"]):
        yield "path", f"is {values['path']!r}; must be an absolute path without blanks, such as /etc/keys/data.key"


def doubles_in(methods: Sequence[Mapping[str, t.Any]]) -> Iterator[tuple[int, str]]:
    """Give the positions of methods that stand there already, and what to say of them."""
    seen: list[Mapping[str, t.Any]] = []
    for at, values in enumerate(methods):
        if values in seen or (values["method"] in _ONCE and values["method"] in [other["method"] for other in seen]):
            yield at, f"{values['method']} stands there already"
        seen.append(values)


def crypttab_key(methods: Iterable[Mapping[str, t.Any]]) -> str:
    """Return the key file that crypttab has to name, empty where it names none."""
    return next((str(method["path"]) for method in methods if method["method"] == KEY_FILE), "")
