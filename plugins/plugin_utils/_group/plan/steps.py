# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan of moves as it is carried out: moves, their steps, and the stages that they are done in."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass

Nodes = tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """One thing to do with an instance; `node` is where it goes, `command` Ganeti's for it, for people (empty if the plan has none).

    With a `disk` only that goes somewhere, from a storage to another one.
    """

    kind: str
    source: Nodes
    target: Nodes
    node: str
    online: bool = True
    command: str = ""
    disk: str = ""
    from_storage: str = ""
    to_storage: str = ""

    @property
    def before(self) -> Nodes:
        """The place that it begins at: nodes, and of a disk its storage."""
        return (*self.source, self.from_storage) if self.disk else self.source

    @property
    def after(self) -> Nodes:
        """The place that it leads to."""
        return (*self.target, self.to_storage) if self.disk else self.target


@dataclass(frozen=True)
class PlannedMove:
    """An instance goes through `steps`; `data` MiB are copied on the way, and `memory` MiB are sent by each live migration."""

    instance: str
    steps: tuple[Step, ...]
    data: float = 0.0
    memory: float = 0.0

    @property
    def nodes(self) -> frozenset[str]:
        """Return every node that takes part."""
        return frozenset(node for step in self.steps for node in (*step.source, *step.target))


@dataclass(frozen=True)
class MovePlan:
    """Moves and the stages that they are done in, as positions."""

    moves: tuple[PlannedMove, ...]
    stages: tuple[tuple[int, ...], ...]

    def digest(self) -> str:
        """Return 16 hexadecimal digits that identify this plan, computed from its moves and stages.

        Memory does not take part: plans of earlier versions do not have it, and find their journals.
        """
        plain = dataclasses.asdict(self)
        for move in plain["moves"]:
            del move["memory"]
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def paths(self) -> dict[tuple[str, str], list[tuple[int, int]]]:
        """Return the steps of each instance, and of each disk that goes by itself, as (move, step), in the order of the stages."""
        paths: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for move in (move for stage in self.stages for move in stage):
            for number, step in enumerate(self.moves[move].steps):
                paths.setdefault((self.moves[move].instance, step.disk), []).append((move, number))
        return paths


@dataclass(frozen=True)
class Round:
    """Steps (move, step) that were under way side by side, and for how many `seconds` in all."""

    steps: tuple[tuple[int, int], ...]
    seconds: float


def node_list(nodes: Nodes) -> str:
    """Return nodes as sentences name them."""
    return ", ".join(nodes) or "no node"
