# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record between runs: a file that is whole or as it was, and one message for whatever else it holds."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.record import (
    GroupRecord,
    Pending,
    Purpose,
    Record,
    read_record,
    record_from_plain,
    record_to_plain,
    write_record,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.kept import KeptFile

NOW = datetime(2026, 3, 1, 4, 0, tzinfo=timezone.utc)
STEP = {"kind": "migrate", "to": ["b"]}
MOVE = {"instance": "web", "kind": "failover_to_any", "from": ["a"], "to": ["b"], "group": "g", "data": 0, "steps": [STEP]}
FULL = Record(
    groups={"g": GroupRecord(over_since=NOW, balancing=True, acted=NOW - timedelta(hours=2))},
    moved={"web": NOW},
    pending=Pending(NOW, Purpose.BALANCE, ("g",), {"moves": [MOVE], "stages": [[0]]}),
)


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "new" / "state.json"
    assert read_record(KeptFile(path, "state_file")) == Record()
    write_record(KeptFile(path, "state_file"), FULL)
    assert read_record(KeptFile(path, "state_file")) == FULL
    assert [file.name for file in path.parent.iterdir()] == ["state.json"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "state.json"
    write_record(KeptFile(path, "state_file"), FULL)

    def fail(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match=r"^state_file: cannot write .*state\.json: No space left on device$"):
        write_record(KeptFile(path, "state_file"), Record())
    monkeypatch.undo()
    assert read_record(KeptFile(path, "state_file")) == FULL


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"it is no JSON"),
        ("[" * 100_000, r"it is no JSON"),
        ("[]", r"must be a mapping with version"),
        ('{"version": 2}', r"version: is 2; only version 1 is known"),
        ("{}", r"version: is missing"),
        (
            '{"version": 1, "groups": {"g": {"acted": "noon", "balancing": 3}}}',
            r"groups\.g\.balancing: is 3.*; groups\.g\.acted: is 'noon'",
        ),
        ('{"version": 1, "moved": {"web": "2026-03-01T04:00:00"}}', r"moved\.web: is '2026-03-01T04:00:00'; must be a time with its zone"),
        ('{"version": 1, "pending": {"made": "2026-03-01T04:00:00Z", "purpose": "fun", "groups": [], "plan": {}}}', r"pending\.purpose"),
        ('{"version": 1, "pending": {"made": "2026-03-01T04:00:00Z", "purpose": "repair", "groups": [], "plan": {}}}', r"plan\.moves"),
        ('{"version": 1, "pending": {"made": "2026-03-01T04:00:00Z", "purpose": "repair", "groups": [], "plan": 1}}', r"pending\.plan"),
        ('{"version": 1, "more": 1}', r"more: is not a key"),
    ],
)
def test_other_content_is_refused_in_one_message(tmp_path, text, says):
    path = tmp_path / "state.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=says) as error:
        read_record(KeptFile(path, "state_file"))
    assert len(error.value.mistakes) == 1
    assert str(error.value).startswith(f"state_file: {path} cannot be used (")
    assert str(error.value).endswith("); move it away to start without history")


def test_a_folder_is_no_record(tmp_path):
    with pytest.raises(InputError, match=r"^state_file: cannot read "):
        read_record(KeptFile(tmp_path, "state_file"))


def test_a_clock_that_was_wrong_freezes_nothing():
    early = NOW - timedelta(days=400)
    bounded = FULL.not_after(early)
    assert bounded.groups["g"] == GroupRecord(over_since=early, balancing=True, acted=early)
    assert bounded.moved == {"web": early}
    assert FULL.not_after(NOW) == FULL


def test_groups_that_are_as_usual_are_not_kept():
    assert Record().with_group("g", GroupRecord()) == Record()
    assert FULL.with_group("g", GroupRecord()).groups == {}
    assert record_from_plain(json.loads(json.dumps(record_to_plain(FULL)))) == FULL
