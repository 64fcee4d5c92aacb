# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans are the same whatever the clock says: no search ends by it."""

from __future__ import annotations

import itertools
import json
import time

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.maintenance import run_maintenance, run_squeeze
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

SHARED = {"nodes": 6, "n1ok": True, "template": "ext", "per_node": 5}
ILL = {"nodes": 4, "groups": 2, "offline": 1, "per_node": 3, "template": "ext"}
MIRRORED = {"nodes": 8, "groups": 2, "offline": 1, "n1ok": True, "per_node": 4}


def tell(loaded, arguments):
    return report(loaded.cluster, arguments["score"])


@pytest.mark.parametrize(
    ("plan", "cluster", "arguments"),
    [
        (run_capacity, SHARED, {"spec": {"disk_template": "ext"}, "score": "htools"}),
        (run_maintenance, SHARED, {"full_evacuation": True}),
        (run_squeeze, SHARED, {}),
        (run_redistribute, ILL, {}),
        (run_redistribute, MIRRORED, {}),
        (run_compress, SHARED | {"groups": 2}, {}),
        (tell, ILL, {"score": "htools"}),
    ],
)
def test_the_answer_is_the_same_by_a_clock_that_runs_away(plan, cluster, arguments, monkeypatch):
    text = generate(**cluster).text()
    usual = plan(Loaded(parse_text(text), {}), arguments)
    hours = itertools.count(step=3600.0)
    for name in ("monotonic", "perf_counter", "time", "process_time", "thread_time"):
        monkeypatch.setattr(time, name, lambda: next(hours))
    hurried = plan(Loaded(parse_text(text), {}), arguments)
    monkeypatch.undo()
    assert json.dumps(hurried, default=str) == json.dumps(usual, default=str)
