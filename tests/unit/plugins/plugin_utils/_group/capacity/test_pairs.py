# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""In large groups only the promising pairs of a mirrored copy are looked at: that changes nothing about where copies go."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.capacity import copies, pairs
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.capacity.count import count_in
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, Instance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

COPY = Instance("new", 4096, 40960, 2, disk_template=DiskTemplate.DRBD)
CLUSTERS = {
    "equal nodes": {"nodes": 10, "homog": True, "n1ok": True, "seed": 1},
    "failing N+1": {"nodes": 10, "memscale": 2.2, "seed": 2},
    "tags, offline": {"nodes": 12, "template": "mixed", "extags": True, "loctags": True, "offline": 2, "seed": 4},
    "odd": {"nodes": 14, "template": "mixed", "odd": True, "seed": 7},
    "two groups": {"nodes": 16, "groups": 2, "n1ok": True, "seed": 3},
}


@pytest.mark.parametrize("mode", list(ScoreMode))
@pytest.mark.parametrize("name", CLUSTERS)
def test_copies_go_where_they_would_if_all_pairs_were_looked_at(name, mode, monkeypatch):
    cluster = parse_text(generate(**CLUSTERS[name]).text())
    options = dataclasses.replace(copies.CopyOptions(), score=mode)
    groups = range(len(cluster.groups))
    monkeypatch.setattr(copies, "_FEW", 1000)
    every = count_in(cluster, COPY, groups, options, 60)
    monkeypatch.setattr(copies, "_FEW", 0)
    monkeypatch.setattr(pairs, "_FIRST", (1, 2))
    monkeypatch.setattr(pairs, "_MANY", 4)
    assert count_in(cluster, COPY, groups, options, 60) == every
    assert every.copies
