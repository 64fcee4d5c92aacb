# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that move between storages as pictures: an arrow for each disk, between the storages that its node reaches."""

from __future__ import annotations

import re

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.bareon.allocator.plugins.filter.moves_to_html import moves_to_html
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.picture.storages import storage_pictures
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.storages import run_storages


def disk(size, pool, kind="internal", **more):
    return {"size": size, "storage": {"type": kind, "pool": pool}, **more}


@pytest.fixture
def result():
    """Two nodes with two local storages of the same names and a shared one, and disks that one node has unevenly."""
    pools = {"n1": ((1000, 100), (1000, 900)), "n2": ((1000, 500), (1000, 500))}
    nodes = [
        {
            "name": name,
            "total_memory": 65536,
            "total_cpus": 16,
            "storage": [
                *({"type": "internal", "pool": pool, "total": total, "free": free} for pool, (total, free) in zip(("slow", "fast"), sizes)),
                {"type": "external", "pool": "ceph", "total": 5000, "free": 4000},
            ],
        }
        for name, sizes in pools.items()
    ]
    instances = [
        {"name": f"i{number}", "memory": 1024, "vcpus": 1, "primary": "n1", "disk_template": "ext", "disks": [disk(200, "slow")]}
        for number in range(4)
    ]
    instances.append({**instances[0], "name": "tied", "disks": [disk(100, "slow", stays="it is a linked clone")]})
    return run_storages(Loaded(parse_inline({"nodes": nodes, "instances": instances}), {}), {"of": "storage"}, {})


def test_each_disk_is_an_arrow_between_storages_of_its_node(result):
    moves = result["plan"]["moves"]
    moving, others = storage_pictures(result["plan"], result["storages"])
    assert (moving.groups, others.groups) == (("Storages of n1",), ("Other storages",))
    assert [arrow.instance for arrow in moving.arrows] == [f"{move['instance']} {move['disk']}" for move in moves]
    assert len(moves) == 2
    at = {row.label: height for height, row in enumerate(moving.rows)}
    assert set(at) == {"slow of n1", "fast of n1"}
    assert {(int(arrow.lines[0].start), int(arrow.lines[0].end)) for arrow in moving.arrows} == {(at["slow of n1"], at["fast of n1"])}
    assert [row.label for row in others.still] == ["ceph", "slow of n2", "fast of n2"]
    assert [metric.used for row in moving.rows for metric in (*row.before, *row.after)] == [0.9, 0.5, 0.1, 0.5]


def test_the_page_names_storages_and_what_stays(result):
    for storage in result["storages"]:
        # A name of a source has no such letters, but a page is also made of results that somebody has kept.
        storage["storage"] = storage["storage"].replace("ceph", "<ceph>")
    page = moves_to_html(result, title="Storages")
    assert "<span>off even levels <b>700 MiB</b> before, <b>0 MiB</b> after</span>" in page
    assert "&lt;ceph&gt;" in page
    assert "<ceph>" not in page
    assert "3 storages stay as they are" in page
    assert re.search(r"Disks that stay</h2></header>\s*<ul><li>it is a linked clone: tied disk0</li></ul>", page)
    assert "new mirror" not in page


def test_disks_are_not_drawn_without_their_storages(result):
    with pytest.raises(AnsibleFilterError, match="needs the whole result of group_balance"):
        moves_to_html(result["plan"])
