# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What group_compress answers: names in, plain data by name out; the work is in compression.py."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ....module_utils._data.errors import Mistakes, NoSolution
from ....module_utils._data.kinds import refuse_less
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode
from ..plan.order import Guard
from ..plan.plain import plan_to_plain
from ..plan.stages import stages
from ..redistribute.compression import RESOURCES, Emptying, compress, most_reclaimed
from ..redistribute.redistribution import Run
from ..sources.loaded import Loaded
from .left_out import left_out_of_moves, with_left_out, with_notes
from .place import reason_to_plain
from .redistribute import chosen_groups, missing_to_plain
from .summaries import compression_summary

Plain = dict[str, t.Any]


def run_compress(loaded: Loaded, arguments: Mapping[str, t.Any], run: Run = map) -> Plain:
    """Return what the action group_compress documents.

    Raises InputError for an unknown group and a number that is too small, and NoSolution when a group is named that cannot be emptied.
    """
    mistakes = Mistakes()
    refuse_less(arguments, {"workers": 0}, mistakes)
    mistakes.check()
    state = ClusterState.from_cluster(loaded.cluster)
    mode = ScoreMode(arguments.get("score", ScoreMode.HTOOLS))
    named = arguments.get("group")
    groups = chosen_groups(state, [named] if named is not None else arguments.get("groups"))
    found = compress(state, groups, mode, run)
    tried = [_to_plain(state, emptying) for emptying in found]
    best = most_reclaimed(found) if named is None else found[0]
    if best is not None and not best.possible:
        raise NoSolution(f"The group {tried[0]['group']} cannot be emptied: {tried[0]['says']}", {"candidates": tried})
    plan = stages(state, [] if best is None else best.moves, Guard.at_every_step(state))
    answer = {
        "candidates": tried,
        "emptied": None if best is None else loaded.cluster.groups[best.group].name,
        "plan": plan_to_plain(state, plan, mode),
    }
    return with_left_out(with_notes(loaded.cluster, answer | {"summary": compression_summary(answer)}), left_out_of_moves(loaded.cluster))


def _to_plain(state: ClusterState, emptying: Emptying) -> Plain:
    cluster = state.facts.cluster
    return {
        "group": cluster.groups[emptying.group].name,
        "possible": emptying.possible,
        "says": _message(state, emptying),
        "instances": len(emptying.instances),
        "used": dict(zip(RESOURCES, emptying.used)),
        "free": dict(zip(RESOURCES, emptying.free)),
        "reclaims": emptying.reclaims,
        "moves": len(emptying.moves),
        "data": emptying.data,
        "reasons": [reason_to_plain(cluster, reason) for reason in emptying.reasons],
        "unplaced": [missing_to_plain(state, missing) for missing in emptying.unplaced],
    }


def _message(state: ClusterState, emptying: Emptying) -> str:
    if emptying.reasons:
        return "; ".join(reason.says for reason in emptying.reasons)
    if emptying.unplaced:
        names = state.facts.instances.names
        return "; ".join(f"{names[missing.instance]}: {missing.says}" for missing in emptying.unplaced)
    if not emptying.instances:
        return "it is empty"
    return "it can be emptied by 1 move" if len(emptying.moves) == 1 else f"it can be emptied by {len(emptying.moves)} moves"
