# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report as a table to read: the cluster, its groups, its nodes, and what is wrong."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from ...common.units import format_mib

_MOST_PROBLEMS = 40
"""A summary is to be read; all problems are in the data."""


def summary(report: Mapping[str, t.Any]) -> str:
    """Return the report of report.report as lines of text."""
    parts = [
        _head(report),
        table(("group", "policy", "nodes", "offline", "instances", "free memory", "free disk", "score", "health"), _groups(report)),
        table(("", "node", "group", "memory", "free", "reserved", "disk", "free", "CPUs", "used", "prim", "sec"), _nodes(report)),
        _problems(report["problems"]),
    ]
    return "\n\n".join(part for part in parts if part)


def _head(report: Mapping[str, t.Any]) -> str:
    health = report["health"]
    counts = ", ".join(f"{name} {count}" for name, count in health.items() if name != "healthy" and count)
    state = "healthy" if health["healthy"] else f"not healthy: {counts}"
    return f"Cluster score {report['score']:.8f} ({report['score_mode']}), {state}"


def _groups(report: Mapping[str, t.Any]) -> list[tuple[str, ...]]:
    return [
        (
            group["name"],
            str(group["alloc_policy"]),
            str(group["nodes"]),
            str(group["offline"]),
            str(group["instances"]),
            format_mib(group["capacity"]["memory"]["free"]),
            format_mib(group["capacity"]["disk"]["free"]),
            f"{group['score']:.8f}",
            "healthy" if group["health"]["healthy"] else "not healthy",
        )
        for group in report["groups"]
    ]


def _nodes(report: Mapping[str, t.Any]) -> list[tuple[str, ...]]:
    return [
        (
            "-" if node["offline"] else "*" if node["n1_fails"] else "",
            node["name"],
            node["group"],
            format_mib(node["total_memory"]),
            format_mib(node["unallocated_memory"]),
            format_mib(node["reserved_memory"]),
            format_mib(node["total_disk"]),
            format_mib(node["free_disk"]),
            f"{node['total_cpus']:g}",
            str(node["used_cpus"]),
            str(node["primaries"]),
            str(node["secondaries"]),
        )
        for node in report["nodes"]
    ]


def _problems(problems: Sequence[Mapping[str, t.Any]]) -> str:
    lines = [f"{problem['kind']}: {problem['says']}" for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        lines.append(f"... and {len(problems) - _MOST_PROBLEMS} more")
    return "\n".join(lines)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows in columns: the first ones, which are names, to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    numbers = [all(_is_number(row[column]) for row in rows) for column in range(len(head))]
    lines = (
        "  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(row, widths, numbers))
        for row in (head, *rows)
    )
    return "\n".join(line.rstrip() for line in lines)


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text[:1] == "-" and text[1:2].isdigit()
