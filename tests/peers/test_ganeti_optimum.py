# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On clusters so small that all placements can be tried: ours is never worse than that of Ganeti's hbal, and often the best there is.

`make peers-ganeti` installs it and runs this. Prices and N+1 on shared storage are left out, which hbal does not know.
"""

from __future__ import annotations

import itertools
import pathlib
import random
import re
import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.group import Assignment, plan_group
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.model import BalanceOptions, Redundancy
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.limits import Bounds
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode, Scorer
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.price import Prices
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text, write_text

SEEDS = range(50)
PRINTED = 2e-8
FREE = BalanceOptions(prices=Prices(data=0.0, primary=0.0, restart=0.0), min_gain=1e-9, redundancy=Redundancy.OFF)


def by_lot(seed: int, mirrored: bool) -> Cluster:
    """Return three nodes of random sizes with five instances on shared storage, or four mirrored ones, which fit where they are."""
    draw = random.Random(f"{mirrored} {seed}")
    names = ["n1", "n2", "n3"]
    nodes = [
        {"name": name, "total_memory": draw.choice([16384, 24576, 32768]), "total_disk": 1048576, "total_cpus": draw.choice([8, 16])}
        for name in names
    ]
    instances = []
    for number in range(4 if mirrored else 5):
        primary, secondary = draw.sample(names, 2)
        one = {
            "name": f"i{number}",
            "memory": draw.choice([512, 1024, 2048, 3072]),
            "disk": draw.choice([10240, 20480]),
            "primary": primary,
        }
        one |= {"vcpus": draw.choice([1, 2, 4])} | ({"secondary": secondary} if mirrored else {"disk_template": "ext"})
        instances.append(one)
    return parse_inline({"nodes": nodes, "instances": instances})


def least_score(cluster: Cluster) -> float:
    """Return the least score of all placements that break no limit by more than is broken at the start."""
    state = ClusterState.from_cluster(cluster)
    scorer, bounds, nodes = Scorer(state, ScoreMode.HTOOLS, state.group_nodes(0)), Bounds.of_start(state), range(len(cluster.nodes))
    mirrored = state.secondary[0] != NOWHERE
    places = list(itertools.permutations(nodes, 2)) if mirrored else [(node, NOWHERE) for node in nodes]
    least = float("inf")
    for chosen in itertools.product(places, repeat=len(cluster.instances)):
        for instance, place in enumerate(chosen):
            if state.place_of(instance) != place:
                state.place(instance, *place)
        if bounds.holds(state, nodes):
            least = min(least, scorer.score(state))
    return least


def hbals_score(cluster: Cluster, folder: pathlib.Path) -> float:
    """Return the score that hbal ends at, told by where it puts instances."""
    path = folder / "cluster.data"
    path.write_text(write_text(cluster))
    run = subprocess.run(["hbal", "-t", str(path), "-v", "-v", "-v"], capture_output=True, text=True, check=True, timeout=300)
    state = ClusterState.from_cluster(parse_text(path.read_text()))
    nodes, instances = cluster.node_positions(), cluster.instance_positions()
    for name, places in re.findall(r"^ +\d+\. (\S+) +\S+ +=> (\S+) +[\d.]+ a=", run.stdout, re.MULTILINE):
        state.place(instances[name], *(nodes[place] for place in places.split(":")))
    return Scorer(state, ScoreMode.HTOOLS, state.group_nodes(0)).score(state)


@pytest.mark.parametrize(("mirrored", "share", "gap"), [(False, 0.92, 0.05), (True, 0.88, 0.05)])
def test_never_worse_than_hbal_and_often_at_the_optimum(mirrored, share, gap, tmp_path):
    """A few are missed, as chains have three moves at most; what is lost is a twentieth of what hbal loses."""
    at_optimum = hbal_there = 0
    ours_above, theirs_above = [], []
    for seed in SEEDS:
        cluster = by_lot(seed, mirrored)
        ours = plan_group(Assignment(cluster, 0, FREE)).score_after
        theirs, least = hbals_score(cluster, tmp_path), least_score(cluster)
        assert least <= ours + PRINTED
        assert ours <= theirs + PRINTED, seed
        at_optimum += ours <= least + PRINTED
        hbal_there += theirs <= least + PRINTED
        ours_above.append(ours - least)
        theirs_above.append(theirs - least)
    print(f"at the optimum: {at_optimum} of {len(SEEDS)}, hbal {hbal_there}; above it {sum(ours_above):.3f}, hbal {sum(theirs_above):.3f}")
    assert at_optimum >= share * len(SEEDS)
    assert sum(ours_above) <= gap * sum(theirs_above)
