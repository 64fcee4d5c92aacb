# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of disk_keys -> a request, or every mistake in them at once."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..schema.fields import Item, Mistakes
from ..schema.methods import read_methods
from ..schema.static import SchemaMistakes
from ..steps.luks import Key, key_of
from .changes import Container, Request

_KEYS = ("name", "device", "node", "uuid", "unlock")


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
    if mistakes:
        raise SchemaMistakes(mistakes)
    return Request(containers, key, old_key, tuple(params["take_away"]), tuple(params["renew"]), params["root"], params["tpm2_pin"] or "")


def _container(item: Item) -> Container:
    device = item.text("node", item.text("device"))
    methods = read_methods(item)
    if not item.has("unlock"):
        item.mistake("unlock", "is missing; a list of methods is needed, which may be empty")
    return Container(item.text("name", device), device, methods)
