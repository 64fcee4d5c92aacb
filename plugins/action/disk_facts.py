# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the disks of the host, and check the facts of its answer."""

from __future__ import annotations

import typing as t

from ..module_utils._data.errors import InputError
from ..plugin_utils._common.action import failure
from ..plugin_utils._common.host_action import HostAction
from ..plugin_utils._disk.schema.hardware import check_kinds


class ActionModule(HostAction):
    """disk_facts: the module on the host."""

    FACTS: t.ClassVar[tuple[str, ...]] = ("bareon_hardware",)

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module; fail for facts of other kinds, which would end the run of a fleet that is planned on one page."""
        result = super().run(tmp, task_vars)
        if result.get("failed") or result.get("unreachable") or result.get("skipped"):
            return result
        try:
            check_kinds((result.get("ansible_facts") or {}).get("bareon_hardware"), "bareon_hardware")
        except InputError as error:
            return failure(f"the module did not write this answer: {error}")
        return result
