# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads a plan of moves, and where instances are, from data that anybody may have written."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Collection, Mapping, Sequence

from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Name, is_number, is_whole, shown
from ....module_utils._data.words import listed
from ..cluster.commands import StepKind, ganeti_command
from .steps import MovePlan, Nodes, PlannedMove, Round, Step, node_list

_NAME = Name()


def read_where(document: Mapping[str, t.Any]) -> dict[str, Nodes]:
    """Return nodes by instance; they may be lists, or text that separates them by `|`, commas or blanks, with `-` for none.

    Raises InputError with all that is neither.
    """
    mistakes = Mistakes()
    found = {}
    for instance, nodes in document.items():
        names = re.split(r"[|,\s]+", nodes) if isinstance(nodes, str) else nodes
        if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names):
            found[instance] = tuple(name for name in names if name not in ("", "-"))
        else:
            mistakes.add(f"where[{instance}]", f"is {shown(nodes)}; must be a list of nodes, or text that names them")
    mistakes.check()
    return found


def read_storages(document: Mapping[str, t.Any]) -> dict[str, dict[str, str]]:
    """Return storages by instance and disk; raise InputError with all that is no mapping."""
    mistakes = Mistakes()
    found: dict[str, dict[str, str]] = {}
    for instance, disks in document.items():
        if isinstance(disks, Mapping):
            found[instance] = {str(disk): str(storage) for disk, storage in disks.items()}
        else:
            mistakes.add(f"storages[{instance}]", "must be a mapping of storages by disk")
    mistakes.check()
    return found


def read_plan(document: Mapping[str, t.Any], kinds: Collection[str] = ()) -> MovePlan:
    """Return a plan from data as the group actions return it; `kinds` are the steps that can be carried out (default: any).

    A plan may come from a file that anybody wrote: names are checked, and of texts such as commands nothing is used. Raises InputError
    with every mistake: fields that are missing, names that are none, steps that do not follow from each other or that no step of
    their kind can be, stages that leave a move out or come before what it depends on.
    """
    mistakes = Mistakes()
    listed = enumerate(_listed(document, "moves", mistakes))
    moves = [_read_move(move, f"plan.moves[{position}]", kinds, mistakes) for position, move in listed]
    stages = tuple(tuple(stage) if isinstance(stage, list) else (stage,) for stage in _listed(document, "stages", mistakes))
    mistakes.check()
    _check_stages(document["moves"], stages, mistakes)
    mistakes.check()
    return MovePlan(tuple(move for move in moves if move is not None), stages)


def read_round(document: Mapping[str, t.Any], plan: MovePlan, place: str) -> Round:
    """Return how long a round of steps took; raise InputError for steps that the plan does not have, and for what is no time."""
    mistakes = Mistakes()
    steps = []
    for position, step in enumerate(document["steps"]):
        move, number = step.get("move"), step.get("step")
        if is_whole(move) and is_whole(number) and 0 <= move < len(plan.moves) and 0 <= number < len(plan.moves[move].steps):
            steps.append((move, number))
        else:
            mistakes.add(f"{place}.steps[{position}]", "is no step of the plan; must be a step as group_progress returned it in rounds")
    if len({move for move, _number in steps}) < len(steps):
        mistakes.add(f"{place}.steps", "has several steps of a move; a round has one of each at most")
    seconds = document["seconds"]
    if not is_number(seconds) or seconds < 0:
        mistakes.add(f"{place}.seconds", f"is {shown(seconds)}; must be a number of seconds, 0 or more")
    mistakes.check()
    return Round(tuple(steps), float(seconds))


def _listed(document: Mapping[str, t.Any], name: str, mistakes: Mistakes) -> list[t.Any]:
    found = document.get(name)
    if isinstance(found, list):
        return found
    mistakes.add(f"plan.{name}", "is not a list; give the plan that a group action has returned")
    return []


def _read_move(document: t.Any, place: str, kinds: Collection[str], mistakes: Mistakes) -> PlannedMove | None:
    source = _names(document.get("from"), f"{place}.from", mistakes) if isinstance(document, dict) else None
    if source is None or not isinstance(document.get("instance"), str):
        mistakes.add(place, "must have an instance and, in `from`, its nodes")
        return None
    instance = _name(document["instance"], f"{place}.instance", mistakes)
    sizes = {name: document.get(name, 0) for name in ("data", "memory")}
    for name, size in sizes.items():
        if not is_number(size):
            mistakes.add(f"{place}.{name}", f"is {shown(size)}; must be MiB as a number")
    if not all(map(is_number, sizes.values())):
        return None
    if not isinstance(document.get("steps"), list) or not document["steps"]:
        mistakes.add(f"{place}.steps", "must list at least one step")
        return None
    steps: list[Step] = []
    for number, step in enumerate(document["steps"]):
        read = _read_step(step, f"{place}.steps[{number}]", instance, steps[-1].target if steps else source, kinds, mistakes)
        if read is None:
            return None
        steps.append(read)
    return PlannedMove(instance, tuple(steps), float(sizes["data"]), float(sizes["memory"]))


