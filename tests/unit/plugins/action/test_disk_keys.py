# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where recovery keys of a result go on the controller."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.action import disk_keys
from ansible_collections.bareon.allocator.plugins.action.disk_keys import ActionModule

KEY = "cbdefghi-jklnrtuv"
SLOTS = [{"slot": 0, "opened_by": "keys"}, {"slot": 3, "opened_by": "recovery"}]


class Task:
    """A task with its arguments."""

    def __init__(self, check_mode: bool = False, **args: object) -> None:
        self.args, self.check_mode, self.async_val, self.environment = args, check_mode, 0, None
        self.diff, self.collections, self._parent = False, [], None


@pytest.fixture
def action(monkeypatch):
    """Return a function that runs the action; the module returns a new recovery key."""

    def run(task, result=None):
        found = object.__new__(ActionModule)
        found._task = task
        given = result or {"changed": True, "containers": [{"name": "data/1", "slots": SLOTS}], "recovery_keys": {"data/1": KEY}}
        monkeypatch.setattr(ActionModule.__mro__[1], "run", lambda self, tmp=None, task_vars=None: {})
        monkeypatch.setattr(ActionModule, "_execute_module", lambda self, **how: {**given, "invocation": how["module_args"]})
        return found.run(task_vars={"inventory_hostname": "db1.example"})

    return run


def test_a_key_goes_into_a_file_of_its_owner_and_not_into_the_result(action, tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    result = action(Task(recovery_key_directory=str(folder), containers=[]))
    file = folder / "db1_example.data_1.3"
    assert result["recovery_key_files"] == {"data/1": str(file)}
    assert file.read_text() == f"{KEY}\n"
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(folder.stat().st_mode)) == (0o600, 0o700)
    assert KEY not in str(result)
    assert "recovery_key_directory" not in result["invocation"]


def test_a_key_of_an_earlier_container_is_kept(action, tmp_path: Path) -> None:
    (tmp_path / "db1_example.data_1.3").write_text("earlier")
    action(Task(recovery_key_directory=str(tmp_path)))
    assert (tmp_path / "db1_example.data_1.3").read_text() == f"{KEY}\n"
    assert (tmp_path / "db1_example.data_1.3.old1").read_text() == "earlier"


def test_without_a_directory_the_key_is_shown(action) -> None:
    assert action(Task())["recovery_keys"] == {"data/1": KEY}


def test_where_nothing_can_be_written_nothing_is_begun(action, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = action(Task(recovery_key_directory=str(tmp_path / "file")))
    assert result["failed"]
    assert "cannot be written to" in result["msg"]
    assert "recovery_keys" not in result


def test_a_key_that_cannot_be_written_stays_in_the_result(action, tmp_path: Path, monkeypatch) -> None:
    def full(*_given: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(disk_keys, "write_new", full)
    result = action(Task(recovery_key_directory=str(tmp_path)))
    assert result["failed"]
    assert "cannot be written to files: no space left" in result["msg"]
    assert result["recovery_keys"] == {"data/1": KEY}


def test_a_run_that_failed_writes_the_keys_that_it_made(action, tmp_path: Path) -> None:
    failed = {"failed": True, "msg": "no", "containers": [{"name": "data", "slots": SLOTS}], "recovery_keys": {"data": KEY}}
    result = action(Task(recovery_key_directory=str(tmp_path)), failed)
    assert (result["failed"], result["msg"]) == (True, "no")
    assert (tmp_path / "db1_example.data.3").read_text() == f"{KEY}\n"
