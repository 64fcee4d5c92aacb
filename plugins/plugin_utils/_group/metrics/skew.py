# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How unequally the instances of a rule of the type spread are divided among its domains, and how a move changes that.

    skews(state, spread)                             # [N]: the skews of all scopes, summed, the same at all nodes of domains
    too_many(state, spread)                          # instances beyond what their domains should have, summed
    arrival = Arrivals.of(state, spread, home)       # one instance that leaves `home`, or comes from NOWHERE
    arrival.too_many[domain], arrival.skew[domain]   # the same once it is in a domain

A domain counts while one of its nodes is up. The skew of a scope is the difference between its fullest and its emptiest domain that
count, less what the rule allows. Limits compare skews; the score counts what is too many, which falls with every step to a better
division.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Floats, Integers
from ..cluster.rules import NO_DOMAIN, SpreadSlot
from ..cluster.state import ClusterState


def skews(state: ClusterState, spread: SpreadSlot) -> Floats:
    """Return [N]: the skews of all scopes beyond what the rule allows, and at nodes outside of all domains the instances there."""
    broken = np.maximum(scope_skews(spread, domain_counts(state, spread), counted_domains(state, spread)), 0.0).sum()
    found: Floats = np.where(spread.domain == NO_DOMAIN, state.tag_counts[:, spread.slot], 0.0) + broken
    return found


def too_many(state: ClusterState, spread: SpreadSlot) -> float:
    """Return how many instances are beyond what their domains should have; those outside of all domains are counted by their slot."""
    counts, counted = domain_counts(state, spread), counted_domains(state, spread)
    return float(_excess(spread, counts, counted).sum())


@dataclass(frozen=True)
class Arrivals:
    """An instance that comes to each of the domains, [D], from its home, or from nowhere."""

    too_many: Floats
    """Instances too many in all scopes."""
    skew: Floats
    """The skew of the domain's scope, less what the rule allows."""
    now: float
    """Instances too many as it is, with the instance at home."""
    skew_now: Floats
    """[D]: the skew of the domain's scope as it is."""
    own: Floats
    """[D]: how many more than the emptiest domain of its scope the domain itself has, less what the rule allows."""
    elsewhere_holds: bool
    """Whether the scope that is left gets no worse if the instance goes to another scope."""
    home: int
    """The scope that is left, or NOWHERE."""

    @classmethod
    def of(cls, state: ClusterState, spread: SpreadSlot, home: int) -> Arrivals:
        """Return what becomes of a spread; `home` is the node that is left, or NOWHERE."""
        before, counted = domain_counts(state, spread), counted_domains(state, spread)
        counts = before.copy()
        left = NO_DOMAIN if home == NOWHERE else int(spread.domain[home])
        if left != NO_DOMAIN:
            counts[left] -= 1
        scopes = scope_skews(spread, before, counted)
        size = len(counts)
        after, skew, own = np.zeros(size), np.zeros(size), np.zeros(size)
        rest = _excess(spread, counts, counted)
        for scope in np.unique(spread.scope).tolist():
            of_scope = np.flatnonzero(spread.scope == scope)
            others = float(rest.sum() - rest[of_scope].sum())
            after[of_scope], skew[of_scope], own[of_scope] = _in_scope(counts[of_scope], counted[of_scope], spread.max_skew)
            after[of_scope] += others
        at_left = NOWHERE if left == NO_DOMAIN else int(spread.scope[left])
        gone = scope_skews(spread, counts, counted)
        holds = at_left == NOWHERE or bool(gone[at_left] <= max(0.0, scopes[at_left]))
        now = float(_excess(spread, before, counted).sum())
        return cls(after, skew, now, scopes[spread.scope] if size else np.zeros(0), own, holds, at_left)

    def fits(self, spread: SpreadSlot, nodes: Integers) -> Booleans:
        """Return [len(nodes)]: whether the skew gets no worse by a move to each node; outside of all domains the slot's limit counts."""
        domain = spread.domain[nodes]
        inside = domain != NO_DOMAIN
        found = np.ones(len(nodes), dtype=bool)
        at = domain[inside]
        if self.home == NOWHERE:
            found[inside] = self.own[at] <= 0
            return found
        here = self.skew[at] <= np.maximum(0.0, self.skew_now[at])
        found[inside] = here & ((spread.scope[at] == self.home) | self.elsewhere_holds)
        return found

    def change(self, spread: SpreadSlot, nodes: Integers) -> Floats:
        """Return [len(nodes)]: how the number of instances that are too many changes when the instance goes to each node."""
        domain = spread.domain[nodes]
        inside = domain != NO_DOMAIN
        found = np.zeros(len(nodes))
        found[inside] = self.too_many[domain[inside]] - self.now
        return found


