# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The seed's program on random problems; the judge is the same program with dense rows, written down once more."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.ordered.allocate import DoesNotPack, Infeasible, Ordered, allocate
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.ordered.program import NO_MAXIMUM, OrderedRequest, weight_groups
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, linprog


@st.composite
def requests(draw: st.DrawFn, *, single: float = 0.0, most: tuple[int, int] = (60, 40)) -> OrderedRequest:
    """Draw a problem of up to 60 disks and 40 spaces; many spaces share their bounds, so that weights tie them."""
    disks = draw(st.one_of(st.integers(1, min(6, most[0])), st.integers(1, most[0])), label="disks")
    spaces = draw(st.one_of(st.integers(1, min(8, most[1])), st.integers(1, most[1])), label="spaces")
    preferring = draw(st.sampled_from([0.0, 0.4]), label="preferring")
    forbidden = draw(st.sampled_from([0.0, 0.0, 0.3]), label="forbidden")
    tied = draw(st.sampled_from([0.0, 0.5, 1.0]), label="tied")
    fullness = draw(st.sampled_from([0.1, 0.5, 0.95]), label="fullness")
    largest = draw(st.sampled_from([200, 20_000_000]), label="largest disk")
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    capacity = random.integers(1, largest + 1, disks)
    low = random.integers(0, 1000, spaces)
    low = (low * (fullness * capacity.sum() / max(1, low.sum()))).astype(np.int64)
    high = np.where(random.random(spaces) < 0.3, low + random.integers(1, capacity.sum() + 1, spaces), NO_MAXIMUM)
    high = np.where((random.random(spaces) < 0.2) & (low > 0), low, high)
    twins = random.random(spaces) < tied
    best = np.zeros((spaces, disks), dtype=bool)
    best[random.random(spaces) < preferring] = random.random(disks) < 0.4
    return OrderedRequest(
        low=np.where(twins, low.min(), low),
        high=np.where(twins, high.max(), high),
        weight=random.choice([0.0, 0.1, 0.5, 1.0, 1.0, 1.0, 2.0], spaces),
        best=best,
        allowed=random.random((spaces, disks)) >= forbidden,
        none_order=random.random(spaces) < 0.1,
        single=random.random(spaces) < single,
        capacity=capacity,
        stripes=np.ones(spaces, dtype=np.int64),
    )


