# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan disks on the controller: arguments to one call of plugin_utils._disk, and its answer to a result."""

from __future__ import annotations

import gc
import typing as t
from collections.abc import Mapping
from pathlib import Path

from ansible import context

from ..module_utils._data.errors import InputError, Mistake, Unavailable
from ..plugin_utils._common.action import PlanningAction, failure, folder_of_run
from ..plugin_utils._common.facts import host_of, refuse_undocumented
from ..plugin_utils._disk.fleet import describe_failures, failures, fleet_summary, fleet_warnings, for_reading
from ..plugin_utils._disk.known_hardware import FACT, known_hardware
from ..plugin_utils._disk.plan_cache import SharedCache
from ..plugin_utils._disk.plan_files import difference, files_summary, plan_files, to_plain, write
from ..plugin_utils._disk.planner import Objective, Planner, parse_reserve
from ..plugin_utils._disk.render.text import layout_differences, summary
from ..plugin_utils._disk.schema.eligible import EligibleKind, parse_eligible
from ..plugin_utils._disk.schema.profiles import PROFILES, find_profile, merge, parse_idle, read_profile
from ..plugin_utils._disk.warm_up import warm_up

warm_up(PROFILES)
# Ansible imports this once, and forks for each host. Frozen objects are not scanned by the collector, and so not copied, in every fork.
gc.freeze()


