# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an action makes of a module's answer, which may be a lie, and of facts that its host has already."""

from __future__ import annotations

import typing as t

import pytest
from ansible.plugins.action.normal import ActionModule as NormalAction
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.host_action import HostAction

Plain = dict[str, t.Any]
VARIABLES = {"inventory_hostname": "web1"}


class Reading(HostAction):
    FACTS = ("bareon_hardware",)
    _discovered_interpreter_key: str | None = None


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., Plain]:
    """Return a function that runs the action of a host with an answer, and says how often the host was asked."""

    def run(answer: Plain, **variables: t.Any) -> Plain:
        asked: list[int] = []
        monkeypatch.setattr(NormalAction, "run", lambda self, tmp=None, task_vars=None: (asked.append(1), dict(answer))[1])
        result = object.__new__(Reading).run(task_vars={**VARIABLES, **variables})
        return {**result, "asked": len(asked)}

    return run


def test_documented_facts_pass(answered) -> None:
    answer = {"changed": False, "ansible_facts": {"bareon_hardware": {"ram": 1}}}
    assert answered(answer) == {**answer, "asked": 1}


def test_the_interpreter_that_ansible_has_searched_for_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ansible adds it to the facts that it knows while the module runs, and to the answer."""
    found = {"discovered_interpreter_python": "/usr/bin/python3"}
    answer = {"ansible_facts": {"bareon_hardware": {"ram": 1}, **found}}
    searched: list[bool] = []

    def run(_self: t.Any, _tmp: t.Any, task_vars: Plain) -> Plain:
        task_vars["ansible_facts"].update(found if searched else {})
        return dict(answer)

    monkeypatch.setattr(NormalAction, "run", run)
    refused = object.__new__(Reading).run(task_vars={**VARIABLES, "ansible_facts": {}})
    assert refused["foreign_facts"] == ["web1.ansible_facts.discovered_interpreter_python"]
    searched.append(True)
    assert object.__new__(Reading).run(task_vars={**VARIABLES, "ansible_facts": {}}) == answer


def test_numbers_for_the_end_of_a_run_are_left_out(answered) -> None:
    """Ansible adds them up for all hosts, and its release 2.19 ends the run if they are of another kind."""
    assert "ansible_stats" not in answered({"changed": True, "ansible_stats": {"data": 5}})


@pytest.mark.parametrize("facts", [{"bareon_profile": "x"}, {"ansible_user": "x"}, {"bareon_hardware": {}, "anything": 1}, ["x"], "x", 5])
def test_other_facts_are_a_failure_that_names_host_and_key(answered, facts: t.Any) -> None:
    result = answered({"changed": True, "ansible_facts": facts})
    assert result["failed"]
    assert "ansible_facts" not in result
    assert result["changed"] is True
    key = f".{next(reversed(facts))}" if isinstance(facts, dict) else ""
    assert result["foreign_facts"] == [f"web1.ansible_facts{key}"]


@pytest.mark.parametrize("key", ["bareon_profile", "disk_layout_root", "ansible_bareon_profile", "inventory_hostname", "omit"])
def test_a_host_that_has_facts_with_such_names_is_not_asked(answered, key: str) -> None:
    result = answered({"changed": True}, ansible_facts={key: "x"})
    assert (result["failed"], result["asked"]) == (True, 0)
    assert f".ansible_facts.{key}" in result["msg"]


@pytest.mark.parametrize("how", ["failed", "unreachable"])
def test_an_answer_that_failed_has_no_facts(answered, how: str) -> None:
    """A play that goes on where a host does not answer must not take facts of it for an answer."""
    result = answered({how: True, "msg": "no", "ansible_facts": {"bareon_hardware": {"ram": 1}}})
    assert "ansible_facts" not in result
    assert result["msg"] == "no"


@pytest.mark.parametrize("msg", [["a"], {"a": 1}, 5, None, True])
def test_a_message_is_text(answered, msg: t.Any) -> None:
    assert isinstance(answered({"failed": True, "msg": msg})["msg"], str)


def test_marks_stand_where_nobody_sees_anything(answered) -> None:
    result = answered({"msg": "a\x1b[2Jb", "summary": "c\u202ed", "warnings": ["e\u2066f", 5]})
    assert (result["msg"], result["summary"], result["warnings"]) == ("a\ufffd[2Jb", "c\ufffdd", ["e\ufffdf", 5])


def test_what_a_plugin_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """As get_option of a plugin of Ansible raises it."""

    def run(_self: t.Any, _tmp: t.Any, task_vars: Plain) -> Plain:
        raise KeyError from ValueError("No config definition exists for 'become_success_timeout'")

    monkeypatch.setattr(NormalAction, "run", run)
    assert "become_success_timeout" in object.__new__(Reading).run(task_vars=dict(VARIABLES))["msg"]
