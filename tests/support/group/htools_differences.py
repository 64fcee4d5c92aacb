# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why answers differ from those of Ganeti's htools: what tests of peers let pass, and what `make guide` writes into the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "comparison.md"
START, END = "<!-- differences from htools: written by make guide -->\n", "<!-- end of differences -->\n"


class Difference(Enum):
    """A reason why an answer of htools may differ, or look better: the program, what it does, and what the collection does."""

    FIRST_THINGS = (
        "hbal",
        "looks at the score alone, but for nodes that are offline or drained",
        "first repairs what is wrong: instances that are down, broken limits, nodes to be emptied, N+1 of mirrors. The score may be worse",
    )
    HELD_LIMITS = (
        "hbal",
        "breaks N+1, tags, CPU ratios and planned memory that held, wherever something leaves a node that is offline or drained",
        "breaks them only for an instance that finds no other node, so that the score may be worse (by 1.4 % in one random cluster)",
    )
    N1_ON_SHARED_STORAGE = (
        "hbal",
        "does not know N+1 on shared storage",
        "keeps room to restart for a better score alone, unless `redundancy` is `off`",
    )
    N1_OF_PLACES = (
        "hail",
        "looks for N+1 in the whole cluster, or not at all",
        "takes no place after which a failure would strand more in the group than before",
    )
    REFUSALS = (
        "hail",
        "refuses every place while N+1 fails anywhere, unless called with `--no-capacity-checks`",
        "refuses only what makes it worse",
    )
    DEAD_DISKS = (
        "hspace",
        "with `plain` disks keeps memory for the instances of a node that fails",
        "keeps none, as their disks are gone then: the count is that of `--no-capacity-checks`",
    )
    RESTARTS = ("hspace", "keeps no room for restarts on shared storage", "keeps room for them, and may count fewer")
    CLOSED_GROUPS = ("hspace", "has no answer where no group takes new instances", "counts 0")
    FAILING_GROUP = ("hspace", "counts 0 in all groups while one of them fails N+1", "counts what fits in the others")
    NON_REDUNDANT = ("hroller", "has no answer where it takes all nodes for non-redundant", "returns sets")
    TAGS_APART = (
        "hsqueeze",
        "puts instances together that exclusion tags keep apart",
        "keeps them apart, and may power off fewer nodes",
    )

    @property
    def program(self) -> str:
        return self.value[0]


def excused(reasons: Mapping[Difference, bool]) -> bool:
    """Return whether one of the reasons is so."""
    return any(reasons.values())


def table() -> str:
    """Return the differences as Markdown."""
    rows = (f"| `{program}` | {theirs} | {ours} |\n" for program, theirs, ours in (difference.value for difference in Difference))
    return "".join(["| program | what it does | bareon.allocator |\n", "| --- | --- | --- |\n", *rows])


def written() -> str:
    """Return the page with the differences as they are now."""
    before, _start, rest = PAGE.read_text(encoding="utf-8").partition(START)
    return f"{before}{START}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
