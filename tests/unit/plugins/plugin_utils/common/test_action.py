# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Progress is a line that is renewed where it can be, and a line once in a while elsewhere."""

from __future__ import annotations

import types
from dataclasses import dataclass

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.common import action


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
        planning = action.PlanningAction.__new__(action.PlanningAction)
        planning._task = types.SimpleNamespace(action="bareon.allocator.group_balance")
        planning._display = types.SimpleNamespace(display=lambda line, newline=True, **_other: lines.append(line + "\n" * newline))
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
