# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rate of links comes from the journals of moves wherever the role keeps them: in files, in a ledger, or in both."""

from __future__ import annotations

import os

import pytest
import sqlalchemy as sa
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge import states
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.states import JOURNAL, kept_in_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan import links
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.journal import follow
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.left_out import notes

CLUSTER = {"nodes": [{"name": "a", "total_memory": 65536, "total_cpus": 16}]}
ROUND = {"steps": [{"move": 0, "step": 0}], "seconds": 100}


def plan_of(instance, memory):
    step = {"kind": "migrate", "from": ["a"], "to": ["b"]}
    return {"moves": [{"instance": instance, "from": ["a"], "steps": [step], "data": 0, "memory": memory}], "stages": [[0]]}


def carried_out(memory):
    return {"plan": plan_of("i", memory), "outcomes": [{"move": 0, "step": 0}], "round": ROUND}


@pytest.fixture
def database(tmp_path):
    return f"sqlite:///{tmp_path}/ledger.sqlite"


@pytest.fixture
def keep(database):
    """Return what keeps journals in a ledger, one for each plan, as the role does."""

    def keep_journal(digest, memory, state_name="prod", part=JOURNAL):
        given = {"state": "ledger", "state_name": state_name, "database": database, "hold": 0.0}
        with kept_in_ledger(given, f"{part}{digest}", writes=True) as kept:
            follow(carried_out(memory), write=True, kept=kept)

    return keep_journal


def loaded(**arguments):
    return load_any_cluster({"cluster": CLUSTER, "link_rate": 7, **arguments}, str).cluster


def rate_of(**arguments):
    cluster = loaded(**arguments)
    return cluster.link_rate, cluster.link_rounds


def test_journals_of_one_state_are_read(keep, database):
    keep("0" * 16, 2000)
    keep("1" * 16, 4000)
    keep("2" * 16, 6000)
    keep("3" * 16, 9900, state_name="another cluster")
    keep("", 9900, part="follow")
    assert rate_of(link_ledger={"state_name": "prod", "database": database}) == (40.0, 3)


def test_files_and_a_ledger_count_together(keep, database, tmp_path):
    keep("0" * 16, 2000)
    follow(carried_out(8000) | {"directory": str(tmp_path / "journals")}, write=True)
    given = {"link_ledger": {"state_name": "prod", "database": database}, "link_journals": str(tmp_path / "journals")}
    assert rate_of(**given) == (20.0, 2)


def test_of_many_journals_the_newest_are_read_wherever_they_are(keep, database, tmp_path, monkeypatch):
    monkeypatch.setattr(states, "MOST_JOURNALS", 2)
    monkeypatch.setattr(links, "MOST_JOURNALS", 2)
    # The names say nothing about the age.
    keep("0" * 16, 2000)
    keep("f" * 16, 4000)
    keep("e" * 16, 6000)
    assert rate_of(link_ledger={"state_name": "prod", "database": database}) == (40.0, 2)
    for age, memory in enumerate((8000, 6000, 2000)):
        given = {**carried_out(memory), "plan": plan_of(f"i{age}", memory), "directory": str(tmp_path / "journals")}
        journal = follow(given, write=True)["journal"]
        os.utime(journal, (1_700_000_000 - age, 1_700_000_000 - age))
    assert rate_of(link_journals=str(tmp_path / "journals")) == (60.0, 2)


@pytest.mark.parametrize("there", [False, True])
def test_without_a_state_or_a_database_the_given_rate_holds(keep, database, tmp_path, there):
    if there:
        keep("0" * 16, 2000)
    before = sorted(tmp_path.iterdir())
    assert rate_of(link_ledger={"state_name": "later", "database": database}) == (7.0, 0)
    assert sorted(tmp_path.iterdir()) == before, "reading makes no ledger"


def test_a_run_that_has_the_state_is_not_in_the_way(keep, database):
    """The playbook follow reads the journals while its own task has the state."""
    keep("0" * 16, 2000)
    given = {"state": "ledger", "state_name": "prod", "database": database, "hold": 0.0}
    with kept_in_ledger(given, "follow", writes=True):
        assert rate_of(link_ledger={"state_name": "prod", "database": database}) == (20.0, 1)


def test_a_damaged_journal_is_left_out_and_named(keep, database):
    keep("0" * 16, 2000)
    keep("1" * 16, 9900)
    with sa.create_engine(database).begin() as connection:
        connection.execute(sa.text("UPDATE state_texts SET content = '{' WHERE part LIKE '%111%'"))
    cluster = loaded(link_ledger={"state_name": "prod", "database": database})
    assert (cluster.link_rate, cluster.link_rounds) == (20.0, 1)
    assert ["1" * 16 in note for note in notes(cluster)] == [True]


def test_a_name_that_cannot_be_one_is_refused(database):
    with pytest.raises(InputError) as refused:
        loaded(link_ledger={"state_name": "x" * 300, "database": database})
    assert [mistake.place for mistake in refused.value.mistakes] == ["link_ledger.state_name"]
