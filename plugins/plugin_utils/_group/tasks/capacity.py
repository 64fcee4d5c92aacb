# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What group_capacity answers: a size in, counts and what to add as plain data out; the counting is in capacity.py and tiered.py."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import refuse_less
from ....module_utils._data.units import format_mib
from ..._common.table import table
from ..capacity.additions import nodes_to_add
from ..capacity.copies import CopyOptions
from ..capacity.count import Count, allocable, best_count, count_in, is_bounded, pool_limit
from ..capacity.tiered import count_tiers
from ..cluster.check import pool_names
from ..cluster.model import AllocPolicy, Cluster, Disk, DiskTemplate, Instance, Spec
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode
from ..metrics.verdicts import EXACT, Rules
from ..place.lost_allocations import LeastSize, allocation_vectors, least_sizes
from ..place.placement import Strategy, is_partitioned
from ..redistribute.redistribution import Run
from ..sources.inline import read_new_instance
from ..sources.loaded import Loaded
from .left_out import with_notes
from .redistribute import chosen_groups

Plain = dict[str, t.Any]
HSPACE = Rules(least_left=1)
"""hspace's limits: a node is never filled to the last MiB; a limit that is broken already excuses no further excess."""


@dataclass(frozen=True)
class _Question:
    """What is counted. `largest` are the sizes that tiers begin with, empty when none are asked for."""

    instance: Instance
    largest: tuple[Instance, ...]
    options: CopyOptions
    wanted: int | None


@dataclass(frozen=True)
class _Answer:
    """The counts of one group; `add` is None when nothing was wanted, `vector` when the group is not given away in parts."""

    group: int
    count: Count
    tiers: Count | None
    add: Plain | None
    vector: list[tuple[LeastSize, int]] | None


def run_capacity(loaded: Loaded, arguments: Mapping[str, t.Any], run: Run = map) -> Plain:
    """Return what the action group_capacity documents. Raises InputError with all mistakes."""
    cluster = loaded.cluster
    groups = chosen_groups(ClusterState.from_cluster(cluster), arguments.get("groups"))
    question = _question(cluster, arguments)
    answers = list(run(functools.partial(_count_group, cluster, question), groups))
    open_groups = [group for group in groups if group in allocable(cluster)]
    several = dataclasses.replace(question, options=dataclasses.replace(question.options, whole_cluster=len(groups) > 1))
    whole, tiers = _whole(cluster, several, open_groups, [answer for answer in answers if answer.group in open_groups])
    report = {
        "spec": _size(question.instance),
        "count": whole,
        "groups": [_to_plain(cluster, answer) for answer in answers],
    }
    report |= {} if tiers is None else {"tiers": _tiers(tiers), "tiered_count": len(tiers)}
    return with_notes(cluster, report | {"summary": _summary(report, question.wanted)})


def _count_group(cluster: Cluster, question: _Question, group: int) -> _Answer:
    counting = count_in if question.options.score == ScoreMode.HTOOLS else best_count
    count = counting(cluster, question.instance, (group,), question.options)
    tiers = count_tiers(cluster, question.largest, (group,), question.options) if question.largest else None
    vector = _vector(cluster, group, question.options.strategy)
    if question.wanted is None:
        return _Answer(group, count, tiers, None, vector)
    counted = count if counting is best_count else best_count(cluster, question.instance, (group,), question.options, question.wanted)
    return _Answer(group, count, tiers, _addition(cluster, question, question.wanted, group, counted), vector)


def _addition(cluster: Cluster, question: _Question, wanted: int, group: int, counted: Count) -> Plain:
    """Return what to add to a group as plain data."""
    if not any(node.group == cluster.groups[group].name for node in cluster.nodes):
        return {"nodes": None, "least": None, "like": None, "each": None, "count": 0}
    added = nodes_to_add(cluster, question.instance, group, wanted, question.options, counted)
    like = cluster.nodes[added.like]
    return {
        "nodes": added.nodes,
        "least": added.least,
        "like": like.name,
        "each": {"memory": int(like.total_memory), "disk": int(like.total_disk), "cpus": like.total_cpus},
        "count": added.count,
    }


