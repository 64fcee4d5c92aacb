# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Allot resources to consumers and take them back: arguments to one call of plugin_utils._provider, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._provider.arguments import (
    DATABASE_ARGUMENTS,
    DATABASE_EXCLUSIVE,
    DRAINED_ARGUMENT,
    REQUEST_ARGUMENTS,
    REQUEST_EXCLUSIVE,
    REQUEST_NEEDS,
)
from ..plugin_utils._provider.tasks.allocation import run_provider_allocation

_REQUEST: Mapping[str, t.Any] = {
    "type": "dict",
    "options": REQUEST_ARGUMENTS,
    "mutually_exclusive": REQUEST_EXCLUSIVE,
    "required_one_of": [REQUEST_NEEDS],
}


class ActionModule(PlanningAction):
    """provider_allocation: what consumers have, in the ledger."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **DATABASE_ARGUMENTS,
        "consumer": {"type": "str"},
        "allocations": {"type": "dict"},
        "candidates": {"type": "list", "elements": "dict"},
        "request": _REQUEST,
        "requests": {
            "type": "list",
            "elements": "dict",
            "options": {
                "consumer": {"type": "str", "required": True},
                "request": {**_REQUEST, "required": True},
                "project": {"type": "str"},
                "user": {"type": "str"},
                "consumer_type": {"type": "str"},
                "take_over": {"type": "bool"},
                "lease": {"type": "str"},
            },
        },
        "all_or_nothing": {"type": "bool", "default": False},
        "gang": {"type": "dict"},
        "consumers": {"type": "list", "elements": "raw"},
        "inventories": {"type": "dict"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "consumer_generation": {"type": "int"},
        "generations": {"type": "dict"},
        "project": {"type": "str"},
        "user": {"type": "str"},
        "consumer_type": {"type": "str"},
        "take_over": {"type": "bool", "default": False},
        "lease": {"type": "str"},
        "drained": DRAINED_ARGUMENT,
        "retries": {"type": "int", "default": 40},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {
        "mutually_exclusive": [
            *DATABASE_EXCLUSIVE,
            ("consumer", "consumers", "requests"),
            ("consumer_generation", "consumers", "requests"),
            ("allocations", "candidates", "request", "requests", "consumers"),
            ("requests", "inventories"),
            ("requests", "generations"),
            ("request", "inventories"),
            ("request", "generations"),
            ("candidates", "inventories"),
            ("candidates", "generations"),
        ],
        "required_one_of": [("consumer", "consumers", "requests", "inventories")],
        "required_by": {
            "gang": "requests",
            **dict.fromkeys(("allocations", "candidates", "request", "consumer_generation"), "consumer"),
        },
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Carry the claims out; in check mode, take them back."""
        return run_provider_allocation(arguments, dry_run=self._task.check_mode, rehearsal=self.rehearsal)
