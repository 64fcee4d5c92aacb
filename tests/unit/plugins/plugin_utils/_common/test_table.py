# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.table import WIDTH, folded, table

WORDS = st.text("ab-:/", min_size=1, max_size=20)
SENTENCES = st.lists(WORDS, max_size=30).map(" ".join)


def fits(text: str, words: list[str]) -> bool:
    """Return whether no line is longer than a terminal shows, except by its only word."""
    most = max([WIDTH, *map(len, words)])
    return all(len(line) <= WIDTH or (len(line.strip().split()) == 1 and len(line.strip()) <= most) for line in text.split("\n"))


def test_names_begin_and_numbers_end_below_each_other():
    assert table(("name", "size"), [("a", "10"), ("longer", "9")], right=("size",)).splitlines() == [
        "name    size",
        "a         10",
        "longer     9",
    ]


def test_a_name_of_digits_stays_a_name():
    assert table(("host", "disks"), [("7", "1"), ("10.0.0.1", "12")], right=("disks",)).splitlines()[1] == "7             1"


def test_no_line_ends_in_blanks():
    assert table(("name", "what"), [("a", "")]).splitlines() == ["name  what", "a"]
    assert table(("name", "what"), []) == "name  what"


@hypothesis.given(st.integers(1, 9).flatmap(lambda width: st.lists(st.tuples(*[SENTENCES] * width), min_size=1, max_size=5)))
def test_a_table_fits_a_terminal_and_loses_no_word(rows: list[tuple[str, ...]]) -> None:
    head, *rest = rows
    numbers = set(head[::2]) - set(head[1::2])
    drawn = table(
        head, [[cell.replace(" ", "")[:20] if name in numbers else cell for name, cell in zip(head, row)] for row in rest], numbers
    )
    assert fits(drawn, [])
    if not numbers:
        assert sorted(drawn.split()) == sorted(word for row in rows for cell in row for word in cell.split())


def test_a_table_that_is_too_wide_has_its_last_columns_below() -> None:
    names = [(f"instance-{number}", "failover_and_replace", "node-0001:node-0002", "node-0003:node-0004") for number in range(2)]
    assert table(("instance", "move", "from", "to"), names).splitlines() == [
        "instance    move                  from",
        "    to",
        "instance-0  failover_and_replace  node-0001:node-0002",
        "    node-0003:node-0004",
        "instance-1  failover_and_replace  node-0001:node-0002",
        "    node-0003:node-0004",
    ]


@hypothesis.given(st.lists(st.tuples(st.integers(0, 80), SENTENCES).map(lambda line: " " * line[0] + line[1]), max_size=4).map("\n".join))
def test_sentences_fit_a_terminal_and_keep_their_words(text: str) -> None:
    assert fits(folded(text), text.split())
    assert folded(text).split() == text.split()
    assert folded(folded(text)) == folded(text)
