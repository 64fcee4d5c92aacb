# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pictures of instances that move between nodes: nodes are rows, and groups that moves connect share a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .....module_utils._data.units import format_mib
from .draw import Bar, Move, Picture, Plain, Row, change, draw, part, stage_of

METRICS = ("memory", "disk", "cpus", "load")


def node_pictures(plan: Plain) -> list[Picture]:
    """Return the pictures of a plan as group actions return it, in the order of the groups of its nodes."""
    nodes = {node["node"]: node for node in plan["nodes"]}
    rows, moves = node_parts(plan)
    largest = max((move.data for move in moves), default=0)
    found = []
    for groups in _connected(nodes, plan["moves"]):
        here = [move for move, plain in zip(moves, plan["moves"]) if nodes[plain["from"][0]]["group"] in groups]
        found.append(draw({group: [row for row in rows if row.group == group] for group in groups}, here, largest))
    return found


def node_parts(plan: Plain) -> tuple[list[Row], list[Move]]:
    """Return a row for each node and what is drawn of each move, in the order of the plan."""
    # The domain that all names share, with its dot.
    names = [node["node"] for node in plan["nodes"]]
    domain = {name.partition(".")[2] for name in names}
    suffix = f".{domain.pop()}" if len(names) > 1 and len(domain) == 1 and "" not in domain else ""
    stages = stage_of(plan)
    # The rows of all nodes; loads are drawn to the scale of the highest.
    nodes = plan["nodes"]
    scale = max((node[when]["load"] for node in nodes for when in ("before", "after")), default=0)
    return [_row(node, number, scale, suffix) for number, node in enumerate(nodes)], [
        _move(move, stages[at], suffix) for at, move in enumerate(plan["moves"])
    ]


def _connected(nodes: Mapping[str, Plain], moves: Iterable[Plain]) -> list[list[str]]:
    """Return the groups in sets that moves connect, each in the order of the nodes."""
    order = list(dict.fromkeys(node["group"] for node in nodes.values()))
    joined = {group: group for group in order}

    def root(group: str) -> str:
        while joined[group] != group:
            group = joined[group]
        return group

    for move in moves:
        home, *others = (root(nodes[name]["group"]) for name in (*move["from"], *move["to"]))
        for other in others:
            joined[root(other)] = root(home)
    sets: dict[str, list[str]] = {}
    for group in order:
        sets.setdefault(root(group), []).append(group)
    return list(sets.values())


def _move(move: Plain, stage: int, suffix: str) -> Move:
    source, target = (", ".join(name.removesuffix(suffix) for name in move[end]) for end in ("from", "to"))
    way = f"{source} → {target}"
    return Move(move["instance"], tuple(_ends(move)), stage, move["data"], way, move["kind"].replace("_", " "))


def _ends(move: Plain) -> list[tuple[str, str, str]]:
    """Return the lines of a move as (role, node, node): the primary's way, and copies that become the mirror."""
    source, target = move["from"], move["to"]
    lines = [("primary", source[0], target[0])] if source[0] != target[0] else []
    lost = [name for name in source if name not in target] or [source[0]]
    gained = [name for name in target[1:] if name not in source]
    return lines + [("mirror", lost[-1], name) for name in gained]


def _row(node: Plain, number: int, scale: float, suffix: str) -> Row:
    before = tuple(_bar(node, "before", metric, scale) for metric in METRICS)
    after = tuple(_bar(node, "after", metric, scale) for metric in METRICS)
    counts = [f"{node[when]['primaries']} primaries and {node[when]['secondaries']} secondaries" for when in ("before", "after")]
    words = [change(first, second) for first, second in zip(before, after)]
    return Row(
        name=node["node"],
        label=node["node"].removesuffix(suffix),
        number=number,
        offline=node["offline"],
        before=before,
        after=after,
        words=(*words, counts[0] if counts[0] == counts[1] else " → ".join(counts)),
        group=node["group"],
    )


def _bar(node: Plain, when: str, metric: str, scale: float) -> Bar:
    used, earlier = node[when][metric], node["before"][metric]
    whole = scale if metric == "load" else node["capacity"][metric]
    reserved = node[when]["reserved"] if metric == "memory" else 0
    if metric in ("memory", "disk"):
        words = f"{format_mib(used)} of {format_mib(whole)}" if whole else "none"
    else:
        words = f"{used:g} of {whole:g}" if metric == "cpus" else f"{used:g}"
    if reserved:
        words += f" and {format_mib(reserved)} kept for failovers"
    return Bar(metric, part(used, whole), part(reserved, whole), part(earlier, whole), words)
