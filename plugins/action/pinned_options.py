# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pin options of a play or a role on the controller: names of variables to their values, as they are without facts."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleError
from ansible.template import Templar

from ..module_utils._data.errors import InputError, Mistake, Mistakes
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._common.facts import refuse_facts, shortened
from ..plugin_utils._common.plain import is_literal, plain_input
from ..plugin_utils._common.variables import of_other_playbooks, refuse_unknown, without_facts


class ActionModule(PlanningAction):
    """pinned_options: the values of variables, none of which is a fact."""

    NEEDS_LIBRARIES = False

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        "options": {"type": "list", "elements": "str", "required": True},
        "prefix": {"type": "str", "default": ""},
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Refuse facts with names of options, then return the options. They can be secrets, so Ansible does not show them."""
        names = {option: f"{arguments['prefix']}{option}" for option in arguments["options"]}
        refuse_facts(task_vars, set(names.values()))
        host = str(task_vars.get("inventory_hostname", ""))
        if "/" in host or host in (".", ".."):
            says = "is a path and no name of a host; give the host another name, and its address in ansible_host"
            raise InputError([Mistake("inventory_hostname", f"{shortened(host)} {says}")])
        variables = without_facts(self._task, task_vars)
        refuse_unknown(task_vars, variables)
        for says in of_other_playbooks(task_vars):
            # The result of this task shows nothing.
            self._display.warning(says)
        return {"options": self._values(names, variables), "_ansible_no_log": True}

    def _values(self, names: Mapping[str, str], variables: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return the values of those options that have one."""
        templar = Templar(loader=self._loader, variables=variables)
        mistakes = Mistakes()
        values: dict[str, t.Any] = {}
        for option, name in names.items():
            if name not in variables:
                continue
            try:
                given = {option: variables[name]}
                # In a mapping, what resolves to `omit` is left out. Templating is slow, and the hardware of a host is large.
                values |= plain_input(given if is_literal(given) else templar.template(given), name)
            except AnsibleError as error:
                mistakes.extend([Mistake(name, str(error))])
            except InputError as error:
                mistakes.extend(error.mistakes)
        mistakes.check()
        return values
