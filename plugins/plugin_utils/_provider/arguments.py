# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arguments that several tasks on providers share; the doc fragment `database` and provider_candidates describe them."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

DATABASE_ARGUMENTS: Mapping[str, t.Any] = {
    "database": {"type": "str"},
    "timeout": {"type": "float", "default": 60.0},
    "world": {"type": "dict"},
}

KEPT_ARGUMENTS: Mapping[str, t.Any] = {key: DATABASE_ARGUMENTS[key] for key in ("database", "timeout")}

BACKUP_ARGUMENTS: Mapping[str, t.Any] = {
    **KEPT_ARGUMENTS,
    "path": {"type": "path", "required": True},
}

DATABASE_EXCLUSIVE: tuple[tuple[str, ...], ...] = (("database", "world"),)

DRAINED_ARGUMENT: Mapping[str, t.Any] = {"type": "str", "choices": ["exclude", "include"], "default": "exclude"}

_ASKED: Mapping[str, t.Any] = {
    "groups": {"type": "dict"},
    "same_subtree": {"type": "list", "elements": "raw"},
    "root_required": {"type": "list", "elements": "str"},
    "root_forbidden": {"type": "list", "elements": "str"},
    "root_member_of": {"type": "list", "elements": "raw"},
    "group_policy": {"type": "str", "choices": ["none", "isolate"]},
    "isolate": {"type": "list", "elements": "raw"},
    "can_split": {"type": "list", "elements": "str"},
    "query": {"type": "str"},
    "with": {"type": "list", "elements": "str"},
    "not_with": {"type": "list", "elements": "str"},
    "prefer": {"type": "list", "elements": "dict"},
}

_IN_QUERY = ("groups", "same_subtree", "root_required", "root_forbidden", "root_member_of", "group_policy", "isolate", "can_split")

QUERY_EXCLUSIVE: tuple[tuple[str, ...], ...] = tuple(("query", key) for key in _IN_QUERY)

REQUEST_ARGUMENTS: Mapping[str, t.Any] = {
    **_ASKED,
    "one_of": {
        "type": "list",
        "elements": "dict",
        "options": _ASKED,
        "mutually_exclusive": QUERY_EXCLUSIVE,
        "required_one_of": [("groups", "query")],
    },
    "drained": DRAINED_ARGUMENT,
    "limit": {"type": "int"},
    "distinct": {"type": "str", "choices": ["allocations", "mappings"], "default": "allocations"},
    "order": {"type": "str", "choices": ["none", "spread", "pack"], "default": "none"},
    "budget": {"type": "int", "default": 5000000},
    "explain_below": {"type": "int", "default": 1},
}

CAPACITY_ARGUMENTS: Mapping[str, t.Any] = {
    **DATABASE_ARGUMENTS,
    **{key: spec for key, spec in _ASKED.items() if key != "prefer"},
    **{key: REQUEST_ARGUMENTS[key] for key in ("drained", "budget")},
}

REQUEST_EXCLUSIVE: tuple[tuple[str, ...], ...] = (*QUERY_EXCLUSIVE, *(("one_of", key) for key in (*_IN_QUERY, "query")))

REQUEST_NEEDS: tuple[str, ...] = ("groups", "query", "one_of")

ASKED_KEYS: tuple[str, ...] = tuple(_ASKED)
"""What each of several alternatives may say for itself."""
