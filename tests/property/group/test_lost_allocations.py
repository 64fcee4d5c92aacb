# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On partitioned nodes the place is the best of all: every one is tried here, and what it loses is counted anew from the definition."""

from __future__ import annotations

import itertools

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st

KINDS = ("memory", "disk", "vcpus", "spindles")
EXAMPLES = settings(max_examples=examples(150), deadline=None)


@st.composite
def sizes(draw):
    """Return what instances of a policy need at least."""
    return {
        "memory": draw(st.sampled_from([512, 1024, 1536])),
        "disk": draw(st.sampled_from([10240, 20480, 30720])),
        "vcpus": draw(st.integers(1, 3)),
        "spindles": draw(st.integers(1, 2)),
    }


@st.composite
def partitioned(draw):
    """Return the nodes of a group, their instances, the least sizes of its policy, and a new instance, on one node each or on two."""
    nodes = {
        f"n{number}": {
            "memory": draw(st.integers(2, 8)) * 512,
            "disk": draw(st.integers(2, 8)) * 10240,
            "vcpus": draw(st.integers(2, 8)),
            "spindles": draw(st.integers(2, 6)),
        }
        for number in range(draw(st.integers(2, 4)))
    }
    mirrored = draw(st.booleans())
    instances = []
    for number in range(draw(st.integers(0, 5))):
        homes = draw(st.permutations(sorted(nodes)))[: 2 if mirrored else 1]
        one = {"name": f"i{number}", **draw(sizes()), "homes": homes}
        if is_kept(nodes, [*instances, one]):
            instances.append(one)
    policy = draw(st.lists(sizes(), min_size=1, max_size=3, unique_by=lambda size: tuple(size.values())))
    least, more = draw(st.sampled_from(policy)), draw(st.sampled_from([dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 1)]))
    return nodes, instances, policy, {"name": "new"} | {kind: least[kind] + more[kind] for kind in KINDS}, 2 if mirrored else 1


def room(nodes, instances, name):
    """Return what is left on a node by kind; memory without what it keeps for the worst failure of another node."""
    left = dict(nodes[name])
    kept = dict.fromkeys(nodes, 0)
    for one in instances:
        primary, secondary = (*one["homes"], None)[:2]
        for kind in ("memory", "vcpus") if primary == name else ():
            left[kind] -= one[kind]
        for kind in ("disk", "spindles") if name in one["homes"] else ():
            left[kind] -= one[kind]
        if secondary == name:
            kept[primary] += one["memory"]
    left["memory"] -= max(kept.values())
    return left


def is_kept(nodes, instances):
    return all(amount >= 0 for name in nodes for amount in room(nodes, instances, name).values())


def vector(nodes, instances, policy, name):
    """Return how many instances of each size fit on a node, the largest disk first."""
    left = room(nodes, instances, name)
    order = sorted(policy, key=lambda size: tuple(size[kind] for kind in ("disk", "memory", "vcpus", "spindles")), reverse=True)
    return [max(0, min(left[kind] // size[kind] for kind in KINDS)) for size in order]


def every_place(nodes, instances, policy, new, count):
    """Return for each place that breaks no limit, and could run there, what it loses, and the disk that is left on its nodes."""
    found = {}
    for homes in itertools.permutations(nodes, count):
        after = [*instances, {**new, "homes": homes}]
        if not is_kept(nodes, after) or any(nodes[name]["vcpus"] < new["vcpus"] for name in homes):
            continue
        vectors = [[vector(nodes, some, policy, name) for name in homes] for some in (instances, after)]
        lost = [sum(column) for column in zip(*(map(int.__sub__, *pair) for pair in zip(*vectors)))]
        found[homes] = lost, sum(room(nodes, after, name)["disk"] for name in homes)
    return found


def written_out(nodes, instances, policy, template):
    def interval(size):
        least = {"memory-size": size["memory"], "disk-size": size["disk"], "cpu-count": size["vcpus"], "spindle-use": size["spindles"]}
        most = {"memory-size": 1 << 20, "disk-size": 1 << 20, "cpu-count": 64, "spindle-use": 64}
        return {"min": {"disk-count": 1, "nic-count": 1, **least}, "max": {"disk-count": 16, "nic-count": 8, **most}}

    standard = interval(policy[0])["min"]
    limits = {"minmax": [interval(size) for size in policy], "std": standard, "disk-templates": [template]}
    return {
        "groups": [{"name": "g", "ipolicy": {**limits, "vcpu-ratio": 1.0, "spindle-ratio": 32.0}}],
        "nodes": [
            {
                **{"name": name, "node_memory": 0, "node_cpus": 0, "exclusive_storage": True, "spindles": has["spindles"]},
                **{"total_memory": has["memory"], "total_disk": has["disk"], "total_cpus": has["vcpus"]},
            }
            for name, has in nodes.items()
        ],
        "instances": [
            {key: one[key] for key in ("name", *KINDS)} | dict(zip(("primary", "secondary"), one["homes"])) | {"disk_template": template}
            for one in instances
        ],
    }


@EXAMPLES
@given(partitioned())
def test_no_place_loses_less(given_group):
    nodes, instances, policy, new, count = given_group
    template = "drbd" if count == 2 else "plain"
    loaded = Loaded(parse_inline(written_out(nodes, instances, policy, template)), {})
    (solution,) = place(loaded, {"instances": [{**new, "disk_template": template}]})["solutions"]
    can = every_place(nodes, instances, policy, new, count)
    assert bool(solution["groups"]) == bool(can)
    for found in solution["groups"]:
        assert (found["lost"], found["free_after"]) == can[tuple(found["nodes"])] == min(can.values())