def objective(request: OrderedRequest) -> NDArray[np.float64]:
    """Return (S + 1, D): the coefficients of the seed, straight from its description."""
    spaces, disks = request.allowed.shape
    sequence = [1 / (((n + 1) // 2) * ((n + 2) // 2)) for n in range(2, (spaces + 1) * disks + 2)]
    worth = np.ones((spaces + 1, disks))
    for disk, space in itertools.product(range(disks), range(spaces)):
        if request.none_order[space]:
            continue
        suits = request.best[space, disk] if request.best[space].any() else not request.best[:, disk].any()
        worth[space, disk] = sequence[disk * (spaces + 1) + space] + 2 * suits
    return worth


def seed_program(request: OrderedRequest) -> OptimizeResult:
    """Solve the seed's program with dense rows, disk by disk, as the original lays its variables out."""
    spaces, disks = request.allowed.shape
    wide = spaces + 1
    of_space = np.tile(np.eye(wide), (1, disks))
    of_disk = np.kron(np.eye(disks), np.ones((1, wide)))
    bounded = np.flatnonzero(request.high < NO_MAXIMUM)
    above = np.vstack([of_disk, -of_space[:spaces], of_space[bounded]])
    limits = np.concatenate([request.capacity, -request.low, request.high[bounded]]).astype(float)
    equal = [
        of_space[group[0]] / request.weight[group[0]] - of_space[member] / request.weight[member]
        for group in weight_groups(request)
        for member in group[1:]
    ]
    usable = np.vstack([request.allowed, np.ones((1, disks), dtype=bool)])
    upper = np.where(usable.T.ravel(), np.inf, 0.0)
    equalities = {"A_eq": np.array(equal), "b_eq": np.zeros(len(equal))} if equal else {}
    bounds = np.column_stack([np.zeros(upper.size), upper])
    return linprog(-objective(request).T.ravel() * 1024, A_ub=above, b_ub=limits, bounds=bounds, **equalities)


def allocated(request: OrderedRequest) -> Ordered:
    try:
        return allocate(request)
    except (Infeasible, DoesNotPack):
        assume(False)
        raise


@given(requests())
@settings(max_examples=examples(60), deadline=None)
def test_no_constraint_is_broken(request: OrderedRequest) -> None:
    sizes = allocated(request).sizes
    total = sizes.sum(axis=1)
    assert sizes.dtype == np.int64
    assert (sizes >= 0).all()
    assert (sizes.sum(axis=0) <= request.capacity).all()
    assert (total >= request.low).all()
    assert (total <= request.high).all()
    assert not sizes[~request.allowed].any()


@given(requests(most=(20, 12)))
@settings(max_examples=examples(100), deadline=None)
def test_agrees_with_the_dense_program(request: OrderedRequest) -> None:
    judged = seed_program(request)
    try:
        allocation = allocate(request)
    except Infeasible:
        assert judged.status == 2
        return
    assert (judged.status == 2) == bool(allocation.loosened)
    if judged.status == 2:
        return
    wanted = judged.x.reshape(len(request.capacity), -1).T
    sizes = allocation.sizes
    worth = objective(request)
    idle = worth[-1, 0]
    best = (worth * wanted).sum() + idle * (request.capacity - wanted.sum(axis=0)).sum()
    ours = (worth[:-1] * sizes).sum() + idle * (request.capacity - sizes.sum(axis=0)).sum()
    whole = np.abs(wanted - np.rint(wanted)).max() < 1e-4
    # Rounding moves at most one MiB of each space and disk, and a MiB is worth at most 2.5.
    tolerance = 1e-6 * max(1.0, best) if whole else 2.5 * (len(wanted) + len(request.capacity))
    assert ours >= best - tolerance
    if not request.none_order.any():
        assert sizes.sum() >= wanted[:-1].sum() - 1e-3


@given(requests())
@settings(max_examples=examples(60), deadline=None)
def test_weights_hold_to_the_mib(request: OrderedRequest) -> None:
    allocation = allocated(request)
    total = allocation.sizes.sum(axis=1)
    for group in weight_groups(request):
        if group in allocation.loosened:
            continue
        for one, other in itertools.combinations(group, 2):
            uneven = abs(total[one] * request.weight[other] - total[other] * request.weight[one])
            assert uneven < request.weight[one] + request.weight[other] + 1e-3


@given(requests())
@settings(max_examples=examples(60), deadline=None)
def test_order_is_right_at_any_size(request: OrderedRequest) -> None:
    """Without preferences and ties the optimum is the north-west corner: no later space before an earlier one."""
    request = replace(
        request,
        best=np.zeros_like(request.best),
        weight=np.zeros_like(request.weight),
        allowed=np.ones_like(request.allowed),
        none_order=np.zeros_like(request.none_order),
    )
    sizes = allocated(request).sizes
    last_used = -1
    for disk in range(sizes.shape[1]):
        used = np.flatnonzero(sizes[:, disk])
        if len(used):
            assert used[0] >= last_used
            last_used = int(used[-1])


@given(requests(single=0.4, most=(6, 8)))
@settings(max_examples=examples(60), deadline=None)
def test_partitions_keep_to_one_disk(request: OrderedRequest) -> None:
    sizes = allocated(request).sizes
    total = sizes.sum(axis=1)
    assert ((sizes > 0).sum(axis=1)[request.single] <= 1).all()
    assert (total >= request.low).all()
    assert (total <= request.high).all()
    assert (sizes.sum(axis=0) <= request.capacity).all()


@given(requests(single=1.0, most=(3, 5)))
@settings(max_examples=examples(60), deadline=None)
def test_partitions_fit_exactly_when_some_assignment_does(request: OrderedRequest) -> None:
    spaces, disks = request.allowed.shape
    places = [[None] if not request.low[space] else np.flatnonzero(request.allowed[space]).tolist() for space in range(spaces)]
    fits = any(
        all(sum(request.low[space] for space in range(spaces) if chosen[space] == disk) <= request.capacity[disk] for disk in range(disks))
        for chosen in itertools.product(*places)
    )
    try:
        allocate(request)
    except (Infeasible, DoesNotPack):
        assert not fits
    else:
        assert fits
