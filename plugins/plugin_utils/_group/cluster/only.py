# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of a cluster whose instances may move: all others keep their places, as under a rule of the type `ignore`."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterator, Mapping, Sequence

from ....module_utils._data.errors import Mistake, Mistakes, suggest
from .model import Cluster, Instance, Rule, RuleKind

REASON = "only"
"""The word by which the instances that may not move count as left out."""


def restrict_to(cluster: Cluster, only: Mapping[str, Sequence[str] | None] | None) -> Cluster:
    """Return the cluster with a rule that keeps every instance in its place that `only` does not select.

    An instance is selected by its name (`instances`), by one of its tags (`tags`), or by a pool that one of its disks lies in (`pools`).
    Raises InputError for words that select nothing.
    """
    mistakes = Mistakes()
    selected = select(cluster, only, "only", mistakes)
    mistakes.check()
    if not any(values is not None for values in (only or {}).values()):
        return cluster
    kept = tuple(instance.name for instance in cluster.instances if instance.name not in selected)
    rule = Rule(REASON, RuleKind.IGNORE, instances=kept, reason=REASON)
    return dataclasses.replace(cluster, rules=(*cluster.rules, rule)) if kept else cluster


Selected = frozenset[str]


def select(cluster: Cluster, wanted: Mapping[str, Sequence[str] | None] | None, option: str, mistakes: Mistakes) -> Selected:
    """Return the names of the instances that an option selects; words that select nothing are mistakes."""
    given = {key: values for key, values in (wanted or {}).items() if values is not None}
    if not given:
        return frozenset()
    words = {instance.name: _words(instance) for instance in cluster.instances}
    for key, values in given.items():
        known = {word for found in words.values() for word in found[key]}
        mistakes.extend(_unknown(f"{option}.{key}", key, values, known))
    return frozenset(name for name, found in words.items() if any(found[key] & set(values) for key, values in given.items()))


def _words(instance: Instance) -> dict[str, frozenset[str]]:
    pools = {place.pool for place in (instance.storage, *(disk.storage for disk in instance.disks)) if place is not None}
    return {"instances": frozenset([instance.name]), "tags": frozenset(instance.tags), "pools": frozenset(pools)}


def _unknown(place: str, key: str, values: Sequence[t.Any], known: set[str]) -> Iterator[Mistake]:
    says = {"instances": "is no instance of the cluster", "tags": "is a tag of no instance", "pools": "holds no disk of an instance"}
    for number, value in enumerate(values):
        if value not in known:
            yield Mistake(f"{place}[{number}]", f"{value} {says[key]}{suggest(str(value), known)}")
