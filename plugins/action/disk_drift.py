# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare hosts with their plans on the controller: arguments to one call of plugin_utils._disk.drift, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Mapping

from ansible.release import __version__

from ..plugin_utils._common.action import PlanningAction, failure
from ..plugin_utils._common.release import collection_version, date_of_now
from ..plugin_utils._disk.drift.files import by_host, facts_in, split_by_plan
from ..plugin_utils._disk.drift.report import drift
from ..plugin_utils._disk.known_hardware import present_hardware


class ActionModule(PlanningAction):
    """disk_drift: what has become of plans."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        "plans": {"type": "raw", "required": True},
        "hardware": {"type": "raw"},
        "hosts": {"type": "list", "elements": "str"},
        "unreachable": {"type": "str", "choices": ["skip", "fail"], "default": "skip"},
        "root": {"type": "str", "default": "/"},
        "fail_on": {"type": "list", "elements": "str", "choices": ["could_grow", "new", "differs", "gone"], "default": []},
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Compare the hosts of `plans`, or those of them that are asked for."""
        planned, plan_of = by_host("plans", arguments["plans"])
        asked = planned if arguments["hosts"] is None else arguments["hosts"]
        with_plan, unplanned = split_by_plan(asked, planned)
        facts_of = self._facts_of(arguments["hardware"], task_vars["hostvars"])
        found = drift(with_plan, plan_of, facts_of, arguments["root"])
        found.refuse_silence(must_all=arguments["unreachable"] == "fail")
        result = found.to_plain() | {"unplanned_hosts": unplanned, "warnings": found.warnings(unplanned)}
        result["origin"] = {
            "plans": _described(arguments["plans"]),
            "facts": _described(arguments["hardware"]),
            "versions": f"bareon.allocator {collection_version()}, ansible-core {__version__}",
            "date": date_of_now(),
        }
        says = []
        if found.unread:
            says.append(f"{len(found.unread)} of {found.total} hosts cannot be compared")
        if wrong := found.with_states(arguments["fail_on"]):
            says.append(f"{len(wrong)} of {found.total} hosts are not as planned")
        return result | failure(f"{', '.join(says)}\n{result['summary']}") if says else result

    def _facts_of(self, hardware: t.Any, hostvars: t.Any) -> Callable[[str], t.Any]:
        """Return what gives the facts of a host: those of `hardware`, else those that Ansible knows."""
        if hardware is not None:
            _hosts, known = by_host("hardware", hardware)
            return lambda host: facts_in(known(host))
        template = self._templar.template
        return lambda host: present_hardware(hostvars.raw_get(host), template) if host in hostvars else None


def _described(source: t.Any) -> str:
    """Return in words where plans or facts come from."""
    if source is None:
        return "of the hosts, as Ansible knows them"
    return f"the folder {source}" if isinstance(source, str) else "as the task gives them"
