# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fair shares keep their promises on random problems. Linear programs solved by SciPy are the independent judge."""

from __future__ import annotations

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.tests.support.disk.shares import NO_MAXIMUM, UNPREFERRED, Request, off_preferred, share
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import csr_array, eye_array, kron

Cells = NDArray[np.bool_]


@st.composite
def requests(draw: st.DrawFn, *, preferences: bool = True, tiers: int = 1, most: tuple[int, int] = (60, 40)) -> Request:
    """Draw a problem of up to 60 disks and 40 spaces; about four in five are feasible."""
    disks = draw(st.one_of(st.integers(1, min(6, most[0])), st.integers(1, most[0])), label="disks")
    spaces = draw(st.one_of(st.integers(1, min(8, most[1])), st.integers(1, most[1])), label="spaces")
    forbidden = draw(st.sampled_from([0.0, 0.0, 0.3, 0.6]), label="forbidden")
    fullness = draw(st.sampled_from([0.1, 0.5, 0.9, 1.0]), label="fullness")
    largest = draw(st.sampled_from([3, 200, 20_000_000]), label="largest disk")
    kinds = draw(st.integers(1, 4), label="kinds of disks")
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    capacity = random.integers(1, largest + 1, disks)
    low = random.integers(0, 1000, spaces) * (random.random(spaces) < 0.6)
    low = (low * (fullness * capacity.sum() / max(1, low.sum()))).astype(np.int64)
    high = np.where(random.random(spaces) < 0.4, low + random.integers(0, capacity.sum() + 1, spaces), NO_MAXIMUM)
    high = np.where(random.random(spaces) < 0.2, low, high)
    kind = random.integers(0, kinds, disks)
    tier = np.zeros((spaces, disks), dtype=np.int64)
    for space in np.flatnonzero(random.random(spaces) < 0.5 * preferences):
        ranking = random.permutation(kinds)[:tiers]
        tier[space] = UNPREFERRED
        for rank, liked in enumerate(ranking):
            tier[space, kind == liked] = rank
    weight = random.choice([0.0, 0.1, 0.5, 1.0, 1.0, 1.0, 2.0, 7.0], spaces)
    allowed = random.random((spaces, kinds))[:, kind] >= forbidden
    scattered = random.random((spaces, disks)) >= forbidden
    mixed = draw(st.booleans(), label="any disk may differ from any other")
    return Request(low, high, weight, scattered if mixed else allowed, tier, capacity)


def solve(request: Request, worth: NDArray[np.float64], low: NDArray, high: NDArray, cells: Cells | None = None) -> OptimizeResult:
    """Maximise worth (S, D) over sizes within bounds of the totals, on allowed cells only."""
    spaces, disks = request.allowed.shape
    by_space = csr_array(kron(eye_array(spaces), np.ones((1, disks))))
    by_disk = csr_array(kron(np.ones((1, spaces)), eye_array(disks)))
    rows = csr_array(np.vstack([by_disk.toarray(), by_space.toarray(), -by_space.toarray()]))
    ceiling = np.minimum(high, request.capacity.sum() + 1).astype(float)
    limits = np.concatenate([request.capacity.astype(float), ceiling, -low.astype(float)])
    usable = request.allowed if cells is None else cells
    upper = np.where(usable.ravel(), np.inf, 0.0)
    return linprog(-worth.ravel(), A_ub=rows, b_ub=limits, bounds=np.column_stack([np.zeros(upper.size), upper]), method="highs-ds")


def off_cells(request: Request) -> Cells:
    """Return (S, D) the disks a space with a preference would rather not use."""
    liked = (request.tier < UNPREFERRED) & request.allowed
    return (request.tier >= UNPREFERRED) & request.allowed & liked.any(axis=1, keepdims=True)


def shared(request: Request) -> NDArray[np.int64]:
    try:
        return share(request)
    except NoSolution:
        assume(False)
        raise


