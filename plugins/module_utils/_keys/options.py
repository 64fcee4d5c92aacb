# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of disk_keys -> a request, or every mistake in them at once."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from .._schema.fields import Item, Mistakes
from .._schema.methods import read_methods
from .._schema.static import SchemaMistakes
from .._steps.luks import Key, key_of
from .._storage.recovery_key import is_recovery_key
from .changes import BEGIN, Container, HandOver, Request

_KEYS = ("name", "device", "node", "uuid", "names", "unlock")


def request_of(params: Mapping[str, t.Any]) -> Request:
    """Return the request of the module's parameters; raises SchemaMistakes."""
    mistakes: Mistakes = []
    given = Item({"containers": params["containers"]}, "", ("containers",), mistakes)
    containers = tuple(_container(item) for item in given.items("containers", _KEYS))
    key = key_of(params)
    old_key = Key((params["luks_old_key"] or "").encode(), params["luks_old_key_file"])
    names = [container.name for container in containers]
    mistakes += [f"containers[{at}].name: {name} is listed already" for at, name in enumerate(names) if name in names[:at]]
    mistakes += [*key.passphrase_problems(), *key.problems()]
    mistakes += old_key.problems("luks_old_key_file")
    hand_over = _hand_over(params["hand_over"] or {}, mistakes)
    if mistakes:
        raise SchemaMistakes(mistakes)
    return Request(
        containers,
        key,
        old_key,
        tuple(params["take_away"]),
        tuple(params["renew"]),
        params["root"],
        params["tpm2_pin"] or "",
        params["take_last_key"],
        hand_over,
    )


def _hand_over(values: Mapping[str, t.Any], mistakes: Mistakes) -> HandOver:
    """Return what the controller hands over; there is none where the module is run without its action plugin."""
    keys, earlier = values.get("recovery_keys") or {}, values.get("earlier_keys") or {}
    for option, given in (("recovery_keys", keys), ("earlier_keys", earlier)):
        mistakes += [f"hand_over.{option}.{name}: is no recovery key" for name, text in given.items() if not is_recovery_key(text)]
    added = {name: frozenset(slots) for name, slots in (values.get("added") or {}).items()}
    return HandOver(values.get("part") or BEGIN, keys, earlier, bool(values.get("written")), added)


def _container(item: Item) -> Container:
    device = item.text("node", item.text("device"))
    methods = read_methods(item)
    if not item.has("unlock"):
        item.mistake("unlock", "is missing; a list of methods is needed, which may be empty")
    return Container(item.text("name", device), device, methods)
