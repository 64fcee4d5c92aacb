# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who waits for a long search sees how far it is, and the plan is the same as without anybody who watches."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance import watch
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate


def test_a_lone_search_tells_its_moves_and_its_score_and_plans_the_same(monkeypatch):
    monkeypatch.setattr(watch, "_EVERY", 0.0)
    cluster = parse_text(generate(nodes=8, n1ok=True).text())
    told = []
    watched = run_balance(Loaded(cluster, {}), {}, solve_each, told.append)
    assert watched == run_balance(Loaded(cluster, {}), {}, solve_each)
    assert told[0].moves == 0
    assert abs(told[0].score - watched["groups"][0]["score_before"]) < 1e-6
    assert told[-1].score < told[0].score
    assert {one.group for one in told} == {"group-01"}
    assert str(watch.SearchProgress("g", 1, 2.5, 7.4)) == "g: 1 move so far, score 2.5000, 7 s"


def test_little_is_told_of_a_short_search():
    told = []
    seen = watch.Watch("g", told.append)
    for _look in range(1000):
        seen.look(lambda: (1, 1.0))
    assert len(told) <= 1
