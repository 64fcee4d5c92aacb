# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find allocation candidates: arguments to one call of plugin_utils.provider, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils.common.planning_action import MissingLibrary, PlanningAction
from ..plugin_utils.provider.arguments import DATABASE_ARGUMENTS, DATABASE_EXCLUSIVE

IMPORT_ERROR: ImportError | None = None
try:
    from ..plugin_utils.provider.provider_candidates_task import run_provider_candidates
except ImportError as error:
    IMPORT_ERROR = error

_IN_QUERY = (
    "groups",
    "same_subtree",
    "root_required",
    "root_forbidden",
    "root_member_of",
    "group_policy",
    "isolate",
    "can_split",
)


class ActionModule(PlanningAction):
    """provider_candidates: which providers could satisfy a request."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **DATABASE_ARGUMENTS,
        "groups": {"type": "dict"},
        "same_subtree": {"type": "list", "elements": "raw"},
        "root_required": {"type": "list", "elements": "str"},
        "root_forbidden": {"type": "list", "elements": "str"},
        "root_member_of": {"type": "list", "elements": "raw"},
        "group_policy": {"type": "str", "choices": ["none", "isolate"]},
        "isolate": {"type": "list", "elements": "raw"},
        "can_split": {"type": "list", "elements": "str"},
        "query": {"type": "str"},
        "limit": {"type": "int"},
        "distinct": {"type": "str", "choices": ["allocations", "mappings"], "default": "allocations"},
        "order": {"type": "str", "choices": ["none", "spread", "pack"], "default": "none"},
        "budget": {"type": "int", "default": 5000000},
        "explain_below": {"type": "int", "default": 1},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {
        "mutually_exclusive": [*DATABASE_EXCLUSIVE, *(("query", key) for key in _IN_QUERY)],
        "required_one_of": [("groups", "query")],
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Look for candidates; nothing is changed, whether in check mode or not."""
        if IMPORT_ERROR is not None:
            raise MissingLibrary(IMPORT_ERROR.name or "numpy") from IMPORT_ERROR
        return run_provider_candidates(arguments)
