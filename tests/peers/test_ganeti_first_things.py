# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""First things come first, and the score is as good as that of Debian's hbal, on clusters full of what is wrong.

`make peers-ganeti` installs hbal and runs this. Without it every test here fails: that nothing was compared must not look like agreement.
"""

from __future__ import annotations

import pathlib
import random
import re
import shutil
import subprocess
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.group import Assignment, plan_group
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.model import BalanceOptions, Redundancy
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.walk import Walk
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.changes import after_moves
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.shared_redundancy import stranded_memory
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text, write_text

SEEDS = range(16)
WORSE = 1.01
TAGS = ["htools:iextags:service"]


@pytest.fixture(scope="module", autouse=True)
def program():
    assert shutil.which("hbal"), "ganeti-htools are not installed; run `make peers-ganeti`"


def by_lot(seed: int) -> Cluster:
    """Return a group of unlike nodes, some full, one of them drained at times, with instances on shared storage, mirrored or both."""
    draw = random.Random(seed)
    names = [f"n{number:02}" for number in range(draw.randint(3, 7))]
    nodes: dict[str, dict[str, t.Any]] = {
        name: {
            "total_memory": draw.choice([32, 64, 64, 128]) * 1024,
            "total_disk": draw.choice([1, 2]) * 2**20,
            "total_cpus": draw.choice([16, 32]),
        }
        for name in names
    }
    if len(names) > 3 and draw.random() < 0.4:
        nodes[draw.choice(names)]["state"] = "drained"
    tagged, fill, shared = draw.random() < 0.4, draw.choice([0.4, 0.6, 0.8, 0.95]), draw.choice([1.0, 0.6, 0.3])
    wanted = fill * sum(node["total_memory"] - 1024 for node in nodes.values() if "state" not in node)
    weights = [draw.expovariate(1) + 0.05 for _name in names]
    free = {name: (node["total_memory"] - 1024) * 1.02 for name, node in nodes.items()}
    instances: list[dict[str, t.Any]] = []
    for _try in range(400):
        memory, primary = draw.choice([512, 1024, 2048, 2048, 4096, 8192]), draw.choices(names, weights)[0]
        if wanted <= 0 or len(instances) == 90:
            break
        if memory > free[primary]:
            continue
        free[primary] -= memory
        wanted -= memory
        one = {
            "name": f"i{len(instances):03}",
            "memory": memory,
            "disk": draw.choice([10240, 20480, 51200]),
            "vcpus": draw.choice([1, 1, 2, 4]),
        }
        one |= {"primary": primary, "status": draw.choice(["running"] * 8 + ["ADMIN_down"])}
        on_shared = draw.random() < shared
        one |= {"disk_template": "ext"} if on_shared else {"secondary": draw.choice([name for name in names if name != primary])}
        instances.append(one | ({"tags": [f"service:{draw.randint(0, 5)}"]} if tagged and draw.random() < 0.4 else {}))
    machines = [{"name": name, "node_memory": 1024, **node} for name, node in nodes.items()]
    return parse_inline({"nodes": machines, "instances": instances, "tags": TAGS if tagged else []})


def hbal(cluster: Cluster, folder: pathlib.Path) -> tuple[ClusterState, float]:
    """Return the state that hbal leads to, and its score."""
    path = folder / "cluster.data"
    path.write_text(write_text(cluster))
    run = subprocess.run(["hbal", "-t", str(path), "-v", "-v", "-v"], capture_output=True, text=True, check=True, timeout=300)
    state = ClusterState.from_cluster(parse_text(path.read_text()))
    nodes, instances = cluster.node_positions(), cluster.instance_positions()
    score = float("inf")
    for name, places, told in re.findall(r"^ +\d+\. (\S+) +\S+ +=> (\S+) +([\d.]+) a=", run.stdout, re.MULTILINE):
        state.place(instances[name], *(nodes[place] for place in places.split(":")))
        score = float(told)
    return state, score


def first_things(cluster: Cluster, places: ClusterState) -> tuple[t.Any, ...]:
    """Return how much is wrong where instances are as in `places`."""
    state = ClusterState.from_cluster(cluster)
    for instance in range(len(cluster.instances)):
        state.place(instance, *places.place_of(instance))
    return Walk(state, 0, BalanceOptions()).first_things()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_score_is_worse_than_hbals_unless_less_is_wrong(seed, tmp_path):
    cluster = by_lot(seed)
    before = ClusterState.from_cluster(cluster)
    theirs, score = hbal(cluster, tmp_path)
    wrong = {}
    for redundancy in (Redundancy.OFF, Redundancy.PRICE):
        found = plan_group(Assignment(cluster, 0, BalanceOptions(redundancy=redundancy)))
        after = after_moves(before, found.plan.moves)
        wrong[redundancy] = first_things(cluster, after)
        stranded = sum(stranded_memory(after, 0, exact=True).values())
        less_wrong = wrong[redundancy] < first_things(cluster, theirs)
        keeps_n1 = redundancy == Redundancy.PRICE and stranded < sum(stranded_memory(theirs, 0, exact=True).values())
        assert less_wrong or keeps_n1 or found.score_after <= WORSE * score, (redundancy, found.score_after, score)
    assert wrong[Redundancy.PRICE] <= wrong[Redundancy.OFF], "what N+1 on shared storage costs comes after the first things"
