# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""States in a ledger: what a run keeps is what the next one reads, two jobs do not work at once, and check mode keeps nothing."""

from __future__ import annotations

import dataclasses
import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge import ledger_state
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.states import check_state, kept_in_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.lock import this_run
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.journal import follow
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time

STEP = {"kind": "migrate", "from": ["a"], "to": ["b"]}
PLAN = {"moves": [{"instance": "i", "from": ["a"], "steps": [STEP], "data": 0}], "stages": [[0]]}


@pytest.fixture
def given(tmp_path):
    return {"state": "ledger", "state_name": "prod", "database": f"sqlite:///{tmp_path}/ledger.sqlite", "hold": 0.0}


def as_run(monkeypatch, **other):
    """Have the next runs be another one, such as that of another container."""
    run = dataclasses.replace(this_run(), **other)
    monkeypatch.setattr(ledger_state, "this_run", lambda: run)


def keep(given, content, hold=0, writes=True, meanwhile=None):
    with kept_in_ledger(given, "follow", writes=writes) as kept:
        before = kept.read()
        if meanwhile is not None:
            meanwhile()
        if content is not None:
            kept.write(content)
        kept.hold = hold
    return before


def test_what_is_kept_is_read_by_the_next_run(given):
    assert [keep(given, content) for content in ("one", "two", None)] == [None, "one", "two"]
    assert keep({**given, "state_name": "other"}, None) is None


def test_no_other_run_begins_while_one_has_the_state(given, monkeypatch):
    keep(given, "one", hold=60)
    assert keep(given, None, hold=60) == "one", "tasks of one run follow each other"
    as_run(monkeypatch, host="pod-2", numbering="another container")
    with pytest.raises(InputError, match=r"^state: prod in sqlite\S+ is in use by another run, process \d+ on \S+; wait .* until 20"):
        keep(given, "two")
    assert keep(given, "two", writes=False) == "one", "check mode looks"
    with open_ledger(given["database"]) as ledger:
        pass_time(ledger, 61)
    assert keep(given, "two") == "one"


def test_a_run_that_is_known_to_have_ended_has_nothing(given, monkeypatch):
    with subprocess.Popen(["sleep", "60"]) as other, monkeypatch.context() as first:
        as_run(first, pid=other.pid, started="1")
        keep(given, "one", hold=60)
        other.kill()
    assert keep(given, "two") == "one"


def test_a_process_of_another_container_is_not_taken_for_one_that_has_ended(given, monkeypatch):
    with monkeypatch.context() as first:
        as_run(first, pid=2**22 + 1, numbering="another container with this host's name")
        keep(given, "one", hold=60)
    with pytest.raises(InputError, match="in use by another run"):
        keep(given, "two")


def test_a_run_that_was_replaced_writes_nothing(given, monkeypatch):
    def another_run(content, hold):
        with monkeypatch.context() as second:
            as_run(second, host="pod-2", numbering="another container")
            return keep(given, content, hold=hold)

    def replace():
        with open_ledger(given["database"]) as ledger:
            pass_time(ledger, 4000)
        another_run("two", 60)

    with pytest.raises(InputError, match="in use by another run"):
        keep(given, "late", meanwhile=replace)
    assert another_run(None, 0) == "two"


def test_two_tasks_of_one_run_do_not_write_over_each_other(given):
    with pytest.raises(InputError, match="another run has written it"):
        keep(given, "late", meanwhile=lambda: keep(given, "two"))
    assert keep(given, None) == "two"


def test_a_task_that_fails_gives_the_state_back(given, monkeypatch):
    with pytest.raises(ZeroDivisionError):
        keep(given, "one", meanwhile=lambda: 1 / 0)
    as_run(monkeypatch, host="pod-2", numbering="another container")
    assert keep(given, "two") is None


def test_check_mode_keeps_nothing_and_makes_no_ledger(given, tmp_path):
    assert keep(given, "one", writes=False) is None
    assert list(tmp_path.iterdir()) == []
    keep(given, "one")
    keep(given, "two", writes=False)
    assert keep(given, None) == "one"


def test_a_journal_in_a_ledger_goes_on_in_another_container(given, monkeypatch):
    def progress(**arguments):
        part = f"journal {arguments.get('journal') or 'x'}"
        with kept_in_ledger(given, part if "journal" in arguments else f"journal {digest}", writes=True) as kept:
            return follow(arguments, write=True, kept=kept)

    digest = follow({"plan": PLAN, "directory": "/nonexistent"}, write=False)["journal"].removeprefix("/nonexistent/").removesuffix(".json")
    begun = progress(plan=PLAN)
    assert (begun["journal"], begun["complete"], begun["changed"]) == (digest, False, False)
    as_run(monkeypatch, host="pod-2", numbering="another container")
    assert progress(journal=digest, outcomes=[{"move": 0, "step": 0}])["complete"]
    assert progress(plan=PLAN)["complete"]


def test_the_password_of_a_database_is_in_no_message(given, monkeypatch):
    def moved(*_given, **_options):
        raise ledger_state.states.Moved

    monkeypatch.setattr(ledger_state, "open_ledger", moved)
    url = "postgresql://user:geheim@127.0.0.1:1/x"
    assert "geheim" not in str(ledger_state.LedgerText(url, "prod", "follow"))
    with pytest.raises(InputError) as error, kept_in_ledger({**given, "database": url}, "follow", writes=True):
        pass
    assert "geheim" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"state_name": None}, "state_name"),
        ({"state_file": "state.json"}, "state_file"),
        ({"hold": -1.0}, "hold"),
        ({"hold": float("nan")}, "hold"),
        ({"state": "file"}, "state_name"),
        ({"state": "file", "state_name": None}, "database"),
    ],
)
def test_options_of_the_one_place_are_refused_with_the_other(given, change, place):
    with pytest.raises(InputError) as error:
        check_state({"state_file": None, **given, **change}, ["state_file"])
    assert place in {mistake.place for mistake in error.value.mistakes}


def test_a_name_that_cannot_be_one_is_refused(given):
    with pytest.raises(InputError, match="state_name"):
        keep({**given, "state_name": "x" * 300}, None)


def test_the_default_ledger_of_a_container_keeps_no_state(given, monkeypatch, tmp_path):
    monkeypatch.setenv("container", "podman")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("BAREON_DATABASE", raising=False)
    with pytest.raises(Unavailable, match="BAREON_DATABASE"):
        keep({**given, "database": None}, "one")
