# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan disks on the controller: arguments to one call of plugin_utils.disk, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from pathlib import Path

from ansible.errors import AnsibleActionFail

from ..plugin_utils.common.action import PlanningAction
from ..plugin_utils.common.errors import InputError, Mistake, NoSolution
from ..plugin_utils.common.plain import plain
from ..plugin_utils.disk.planner import Fleet, Objective, Planner, parse_reserve
from ..plugin_utils.disk.render.text import planned_layout, present_layout, summary
from ..plugin_utils.disk.schema.profiles import find_profile, load_profile, merge
from ..plugin_utils.disk.warm_up import warm_up

PROFILES = Path(__file__).resolve().parents[2] / "profiles"
warm_up(PROFILES)
_FACT = "bareon_hardware"


class ActionModule(PlanningAction):
    """disk_plan: from hardware and a dynamic schema to a static one."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        "schema": {"type": "raw"},
        "profile": {"type": "str"},
        "overrides": {"type": "raw"},
        "hardware": {"type": "raw"},
        "hosts": {"type": "list", "elements": "str"},
        "objective": {"type": "str", "choices": ["fair", "ordered"], "default": "fair"},
        "reserve": {"type": "raw", "default": 0},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {
        "mutually_exclusive": [("schema", "profile"), ("hardware", "hosts")],
        "required_one_of": [("schema", "profile")],
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Plan the host of the task, or all of `hosts`."""
        planner = Planner(self._schema(arguments), Objective(arguments["objective"]), parse_reserve(arguments["reserve"]))
        if arguments["hosts"] is not None:
            return self._plan_hosts(planner, arguments["hosts"], task_vars)
        hardware = arguments["hardware"] if arguments["hardware"] is not None else self._own_hardware(task_vars)
        plan = planner.plan(hardware)
        host = str(task_vars.get("inventory_hostname", "hardware"))
        result = {"plan": plan, "summary": summary(plan, hardware), "warnings": plan["warnings"]}
        return result | self._difference({host: plan}, {host: hardware})

    def _schema(self, arguments: Mapping[str, t.Any]) -> t.Any:
        schema = arguments["schema"]
        if arguments["profile"] is not None:
            # Beside the playbook, and where the command was given: a playbook of a collection lies where no user keeps files.
            bases = (Path(self._loader.get_basedir()), Path.cwd())
            schema = load_profile(find_profile(arguments["profile"], PROFILES, bases))
        return schema if arguments["overrides"] is None else merge(schema, arguments["overrides"])

    def _own_hardware(self, task_vars: Mapping[str, t.Any]) -> t.Any:
        known = self._known_hardware(task_vars)
        if known is not None:
            return known
        gathered: dict[str, t.Any] = self._execute_module(
            module_name="bareon.allocator.disk_facts", module_args={}, task_vars=dict(task_vars)
        )
        if gathered.get("failed"):
            raise AnsibleActionFail(f"the facts of the disks could not be gathered: {gathered.get('msg', 'no reason given')}")
        return gathered["ansible_facts"][_FACT]

    def _known_hardware(self, variables: Mapping[str, t.Any]) -> t.Any:
        """Return what was gathered about a host or, else, what the inventory says; None without either."""
        facts = variables.get("ansible_facts") or {}
        if facts.get(_FACT) is not None:
            return facts[_FACT]
        return self._templar.template(variables[_FACT]) if variables.get(_FACT) is not None else None

    def _plan_hosts(self, planner: Planner, hosts: list[str], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        hardware = self._hardware_of(hosts, task_vars)
        fleet = planner.plan_fleet(hardware)
        result = {
            "plans": fleet.plans,
            "summary": "\n\n".join(f"{host}\n{summary(plan, hardware[host])}" for host, plan in fleet.plans.items()),
            "warnings": _gathered_warnings(fleet.plans),
        }
        if fleet.failures:
            raise AnsibleActionFail(_describe_failures(fleet), result=plain(result | {"failures": _failures(fleet)}))
        return result | self._difference(fleet.plans, hardware)

    def _hardware_of(self, hosts: list[str], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        hostvars = task_vars["hostvars"]
        unknown = [host for host in hosts if host not in hostvars]
        hardware = {host: self._known_hardware(hostvars.raw_get(host)) for host in hosts if host not in unknown}
        missing = [host for host, facts in hardware.items() if facts is None]
        mistakes = [Mistake("hosts", f"{host} is not in the inventory") for host in unknown]
        mistakes += [Mistake("hosts", f"{host} has no {_FACT}; run bareon.allocator.disk_facts on it first") for host in missing]
        if mistakes:
            raise InputError(mistakes)
        return hardware

    def _difference(self, plans: Mapping[str, t.Any], hardware: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Return, in diff mode, the present layouts against the planned ones. Ansible shows the diff of changed tasks only."""
        if not self._task.diff:
            return {}
        diffs = []
        for host, plan in plans.items():
            before = present_layout(hardware[host], [disk["disk_id"] for disk in plan["disks"]])
            after = planned_layout(plan)
            headers = {"before_header": f"{host} (present layout)", "after_header": f"{host} (planned layout)"}
            diffs.append({"before": before, "after": after, **headers})
        return {"diff": diffs, "changed": any(diff["before"] != diff["after"] for diff in diffs)}


def _gathered_warnings(plans: Mapping[str, t.Any]) -> list[str]:
    """Return every warning once, with the hosts that it is about."""
    hosts: dict[str, list[str]] = {}
    for host, plan in plans.items():
        for warning in plan["warnings"]:
            hosts.setdefault(warning, []).append(host)
    return [f"{_named(about)}: {warning}" for warning, about in hosts.items()]


def _named(hosts: list[str], most: int = 5) -> str:
    return ", ".join(hosts[:most]) + (f" and {len(hosts) - most} more" if len(hosts) > most else "")


def _describe_failures(fleet: Fleet) -> str:
    total = len(fleet.failures) + len(fleet.plans)
    lines = [f"{len(fleet.failures)} of {total} hosts have no plan: {', '.join(fleet.failures)}"]
    return "\n".join([*lines, *(f"- {host}: {error}" for host, error in fleet.failures.items())])


def _failures(fleet: Fleet) -> dict[str, t.Any]:
    failures: dict[str, t.Any] = {}
    for host, error in fleet.failures.items():
        failures[host] = {"msg": str(error)}
        if isinstance(error, NoSolution):
            failures[host]["conflict"] = error.conflict
    return failures
