# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers to those IAllocator requests that are about instances which are there: relocation, evacuation, a first mirror.

Jobs that must wait for others say so by relative dependencies, since the moves of one answer are only sure to have room in an
order that keeps them.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Sequence

from ....module_utils._data.containers import ListOf, Row, Table
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Text, Word
from ..._common.libraries import np
from ..cluster.arrays import NOWHERE
from ..cluster.model import DiskTemplate
from ..cluster.moves import Move
from ..cluster.state import ClusterState
from ..evacuate.evacuation import Evacuation, evacuate
from ..evacuate.task import AcrossGroups, EvacuationMode, Task, tasks_of_instances
from ..metrics.limits import Limit
from ..metrics.score import ScoreMode, Scorer
from ..metrics.verdicts import EXACT, secondary_verdict
from ..place.refusal import Reason
from ..plan.order import Guard
from ..plan.plain import node_names
from ..plan.stages import stages
from ..sources.loaded import Loaded
from .envelope import failure, success
from .place import find_group, positions_of, reason_to_plain, reasons_line

Plain = dict[str, t.Any]
_MODES = {"primary-only": EvacuationMode.PRIMARY, "secondary-only": EvacuationMode.SECONDARY, "all": EvacuationMode.ALL}

_NAMES = ListOf(Text(), "text")
_RELOCATE = Table("a request", [Row("name", Text(digits=True), required=True), Row("relocate_from", _NAMES, required=True)], others=True)
_EVACUATE = Table("a request", [Row("evac_mode", Word(_MODES), required=True), Row("instances", _NAMES, required=True)], others=True)
_CHANGE_GROUP = Table("a request", [Row("target_groups", _NAMES, default=()), Row("instances", _NAMES, required=True)], others=True)
_ALLOCATE_SECONDARY = Table("a request", [Row("name", Text(digits=True), required=True)], others=True)


def _instances(loaded: Loaded, names: Sequence[str], place: str, mistakes: Mistakes) -> list[int]:
    """Return the positions of instances. Raises InputError with all that was found wrong with the request."""
    positions = positions_of(names, loaded.cluster.instance_positions(), "instance", place, mistakes)
    mistakes.check()
    return positions


def relocate(loaded: Loaded, mode: ScoreMode) -> Plain:
    """Answer where an instance can go from the node that it is to leave."""
    mistakes = Mistakes()
    request = _RELOCATE.read_nested(loaded.request, "request", mistakes)
    state = ClusterState.from_cluster(loaded.cluster)
    leaving = positions_of(request["relocate_from"], loaded.cluster.node_positions(), "node", "request.relocate_from", mistakes)
    (instance,) = _instances(loaded, [request["name"]], "request.name", mistakes)
    mirrored = bool(state.facts.instances.two_nodes[instance])
    expected = int((state.secondary if mirrored else state.primary)[instance])
    if leaving != [expected]:
        role = "secondary" if mirrored else "primary"
        return failure(f"relocate_from must be exactly the instance's {role}, {state.facts.nodes.names[expected]}")
    left = frozenset(leaving)
    task = Task(instance, frozenset(), left, keeps_primary=True) if mirrored else Task(instance, left, frozenset())
    found = evacuate(state, [task], AcrossGroups.NO, mode)
    if not found.moves:
        return failure(_unplaced_line(state, found.unplaced[0].reasons))
    return success("success", [state.facts.nodes.names[found.moves[0].target[1 if mirrored else 0]]])


def node_evacuate(loaded: Loaded, mode: ScoreMode) -> Plain:
    """Answer where instances can go so that their nodes are empty."""
    mistakes = Mistakes()
    request = _EVACUATE.read_nested(loaded.request, "request", mistakes)
    instances = _instances(loaded, request["instances"], "request.instances", mistakes)
    state = ClusterState.from_cluster(loaded.cluster)
    return _moved(state, evacuate(state, tasks_of_instances(state, instances, _MODES[request["evac_mode"]]), AcrossGroups.NO, mode))


def change_group(loaded: Loaded, mode: ScoreMode) -> Plain:
    """Answer where instances can go in other groups."""
    mistakes = Mistakes()
    request = _CHANGE_GROUP.read_nested(loaded.request, "request", mistakes)
    places = [f"request.target_groups[{number}]" for number in range(len(request["target_groups"]))]
    groups = [find_group(loaded.cluster, name, place, mistakes) for name, place in zip(request["target_groups"], places)]
    instances = _instances(loaded, request["instances"], "request.instances", mistakes)
    state = ClusterState.from_cluster(loaded.cluster)
    allowed = tuple(group for group in groups if group is not None) or None
    tasks = [Task(instance, frozenset(), frozenset(), groups=allowed) for instance in instances]
    return _moved(state, evacuate(state, tasks, AcrossGroups.ONLY, mode))


