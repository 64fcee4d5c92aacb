# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pins of guests to the nodes that have what they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .model import Rule, RuleKind


def pins_to_others(name: str, lacking: Mapping[str, Sequence[str]], nodes: Sequence[str], home: str, *, hardware: bool) -> Iterator[Rule]:
    """Yield a pin of a guest to the nodes that lack nothing, by why and which nodes do; where it is, it stays."""
    whys = [why for why, without in lacking.items() if set(without) - {home}]
    barred = {node for without in lacking.values() for node in without} - {home}
    if barred:
        allowed = tuple(node for node in nodes if node not in barred)
        yield Rule(f"{name}: {', '.join(whys)}", RuleKind.PIN, (name,), allowed, hardware=hardware)
