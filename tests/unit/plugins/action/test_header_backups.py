# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of headers that disk_keys brings to the controller, from a host that may lie; cryptsetup makes and restores real ones."""

from __future__ import annotations

import base64
import functools
import json
import shutil
import stat
import subprocess
import typing as t
import zlib
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.action.disk_keys import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._keys.backup import headers_of
from ansible_collections.bareon.allocator.plugins.module_utils._keys.changes import Container
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine

Plain = dict[str, t.Any]

UUID = "0b0fd0e8-7d1c-4f25-9d2e-3f0c8f3c7a11"
HEADER = b"LUKS\xba\xbe\x00\x02" + bytes(160) + UUID.encode() + bytes(5000) + b"SECRET-SLOT" + bytes(5000)
CONTAINERS = [{"name": "data", "device": "/dev/sda1", "unlock": [{"method": "passphrase"}]}]
BEGIN: Plain = {"changed": False, "steps": [], "containers": [], "recovery_needed": [], "recovery_slots": {}, "added": {}}


def sent(header: bytes) -> str:
    return base64.b64encode(zlib.compress(header)).decode()


class Host:
    """A host that answers; `censored` is whether the connection was to keep its answer out of logs, for each part."""

    def __init__(self, headers: t.Any = None, begin: Plain | None = None) -> None:
        copied = {"data": sent(HEADER)} if headers is None else headers
        self.answers = {"begin": begin or BEGIN, "copy": {"changed": False, "headers": copied}}
        self.censored: dict[str, bool] = {}

    def __call__(self, action: t.Any, **how: t.Any) -> Plain:
        part = how["module_args"]["hand_over"]["part"]
        assert "header_backup_directory" not in how["module_args"]
        self.censored[part] = action._play_context.no_log
        return {**self.answers[part], "invocation": {"module_args": how["module_args"]}}


class Task:
    """A task with its arguments."""

    def __init__(self, folder: Path, check_mode: bool = False) -> None:
        self.args, self.check_mode, self.async_val = {"containers": CONTAINERS, "header_backup_directory": str(folder)}, check_mode, 0


class PlayContext:
    """What connections ask whether they may log."""

    no_log = False


@pytest.fixture
def action(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., Plain]:
    """Return a function that runs the action on a host."""

    def run(task: Task, host: Host, name: str = "db1.example") -> Plain:
        found = object.__new__(ActionModule)
        found._discovered_interpreter_key, found._task, found._play_context = None, task, PlayContext()
        monkeypatch.setattr(ActionModule.__mro__[1], "run", lambda self, tmp=None, task_vars=None: {})
        monkeypatch.setattr(ActionModule, "_execute_module", functools.partialmethod(host))
        result = found.run(task_vars={"inventory_hostname": name})
        assert found._play_context.no_log is False
        return result

    return run


def test_a_header_is_a_file_of_its_owner_by_host_and_uuid_and_nowhere_else(action, tmp_path: Path) -> None:
    folder, host = tmp_path / "headers", Host()
    result = action(Task(folder), host)
    file = folder / f"db1.example.{UUID}.luks"
    assert result["header_backups"] == {"data": str(file)}
    assert result["changed"]
    assert file.read_bytes() == HEADER
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(folder.stat().st_mode)) == (0o600, 0o700)
    assert [path.name for path in folder.iterdir()] == [file.name]
    assert sent(HEADER) not in json.dumps(result)
    assert host.censored == {"begin": False, "copy": True}


def test_a_second_run_writes_nothing_and_a_changed_header_replaces_the_copy(action, tmp_path: Path) -> None:
    action(Task(tmp_path), Host())
    file = tmp_path / f"db1.example.{UUID}.luks"
    before = file.stat().st_ino
    assert not action(Task(tmp_path), Host())["changed"]
    assert file.stat().st_ino == before
    other = HEADER.replace(b"SECRET", b"CHANGE")
    assert action(Task(tmp_path), Host({"data": sent(other)}))["changed"]
    assert file.read_bytes() == other


def test_hosts_do_not_share_a_file(action, tmp_path: Path) -> None:
    for name in ("a", "b", "../c"):
        action(Task(tmp_path), Host(), name)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"..%2Fc.{UUID}.luks", f"a.{UUID}.luks", f"b.{UUID}.luks"]


def test_nothing_is_copied_in_check_mode_or_after_a_failure(action, tmp_path: Path) -> None:
    host = Host()
    assert "header_backups" not in action(Task(tmp_path / "new", check_mode=True), host)
    failed = Host(begin={**BEGIN, "failed": True, "msg": "no"})
    assert action(Task(tmp_path / "new"), failed)["failed"]
    assert "copy" not in {**host.censored, **failed.censored}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        [],
        "text",
        {"other": sent(HEADER)},
        {"data": sent(HEADER), "other": sent(HEADER)},
        {"data": 7},
        {"data": "no letters of base64"},
        {"data": sent(b"")},
        {"data": sent(b"LUKS\xba\xbe" + bytes(500))},
        {"data": sent(HEADER.replace(UUID.encode(), b"../../../etc/cron.d/backup-of-the-host-1"[: len(UUID)]))},
        {"data": sent(b"\x7fELF" + HEADER[4:])},
        {"data": base64.b64encode(zlib.compress(HEADER)[:-9]).decode()},
        {"data": base64.b64encode(zlib.compress(HEADER) + b"more").decode()},
        {"data": sent(HEADER + bytes(140 * 2**20))},
    ],
)
def test_what_a_host_makes_up_is_refused_and_nothing_is_written(action, tmp_path: Path, headers: t.Any) -> None:
    result = action(Task(tmp_path), Host(headers))
    assert result["failed"]
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_somebody_has_planted_is_replaced_and_not_followed(action, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "headers"
    folder.mkdir()
    (folder / f"db1.example.{UUID}.luks").symlink_to(victim)
    action(Task(folder), Host())
    assert victim.read_text() == "mine"
    assert (folder / f"db1.example.{UUID}.luks").read_bytes() == HEADER


def test_cryptsetup_restores_a_header_from_what_the_host_sends(tmp_path: Path) -> None:
    tool = shutil.which("cryptsetup")
    if tool is None:
        pytest.fail("cryptsetup is not installed; on Debian: apt-get install cryptsetup-bin")
    disk, key, copy = (tmp_path / name for name in ("disk", "key", "copy"))
    disk.write_bytes(bytes(32 * 2**20))
    key.write_bytes(b"words")
    quick = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--uuid", UUID]
    subprocess.run([tool, "luksFormat", "--batch-mode", "--type", "luks2", *quick, str(disk), str(key)], check=True)
    header = zlib.decompress(base64.b64decode(headers_of([Container("data", str(disk), ())], LocalMachine())["data"]))
    copy.write_bytes(header)
    with disk.open("r+b") as torn:
        torn.write(bytes(16 * 2**20))
    opens = [tool, "open", "--test-passphrase", "--key-file", str(key), str(disk)]
    assert subprocess.run(opens, capture_output=True, check=False).returncode != 0
    subprocess.run([tool, "luksHeaderRestore", "--batch-mode", str(disk), "--header-backup-file", str(copy)], check=True)
    assert subprocess.run(opens, capture_output=True, check=False).returncode == 0
    assert not list(Path("/run").glob("bareon-header-*"))
