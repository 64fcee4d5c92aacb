# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change keys on the host; recovery keys are created and written on the controller first, and headers are copied to it."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ..module_utils._data.errors import InputError
from ..plugin_utils._common.action import failure
from ..plugin_utils._common.facts import refuse_facts
from ..plugin_utils._common.host_action import checked
from ..plugin_utils._common.lasting import loss_warnings
from ..plugin_utils._disk.header_backups import names_of, write_headers
from ..plugin_utils._disk.recovery_keys import (
    ENROL,
    PREPARE,
    Folder,
    Refused,
    as_in_schema,
    change_keys,
    check_folder,
    check_stage,
    prepare_keys,
    refuse_ledger,
    with_recovery,
    with_uuids,
)


class ActionModule(ActionBase):
    """disk_keys: the parts of the module on the host, and the recovery keys between them."""

    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module. Where recovery keys could not be kept, nothing is begun."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        directory = arguments.pop("recovery_key_directory", None)
        host = str((task_vars or {}).get("inventory_hostname", "host"))
        headers = arguments.pop("header_backup_directory", None)
        copies = None if headers is None else Path(str(headers)).expanduser()
        stage = str(arguments.pop("recovery_key_stage", None) or "complete")
        keeps = arguments.pop("keep_recovery_keys", True)
        folder = None if directory is None else Folder(Path(str(directory)).expanduser(), host, boolean(keeps, strict=False))
        if "hand_over" in arguments:
            return result | failure("hand_over: is internal data from the controller to the host; leave it out")

        def call(hand_over: dict[str, t.Any]) -> dict[str, t.Any]:
            given = {**arguments, "hand_over": hand_over}
            answer = self._execute_module(module_name="bareon.allocator.disk_keys", module_args=given, task_vars=task_vars)
            return checked(answer, task_vars, discovered=self._discovered_interpreter_key)

        try:
            refuse_facts(task_vars or {})
            refuse_ledger({"recovery_key_directory": directory, "header_backup_directory": headers})
            if "schema" in arguments:
                arguments["containers"] = as_in_schema(arguments.get("containers"), arguments.pop("schema"))
            asked = with_recovery(arguments.get("containers"))
            shows = boolean(arguments.pop("show_recovery_keys", False))
            check_stage(stage, folder)
            if folder is not None and not self._task.check_mode:
                folder.check()
            if copies is not None and not self._task.check_mode:
                check_folder(copies, "header_backup_directory")
            if stage == PREPARE and folder is not None:
                keyed = prepare_keys(call, asked, folder, check_mode=self._task.check_mode)
                copies = None
            else:
                keyed = change_keys(call, asked, folder, shows=shows, check_mode=self._task.check_mode, prepared=stage == ENROL)
            if "prepared" in keyed:
                keyed["prepared"] = with_uuids(keyed["prepared"], arguments.get("containers"))
            option = "recovery_key_directory, in the role disk_layout_recovery_key_directory"
            lost = loss_warnings(folder.path, option) if folder is not None and asked else []
            if copies is not None:
                lost += loss_warnings(copies, "header_backup_directory, in the role disk_layout_header_backup_directory")
                if not self._task.check_mode and not keyed.get("failed"):
                    keyed |= self._copy(call, names_of(arguments.get("containers")), copies, host, changed=bool(keyed.get("changed")))
            said = keyed.get("warnings")
            return result | keyed | {"warnings": [*(said if isinstance(said, list) else ()), *lost]}
        except (InputError, Refused, TypeError) as problem:
            return result | failure(str(problem))

    def _copy(
        self, call: t.Callable[[dict[str, t.Any]], dict[str, t.Any]], names: list[str], folder: Path, host: str, *, changed: bool
    ) -> dict[str, t.Any]:
        """Write the headers to files; no result has them. A connection logs what a host answers unless `no_log` is set."""
        before = self._play_context.no_log
        self._play_context.no_log = True
        try:
            answer = call({"part": "copy"})
        finally:
            self._play_context.no_log = before
        if answer.get("failed"):
            return failure(str(answer.get("msg", "The headers cannot be read"))) | {"changed": changed}
        files, written = write_headers(folder, host, answer.get("headers"), names)
        return {"header_backups": files, "changed": changed or written}
