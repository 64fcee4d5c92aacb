# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of a cluster as plain data: scores, nodes, groups, pools and problems; what hinfo and hcheck print, and more."""

from __future__ import annotations

import collections
import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from ....module_utils._data.units import format_mib
from ..._common.highs import Effort
from ..._common.libraries import np
from ..._common.table import table
from ..cluster.arrays import ANYWHERE, NOWHERE, Floats, Integers, Quantity, storage_of
from ..cluster.failures import failures_of, location_domains
from ..cluster.model import Cluster, PoolKind, PoolName, Tolerance
from ..cluster.state import ClusterState
from ..metrics.health import Problem, ProblemKind, find_problems, unmet_wishes
from ..metrics.redundancy import NodeFailure, PoolReserve, failure_of, node_failures, pool_reserves
from ..metrics.score import Metric, ScoreMode, Scorer

_COUNTED = {
    "unreachable": ProblemKind.UNREACHABLE,
    "n1_fail": ProblemKind.N1,
    "conflict_tags": ProblemKind.TAGS,
    "offline_pri": ProblemKind.OFFLINE_PRIMARY,
    "offline_sec": ProblemKind.OFFLINE_SECONDARY,
    "gn1_fail": ProblemKind.SHARED_N1,
    "tolerance": ProblemKind.TOLERANCE,
    "rules": ProblemKind.RULE,
    "hardware": ProblemKind.HARDWARE,
    "policy": ProblemKind.POLICY,
    "pool": ProblemKind.POOL,
    "cpus": ProblemKind.CPUS,
    "spindle_use": ProblemKind.SPINDLE_USE,
    "memory": ProblemKind.MEMORY,
}
"""What health counts, by hcheck's words where it has one."""
_SELDOM = ("unreachable", "tolerance", "rules", "hardware", "cpus", "spindle_use", "memory")
_NODE_PROBLEMS = frozenset(
    {
        ProblemKind.UNREACHABLE,
        ProblemKind.N1,
        ProblemKind.RULE,
        ProblemKind.HARDWARE,
        ProblemKind.TAGS,
        ProblemKind.SHARED_N1,
        ProblemKind.TOLERANCE,
    }
)
"""Problems that are counted once a node, as hcheck does."""
_PROOFS = 100_000
"""The effort of proofs for each group."""
_LOADS = (("cpu", Quantity.CPU_LOAD), ("memory", Quantity.MEMORY_LOAD), ("disk", Quantity.DISK_LOAD), ("net", Quantity.NET_LOAD))


def report(cluster: Cluster, mode: ScoreMode) -> dict[str, t.Any]:
    """Return what group_info reports of a checked cluster, in the shape that the module documents."""
    state = ClusterState.from_cluster(cluster)
    failures = [node_failures(state, group, Effort(_PROOFS)) for group in range(len(cluster.groups))]
    problems = find_problems(state, [failure for found in failures for failure in found])
    scorer = Scorer(state, mode)
    metrics = scorer.metrics(state)
    return {
        "score": _total(metrics),
        "score_mode": mode,
        "metrics": _metrics(metrics),
        "health": _health(problems),
        "groups": [_group(state, mode, group, problems, found) for group, found in enumerate(failures)],
        "nodes": [_node(state, node) for node in range(len(cluster.nodes))],
        "pools": _pools(state),
        "problems": [_problem(cluster, problem) for problem in problems],
        "wishes": [dataclasses.asdict(wish) for wish in unmet_wishes(state)],
    }


def _total(metrics: Sequence[Metric]) -> float:
    return sum(metric.weight * metric.value for metric in metrics)


def _metrics(metrics: Sequence[Metric]) -> list[dict[str, t.Any]]:
    return [{"name": metric.name, "weight": metric.weight, "value": metric.value} for metric in metrics]


def _health(problems: Sequence[Problem]) -> dict[str, t.Any]:
    """Return the counts of hcheck, of instances for offline ones, and whether all are 0."""
    counts = {word: _count([problem for problem in problems if problem.kind == kind]) for word, kind in _COUNTED.items()}
    # What hcheck does not count is reported where there is any.
    counts = {word: count for word, count in counts.items() if count or word not in _SELDOM}
    return {"healthy": not any(counts.values()), **counts}


def _count(problems: Sequence[Problem]) -> int:
    return len({problem.node if problem.kind in _NODE_PROBLEMS else problem.instance for problem in problems})


def _problem(cluster: Cluster, problem: Problem) -> dict[str, t.Any]:
    return {
        "kind": problem.kind,
        "group": cluster.groups[problem.group].name,
        "node": problem.node,
        "instance": problem.instance or None,
        "short": problem.short,
        "says": problem.says,
    }


