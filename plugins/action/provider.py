# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Register, change and remove resource providers: arguments to one call of plugin_utils._provider, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._provider.arguments import DATABASE_ARGUMENTS, DATABASE_EXCLUSIVE
from ..plugin_utils._provider.tasks.provider import run_provider

_ALONE = ("uuid", "name", "parent", "inventories", "traits", "aggregates", "generation", "add", "remove", "drained", "replaces")


class ActionModule(PlanningAction):
    """provider: what a provider is, in the ledger."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **DATABASE_ARGUMENTS,
        "uuid": {"type": "str"},
        "name": {"type": "str"},
        "parent": {"type": "str"},
        "inventories": {"type": "dict"},
        "traits": {"type": "list", "elements": "str"},
        "aggregates": {"type": "list", "elements": "str"},
        "generation": {"type": "int"},
        "drained": {"type": "raw"},
        "add": {"type": "dict"},
        "remove": {"type": "dict"},
        "custom_traits": {"type": "list", "elements": "str"},
        "custom_classes": {"type": "list", "elements": "str"},
        "providers": {"type": "list", "elements": "dict"},
        "replaces": {"type": "str"},
        "tree": {"type": "bool", "default": False},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {
        "mutually_exclusive": [*DATABASE_EXCLUSIVE, *((key, "providers") for key in _ALONE)],
        "required_one_of": [("uuid", "name", "providers", "custom_traits", "custom_classes")],
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Make the providers what they are declared to be; in check mode, take it back."""
        return run_provider(arguments, dry_run=self._task.check_mode, rehearsal=self.rehearsal)
