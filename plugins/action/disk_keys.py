# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change keys on the host, and write the recovery keys that come of it on the controller."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.plugins.action import ActionBase

from ..plugin_utils.common.action import failure
from ..plugin_utils.disk.recovery_keys import recovery_key_files, try_folder, write_new


class ActionModule(ActionBase):
    """disk_keys: the module, and what of its result goes into files here."""

    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module. Where the folder cannot be written to nothing is begun, for the keys would be lost."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        folder = arguments.pop("recovery_key_directory", None)
        if folder is not None and not self._task.check_mode:
            problem = try_folder(Path(str(folder)).expanduser())
            if problem:
                return result | failure(problem)
        result |= self._execute_module(module_name="bareon.allocator.disk_keys", module_args=arguments, task_vars=task_vars)
        if folder is None or "recovery_keys" not in result:
            return result
        return result | self._written(result, Path(str(folder)).expanduser(), str((task_vars or {}).get("inventory_hostname", "host")))

    def _written(self, result: dict[str, t.Any], folder: Path, host: str) -> dict[str, t.Any]:
        """Return what the result has instead of keys: their files. A key that could not be written stays in it."""
        files = recovery_key_files(result, folder, host)
        try:
            for name, file in files.items():
                write_new(file, result["recovery_keys"][name])
        except OSError as error:
            return failure(f"The recovery keys were created and are in recovery_keys, but cannot be written to files: {error}")
        return {"recovery_keys": {}, "recovery_key_files": {name: str(file) for name, file in files.items()}}
