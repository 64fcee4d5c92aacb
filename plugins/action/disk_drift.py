# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare hosts with their plans on the controller: arguments to one call of plugin_utils.disk.drift, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from ..plugin_utils.common.action import PlanningAction, failure
from ..plugin_utils.common.errors import InputError, Mistake
from ..plugin_utils.disk.drift.files import Folder, facts_in
from ..plugin_utils.disk.drift.report import Drift, drift
from ..plugin_utils.disk.known_hardware import FACT, present_hardware

_MOST_NAMES = 5


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
        planned, plan_of = _by_host("plans", arguments["plans"])
        asked = planned if arguments["hosts"] is None else arguments["hosts"]
        with_plan, unplanned = _split(asked, planned)
        facts_of = self._facts_of(arguments["hardware"], task_vars["hostvars"])
        found = drift(with_plan, plan_of, facts_of, arguments["root"])
        _refuse_silence(found, must_all=arguments["unreachable"] == "fail")
        result = found.to_plain() | {"unplanned_hosts": unplanned, "warnings": _warnings(found.left_out, unplanned)}
        wrong = found.with_states(arguments["fail_on"])
        if wrong:
            says = f"{len(wrong)} of {len(found.findings)} hosts are not as planned"
            return result | failure(f"{says}\n{result['summary']}")
        return result

    def _facts_of(self, hardware: t.Any, hostvars: t.Any) -> Callable[[str], t.Any]:
        """Return what gives the facts of a host: those of `hardware`, else those that Ansible knows."""
        if hardware is not None:
            _hosts, known = _by_host("hardware", hardware)
            return lambda host: facts_in(known(host))
        template = self._templar.template
        return lambda host: present_hardware(hostvars.raw_get(host), template) if host in hostvars else None


def _by_host(option: str, given: t.Any) -> tuple[Collection[str], Callable[[str], t.Any]]:
    """Return the hosts of a folder or a mapping, and what gives the data of one, None for others."""
    if isinstance(given, str):
        folder = Folder(option, Path.cwd() / Path(given).expanduser())
        return folder.hosts, folder.read
    if isinstance(given, Mapping):
        return given.keys(), given.get
    raise InputError([Mistake(option, "must be a mapping by host, or the path of a folder with a file for each host")])


def _split(asked: Collection[str], planned: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the hosts with a plan and those without; refuse when there is none with one."""
    known = set(planned)
    with_plan = [host for host in asked if host in known]
    if not with_plan:
        raise InputError([Mistake("plans", "has none of the hosts" if known else "has no host")])
    return with_plan, [host for host in asked if host not in known]


def _refuse_silence(found: Drift, *, must_all: bool) -> None:
    """Refuse to compare where nothing is known of hosts that are to be compared, or of any."""
    if found.left_out and (must_all or not found.findings):
        raise InputError([Mistake("hardware", _silent(found.left_out))])


def _warnings(left_out: Sequence[str], unplanned: Sequence[str]) -> list[str]:
    said = [_silent(left_out)] if left_out else []
    return said + ([f"there is no plan of {_named(unplanned)}"] if unplanned else [])


def _silent(hosts: Sequence[str]) -> str:
    return f"nothing is known of {_named(hosts)}; run bareon.allocator.disk_facts there, or keep {FACT} in a file"


def _named(hosts: Sequence[str]) -> str:
    return ", ".join(hosts[:_MOST_NAMES]) + (f" and {len(hosts) - _MOST_NAMES} more" if len(hosts) > _MOST_NAMES else "")
