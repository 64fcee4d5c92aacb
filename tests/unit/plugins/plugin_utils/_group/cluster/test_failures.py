# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which nodes may fail at once, as `tolerate` and Ganeti's location tags say."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.failures import MOST_FAILURES, failures_of, location_domains
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report, summary


def cluster(memories, tags=(), offline=()):
    nodes = [
        {"name": f"n{n}", "total_memory": size, "total_disk": 9999, "total_cpus": 8, "tags": [f"rack:{n // 2}"], "offline": n in offline}
        for n, size in enumerate(memories)
    ]
    return {"nodes": nodes, "tags": list(tags)}


def failures(memories, tolerate, **more):
    loaded = load_any_cluster({"cluster": cluster(memories, **more), "tolerate": tolerate}, str)
    return failures_of(ClusterState.from_cluster(loaded.cluster), 0)


def test_any_two_nodes_that_are_up():
    assert failures([4096] * 4, {"nodes": 2}, offline=[1]) == ((0, 2), (0, 3), (2, 3))
    assert failures([4096] * 4, {"nodes": 1}) == ()
    assert failures([4096] * 3, {"nodes": 5}) == ((0, 1, 2),), "no more than there are"


def test_any_nodes_with_a_part_of_the_memory():
    assert set(failures([4096] * 4, {"percent": 50})) == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    assert failures([4096] * 4, {"percent": 49}) == ()
    # Of 16 GiB the half is the largest node, or the three others together.
    assert set(failures([8192, 4096, 2048, 2048], {"percent": 50})) == {(1, 2, 3)}


def test_nodes_with_the_same_tag():
    assert failures([4096] * 5, {"domain": "rack:"}) == ((0, 1), (2, 3))
    assert failures([4096] * 5, {"domain": "rack:"}, offline=[0]) == ((2, 3),)


def test_of_too_many_sets_those_of_the_largest_nodes_count():
    sizes = [4096] * 100
    sizes[50] = 8192
    found = failures(sizes, {"nodes": 2})
    assert len(found) <= MOST_FAILURES
    assert any(50 in failing for failing in found)
    assert len(failures([1024] * 60, {"percent": 50})) <= MOST_FAILURES


@pytest.mark.parametrize(
    ("tolerate", "place"),
    [({"nodes": 0}, "nodes"), ({"percent": 0}, "percent"), ({"percent": 101}, "percent"), ({"domain": "row:"}, "domain")],
)
def test_mistakes(tolerate, place):
    with pytest.raises(InputError, match=f"tolerate.{place}: is "):
        failures([4096] * 2, tolerate)


def test_location_tags_lead_to_the_domains():
    given = cluster([4096] * 4, tags=["htools:nlocation:rack", "htools:nlocation:row"])
    pool = {"type": "external", "pool": "ceph"}
    for node in given["nodes"]:
        node["storage"] = [pool]
    given["instances"] = [
        {"name": f"i{n}", "memory": 3072, "disk": 1, "vcpus": 1, "primary": f"n{n}", "storage": pool, "disk_template": "ext"}
        for n in range(2)
    ] + [{"name": "m", "memory": 64, "disk": 1, "vcpus": 1, "primary": "n2", "secondary": "n3"}]
    loaded = load_any_cluster({"cluster": given}, str).cluster
    assert location_domains(loaded) == ("rack:",)
    found = report(loaded, ScoreMode.HTOOLS)
    assert [(one["nodes"], one["short"], one["lost"]) for one in found["groups"][0]["failures"]] == [
        (["n0", "n1"], 0, []),
        (["n2", "n3"], 0, ["m"]),
    ]
    assert not [problem for problem in found["problems"] if problem["kind"] == "tolerance"], "nothing was asked for"
    assert "location: if n2 and n3 fail together, 0 MiB find no place and 1 mirrored instances are lost" in summary(found)