@given(requests())
@settings(max_examples=examples(60), deadline=None)
def test_feasible_exactly_when_the_program_is(request: Request) -> None:
    judged = solve(request, np.zeros(request.allowed.shape), request.low, request.high)
    if judged.status == 0:
        share(request)
        return
    with pytest.raises(NoSolution) as caught:
        share(request)
    # What is short is what a program that may lower minimums lowers in all.
    least = solve(request, np.ones(request.allowed.shape), np.zeros_like(request.low), request.low)
    # Of a space without any disk the reason is said, and nothing is added up.
    assert caught.value.conflict["short"] in (
        request.low.sum() - round(-least.fun),
        *([None] if not request.allowed.any(axis=1).all() else []),
    )


@given(requests(tiers=2))
@settings(max_examples=examples(80), deadline=None)
def test_no_constraint_is_broken(request: Request) -> None:
    sizes = shared(request)
    total = sizes.sum(axis=1)
    assert sizes.dtype == np.int64
    assert (sizes >= 0).all()
    assert (sizes.sum(axis=0) <= request.capacity).all()
    assert (total >= request.low).all()
    assert (total <= request.high).all()
    assert not sizes[~request.allowed].any()
    assert (total == request.low)[request.weight == 0].all()


@given(requests(preferences=False))
@settings(max_examples=examples(60), deadline=None)
def test_all_that_can_be_used_is_used(request: Request) -> None:
    sizes = shared(request)
    high = np.where(request.weight == 0, request.low, request.high)
    best = solve(request, np.ones(request.allowed.shape), request.low, high)
    assert sizes.sum() == round(-best.fun)


@given(requests(tiers=1))
@settings(max_examples=examples(60), deadline=None)
def test_as_little_as_possible_of_the_minimums_is_off_the_preferred_disks(request: Request) -> None:
    sizes = shared(request)
    off = off_preferred(request, sizes)
    fewest = solve(request, -off_cells(request).astype(float), request.low, request.low)
    assert off.sum() == round(fewest.fun)
    assert (off <= request.low).all()


@given(requests(tiers=1))
@settings(max_examples=examples(60), deadline=None)
def test_preferring_spaces_grow_first_then_the_others_leave_nothing(request: Request) -> None:
    """Totals of both turns equal those of a program in which what lies off the preferred disks is given."""
    sizes = shared(request)
    total = sizes.sum(axis=1)
    off = off_cells(request)
    selective = off.any(axis=1)
    bound = _with_off_as_own_spaces(request, (sizes * off).sum(axis=1), off)
    own = np.concatenate([selective, np.zeros(len(selective), dtype=bool)])
    grows = np.concatenate([request.weight > 0, np.zeros(len(selective), dtype=bool)])
    fixed = np.where(own & grows, bound.high, bound.low)
    first = solve(bound, np.where(own[:, None], 1.0, 0.0) * np.ones(bound.allowed.shape), bound.low, fixed)
    on = total - (sizes * off).sum(axis=1)
    # Each of them may have been rounded down, and the turn of the others then takes the rest.
    assert round(-first.fun) - selective.sum() <= on[selective].sum() <= round(-first.fun)
    reached = np.where(own, np.concatenate([on, bound.low[len(on) :]]), bound.low)
    second = solve(bound, np.ones(bound.allowed.shape), reached, np.where(own | ~grows, reached, bound.high))
    assert sizes.sum() == round(-second.fun)


def _with_off_as_own_spaces(request: Request, amount: NDArray[np.int64], off: Cells) -> Request:
    """Return the request with the part of each space that lies off its preferred disks as a space of its own."""
    selective = off.any(axis=1)
    on_low = np.where(selective, request.low - amount, request.low)
    on_high = np.where(request.high == NO_MAXIMUM, NO_MAXIMUM, request.high - amount)
    return replace(
        request,
        low=np.concatenate([on_low, amount]),
        high=np.concatenate([on_high, amount]),
        weight=np.concatenate([request.weight, np.zeros(len(amount))]),
        allowed=np.concatenate([request.allowed & ~off, off]),
        tier=np.concatenate([request.tier, request.tier]),
    )


