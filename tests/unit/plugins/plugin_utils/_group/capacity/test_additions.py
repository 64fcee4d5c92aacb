# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes to add: enough, no fewer than the bound, and few looks at however many copies."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.capacity import additions
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate


def ask(template, want, nodes=40):
    cluster = parse_text(generate(nodes=nodes, n1ok=True, template=template).text())
    return run_capacity(Loaded(cluster, {}), {"spec": {"disk_template": template}, "want": want})


def test_on_shared_storage_the_bound_is_reached():
    """Nodes are tried as often as a bisection needs, and not for each copy."""
    add = ask("ext", 5000)["groups"][0]["add"]
    assert add["nodes"] == add["least"] == 21
    assert add["count"] == 5000


@pytest.mark.parametrize(("nodes", "want"), [(6, 250), (12, 700)])
def test_between_bound_and_answer_fewer_are_tried_as_far_as_it_pays(nodes, want):
    add = ask("drbd", want, nodes)["groups"][0]["add"]
    assert add["least"] <= add["nodes"] <= add["least"] + 2


def test_the_gap_is_told(monkeypatch):
    monkeypatch.setattr(additions, "MOST_TRIED", 0)
    found = ask("drbd", 700, 12)
    add = found["groups"][0]["add"]
    assert add["least"] < add["nodes"]
    told = " ".join(found["summary"].split())
    assert f"{add['nodes']} like" in told
    assert f"at least {add['least']}" in told
