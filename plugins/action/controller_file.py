# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a file on the controller: text to a file that nobody finds half written."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from pathlib import Path

from ..module_utils._data.errors import InputError, Mistake
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._common.files import PRIVATE_FILE, PUBLIC_FILE, replace_file, text_before
from ..plugin_utils._common.lasting import loss_warnings
from ..plugin_utils._common.release import with_kept_date


class ActionModule(PlanningAction):
    """controller_file: the file, if it does not have the text yet."""

    NEEDS_LIBRARIES = False
    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        "dest": {"type": "path", "required": True},
        "content": {"type": "str", "required": True},
        "public": {"type": "bool", "default": False},
        "named_by": {"type": "str", "default": "dest"},
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Write the file unless it has the text already."""
        path, after = Path(self._loader.get_basedir()) / arguments["dest"], arguments["content"]
        try:
            before = text_before(path)
            after = with_kept_date(after, before) if arguments["public"] else after
            changed = before != after
            if changed and not self._task.check_mode:
                replace_file(path, after, PUBLIC_FILE if arguments["public"] else PRIVATE_FILE)
        except OSError as error:
            raise InputError([Mistake(arguments["named_by"], f"{path} cannot be written: {error.strerror}")]) from error
        diff = {"before": before or "", "after": after, "before_header": str(path), "after_header": str(path)}
        # A folder has one warning however many files are written there.
        warnings = loss_warnings(path.parent, arguments["named_by"])
        return {"dest": str(path), "changed": changed, "warnings": warnings, **({"diff": diff} if changed and self._task.diff else {})}
