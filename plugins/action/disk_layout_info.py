# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the layout of a host's disks as a static schema: disk_layout's module on the host, which then only adopts."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleActionFail

from ..plugin_utils._common.action import failure
from ..plugin_utils._common.host_action import HostAction

_MODULE = "bareon.allocator.disk_layout"
_CHANGING = ("changed", "destroys", "destroys_digest")


class ActionModule(HostAction):
    """disk_layout_info: the layout that is on the disks; nothing is changed."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {"disks": {"type": "list", "elements": "str", "default": []}}

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Return the layout as a schema, and the steps that disk_layout would take with this schema."""
        try:
            _validation, arguments = self.validate_argument_spec(argument_spec=dict(self.ARGUMENTS))
        except AnsibleActionFail as error:
            return failure(error.message)
        self._task.args = {"adopt": True, "disks": arguments["disks"]}
        result = super().run(tmp, task_vars)
        return {key: value for key, value in result.items() if key not in _CHANGING} | {"changed": False}

    def _execute_module(self, module_name: str | None = None, *arguments: t.Any, **options: t.Any) -> dict[str, t.Any]:
        return t.cast("dict[str, t.Any]", super()._execute_module(module_name or _MODULE, *arguments, **options))