def _group(
    state: ClusterState,
    mode: ScoreMode,
    group: int,
    problems: Sequence[Problem],
    failures: list[NodeFailure],
) -> dict[str, t.Any]:
    cluster, nodes = state.facts.cluster, state.group_nodes(group)
    metrics = Scorer(state, mode, nodes).metrics(state)
    online = nodes[~state.offline[nodes]]
    return {
        "name": cluster.groups[group].name,
        "uuid": cluster.groups[group].uuid,
        "alloc_policy": cluster.groups[group].alloc_policy,
        "tags": cluster.groups[group].tags,
        "nodes": len(nodes),
        "offline": len(nodes) - len(online),
        "instances": int(np.isin(state.primary, nodes).sum()),
        "score": _total(metrics),
        "metrics": _metrics(metrics),
        "health": _health([problem for problem in problems if problem.group == group]),
        "capacity": _capacity(state, online),
        "shared": [_pool_reserve(state, reserve) for reserve in pool_reserves(state, group, failures)],
        "failures": [_failure(state, failure) for failure in _worst_failures(state, group, failures)],
    }


_MOST_FAILURES = 20


def _worst_failures(state: ClusterState, group: int, failures: Sequence[NodeFailure]) -> list[NodeFailure]:
    """Return what is said of nodes that fail together, the worst first: by the tolerance, or else by Ganeti's location tags."""
    several = [failure for failure in failures if len(failure.nodes) > 1]
    if state.facts.cluster.tolerate is None:
        effort = Effort(_PROOFS)
        domains = [Tolerance(domain=prefix) for prefix in location_domains(state.facts.cluster)]
        several = [failure_of(state, failing, effort) for domain in domains for failing in failures_of(state, group, domain)]
    return sorted(several, key=lambda failure: -failure.short(state))[:_MOST_FAILURES]


def _failure(state: ClusterState, failure: NodeFailure) -> dict[str, t.Any]:
    names = state.facts.instances.names
    return {
        "nodes": [state.facts.nodes.names[node] for node in failure.nodes],
        "short": int(failure.short(state)),
        "stranded": [names[instance] for instance in failure.stranded],
        "lost": [names[instance] for instance in failure.lost],
        "proven": failure.proven,
    }


def _capacity(state: ClusterState, nodes: Integers) -> dict[str, dict[str, int]]:
    """Return what the online nodes have in all and what is free, in MiB and CPUs."""
    facts = state.facts.nodes
    quantities = state.quantities[:, nodes]
    cpus = facts.cpu_limit[nodes]
    return {
        "memory": _total_and_free(facts.total_memory[nodes], quantities[Quantity.MEMORY]),
        "disk": _total_and_free(facts.total_disk[nodes], quantities[Quantity.DISK]),
        "cpus": _total_and_free(cpus, cpus - quantities[Quantity.CPUS]),
    }


def _total_and_free(total: Floats, free: Floats) -> dict[str, int]:
    return {"total": int(total.sum()), "free": int(np.maximum(free, 0.0).sum())}


def _pool_reserve(state: ClusterState, reserve: PoolReserve) -> dict[str, t.Any]:
    return {
        "pool": None if reserve.pool is None else str(reserve.pool),
        "instances": reserve.instances,
        "worst_node": state.facts.nodes.names[reserve.worst],
        "needed": reserve.needed,
        "short": reserve.short,
        "proven": reserve.proven,
    }


def _node(state: ClusterState, node: int) -> dict[str, t.Any]:
    """Return the columns of hinfo's node list, by name, sizes in MiB."""
    model, quantity = state.facts.cluster.nodes[node], state.quantities[:, node]
    short = max(0.0, state.reserved[node] - quantity[Quantity.MEMORY])
    by_the_books = quantity[Quantity.MEMORY] + max(0.0, state.missing_memory[node])
    return {
        "name": model.name,
        "group": model.group,
        "offline": bool(state.offline[node]),
        "state": str(state.node_state(node)),
        "master": model.master,
        "n1_fails": short > 0,
        "total_memory": int(model.total_memory),
        "node_memory": model.node_memory,
        "instance_memory": int(np.floor(model.total_memory) - model.node_memory - by_the_books),
        "missing_memory": int(state.missing_memory[node]),
        "free_memory": model.free_memory,
        "unallocated_memory": int(quantity[Quantity.MEMORY]),
        "reserved_memory": int(state.reserved[node]),
        "n1_short": int(short),
        "total_disk": int(model.total_disk),
        "free_disk": int(quantity[Quantity.DISK]),
        "total_cpus": model.total_cpus,
        "used_cpus": int(quantity[Quantity.CPUS]),
        "primaries": int(quantity[Quantity.PRIMARIES]),
        "secondaries": int(quantity[Quantity.SECONDARIES]),
        "load": {name: float(quantity[row]) for name, row in _LOADS},
    }