def _read_step(document: t.Any, place: str, instance: str, here: Nodes, kinds: Collection[str], mistakes: Mistakes) -> Step | None:
    there = _names(document.get("to"), f"{place}.to", mistakes) if isinstance(document, dict) else None
    if not there or not isinstance(document.get("kind"), str):
        mistakes.add(place, "must have a kind and, in `to`, the nodes afterwards")
        return None
    kind = _name(document["kind"], f"{place}.kind", mistakes)
    online = document.get("online", True)
    if not isinstance(online, bool):
        mistakes.add(f"{place}.online", f"is {shown(online)}; must be true or false")
    if _names(document.get("from", list(here)), f"{place}.from", mistakes) != here:
        mistakes.add(f"{place}.from", f"is {shown(document['from'])}, but the moves before it lead to {node_list(here)}")
    if kinds and kind not in kinds:
        mistakes.add(f"{place}.kind", f"is {kind}, which the driver cannot do; it knows {', '.join(kinds)}")
    # Of a disk by itself any kind says that it moves.
    disk = {name: _name(document[name], f"{place}.{name}", mistakes) for name in _OF_DISK if document.get(name) not in (None, "")}
    if disk and len(disk) < len(_OF_DISK):
        mistakes.add(place, f"must have all of {listed(_OF_DISK)}, or none of them")
    elif not disk and not _is_possible(kind, here, there):
        mistakes.add(f"{place}.to", f"is {node_list(there)}; {kind} does not lead there from {node_list(here)}")
    arrives = there[1] if kind == StepKind.REPLACE_DISKS and len(there) > 1 else there[0]
    node = _name(document.get("node", arrives), f"{place}.node", mistakes)
    if node not in there if kind not in tuple(StepKind) else node != arrives:
        mistakes.add(f"{place}.node", f"is {shown(node)}, but the step leads to {node_list(there)}")
    command = ""
    if document.get("command") and not str(document["command"]).startswith(_OTHERS) and kind in tuple(StepKind) and not disk:
        command = ganeti_command(StepKind(kind), instance, node, mirrored=len(there) > 1, online=bool(online))
    return Step(kind, here, there, node, bool(online), command, **disk)


_OF_DISK = ("disk", "from_storage", "to_storage")
_OTHERS = ("qm ", "pct ", "ha-manager ", "virsh ")
"""How commands begin that are not Ganeti's, and not made again."""


def _is_possible(kind: str, here: Nodes, there: Nodes) -> bool:
    """Return whether a step of a kind that all plans have can lead from nodes to others; what other kinds mean their driver knows."""
    if kind == StepKind.REPLACE_DISKS:
        return len(here) == len(there) == 2 and here[0] == there[0] and len({*here, *there}) == 3
    if kind in (StepKind.MIGRATE, StepKind.FAILOVER):
        return there == here[::-1] if len(here) == 2 else len(there) == len(here) == 1 and there != here
    return True


def _names(document: t.Any, place: str, mistakes: Mistakes) -> Nodes | None:
    if not isinstance(document, list) or not all(isinstance(name, str) for name in document):
        return None
    return tuple(_name(name, f"{place}[{number}]", mistakes) for number, name in enumerate(document))


def _name(document: t.Any, place: str, mistakes: Mistakes) -> str:
    """Return a name as it is, valid or not, so that mistakes that follow from it are reported as well."""
    try:
        return _NAME.read(document)
    except ValueError as error:
        mistakes.add(place, str(error))
        return str(document)


def _check_stages(moves: Sequence[Mapping[str, t.Any]], stages: Sequence[Sequence[t.Any]], mistakes: Mistakes) -> None:
    stage_of: dict[int, int] = {}
    for number, stage in enumerate(stages):
        for move in stage:
            if isinstance(move, bool) or not isinstance(move, int) or not 0 <= move < len(moves):
                mistakes.add(f"plan.stages[{number}]", f"names move {move!r}; there are {len(moves)}, counted from 0")
            elif move in stage_of:
                mistakes.add(f"plan.stages[{number}]", f"repeats move {move} of stage {stage_of[move]}")
            else:
                stage_of[move] = number
    for position, move in enumerate(moves):
        if position not in stage_of:
            mistakes.add(f"plan.moves[{position}]", "is in no stage")
            continue
        after = move.get("after", [])
        if not isinstance(after, list):
            mistakes.add(f"plan.moves[{position}].after", "is not a list of positions of moves")
            continue
        for earlier in after:
            if not isinstance(earlier, int) or stage_of.get(earlier, len(stages)) >= stage_of[position]:
                mistakes.add(f"plan.moves[{position}].after", f"names move {earlier}, which is not in an earlier stage")