def allocate_secondary(loaded: Loaded, mode: ScoreMode) -> Plain:
    """Answer where a mirror of an instance on one node could be."""
    mistakes = Mistakes()
    request = _ALLOCATE_SECONDARY.read_nested(loaded.request, "request", mistakes)
    (position,) = _instances(loaded, [request["name"]], "request.name", mistakes)
    model = loaded.cluster.instances[position]
    if model.secondary:
        return failure("the instance already has a secondary")
    mirrored = dataclasses.replace(model, disk_template=DiskTemplate.DRBD)
    instances = (*loaded.cluster.instances[:position], mirrored, *loaded.cluster.instances[position + 1 :])
    state = ClusterState.from_cluster(dataclasses.replace(loaded.cluster, instances=instances))
    nodes = state.group_nodes(state.group_of(position))
    nodes = nodes[~state.offline[nodes]]
    primary = state.primary[[position]]
    with state.lifted(position):
        verdict = secondary_verdict(state, position, primary, nodes, EXACT)
        scores = np.where(verdict.fits, Scorer(state, mode, nodes).pair_scores(state, position, primary, nodes), np.inf)[0]
    if not np.isfinite(scores).any():
        found = zip(nodes.tolist(), verdict.limit[0].tolist(), verdict.short[0].tolist())
        reasons = [Reason(node, Limit(limit).name.lower(), short) for node, limit, short in found if node != primary[0]]
        return failure(_unplaced_line(state, reasons) or "the group has no other node")
    return success("success", state.facts.nodes.names[int(nodes[int(scores.argmin())])])


def _unplaced_line(state: ClusterState, reasons: Sequence[Reason]) -> str:
    return reasons_line([reason_to_plain(state.facts.cluster, reason) for reason in reasons])


def _moved(state: ClusterState, found: Evacuation) -> Plain:
    """Return the answer with moved instances, failed ones, and a job for each move."""
    facts = state.facts
    plan = stages(state, found.moves, Guard.at_every_step(state))
    # The last move of an instance that goes a way round is where it ends.
    moved = {
        facts.instances.names[move.instance]: [facts.cluster.groups[facts.nodes.group[move.target[0]]].name, node_names(state, move.target)]
        for move in plan.moves
    }
    failed = [[facts.instances.names[left.instance], _unplaced_line(state, left.reasons)] for left in found.unplaced]
    jobs = []
    for number, (move, earlier) in enumerate(zip(plan.moves, plan.after)):
        opcodes = _opcodes(state, move)
        if earlier:
            opcodes[0]["depends"] = [[other - number, ["success"]] for other in earlier]
        jobs.append(opcodes)
    info = f"{len(failed)} instances failed to move and {len(moved)} were moved successfully"
    return success(info, [[[name, *place] for name, place in moved.items()], failed, jobs])


def _opcodes(state: ClusterState, move: Move) -> list[Plain]:
    """Return a move as opcodes: a replacement of the secondary, or a migration that may fall back to a failover, for each step."""
    name = state.facts.instances.names[move.instance]
    opcodes: list[Plain] = []
    before = move.source
    for after in move.steps:
        if before[0] == after[0]:
            opcodes.append(
                {
                    "OP_ID": "OP_INSTANCE_REPLACE_DISKS",
                    "instance_name": name,
                    "early_release": False,
                    "ignore_ipolicy": False,
                    "mode": "replace_new_secondary",
                    "disks": [],
                    "remote_node": state.facts.nodes.names[after[1]],
                },
            )
        else:
            target = {"target_node": state.facts.nodes.names[after[0]]} if after[1] == NOWHERE else {}
            opcodes.append({**_migration(state, move.instance), "instance_name": name, **target})
        before = after
    return opcodes


def _migration(state: ClusterState, instance: int) -> Plain:
    if not state.facts.instances.real[instance]:
        return {"OP_ID": "OP_INSTANCE_FAILOVER", "ignore_consistency": False, "ignore_ipolicy": False, "cleanup": False}
    return {
        "OP_ID": "OP_INSTANCE_MIGRATE",
        "allow_runtime_changes": False,
        "ignore_ipolicy": False,
        "cleanup": False,
        "allow_failover": True,
        "ignore_hvversions": True,
    }
