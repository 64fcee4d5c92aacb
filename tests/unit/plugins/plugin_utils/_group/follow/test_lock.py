# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A record belongs to one living process at a time."""

from __future__ import annotations

import dataclasses
import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.lock import Owner, take, this_run


def test_a_run_may_take_its_own_record_again(tmp_path):
    record = tmp_path / "new" / "state.json"
    for _task in range(2):
        take(record, this_run())
    with pytest.raises(InputError, match="in use by another run"):
        take(record, dataclasses.replace(this_run(), started="later"))


def test_a_record_is_free_again_when_its_run_has_ended(tmp_path):
    record = tmp_path / "state.json"
    with subprocess.Popen(["sleep", "60"]) as other:
        take(record, dataclasses.replace(this_run(), pid=other.pid, started=_started(other.pid)))
        with pytest.raises(InputError) as error:
            take(record, this_run())
        assert str(error.value) == f"state_file: {record} is in use by another run, process {other.pid}; wait for its end"
        other.kill()
    take(record, this_run())


def test_a_later_process_with_the_same_number_is_another_run(tmp_path):
    record = tmp_path / "state.json"
    take(record, dataclasses.replace(this_run(), started="0"))
    take(record, this_run())


def test_of_a_run_on_another_host_it_is_said_what_to_do(tmp_path):
    record = tmp_path / "state.json"
    take(record, Owner("elsewhere", 1, ""))
    with pytest.raises(InputError, match=r"process 1 on elsewhere; if it has ended, remove .*state.json.lock"):
        take(record, this_run())


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"host": "h"}', b"null", b"\xff", b"[" * 100_000, b'{"host": "h", "pid": 1e999, "started": ""}']
)
def test_a_damaged_lock_holds_nobody(tmp_path, text):
    (tmp_path / "state.json.lock").write_bytes(text)
    take(tmp_path / "state.json", this_run())


def test_what_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="state_file: cannot"):
        take(tmp_path / "file" / "state.json", this_run())


def _started(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[19]
