# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of disk_keys -> a request, or every mistake in them at once."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from .._data.containers import ListOf, Row, Table, Values
from .._data.errors import Mistakes
from .._data.kinds import Anything, Text
from .._schema.static import SchemaMistakes
from .._schema.unlock import Unlock
from .._steps.key import Key, key_of
from .._storage.recovery_key import is_recovery_key
from .changes import BEGIN, Container, HandOver, Request

_CONTAINER = Table(
    "a container",
    [
        Row("name", Text(filled=True), "What it is opened as; by default its device."),
        Row("device", Text(filled=True), "What it lies on, as the layout calls it.", required=True),
        Row("node", Text(filled=True), "The node of that on this host."),
        Row("uuid", Anything(), "The UUID of its header."),
        Row("names", Anything(), "Other names of the device."),
        Row("unlock", Unlock(), "What opens it, each by itself; may be empty.", required=True),
    ],
)
_CONTAINERS = ListOf(_CONTAINER, "containers")


def request_of(params: Mapping[str, t.Any]) -> Request:
    """Return the request of the module's parameters; raises SchemaMistakes."""
    wrong = Mistakes()
    containers = tuple(map(_container, _CONTAINERS.read_nested(params["containers"], "containers", wrong)))
    mistakes = list(map(str, wrong.found()))
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


def _hand_over(values: Mapping[str, t.Any], mistakes: list[str]) -> HandOver:
    """Return what the controller hands over; there is none where the module is run without its action plugin."""
    keys, earlier = values.get("recovery_keys") or {}, values.get("earlier_keys") or {}
    for option, given in (("recovery_keys", keys), ("earlier_keys", earlier)):
        mistakes += [f"hand_over.{option}.{name}: is no recovery key" for name, text in given.items() if not is_recovery_key(text)]
    added = {name: frozenset(slots) for name, slots in (values.get("added") or {}).items()}
    return HandOver(values.get("part") or BEGIN, keys, earlier, bool(values.get("written")), added)


def _container(values: Values) -> Container:
    device = values["node"] or values["device"]
    return Container(values["name"] or device, device, values["unlock"])
