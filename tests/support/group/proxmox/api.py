# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The API of Proxmox VE as it is published: which calls there are, what they take, who may make them, what they return.

    call, names = find_call("POST", "/nodes/pve1/qemu/100/migrate")
    verify(call, names | parameters)          # raises Refused(400) with errors by parameter, as the real one does
    permit(call, names, privileges)           # raises Refused(403)
    check_answer(call, data)                  # raises AssertionError where a stand-in would answer what the real one would not

`proxmox_api.json` holds the published calls by path: parameters, permissions and results, without the texts.
"""

from __future__ import annotations

import json
import pathlib
import re

DATA = pathlib.Path(__file__).resolve().parents[3] / "unit" / "data" / "group" / "proxmox_api.json"
CALLS = json.loads(DATA.read_text())
_NUMBERED = re.compile(r"\d+$")
_NODE = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?")
_TYPES = {"integer": int, "number": (int, float), "string": str, "boolean": (bool, int), "array": list, "object": dict}


class Refused(Exception):
    """What the server answers instead of data."""

    def __init__(self, status: int, reason: str, errors: dict[str, str] | None = None) -> None:
        super().__init__(f"{status} {reason} {errors or ''}")
        self.status, self.reason, self.errors = status, reason, errors


def find_call(method: str, path: str) -> tuple[dict, dict[str, str]]:
    """Return the published call of a path and what stands for the names in its template."""
    for call in CALLS:
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(call["path"]))
        found = re.fullmatch(pattern, path)
        if found and call["method"] == method:
            return call, found.groupdict()
    raise Refused(501, f"Method '{method} {path}' not implemented")


def verify(call: dict, given: dict[str, str]) -> None:
    """Refuse parameters that the call does not know, that are missing, or of the wrong type."""
    known, errors = call["parameters"], {}
    for name, value in given.items():
        rule = known.get(name) or known.get(_NUMBERED.sub("[n]", name))
        if rule is None:
            errors[name] = "property is not defined in schema and the schema does not allow additional properties"
        elif says := _wrong(rule, str(value)):
            errors[name] = says
    for name, rule in known.items():
        if not rule.get("optional") and name not in given and not name.endswith("[n]"):
            errors[name] = "property is missing and it is not optional"
    if errors:
        raise Refused(400, "Parameter verification failed.", errors)


def _wrong(rule: dict, value: str) -> str:
    kind = rule.get("type")
    if kind == "boolean" and value.lower() not in ("0", "1", "yes", "no", "true", "false", "on", "off"):
        return f"type check ('boolean') failed - got '{value}'"
    if kind == "integer" and not re.fullmatch(r"[+-]?\d+", value):
        return f"type check ('integer') failed - got '{value}'"
    if kind == "number" and not re.fullmatch(r"[+-]?\d+(\.\d+)?", value):
        return f"type check ('number') failed - got '{value}'"
    if kind in ("integer", "number"):
        if "minimum" in rule and float(value) < float(rule["minimum"]):
            return f"value must have a minimum value of {rule['minimum']}"
        if "maximum" in rule and float(value) > float(rule["maximum"]):
            return f"value must have a maximum value of {rule['maximum']}"
    if "enum" in rule and value not in rule["enum"]:
        return f"value '{value}' does not have a value in the enumeration '{', '.join(rule['enum'])}'"
    if rule.get("format") == "pve-node" and not _NODE.fullmatch(value):
        return f"invalid format - value does not look like a valid node name: '{value}'"
    return ""


def permit(call: dict, names: dict[str, str], may: callable) -> None:
    """Refuse whom the call's published permissions leave out; `may(path, privilege)` tells what a user may."""
    rule = call["permissions"] or {"check": ["perm", "/", ["root"]]}
    if rule.get("user") in ("all", "world"):
        return
    _perm, path, privileges, *how = rule["check"]
    where = path
    for name, value in names.items():
        where = where.replace(f"{{{name}}}", value)
    held = [may(where, privilege) for privilege in privileges]
    if not (any(held) if how and how[0] == "any" else all(held)):
        raise Refused(403, f"Permission check failed ({where}, {'|'.join(privileges)})")


def check_answer(call: dict, data: object) -> None:
    """Assert that an answer has the published shape: the types, what must be there, the words."""
    _check(call["returns"] or {}, data, call["path"])


def _check(rule: dict, data: object, place: str) -> None:
    kind = rule.get("type")
    if kind == "null":
        assert data is None, f"{place} returns nothing"
        return
    if kind in _TYPES:
        assert isinstance(data, _TYPES[kind]), f"{place} is {data!r}; must be of type {kind}"
    if "enum" in rule:
        assert data in rule["enum"], f"{place} is {data!r}; must be one of {rule['enum']}"
    if kind == "array":
        for position, item in enumerate(data):
            _check(rule.get("items") or {}, item, f"{place}[{position}]")
    if kind == "object":
        for name, below in (rule.get("properties") or {}).items():
            if name in data:
                _check(below, data[name], f"{place}.{name}")
            else:
                assert below.get("optional", 1) or name.endswith("[n]"), f"{place} has no {name}"
