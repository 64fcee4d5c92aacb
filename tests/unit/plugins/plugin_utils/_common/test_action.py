# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Progress is a line that is renewed where it can be, and a line once in a while elsewhere; what is no data is refused."""

from __future__ import annotations

import datetime
import types
import typing as t
from dataclasses import dataclass

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins.connection import local
from ansible.template import Templar
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistake, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._common import action
from ansible_collections.bareon.allocator.tests.support.house.terminal import too_wide


@dataclass(frozen=True)
class Progress:
    seconds: float

    def __str__(self):
        return f"{self.seconds:.0f} s"


@pytest.fixture(name="shown")
def fixture_shown(monkeypatch):
    """Return what an action shows of a search of 30 seconds that tells of each of them, and then of its end."""

    def show(*, on_terminal):
        monkeypatch.setattr(action.color, "ANSIBLE_COLOR", on_terminal)
        lines = []

        def display(line, stderr, newline=True, **_other):
            assert stderr, "standard output is for results"
            lines.append(line + "\n" * newline)

        planning = action.PlanningAction.__new__(action.PlanningAction)
        planning._task = types.SimpleNamespace(action="bareon.allocator.group_balance")
        planning._display = types.SimpleNamespace(display=display)
        for second in range(30):
            planning.renew_progress(Progress(float(second)))
        planning.show_progress(Progress(30.0))
        return "".join(lines)

    return show


def test_on_a_terminal_one_line_is_renewed(shown):
    renewed, last, nothing = shown(on_terminal=True).split("\n")
    assert [line.rstrip() for line in renewed.split("\r")] == ["", *(f"group_balance: {second} s" for second in range(2, 30))]
    assert (last, nothing) == ("group_balance: 30 s", "")


def test_elsewhere_a_line_comes_now_and_then(shown):
    assert shown(on_terminal=False) == "".join(f"group_balance: {second} s\n" for second in (10, 20, 30))


def test_a_summary_fits_a_terminal():
    result = action.with_visible_sentences({"summary": "word " * 100, "msg": "word " * 100})
    assert too_wide(result["summary"]) == []
    assert result["msg"] == "word " * 100


class Refusing(action.PlanningAction):
    """Writes what it is given in UTF-8."""

    ARGUMENTS: t.ClassVar = {"name": {"type": "raw"}, "one": {"type": "dict", "options": {"count": {"type": "int"}}}}

    def plan(self, arguments, task_vars):
        arguments["name"].encode()
        return {}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "\ud800"}, "'\\ud800' is no text: it cannot be written as UTF-8"),
        ({"name": datetime.date(2026, 1, 2)}, "name: is a date to YAML; put it in quotes ('2026-01-02') to have it as text"),
        ({"one": 5}, "one: is 5; must be a mapping"),
        ({"one": {"count": float("inf")}}, "one.count: is inf; must be a number"),
    ],
)
def test_input_that_is_no_data_is_refused_and_shows_no_traceback(options, says):
    task, loader = Task(), DataLoader()
    task.action, task.args = "bareon.allocator.refusing", options
    connection = local.Connection(PlayContext())
    refusing = Refusing(task, connection, PlayContext(), loader, Templar(loader=loader, variables={}), None)
    assert refusing.run(task_vars={}) == {"changed": False, "failed": True, "msg": says}


class Telling(action.PlanningAction):
    """Says what it is given, or ends with it as an error of a kind."""

    ARGUMENTS: t.ClassVar = {"says": {"type": "str"}, "ends": {"type": "str"}}
    ERRORS: t.ClassVar = {
        "input": lambda says: InputError([Mistake("place", says)]),
        "none": lambda says: NoSolution(says, {}),
        "ansible": AnsibleError,
        "unforeseen": KeyError,
    }

    def plan(self, arguments, task_vars):
        if arguments["ends"]:
            raise self.ERRORS[arguments["ends"]](arguments["says"])
        return {"summary": arguments["says"], "warnings": [arguments["says"]], "name": arguments["says"]}


@pytest.mark.parametrize("ends", [None, *Telling.ERRORS])
def test_sentences_have_marks_where_nobody_sees_anything_and_data_are_as_they_are(ends):
    task, loader = Task(), DataLoader()
    task.action, task.args = "bareon.allocator.telling", {"says": "a\u202eb\x1b[2Jc\nd", "ends": ends}
    context = PlayContext()
    telling = Telling(task, local.Connection(context), context, loader, Templar(loader=loader, variables={}), None)
    result = telling.run(task_vars={})
    shown = [result[key] for key in ("msg", "summary") if key in result] + list(result.get("warnings", ()))
    assert shown
    assert [text for text in shown if "\u202e" in text or "\x1b" in text] == []
    if ends is None:
        assert shown == ["a\ufffdb\ufffd[2Jc\nd"] * 2
        assert result["name"] == "a\u202eb\x1b[2Jc\nd"
