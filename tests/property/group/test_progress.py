# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans carried out by lot: with failures, with runs that are cut off before they can note anything, with journals that get lost."""

from __future__ import annotations

import json
import tempfile

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.journal import follow
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st

NODES = [f"n{number}" for number in range(6)]


@st.composite
def plans(draw):
    """Return a plan of up to eight moves of one to three steps, in stages; an instance may move twice, in different stages."""
    moves, stages = [], []
    home = {f"i{number}": [NODES[number]] for number in range(4)}
    for _stage in range(draw(st.integers(1, 3))):
        stage = []
        for instance in draw(st.lists(st.sampled_from(sorted(home)), unique=True, max_size=4)):
            places = [home[instance]]
            for _step in range(draw(st.integers(1, 3))):
                places.append([draw(st.sampled_from([node for node in NODES if [node] not in places]))])
            steps = [{"kind": "migrate", "from": one, "to": other} for one, other in zip(places, places[1:])]
            stage.append(len(moves))
            moves.append({"instance": instance, "from": places[0], "steps": steps, "data": draw(st.integers(0, 3))})
            home[instance] = places[-1]
        if stage:
            stages.append(stage)
    return {"moves": moves, "stages": stages}


class Cluster:
    """Where the instances are; a step must start where its instance is, in the order of stages and within the limits."""

    def __init__(self, plan):
        self.plan = plan
        self.where = {}
        for move in plan["moves"]:
            self.where.setdefault(move["instance"], move["from"])
        self.done = [0] * len(plan["moves"])

    def carry_out(self, step):
        """Do a step."""
        move, number = step["move"], step["step"]
        assert number == self.done[move], "steps of a move come in order, none twice"
        stage = next(at for at, stage in enumerate(self.plan["stages"]) if move in stage)
        for earlier in self.plan["stages"][:stage]:
            assert all(self.done[other] == len(self.plan["moves"][other]["steps"]) for other in earlier), "stages come in order"
        assert self.where[step["instance"]] == step["from"]
        self.where[step["instance"]] = step["to"]
        self.done[move] += 1


@settings(max_examples=examples(60), deadline=None)
@given(plans(), st.integers(1, 4), st.integers(0, 2), st.data())
def test_every_step_is_done_once_in_spite_of_failures(plan, at_once, per_node, data):
    cluster = Cluster(plan)
    troubles = data.draw(st.integers(0, 6))
    with tempfile.TemporaryDirectory() as folder:
        for run in range(troubles + 1):
            begin = {"plan": json.loads(json.dumps(plan)), "directory": folder, "at_once": at_once, "per_node": per_node}
            told = follow(begin | {"where": cluster.where}, write=True)
            assert [move["steps_done"] for move in sorted(told["done"] + told["remaining"], key=lambda one: one["move"])] == cluster.done
            in_trouble = run < troubles
            for steps in told["rounds"]:
                assert len(steps) <= at_once
                assert len({step["move"] for step in steps}) == len(steps)
                if per_node:
                    check_nodes(plan, steps, per_node)
                outcomes = []
                for step in steps:
                    fails = in_trouble and data.draw(st.booleans())
                    if not fails:
                        cluster.carry_out(step)
                    outcomes.append({"move": step["move"], "step": step["step"], "failed": fails, "message": "by lot"})
                if in_trouble and data.draw(st.booleans()):
                    break
                if follow({"journal": told["journal"], "outcomes": outcomes}, write=True)["failures"]:
                    break
        assert follow(begin, write=True)["complete"]
    assert cluster.done == [len(move["steps"]) for move in plan["moves"]]


def check_nodes(plan, steps, per_node):
    """Check that no node takes part in more moves of a round than allowed."""
    busy = []
    for step in steps:
        busy += {node for one in plan["moves"][step["move"]]["steps"] for node in (*one["from"], *one["to"])}
    assert all(busy.count(node) <= per_node for node in busy)
