# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The example of the design "Allocation for Partitioned Ganeti", and what the design leaves open."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Group, Policy, Spec, SpecInterval
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.lost_allocations import LeastSize, least_sizes
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place

QUARTER = 25600
HALVES = (1, 2, 4)
THREE_QUARTERS = (1, 2, 3, 4)
NODES = ("empty", "quarter", "half", "three-quarters")


def spec(quarters, spared):
    return {
        "memory-size": 1024 * quarters,
        "cpu-count": quarters,
        "disk-size": QUARTER * quarters - spared,
        "disk-count": 1,
        "nic-count": 1,
        "spindle-use": quarters,
    }


def instance(name, quarters, spared, **fields):
    disk = QUARTER * quarters - spared
    sizes = {"memory": 1024 * quarters, "vcpus": quarters, "disk": disk, "spindles": quarters, "disk_template": "plain"}
    return {"name": name, **sizes, **fields}


def node(name, **fields):
    sizes = {"total_memory": 4096, "total_disk": 4 * QUARTER, "total_cpus": 4, "node_cpus": 0, "spindles": 4}
    return {"name": name, "exclusive_storage": True, **sizes, **fields}


def policy(sizes, spared):
    intervals = [{"min": spec(size, spared), "max": spec(size, 0)} for size in sizes]
    return {"minmax": intervals, "std": spec(1, 0), "disk-templates": ["plain", "drbd"], "vcpu-ratio": 1.0, "spindle-ratio": 32.0}


def cluster(sizes, spared, names=NODES):
    placed = [
        instance("a", 1, spared, primary="quarter"),
        instance("b", 2, spared, primary="half"),
        instance("c", 1, spared, primary="three-quarters"),
        instance("d", 2, spared, primary="three-quarters"),
    ]
    return {
        "groups": [{"name": "g", "ipolicy": policy(sizes, spared)}],
        "nodes": [node(name) for name in names],
        "instances": [item for item in placed if item["primary"] in names],
    }


def placed(data, *instances, **arguments):
    return place(Loaded(parse_inline(data), {}), {"instances": list(instances), **arguments})


def preferences(sizes, spared, quarters):
    """Return the nodes in the order in which they are chosen when those chosen before may not be used."""
    names, order = list(NODES), []
    while names:
        groups = placed(cluster(sizes, spared), instance("new", quarters, spared), nodes=names)["solutions"][0]["groups"]
        if not groups:
            break
        order.append((groups[0]["nodes"][0], groups[0]["lost"], groups[0]["free_after"]))
        names.remove(groups[0]["nodes"][0])
    return order


@pytest.mark.parametrize("spared", [0, 20], ids=["exact", "with space to spare"])
@pytest.mark.parametrize(
    ("sizes", "quarters", "expected"),
    [
        (HALVES, 1, [("three-quarters", [0, 0, 1]), ("quarter", [0, 0, 1]), ("half", [0, 1, 1]), ("empty", [1, 1, 1])]),
        (HALVES, 2, [("half", [0, 1, 2]), ("quarter", [0, 1, 2]), ("empty", [1, 1, 2])]),
        (HALVES, 4, [("empty", [1, 2, 4])]),
        (
            THREE_QUARTERS,
            1,
            [("three-quarters", [0, 0, 0, 1]), ("half", [0, 0, 1, 1]), ("quarter", [0, 1, 0, 1]), ("empty", [1, 0, 1, 1])],
        ),
        (THREE_QUARTERS, 2, [("half", [0, 0, 1, 2]), ("quarter", [0, 1, 1, 2]), ("empty", [1, 1, 1, 2])]),
        (THREE_QUARTERS, 3, [("quarter", [0, 1, 1, 3]), ("empty", [1, 1, 2, 3])]),
        (THREE_QUARTERS, 4, [("empty", [1, 1, 2, 4])]),
    ],
)
def test_the_designs_example(sizes, quarters, expected, spared):
    found = preferences(sizes, spared, quarters)
    assert [(name, lost) for name, lost, _left in found] == expected
    if not spared:
        taken = {"empty": 0, "quarter": 1, "half": 2, "three-quarters": 3}
        assert [left for _name, _lost, left in found] == [(4 - taken[name] - quarters) * QUARTER for name, _lost in expected]


def test_several_in_one_call_share_one_state():
    """Ganeti 3.0 looks at the unchanged nodes for each of them, and puts all on the node with most room."""
    wanted = [instance(f"small{number}", 1, 0) for number in range(4)] + [instance("large", 2, 0)]
    found = placed(cluster(HALVES, 0, ("quarter", "three-quarters", "half")), *wanted)
    assert found["unplaced"] == []
    used = {"quarter": 1, "half": 2, "three-quarters": 3}
    for solution, quarters in zip(found["solutions"], (1, 1, 1, 1, 2)):
        used[solution["groups"][0]["nodes"][0]] += quarters
    assert used == {"quarter": 4, "half": 4, "three-quarters": 4}


def test_spindles_count_like_disk():
    data = cluster(HALVES, 0, ("empty", "half"))
    data["nodes"][0]["spindles"] = 1
    data["nodes"][0]["free_spindles"] = 1
    first = placed(data, instance("new", 1, 0))["solutions"][0]["groups"][0]
    assert (first["nodes"], first["lost"]) == (["empty"], [0, 0, 1])


def test_losses_of_both_nodes_of_a_mirror_are_added():
    data = cluster(HALVES, 0)
    new = instance("new", 1, 0, disk_template="drbd")
    found = placed(data, new)["solutions"][0]["groups"][0]
    assert set(found["nodes"]) == {"three-quarters", "quarter"}
    assert found["lost"] == [0, 0, 2]
    assert found["free_after"] == 2 * QUARTER


def test_every_group_follows_its_own_storage():
    data = cluster(HALVES, 0)
    data["groups"].append({"name": "common", "ipolicy": policy(HALVES, 0) | {"vcpu-ratio": 4.0}})
    for item in data["nodes"]:
        item["group"] = "g"
    data["nodes"] += [node(f"c{number}", group="common", exclusive_storage=False, spindles=1) for number in range(2)]
    found = placed(data, instance("new", 1, 0))["solutions"][0]["groups"]
    assert [(group["group"], group["lost"]) for group in found] == [("g", [0, 0, 1]), ("common", None)]
    assert found[0]["nodes"] == ["three-quarters"]
    balanced = placed(data, instance("new", 1, 0), strategy="balanced")["solutions"][0]["groups"]
    assert {group["group"]: group["nodes"] for group in balanced}["g"] == ["empty"]


def test_sizes_are_ordered_by_disk_and_one_that_needs_nothing_counts_nothing():
    large, small, nothing = Spec(10, 1, 50, 2, 1, 1), Spec(20, 1, 70, 1, 1, 1), Spec(0, 0, 0, 0, 0, 0)
    found = least_sizes(Policy(intervals=tuple(SpecInterval(low, large) for low in (nothing, small, large))))
    assert found == (LeastSize(100, 10, 1, 1), LeastSize(70, 20, 1, 1))


def test_a_policy_whose_minimum_is_nothing_ends(bench):
    nothing = Spec(0, 0, 0, 0, 0, 0)
    assert least_sizes(Group("g", "u", policy=Policy(intervals=(SpecInterval(nothing, nothing),))).policy) == ()
