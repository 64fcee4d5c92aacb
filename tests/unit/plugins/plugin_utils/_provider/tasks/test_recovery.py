# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.database import OutcomeUnknown
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.recovery import run_recoverably

ARGUMENTS = {"providers": [{"name": "node1"}]}


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    with open_ledger(url):
        # Made here, so that no warning of a new file is in the results.
        pass
    with open_ledger(url) as opened:
        yield opened


def lose(_ledger):
    raise OutcomeUnknown("the database is gone")


def test_what_is_found_made_is_said_once(ledger):
    with pytest.raises(OutcomeUnknown) as raised:
        run_recoverably(ledger, ARGUMENTS, lose)
    assert str(raised.value) == "the database is gone"
    results = [run_recoverably(ledger, ARGUMENTS, lambda _ledger: {"changed": False}) for _run in range(2)]
    assert [result.get("recovered", False) for result in results] == [True, False]


def test_a_note_that_is_gone_with_the_job_is_named(ledger, tmp_path, monkeypatch):
    monkeypatch.setenv("container", "podman")
    monkeypatch.setenv("AWX_ISOLATED_DATA_DIR", str(tmp_path / "artifacts" / "7"))
    with pytest.raises(OutcomeUnknown) as raised:
        run_recoverably(ledger, ARGUMENTS, lose)
    assert str(tmp_path / "state") in str(raised.value)
    assert "XDG_STATE_HOME" in str(raised.value)


@pytest.mark.parametrize("folder", ["no home", "no folder"])
def test_a_note_that_cannot_be_written_is_named(ledger, tmp_path, monkeypatch, folder):
    (tmp_path / "file").touch()
    if folder == "no home":
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.setenv("HOME", "relative")
    else:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(OutcomeUnknown) as raised:
        run_recoverably(ledger, ARGUMENTS, lose)
    assert "XDG_STATE_HOME" in str(raised.value)
    assert run_recoverably(ledger, ARGUMENTS, lambda _ledger: {"changed": False}) == {"changed": False}
