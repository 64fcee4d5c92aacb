# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Have a host run a module of Ansible, and check the facts of its answer before Ansible makes variables of them."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils._data.errors import InputError, Mistake
from ..plugin_utils._common.action import failure
from ..plugin_utils._common.host_action import run_checked


class ActionModule(ActionBase):
    """host_answer: the action or the module that the task names, with its arguments."""

    _supports_check_mode = True
    _supports_diff = True
    _supports_async = True

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        "module": {"type": "str", "required": True},
        "arguments": {"type": "dict", "default": {}},
        "facts": {"type": "list", "elements": "str", "default": []},
    }

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module as a task of its own would; fail for facts that are not asked for."""
        try:
            _validation, given = self.validate_argument_spec(argument_spec=dict(self.ARGUMENTS))
            action = self._action_of(given["module"], given["arguments"])
        except AnsibleActionFail as error:
            return failure(error.message)
        except InputError as error:
            return failure(str(error))
        facts, host = tuple(given["facts"]), str(self._task.delegate_to or "")
        result = run_checked(lambda: action.run(task_vars=task_vars), task_vars, facts, host=host)
        # Releases before 2.21 return the arguments as well. What a task with `no_log` registers would be shown by a loop over it.
        return {key: value for key, value in result.items() if key != "invocation"}

    def _action_of(self, module: str, arguments: Mapping[str, t.Any]) -> ActionBase:
        """Return what runs a module, with the settings of this task."""
        task = self._task.copy()
        task.action = module
        # As the parser of tasks writes it for modules that take a command line.
        task.args = {"_raw_params" if name == "cmd" else name: value for name, value in arguments.items()}
        loader = self._shared_loader_obj
        has_action = loader.action_loader.has_plugin(module)
        if not has_action and not loader.module_loader.has_plugin(module):
            raise InputError([Mistake("module", f"{module} is no module that is installed")])
        return t.cast(
            "ActionBase",
            loader.action_loader.get(
                module if has_action else "ansible.legacy.normal",
                task=task,
                connection=self._connection,
                play_context=self._play_context,
                loader=self._loader,
                templar=self._templar,
                shared_loader_obj=loader,
            ),
        )