@given(requests(tiers=1, most=(20, 12)))
@settings(max_examples=examples(60), deadline=None)
def test_no_space_can_grow_except_by_shrinking_a_poorer_one(request: Request) -> None:
    sizes = shared(request)
    total = sizes.sum(axis=1)
    off = off_cells(request)
    liked = request.allowed & ~off
    selective = off.any(axis=1)
    free = request.capacity - sizes.sum(axis=0)
    # A MiB of each that was rounded may have gone to another, and a program is exact to a millionth.
    crumbs = int(selective.sum() + request.capacity.sum() // 10**6)
    growing = np.flatnonzero((total < request.high) & (request.weight > 0))
    for space in growing.tolist():
        disks, giving = _reachable(space, sizes, liked, request.allowed)
        assert free[disks].sum() <= crumbs, f"space {space} could simply grow"
        for other in giving:
            if other == space or total[other] <= request.low[other] + crumbs:
                continue
            assert not (selective[space] and not selective[other]), f"{space} should have grown before {other}"
            if selective[space] == selective[other]:
                richer = (total[other] - 1 - crumbs) / request.weight[other]
                assert richer < (total[space] + 1 + crumbs) / request.weight[space], f"{space} could take a MiB of {other}"


def _reachable(space: int, sizes: NDArray[np.int64], liked: Cells, allowed: Cells) -> tuple[list[int], set[int]]:
    """Return the disks on which room for the space can be made by moving others, and who could give a MiB up there."""
    disks = set(np.flatnonzero(liked[space]).tolist())
    giving: set[int] = set()
    waiting = list(disks)
    while waiting:
        disk = waiting.pop()
        for other in np.flatnonzero(sizes[:, disk]).tolist():
            giving.add(other)
            # What lies on a preferred disk stays on preferred ones; what had to leave them may lie anywhere.
            open_to = liked[other] if liked[other, disk] else allowed[other]
            fresh = set(np.flatnonzero(open_to).tolist()) - disks
            disks |= fresh
            waiting.extend(fresh)
    return sorted(disks), giving


@given(requests(preferences=False, most=(1, 12)))
@settings(max_examples=examples(60), deadline=None)
def test_one_disk_is_shared_at_one_level(request: Request) -> None:
    request = replace(request, allowed=np.ones_like(request.allowed))
    total = shared(request).sum(axis=1)
    free = (total > request.low) & (total < request.high)
    for one, other in itertools.combinations(np.flatnonzero(free).tolist(), 2):
        assert abs(total[one] * request.weight[other] - total[other] * request.weight[one]) <= request.weight[one] + request.weight[other]


@given(requests(tiers=2), st.randoms(use_true_random=False))
@settings(max_examples=examples(40), deadline=None)
def test_sizes_do_not_depend_on_the_order_of_disks(request: Request, random: object) -> None:
    order = list(range(len(request.capacity)))
    random.shuffle(order)
    moved = replace(request, allowed=request.allowed[:, order], tier=request.tier[:, order], capacity=request.capacity[order])
    sizes = shared(request)
    # Disks of several tiers are filled by linear programs, whose ties fall as they come.
    assert np.abs(share(moved).sum(axis=1) - sizes.sum(axis=1)).max() <= 1
    assert (share(request) == sizes).all()


@given(requests(preferences=False, most=(20, 15)), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_sizes_are_continuous(request: Request, data: st.DataObject) -> None:
    """One MiB more of a disk or of a minimum moves no size by more than that MiB and its rounding."""
    before = shared(request).sum(axis=1)
    disk = data.draw(st.integers(0, len(request.capacity) - 1))
    capacity = request.capacity.copy()
    capacity[disk] += 1
    assert np.abs(share(replace(request, capacity=capacity)).sum(axis=1) - before).max() <= 2
    space = data.draw(st.integers(0, len(request.low) - 1))
    low = request.low.copy()
    low[space] += 1
    changed = replace(request, low=low, high=np.maximum(request.high, low))
    try:
        after = share(changed).sum(axis=1)
    except NoSolution:
        return
    assert np.abs(after - before).max() <= 2


@given(requests(tiers=2))
@settings(max_examples=examples(60), deadline=None)
def test_pieces_form_a_forest(request: Request) -> None:
    """No MiB could be shifted around a ring of pieces to save one: what a basic solution of the program guarantees."""
    sizes = shared(request)
    graph = nx.Graph([(("space", space), ("disk", disk)) for space, disk in np.argwhere(sizes).tolist()])
    assert graph.number_of_nodes() == 0 or nx.is_forest(graph)
