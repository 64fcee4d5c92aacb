# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices of NetBox, as its REST API returns them, as providers: one root for each device.

NetBox has unique names only within something else: of devices in a site and tenant, of racks in a location. The ledger has one space of
names, so the aggregate of a rack carries the names of its site and location, and doubles are mistakes.
"""

from __future__ import annotations

import re
import typing as t
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._data.containers import Also, ListOf, MappingOf, Row, Table, Values, read_all, read_each, refuse_doubles
from ....module_utils._data.errors import Mistakes, suggest
from ....module_utils._data.kinds import Anything, Text, Truth, Whole, Word, is_whole, shown
from ..world.model import LARGEST_AMOUNT
from ..world.names import STANDARD_TRAITS, custom_trait
from ..world.parse import CLASS

Plain = dict[str, t.Any]

STATUSES = ("offline", "active", "planned", "staged", "failed", "inventory", "decommissioning")
_ACTIVE = "active"

_AMOUNT = Whole(0, LARGEST_AMOUNT, digits=True)
_ID = Row("id", Whole(0, digits=True), required=True)
_STATUS = Table("a status", [Row("value", Text(filled=True), required=True), Row("label", Text())], others=True)
_NAMED = Table("an object of NetBox", [_ID, Row("name", Text()), Row("model", Text()), Row("slug", Text())], others=True)
_TAGS = ListOf(_NAMED, "tags")
DEVICE = Table(
    "a device of NetBox",
    [
        _ID,
        Row("name", Text(filled=True), required=True),
        Row("status", _STATUS, required=True),
        Row("site", _NAMED, required=True),
        *(Row(name, _NAMED) for name in ("location", "rack", "cluster", "tenant", "role", "device_type", "platform")),
        Row("tags", _TAGS, default=()),
        Row("custom_fields", MappingOf(Anything(), "custom fields"), default={}),
    ],
    others=True,
)
ITEM = Table(
    "an inventory item of NetBox",
    [Row("device", _NAMED, required=True), Row("role", _NAMED), Row("status", _STATUS)],
    others=True,
)
_FIELD = Table("a custom field", [Row("field", Text(filled=True), required=True), Row("factor", Whole(1, LARGEST_AMOUNT), default=1)])


@dataclass(frozen=True)
class _Options:
    """What is made of a device: amounts of custom fields and of inventory items, by class; drains; aggregates; traits."""

    fields: Mapping[str, Values]
    item_roles: Mapping[str, str]
    limits: Mapping[str, Plain]
    usable: Sequence[str]
    drains: bool
    aggregates: Sequence[str]
    traits: Sequence[str]


_OPTIONS = Table(
    "options",
    [
        Row(
            "fields",
            MappingOf(Also(_FIELD, lambda field: {"field": field} if isinstance(field, str) else field, Text()), "resource classes", CLASS),
            default={},
        ),
        Row("item_roles", MappingOf(Text(filled=True), "resource classes", CLASS), default={}),
        Row("limits", MappingOf(MappingOf(Anything(), "keys of inventories"), "resource classes", CLASS), default={}),
        Row("usable", ListOf(Word(STATUSES), "statuses"), default=(_ACTIVE,)),
        Row("drains", Truth(), default=True),
        Row("aggregates", ListOf(Word(["site", "location", "rack", "cluster", "tenant"]), "kinds of aggregates"), default=("site", "rack")),
        Row("traits", ListOf(Word(["tags", "role", "device_type", "platform"]), "kinds of traits"), default=("tags",)),
    ],
    make=_Options,
)


def netbox_to_providers(devices: t.Any, items: t.Any, options: Mapping[str, t.Any]) -> tuple[list[Plain], list[str]]:
    """Return an entry for the module provider for each device, and warnings.

    `devices` and `items`, inventory items or None, are lists, pages of the API, or lists of pages. Raises InputError.
    """
    mistakes = Mistakes()
    wishes: _Options = _OPTIONS.read_nested(options, "", mistakes)
    if bool(wishes.item_roles) != (items is not None):
        mistakes.add("inventory_items", "must be given together with item_roles")
    for name in sorted(wishes.limits.keys() - wishes.fields.keys() - wishes.item_roles.keys()):
        mistakes.add(f"limits.{name}", "belongs to no inventory: the class is neither in fields nor in item_roles")
    read = _read(DEVICE, devices, "devices", mistakes)
    counted = _counted(_read(ITEM, [] if items is None else items, "inventory_items", mistakes))
    refuse_doubles(((place, device["name"]) for place, device in read), "name", mistakes)
    _refuse_racks_alike([device for _place, device in read], wishes, mistakes)
    made = [_provider(place, device, counted, wishes, mistakes) for place, device in read]
    mistakes.check()
    unknown = sorted(set(wishes.item_roles.values()) - {role for _device, role in counted})
    return made, [f"no inventory item in use has the role {role}" for role in unknown]


def _read(kind: Table, data: t.Any, place: str, mistakes: Mistakes) -> list[tuple[str, Values]]:
    """Return the places and values of entries: of a list, of a page, or of a list of pages, which must be complete."""
    pages = data if isinstance(data, list) else [data]
    if not all(isinstance(page, Mapping) and "results" in page for page in pages) or not pages:
        if not isinstance(data, list):
            mistakes.add(place, f"is {shown(data)}; must be a list, a page of NetBox's API, or a list of pages")
            return []
        return list(zip(places := [f"{place}[{number}]" for number in range(len(data))], read_each(kind, data, places, mistakes)))
    read = [
        (where, entry)
        for number, page in enumerate(pages)
        for where, entry in _of_page(kind, page, place if pages is not data else f"{place}[{number}]", mistakes)
    ]
    count = pages[0].get("count")
    if is_whole(count) and count != len(read):
        mistakes.add(place, f"has {len(read)} of {count}; give all pages as a list, or ask with a higher limit")
    return read


def _of_page(kind: Table, page: Mapping[str, t.Any], place: str, mistakes: Mistakes) -> list[tuple[str, Values]]:
    results = read_all(ListOf(Anything(), "entries"), page["results"], f"{place}.results")
    places = [f"{place}.results[{number}]" for number in range(len(results))]
    return list(zip(places, read_each(kind, results, places, mistakes)))


def _counted(items: Sequence[tuple[str, Values]]) -> Counter[tuple[int, str]]:
    """Return how many items in use each device has of each role; releases before 4.2 have no status of items."""
    return Counter(
        (item["device"]["id"], item["role"]["slug"])
        for _place, item in items
        if item["role"] is not None and (item["status"] is None or item["status"]["value"] == _ACTIVE)
    )


def _provider(place: str, device: Values, counted: Mapping[tuple[int, str], int], wishes: _Options, mistakes: Mistakes) -> Plain:
    provider: Plain = {"name": device["name"]}
    status = device["status"]
    if wishes.drains:
        drained = {"reason": f"{status['label'] or status['value']} in NetBox"}
        provider["drained"] = False if status["value"] in wishes.usable else drained
    if wishes.fields or wishes.item_roles:
        totals = {name: _amount(place, device, field, mistakes) for name, field in wishes.fields.items()}
        for name, role in wishes.item_roles.items():
            totals[name] = totals.get(name, 0) + counted[device["id"], role]
        provider["inventories"] = {name: {"total": total, **wishes.limits.get(name, {})} for name, total in totals.items() if total}
    if wishes.aggregates:
        provider["aggregates"] = sorted(set(filter(None, (_aggregate(device, kind) for kind in wishes.aggregates))))
    if wishes.traits:
        provider["traits"] = sorted({trait for kind in wishes.traits for trait in _traits(device, kind)})
    return provider


def _amount(place: str, device: Values, field: Values, mistakes: Mistakes) -> int:
    """Return what a custom field says, 0 where it is empty."""
    where, value = f"{place}.custom_fields.{field['field']}", device["custom_fields"].get(field["field"])
    if field["field"] not in device["custom_fields"]:
        known = suggest(field["field"], device["custom_fields"])
        mistakes.add(where, f"is missing{known}; every device has each custom field of its type, if only as null")
    if value is None:
        return 0
    try:
        return _AMOUNT.read(value) * int(field["factor"])
    except ValueError as error:
        mistakes.add(where, str(error))
        return 0


def _aggregate(device: Values, kind: str) -> str | None:
    """Return the name of an aggregate: of a rack with its site and, if it has one, its location, so that it is one name."""
    if device[kind] is None:
        return None
    above = {"rack": ("site", "location"), "location": ("site",)}.get(kind, ())
    return "/".join(_word(device[each]) for each in (*above, kind) if device[each] is not None)


def _word(named: Values) -> str:
    """Return an object's name as a part of an aggregate's: of letters, digits, blanks and `.@+-_`."""
    name = re.sub(r"[^\w .@+-]", "-", named["slug"] or named["name"] or str(named["id"]))
    return re.sub(r"^\W", "_", name.strip())


def _traits(device: Values, kind: str) -> list[str]:
    """Return traits: a tag that is called as a standard one, such as hw-cpu-x86-avx2, is that."""
    if kind != "tags":
        return [] if device[kind] is None else [custom_trait(kind, _label(device[kind]))]
    named = [(custom_trait("tag", _label(tag)), re.sub("[^A-Z0-9]", "_", _label(tag).upper())) for tag in device["tags"]]
    return [short if short in STANDARD_TRAITS else trait for trait, short in named]


def _label(named: Values) -> str:
    return str(named["slug"] or named["name"] or named["model"] or named["id"])


def _refuse_racks_alike(devices: Sequence[Values], wishes: _Options, mistakes: Mistakes) -> None:
    """Add a mistake for each name that would stand for several objects of NetBox."""
    meant: dict[str, dict[tuple[str, int], None]] = {}
    for device in devices:
        for kind in wishes.aggregates:
            name = _aggregate(device, kind)
            if name is not None:
                meant.setdefault(name, {})[kind, device[kind]["id"]] = None
    for name, objects in meant.items():
        if len(objects) > 1:
            listed = " and ".join(f"{kind} {number}" for kind, number in objects)
            mistakes.add("devices", f"the aggregate {name} would stand for {listed}; rename one, or leave one kind out of aggregates")