def _vector(cluster: Cluster, group: int, strategy: Strategy) -> list[tuple[LeastSize, int]] | None:
    """Return for a group that is given away in parts how many of the smallest of each policy interval still fit."""
    state = ClusterState.from_cluster(cluster)
    if not is_partitioned(state, group, strategy):
        return None
    nodes = state.group_nodes(group)
    sizes = least_sizes(cluster.groups[group].policy)
    counts = allocation_vectors(state, nodes[~state.offline[nodes]], sizes).sum(axis=0)
    return list(zip(sizes, counts.tolist()))


def _whole(cluster: Cluster, question: _Question, groups: Sequence[int], answers: Sequence[_Answer]) -> tuple[int, list[Instance] | None]:
    """Return how many copies fit into all groups that take instances, and the sizes of the tiers, or None without tiers."""
    if question.options.score == ScoreMode.HTOOLS and question.options.whole_cluster and groups:
        count = len(count_in(cluster, question.instance, groups, question.options).copies)
        tiers = count_tiers(cluster, question.largest, groups, question.options) if question.largest else None
        return count, None if tiers is None else [copy.instance for copy in tiers.copies]
    limit = pool_limit(cluster, question.instance)
    total = sum(len(answer.count.copies) for answer in answers)
    found = [copy.instance for answer in answers if answer.tiers is not None for copy in answer.tiers.copies]
    sizes = sorted(found, key=lambda size: (size.memory, size.disk, size.vcpus), reverse=True)
    # Groups are independent of each other but for a storage pool that they share.
    used = itertools.accumulate(size.disk for size in sizes)
    kept = [size for size, taken in zip(sizes, used) if taken <= limit * max(question.instance.disk, 1)]
    return int(min(total, limit)), kept if question.largest else None


def _question(cluster: Cluster, arguments: Mapping[str, t.Any]) -> _Question:
    mistakes = Mistakes()
    given = arguments.get("spec") or {}
    instance = _instance(cluster, given, cluster.policy.standard, mistakes)
    wanted = arguments.get("want")
    refuse_less(arguments, {"want": 1, "workers": 0}, mistakes)
    if not mistakes and not is_bounded(cluster, instance):
        mistakes.add("spec", "needs nothing that a node could run out of, so any number fits; give memory, vcpus or disk")
    largest: tuple[Instance, ...] = ()
    if arguments.get("tiered", False) and not mistakes:
        specs = [interval.maximum for interval in cluster.policy.intervals]
        largest = tuple(_instance(cluster, given, spec, mistakes) for spec in specs)
    mistakes.check()
    score = ScoreMode(arguments.get("score", ScoreMode.CAPACITY))
    options = CopyOptions(
        rules=HSPACE if score == ScoreMode.HTOOLS else EXACT,
        score=score,
        strategy=Strategy(arguments.get("strategy", Strategy.AUTO)),
    )
    return _Question(instance, tuple(dict.fromkeys(largest)), options, wanted)


def _instance(cluster: Cluster, given: Mapping[str, t.Any], spec: Spec, mistakes: Mistakes) -> Instance:
    """Return the instance to count: what is given, and the rest from a policy's spec."""
    standard = cluster.policy.standard
    default = {
        "name": "new",
        "memory": spec.memory,
        "vcpus": spec.cpus,
        "spindle_use": standard.spindle_use,
        "disk_template": str(cluster.policy.disk_templates[0]),
    }
    disks = {} if "disk" in given or "disks" in given else {"disk": spec.disk_size}
    instance = read_new_instance({**default, **disks, **given}, "spec", pool_names(cluster.nodes), mistakes)
    return instance if "disks" in given else dataclasses.replace(instance, disks=(Disk(instance.disk, spec.spindle_use),))


