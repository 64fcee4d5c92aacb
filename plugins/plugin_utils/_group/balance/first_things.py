# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What comes before the score: instances that are down because their node is, then limits that are broken now.

    came_up = rescue(walk, first)            # within all limits, then where N+1 or soft limits break
    left = empty(walk)                       # the same for what is on drained nodes
    mend(walk)                               # the moves by which broken limits are so by less

Both go on from where the walk is. N+1 on shared storage may get worse for them, if that is not to be kept (`Redundancy`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Quantity
from ..cluster.moves import make_move
from ..neighbourhood.excess import broken_rows, excess_of
from ..neighbourhood.limits import MoveRules
from ..neighbourhood.moves import MoveEvaluator
from .model import Redundancy
from .walk import NO_INSTANCES, Walk

_PLACES = 8
"""Places that are tried for one that is down, and moves that are tried to mend a limit."""
_MAKE_ROOM = 400
"""How many instances are tried in all to make room for those that are down, and how many on each node."""
_MAKE_ROOM_AT = 4


def rescue(walk: Walk, first: Callable[[float], float]) -> bool:
    """Bring up what is down: within all limits, then where N+1 or soft limits break; return whether any instance came up.

    Running ones come before others, and of these those with the least of a function of their memory.
    """
    if not walk.down():
        return False
    models = walk.state.facts.instances.models
    made = len(walk.made)
    lenient = MoveEvaluator(walk.state, walk.scorer, MoveRules.of_start(walk.state, rescues=True), walk.options.moves)
    kept = walk.options.redundancy == Redundancy.KEEP
    for evaluator, keeps_redundancy in ((walk.evaluator, walk.keeps_redundancy), (walk.evaluator, kept), (lenient, kept)):
        walk.keeps_redundancy = keeps_redundancy
        for instance in sorted(walk.down(), key=lambda one: (not models[one].uses_memory, first(float(models[one].memory)))):
            _bring_up(walk, instance, evaluator)
    trials = iter(range(_MAKE_ROOM))
    while any(_make_room(walk, instance, lenient, trials) for instance in walk.down() if models[instance].uses_memory):
        continue
    if len(walk.made) > made:
        walk.take_as_given()
    walk.keeps_redundancy = walk.reserve is not None
    return len(walk.made) > made


def empty(walk: Walk) -> bool:
    """Move remaining instances off drained nodes, breaking soft limits if there is no other way; return whether any moves."""
    left = walk.left_behind()
    if not left:
        return False
    made = len(walk.made)
    lenient = MoveEvaluator(walk.state, walk.scorer, MoveRules.of_start(walk.state, empties=True), walk.options.moves)
    kept = walk.options.redundancy == Redundancy.KEEP
    for evaluator, keeps_redundancy in ((walk.evaluator, kept), (lenient, kept)):
        walk.keeps_redundancy = keeps_redundancy
        for instance in walk.left_behind():
            before, now = walk.first_things(), len(walk.made)
            cost, flags = walk.cost, walk.state.fails_n1.copy()
            if _bring_up(walk, instance, evaluator) and walk.first_things() >= before:
                walk.back(walk.made[now:], cost, flags)
                del walk.made[now:]
    if len(walk.made) > made:
        walk.take_as_given()
    walk.keeps_redundancy = walk.reserve is not None
    return len(walk.made) > made


def _bring_up(walk: Walk, instance: int, evaluator: MoveEvaluator) -> bool:
    """Bring an instance to the cheapest of its places that holds; return whether there is one."""
    before, flags = walk.cost, walk.state.fails_n1.copy()
    for cost, _instance, kind, target in walk.cheapest(np.array([instance]), evaluator, _PLACES):
        move = walk.go(make_move(walk.state, instance, kind, target), cost)
        if walk.keeps_n1():
            walk.made.append(move)
            return True
        walk.back([move], before, flags)
    return False


def _make_room(walk: Walk, instance: int, lenient: MoveEvaluator, trials: Iterator[int]) -> bool:
    """Let another instance leave a node, so that one that is down comes up there; return whether there is one."""
    state, secondary = walk.state, int(walk.state.secondary[instance])
    targets = lenient.targets.nodes if secondary == NOWHERE else np.array([secondary])
    memory = state.facts.instances.memory
    short = float(memory[instance]) - state.quantities[Quantity.MEMORY, targets]
    for at in np.argsort(short, kind="stable").tolist():
        here = walk.instances[state.primary[walk.instances] == targets[at]]
        enough = here[-state.facts.instances.as_primary[Quantity.MEMORY, here] >= short[at]]
        for other in enough[np.argsort(memory[enough], kind="stable")][:_MAKE_ROOM_AT].tolist():
            if next(trials, None) is None:
                return False
            before, flags, made = walk.cost, walk.state.fails_n1.copy(), len(walk.made)
            if _bring_up(walk, other, walk.evaluator) and _bring_up(walk, instance, lenient):
                return True
            walk.back(walk.made[made:], before, flags)
            del walk.made[made:]
    return False


def mend(walk: Walk) -> None:
    """Make the moves by which limits that are broken are so by less."""
    if len(broken_rows(walk.state, walk.scorer.members)):
        with _mended(walk):
            walk.descend_to_local_optimum()


def mend_at_any_rate(walk: Walk) -> bool:
    """Let N+1 on shared storage get worse where that repairs a limit; return whether it repaired one."""
    if walk.options.redundancy != Redundancy.PRICE or not walk.keeps_redundancy or not excess_of(walk.state, walk.scorer.members):
        return False
    before, walk.keeps_redundancy = len(walk.made), False
    with _mended(walk):
        while not walk.late() and _mend_one(walk):
            continue
    walk.keeps_redundancy = True
    return len(walk.made) > before


@contextmanager
def _mended(walk: Walk) -> Iterator[None]:
    """Within the context what is broken counts before the score; afterwards it must not get worse again."""
    before = len(walk.made)
    walk.cost -= walk.price().now
    walk.repairing = broken_rows(walk.state, walk.scorer.members)
    walk.cost += walk.price().now
    yield
    walk.cost -= walk.price().now
    walk.repairing = NO_INSTANCES
    walk.cost += walk.price().now
    if len(walk.made) > before:
        walk.take_as_given()


def _mend_one(walk: Walk) -> bool:
    """Make the best move if a limit is broken by less after it; return whether it is."""
    broken = excess_of(walk.state, walk.scorer.members)
    best = walk.best_near(walk.instances, NO_INSTANCES)
    before, flags = walk.cost, walk.state.fails_n1.copy()
    for row in best.order()[:_PLACES].tolist():
        move = walk.go(best.move(walk.state, row), float(best.cost[row]))
        if excess_of(walk.state, walk.scorer.members) < broken:
            walk.made.append(move)
            return True
        walk.back([move], before, flags)
    return False
