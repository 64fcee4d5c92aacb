# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A state belongs to one run at a time, for its time, and a text is written by whoever has seen the last one."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import states
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.tests.support.provider.old_ledgers import make_ledger
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time


@pytest.fixture
def ledger(bench):
    return bench.ledger


def take(ledger, holder, seconds=60, is_gone=lambda holder: False):
    ledger.write(partial(states.take, name="prod", holder=holder, seconds=seconds, is_gone=is_gone))


def text(ledger, part="follow"):
    return ledger.read(partial(states.stored_text, name="prod", part=part))


def write(ledger, content, seen, part="follow"):
    ledger.write(partial(states.write_text, name="prod", part=part, content=content, seen=seen))


def test_one_run_at_a_time_has_a_state(ledger):
    take(ledger, "a")
    take(ledger, "a")
    with pytest.raises(states.Held) as held:
        take(ledger, "b")
    assert held.value.holder == "a"
    ledger.write(partial(states.give_back, name="prod", holder="b"))
    with pytest.raises(states.Held):
        take(ledger, "b")
    ledger.write(partial(states.give_back, name="prod", holder="a"))
    take(ledger, "b")


def test_another_run_follows_when_the_time_is_over_or_the_first_has_ended(ledger):
    take(ledger, "a")
    with pytest.raises(states.Held):
        take(ledger, "b", is_gone=lambda holder: holder != "a")
    take(ledger, "b", is_gone=lambda holder: holder == "a")
    pass_time(ledger, 59)
    with pytest.raises(states.Held):
        take(ledger, "c")
    pass_time(ledger, 2)
    take(ledger, "c")


def test_a_text_is_written_by_whoever_has_seen_the_last_one(ledger):
    take(ledger, "a")
    assert text(ledger) == states.StoredText()
    write(ledger, "one", 0)
    assert text(ledger) == states.StoredText(1, "one")
    write(ledger, "two", 1)
    with pytest.raises(states.Moved):
        write(ledger, "late", 1)
    with pytest.raises(states.Moved):
        write(ledger, "late", 0)
    assert text(ledger) == states.StoredText(2, "two")
    # Committed, though the answer was lost.
    write(ledger, "two", 1)
    assert text(ledger).generation == 2
    write(ledger, "other", 0, part="journal")
    assert (text(ledger).content, text(ledger, "journal").content) == ("two", "other")
    large = "ü" * 100_000
    write(ledger, large, 2)
    assert text(ledger).content == large


def test_a_ledger_of_the_revision_before_gets_the_tables(tmp_path):
    url = f"sqlite:///{tmp_path}/old.sqlite"
    make_ledger(url, "history", tmp_path / "migrations").dispose()
    with open_ledger(url) as ledger:
        take(ledger, "a")
        write(ledger, "one", 0)
        assert text(ledger).content == "one"