def _pools(state: ClusterState) -> list[dict[str, t.Any]]:
    """Return every storage pool with its nodes; the space of a shared pool is given once."""
    users = collections.Counter(state.facts.instances.pool[state.primary != NOWHERE].tolist())
    users.pop(ANYWHERE, None)
    return [_pool(state, name, column, users[column]) for column, name in enumerate(state.facts.pool_names)]


def _pool(state: ClusterState, name: PoolName, column: int, instances: int) -> dict[str, t.Any]:
    nodes = np.flatnonzero(state.facts.nodes.pools[:, column])
    models = [state.facts.cluster.nodes[node] for node in nodes]
    totals = [pool.total for node in models for pool in storage_of(node) if pool.name == name and pool.total is not None]
    free = [value for value in state.pool_free[nodes, column].tolist() if np.isfinite(value)]
    shared = name.kind == PoolKind.EXTERNAL
    return {
        "pool": str(name),
        "nodes": [node.name for node in models],
        "groups": sorted({node.group for node in models}),
        "instances": instances,
        "total": (max(totals) if shared else sum(totals)) if totals else None,
        "free": int(min(free) if shared else sum(free)) if free else None,
    }


_MOST_PROBLEMS = 40
"""A summary is to be read; all problems are in the data."""


def summary(report: Mapping[str, t.Any]) -> str:
    """Return a report as lines of text."""
    health = report["health"]
    counts = ", ".join(f"{name} {count}" for name, count in health.items() if name != "healthy" and count)
    state = "healthy" if health["healthy"] else f"not healthy: {counts}"
    parts = [
        f"Cluster score {report['score']:.8f} ({report['score_mode']}), {state}",
        table(
            ("group", "nodes", "offline", "instances", "free memory", "free disk", "score", "ok"),
            _groups(report),
            right=("nodes", "offline", "instances", "free memory", "free disk", "score"),
        ),
        table(
            ("", "node", "group", "free memory", "reserved", "free disk", "CPUs", "prim/sec"),
            _nodes(report),
            right=("free memory", "reserved", "free disk", "CPUs", "prim/sec"),
        ),
        _problems(report["problems"]),
        "\n".join(_domain_lines(report)),
        "\n".join(f"wish: {wish['says']}" for wish in report["wishes"]),
    ]
    return "\n\n".join(part for part in parts if part)


def _groups(report: Mapping[str, t.Any]) -> list[tuple[str, ...]]:
    return [
        (
            group["name"],
            str(group["nodes"]),
            str(group["offline"]),
            str(group["instances"]),
            format_mib(group["capacity"]["memory"]["free"]),
            format_mib(group["capacity"]["disk"]["free"]),
            f"{group['score']:.4f}",
            "yes" if group["health"]["healthy"] else "no",
        )
        for group in report["groups"]
    ]


def _nodes(report: Mapping[str, t.Any]) -> list[tuple[str, ...]]:
    return [
        (
            "-" if node["offline"] else "*" if node["n1_fails"] else "",
            node["name"],
            node["group"],
            format_mib(node["unallocated_memory"]),
            format_mib(node["reserved_memory"]),
            format_mib(node["free_disk"]),
            f"{node['used_cpus']}/{node['total_cpus']:g}",
            f"{node['primaries']}/{node['secondaries']}",
        )
        for node in report["nodes"]
    ]


def _domain_lines(report: Mapping[str, t.Any]) -> list[str]:
    """Return what location tags say of failures that nothing keeps room for; of a tolerance these are problems."""
    failures = [failure for group in report["groups"] for failure in group["failures"]]
    if report["health"].get("tolerance"):
        return []
    return [
        f"location: if {' and '.join(failure['nodes'])} fail together, {format_mib(failure['short'])} find no place "
        f"and {len(failure['lost'])} mirrored instances are lost; tolerate: {{domain: ...}} keeps the room"
        for failure in failures
        if failure["short"] or failure["lost"]
    ]


def _problems(problems: Sequence[Mapping[str, t.Any]]) -> str:
    lines = [f"{problem['kind']}: {problem['says']}" for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        lines.append(f"... and {len(problems) - _MOST_PROBLEMS} more")
    return "\n".join(lines)
