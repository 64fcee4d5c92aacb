# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a layout whose disks take the contents of others: first what is moved, then the layout, then what is left. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import replace

from .._facts.present import Present
from .._facts.select import ALL_DISKS, Selection
from .._schema.model import Layout
from .._steps.signatures import EmptyDisk
from .._steps.step import Step
from .disks import FoundDisk, check_fingerprint, find_disks
from .foreseen import after_moves
from .gate import Given, check_steps
from .losses import DiskLoss, Loss, find_losses
from .moves import Moves, plan_moves, remains
from .partitions import entry_of, partitions_of
from .plan import LayoutPlan, concluded, plan_layout
from .protected import Protection
from .replacing import Pair, as_kept, find_pairs, old_disks, without_old_disks
from .salted import with_salts
from .teardown import Destroyed, teardown_refusals, teardown_steps

_LEFT = "what is left on it when its contents have been moved"


def plan_replacing(
    layout: Layout,
    present: Present,
    asked: Mapping[str, str],
    wipe: Sequence[str] = (),
    keep_unlisted: bool = True,
    fingerprint: t.Optional[str] = None,
    protections: Sequence[Protection] = (),
    selection: Selection = ALL_DISKS,
) -> LayoutPlan:
    """Return the steps, or every reason why there are none; `asked` are disks (ids) with those that take their contents.

    All else is as of `plan_steps`. As long as something is to be moved the steps are of that alone, and the state is to be planned again.
    """
    disks, refusals = find_disks(layout, present, without_old_disks(present, asked, wipe), protections)
    layout, disks = with_salts(layout, present, disks)
    found = find_pairs(present, disks, asked, wipe, protections)
    refusals = (*refusals, *check_fingerprint(fingerprint, disks, present, old_disks(present, asked), selection), *found.refusals)
    if found.refusals:
        return LayoutPlan(refusals=refusals, notes=present.notes)
    plan = _plan(layout, present, disks, found.pairs, refusals, keep_unlisted)
    plan = replace(plan, notes=(*plan.notes, *found.notes))
    return concluded(layout, present, as_kept(disks, found.pairs, present), plan, protections)


def _plan(
    layout: Layout, present: Present, disks: Sequence[FoundDisk], pairs: Sequence[Pair], refusals: Sequence[str], keep_unlisted: bool
) -> LayoutPlan:
    moves = plan_moves(layout, present, disks, pairs)
    losses = tuple(_lost(pair) for pair in pairs if pair.erased and _has_marks(present, pair))
    if not (moves.steps or moves.refusals):
        plan = plan_layout(layout, present, as_kept(disks, pairs, present), refusals, keep_unlisted)
        plan = replace(plan, notes=(*plan.notes, *moves.notes))
        return plan if plan.refusals or plan.again else _with_emptying(plan, present, pairs, losses)
    plan = _moving(present, disks, moves, refusals)
    if plan.refusals or moves.openings:
        return plan
    then = _foreseen(layout, present, disks, pairs, moves, keep_unlisted) if not moves.vague else LayoutPlan()
    if then.refusals:
        return LayoutPlan(refusals=then.refusals, notes=plan.notes)
    later = (*then.steps, *(step for pair in pairs for step in _emptying(present, pair)))
    return replace(plan, later=later, losses=(*plan.losses, *losses))


def _moving(present: Present, disks: Sequence[FoundDisk], moves: Moves, refusals: Sequence[str]) -> LayoutPlan:
    notes = (*present.notes, *moves.notes)
    destroyed = Destroyed(moves.roots)
    refused = (*refusals, *moves.refusals, *teardown_refusals(present, destroyed))
    steps = (*teardown_steps(present, destroyed), *moves.steps)
    refused = refused or tuple(check_steps(present, disks, Given(moves.own, moves.own | moves.kept), steps))
    if refused:
        return LayoutPlan(refusals=tuple(dict.fromkeys(refused)), notes=notes)
    return LayoutPlan(steps, notes=notes, again=True, losses=find_losses(present, disks, moves.roots, moves.own, {}))


def _foreseen(
    layout: Layout, present: Present, disks: Sequence[FoundDisk], pairs: Sequence[Pair], moves: Moves, keep_unlisted: bool
) -> LayoutPlan:
    """Return the plan of the layout after the moves: what cannot be done then is refused before anything is moved."""
    then = after_moves(present, disks, moves)
    disks = tuple(replace(disk, device=then.tree.devices[disk.device.name]) for disk in disks)
    news = {pair.new.device.name for pair in pairs}
    disks = tuple(replace(disk, may_wipe=disk.may_wipe and disk.device.name not in news) for disk in disks)
    return plan_layout(layout, then, disks, (), keep_unlisted)


def _lost(pair: Pair) -> DiskLoss:
    """Return what is destroyed with the rest of an old disk: the same in each round of a run, for one digest holds for all."""
    return DiskLoss(pair.old.desired.id, "the disk is named in wipe", (Loss(pair.old.node, _LEFT, "", 0, "", ""),))


def _has_marks(present: Present, pair: Pair) -> bool:
    """Return whether a disk has a table or a signature, or something is built on it."""
    device = pair.old.device
    return device.table is not None or bool(device.signatures or present.tree.children(device.name))


def _emptying(present: Present, pair: Pair) -> tuple[Step, ...]:
    if not pair.erased or not _has_marks(present, pair):
        return ()
    parts = partitions_of(pair.old, present.tree)
    return (EmptyDisk(pair.old.node, pair.old.desired.id, tuple(entry_of(part).number for part in parts)),)


def _with_emptying(plan: LayoutPlan, present: Present, pairs: Sequence[Pair], losses: Sequence[DiskLoss]) -> LayoutPlan:
    """Return the plan with the steps that erase what is left on old disks that wipe names; what is in use stays, with a warning."""
    notes = [*plan.notes, *(remains(present, pair) for pair in pairs if not pair.erased and _has_marks(present, pair))]
    steps = list(plan.steps)
    for pair in pairs:
        emptying = _emptying(present, pair)
        destroyed = Destroyed((pair.old.device,))
        refused = tuple(dict.fromkeys(teardown_refusals(present, destroyed))) if emptying else ()
        notes += [f"replace: {pair.old.words} is not erased yet: {each}" for each in refused]
        steps += () if refused else (*(teardown_steps(present, destroyed) if emptying else ()), *emptying)
    erases = any(isinstance(step, EmptyDisk) for step in steps)
    return replace(plan, steps=tuple(steps), notes=tuple(notes), losses=(*plan.losses, *(losses if erases else ())))