def evens(state: ClusterState, instance: int, nodes: Integers) -> Booleans:
    """Return [N]: whether strict spreads get no worse when an instance goes to each of `nodes`.

    One that is nowhere must come to a domain that has not too many then.
    """
    fits = np.ones(len(nodes), dtype=bool)
    for spread in state.facts.slots.spreads:
        if spread.strict and spread.slot in state.facts.instances.exclusion[instance]:
            fits &= Arrivals.of(state, spread, int(state.primary[instance])).fits(spread, nodes)
    return fits


def domain_counts(state: ClusterState, spread: SpreadSlot) -> Floats:
    """Return [D]: the members of a spread in each domain."""
    inside = spread.domain != NO_DOMAIN
    return np.bincount(spread.domain[inside], weights=state.tag_counts[inside, spread.slot], minlength=len(spread.scope)).astype(float)


def counted_domains(state: ClusterState, spread: SpreadSlot) -> Booleans:
    """Return [D]: which domains have a node that is up."""
    inside = (spread.domain != NO_DOMAIN) & ~state.offline
    counted: Booleans = np.bincount(spread.domain[inside], minlength=len(spread.scope)) > 0
    return counted


def scope_skews(spread: SpreadSlot, counts: Floats, counted: Booleans) -> Floats:
    """Return [scopes]: the skew of each, less what is allowed."""
    found = np.full(int(spread.scope.max(initial=-1)) + 1, -float(spread.max_skew))
    for scope in np.unique(spread.scope[counted]).tolist():
        here = counts[counted & (spread.scope == scope)]
        found[scope] = here.max() - here.min() - spread.max_skew
    return found


def _excess(spread: SpreadSlot, counts: Floats, counted: Booleans) -> Floats:
    """Return [D]: how many instances each domain has beyond what is allowed."""
    least = np.full(int(spread.scope.max(initial=-1)) + 1, np.inf)
    np.minimum.at(least, spread.scope[counted], counts[counted])
    most = least[spread.scope] + spread.max_skew
    found: Floats = np.where(counted, np.maximum(counts - most, 0.0), 0.0)
    return found


def _in_scope(counts: Floats, counted: Booleans, allowed: int) -> tuple[Floats, Floats, Floats]:
    """Return of one scope what is too many, its skew and the domain's own skew with one more in each of its domains, [D] each."""
    among = counts[counted]
    if not len(among):
        return np.zeros(len(counts)), np.full(len(counts), -float(allowed)), np.full(len(counts), -float(allowed))
    least, greatest = among.min(), among.max()
    is_only_least = counted & (counts == least) & ((among == least).sum() == 1)
    least_after = np.where(is_only_least, least + 1, least)
    skew = np.where(counted, np.maximum(greatest, counts + 1), greatest) - least_after - allowed
    own = np.where(counted, counts + 1 - least_after - allowed, -float(allowed))
    plain = float(np.maximum(among - least - allowed, 0.0).sum())
    raised = float(np.maximum(among - (least + 1) - allowed, 0.0).sum())
    one_more = np.where(counted, np.clip(counts + 1 - least - allowed, 0.0, 1.0), 0.0)
    return np.where(is_only_least, raised, plain + one_more), skew, own
