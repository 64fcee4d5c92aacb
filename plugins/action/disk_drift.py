# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare hosts with their plans on the controller: arguments to one call of plugin_utils.disk.drift, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleActionFail

from ..plugin_utils.common.action import PlanningAction
from ..plugin_utils.common.errors import InputError, Mistake
from ..plugin_utils.common.plain import plain
from ..plugin_utils.disk.drift.report import drift
from ..plugin_utils.disk.known_hardware import FACT, present_hardware


class ActionModule(PlanningAction):
    """disk_drift: what has become of plans."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        "plans": {"type": "dict", "required": True},
        "root": {"type": "str", "default": "/"},
        "fail_on": {"type": "list", "elements": "str", "choices": ["could_grow", "new", "differs", "gone"], "default": []},
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Compare the hosts of `plans`."""
        result = drift(arguments["plans"], self._facts(arguments["plans"], task_vars["hostvars"]), arguments["root"]).to_plain()
        wrong = {host: found for host, found in result["hosts"].items() if self._is_wrong(found, arguments["fail_on"])}
        if wrong:
            raise AnsibleActionFail(
                f"{len(wrong)} of {len(result['hosts'])} hosts are not as planned\n{result['summary']}", result=plain(result)
            )
        return result

    def _is_wrong(self, found: Mapping[str, t.Any], states: list[str]) -> bool:
        return any(finding["state"] in states for finding in found["findings"])

    def _facts(self, hosts: Mapping[str, t.Any], hostvars: t.Any) -> dict[str, t.Any]:
        """Return the facts of hosts, as disk_facts gathered them or the inventory has them."""
        facts: dict[str, t.Any] = {}
        mistakes = []
        for host in hosts:
            if host not in hostvars:
                mistakes.append(Mistake("plans", f"{host} is not in the inventory"))
                continue
            facts[host] = present_hardware(hostvars.raw_get(host), self._templar.template)
            if facts[host] is None:
                mistakes.append(Mistake("plans", f"{host} has no {FACT}; run bareon.allocator.disk_facts on it first"))
        if mistakes:
            raise InputError(mistakes)
        return facts