class ActionModule(PlanningAction):
    """disk_plan: from hardware and a dynamic schema to a static one."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        "schema": {"type": "raw"},
        "profile": {"type": "str"},
        "overrides": {"type": "raw"},
        "hardware": {"type": "raw"},
        "hosts": {"type": "list", "elements": "str"},
        "unreachable": {"type": "str", "choices": ["skip", "fail"], "default": "skip"},
        "objective": {"type": "str", "choices": ["fair", "ordered"], "default": "fair"},
        "reserve": {"type": "raw", "default": 0},
        "keep_existing": {"type": "bool", "default": False},
        "eligible": {"type": "list", "elements": "str", "choices": list(EligibleKind)},
        "plans_to": {"type": "path"},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {
        "mutually_exclusive": [("schema", "profile"), ("hardware", "hosts")],
        "required_one_of": [("schema", "profile")],
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Plan the host of the task, or all of `hosts`; the command `ansible` shows the summary line by line, and no data."""
        result = self._result(arguments, task_vars)
        return for_reading(result) if context.CLIARGS.get("module_name") else result

    def _result(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        profile = self._profile(arguments)
        eligible = parse_eligible(profile.get("eligible") if arguments["eligible"] is None else arguments["eligible"])
        known = {"profile": profile} if arguments["profile"] is not None else {}
        idle = parse_idle(profile.get("idle")) if known else None
        cache = SharedCache(folder_of_run() / "bareon_disk_plan") if arguments["hosts"] is None else None
        aims = Objective(arguments["objective"]), parse_reserve(arguments["reserve"])
        planner = Planner(profile["schema"], *aims, eligible, idle, cache, keep_existing=arguments["keep_existing"])
        if arguments["hosts"] is not None:
            # The inventory is no garbage, and to look for some in it again and again is a tenth of planning a fleet.
            gc.freeze()
            try:
                found, unread = self._hardware_of(arguments, task_vars)
                return self._plan_hosts(planner, found, unread, known, arguments["plans_to"])
            finally:
                gc.unfreeze()
        hardware = arguments["hardware"] if arguments["hardware"] is not None else self._own_hardware(task_vars)
        plan = planner.plan(hardware)
        host = str(task_vars.get("inventory_hostname", "hardware"))
        result = known | {"summary": summary(plan, hardware), "warnings": plan["warnings"]}
        if arguments["plans_to"] is not None:
            return result | self._write({host: plan}, arguments["plans_to"], plan["warnings"])
        return result | {"plan": plan} | self._difference({host: plan}, {host: hardware})

    def _profile(self, arguments: Mapping[str, t.Any]) -> Mapping[str, t.Any]:
        """Return the profile, or the schema as if it were one, with the overrides merged into it."""
        profile: Mapping[str, t.Any] = {"schema": arguments["schema"]}
        if arguments["profile"] is not None:
            # Next to the playbook, and where the command was given: a playbook of a collection lies where no user keeps files.
            profile = read_profile(find_profile(arguments["profile"], PROFILES, (Path(self._loader.get_basedir()), Path.cwd())))
        return profile if arguments["overrides"] is None else {**profile, "schema": merge(profile["schema"], arguments["overrides"])}

    def _own_hardware(self, task_vars: Mapping[str, t.Any]) -> t.Any:
        known = known_hardware(task_vars, self._templar.template)
        if known is not None:
            return known
        gathered: dict[str, t.Any] = self._execute_module(
            module_name="bareon.allocator.disk_facts", module_args={}, task_vars=dict(task_vars)
        )
        if gathered.get("failed"):
            raise Unavailable(f"could not gather the facts of the disks: {gathered.get('msg', 'no reason given')}")
        refuse_undocumented(host_of(task_vars), gathered, (FACT,), self._discovered_interpreter_key)
        if FACT not in gathered.get("ansible_facts", {}):
            raise Unavailable(f"could not gather the facts of the disks: the host answers without {FACT}")
        return gathered["ansible_facts"][FACT]

    def _plan_hosts(
        self, planner: Planner, found: Mapping[str, t.Any], unread: Mapping[str, InputError], known: Mapping[str, t.Any], folder: str | None
    ) -> dict[str, t.Any]:
        """Plan all hosts whose hardware was found, which is None for the others; `known` is a part of the result already.

        `unread` says why facts of hosts cannot be used.
        """
        left_out = [host for host, hardware in found.items() if hardware is None]
        hardware = {host: facts for host, facts in found.items() if facts is not None}
        fleet = planner.plan_fleet(hardware, unread)
        result = {**known, "left_out_hosts": left_out, "warnings": fleet_warnings(fleet.plans, left_out)}
        if folder is not None:
            result |= self._write(fleet.plans, folder, result["warnings"])
        else:
            result |= {"plans": fleet.plans, "summary": fleet_summary(fleet.plans, left_out)}
        if fleet.failures:
            return result | failure(describe_failures(fleet)) | {"failures": failures(fleet)}
        return result if folder is not None else result | self._difference(fleet.plans, hardware)

    def _write(self, plans: Mapping[str, t.Any], folder: str, warnings: list[str]) -> dict[str, t.Any]:
        """Write plans into a folder, but not in check mode, and return their report; `warnings` are of the plans."""
        files = plan_files(path := Path.cwd() / folder, plans)
        if not self._task.check_mode:
            write(files)
        shown = {"diff": difference(files)} if self._task.diff else {}
        return {"summary": files_summary(path, files), **to_plain(path, files, warnings), **shown}

    def _hardware_of(
        self, arguments: Mapping[str, t.Any], task_vars: Mapping[str, t.Any]
    ) -> tuple[dict[str, t.Any], dict[str, InputError]]:
        """Return the hardware of `hosts`, None for those that nothing is known about and that may be left out.

        Also return why the facts of others cannot be used: that concerns these hosts alone.
        """
        hosts, hostvars = arguments["hosts"], task_vars["hostvars"]
        unknown = [host for host in hosts if host not in hostvars]
        hardware, unread = {}, {}
        for host in (host for host in hosts if host not in unknown):
            try:
                hardware[host] = known_hardware(hostvars.raw_get(host), self._templar.template)
            except InputError as error:
                unread[host] = error
        missing = [host for host, facts in hardware.items() if facts is None]
        mistakes = [Mistake("hosts", f"{host} is not in the inventory") for host in unknown]
        if arguments["unreachable"] == "fail" or len(missing) == len(hosts):
            mistakes += [Mistake("hosts", f"{host} has no {FACT}; run bareon.allocator.disk_facts on it first") for host in missing]
        if mistakes:
            raise InputError(mistakes)
        return hardware, unread

    def _difference(self, plans: Mapping[str, t.Any], hardware: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Return, in diff mode, the present layouts against the planned ones. Ansible shows the diff of changed tasks only."""
        if not self._task.diff:
            return {}
        diffs = layout_differences(plans, hardware)
        return {"diff": diffs, "changed": any(diff["before"] != diff["after"] for diff in diffs)}