def _size(instance: Instance) -> Plain:
    template = str(instance.disk_template)
    return {"memory": instance.memory, "disk": instance.disk, "vcpus": instance.vcpus, "disk_template": template}


def _to_plain(cluster: Cluster, answer: _Answer) -> Plain:
    report = {
        "group": cluster.groups[answer.group].name,
        "alloc_policy": str(cluster.groups[answer.group].alloc_policy),
        "count": len(answer.count.copies),
        "limits": _limits(answer.count),
        "nodes": _nodes(cluster, answer),
    }
    if answer.vector is not None:
        report["allocations"] = [dataclasses.asdict(size) | {"count": count} for size, count in answer.vector]
    tiers = {} if answer.tiers is None else {"tiers": _tiers([copy.instance for copy in answer.tiers.copies])}
    return report | tiers | ({} if answer.add is None else {"add": answer.add})


def _limits(count: Count) -> dict[str, int]:
    """Return what keeps the next copy out, the most frequent first."""
    if count.stranding:
        return {"shared_redundancy": 1}
    return {limit.name.lower(): number for limit, number in count.failures.most_common()}


def _nodes(cluster: Cluster, answer: _Answer) -> dict[str, int]:
    """Return the number of new primaries by node."""
    names = [cluster.nodes[copy.place[0]].name for copy in answer.count.copies]
    return {name: names.count(name) for name in dict.fromkeys(sorted(names))}


def _tiers(sizes: Sequence[Instance]) -> list[Plain]:
    """Return how many copies of each size there are, in the order of the sizes."""
    return [{"spec": _size(size), "count": count} for size, count in collections.Counter(sizes).items()]


def _summary(report: Plain, wanted: int | None) -> str:
    """Return a sentence on the whole, a table of the groups, and a line for each size that was counted in tiers."""
    head = ("group", "more", "what keeps the next one out", *([f"nodes to add for {wanted}"] if wanted is not None else []))
    where = "pair" if report["spec"]["disk_template"] == DiskTemplate.DRBD else "node"
    rows = [(_group_words(one), str(one["count"]), _limit_words(one["limits"], where), *_add_words(one)) for one in report["groups"]]
    apart = sum(one["count"] for one in report["groups"] if one["alloc_policy"] != AllocPolicy.UNALLOCABLE)
    together = (
        "" if report["count"] == apart else f" Counted together, that is; each group by itself takes what the table says, {apart} in all."
    )
    parts = [f"{report['count']} more of {_size_words(report['spec'])} fit.{together}", table(head, rows, right=("more",))]
    if "tiers" in report:
        sizes = [f"{tier['count']} of {_size_words(tier['spec'])}" for tier in report["tiers"]]
        parts.append("\n".join([f"In tiers {report['tiered_count']} fit, the largest first:", *sizes]))
    return "\n\n".join(parts)


def _group_words(one: Plain) -> str:
    return f"{one['group']} (takes none on its own)" if one["alloc_policy"] == AllocPolicy.UNALLOCABLE else str(one["group"])


def _size_words(size: Plain) -> str:
    cpus = f"{size['vcpus']} CPU{'' if size['vcpus'] == 1 else 's'}"
    return f"{format_mib(size['memory'])} memory, {format_mib(size['disk'])} disk and {cpus} ({size['disk_template']})"


def _limit_words(limits: Mapping[str, int], where: str) -> str:
    return ", ".join(f"{name.replace('_', ' ')} at {number} {where}{'' if number == 1 else 's'}" for name, number in limits.items())


def _add_words(one: Plain) -> tuple[str, ...]:
    if "add" not in one:
        return ()
    nodes, least, like = one["add"]["nodes"], one["add"]["least"], one["add"]["like"]
    if nodes is None:
        return ("no number is enough",)
    return (f"{nodes} like {like}{f', at least {least}' if least < nodes else ''}" if nodes else "none",)
