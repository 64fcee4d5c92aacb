# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recovery keys on the controller, and what a host that lies can do to it."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import socket
import stat
import tempfile
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.action.disk_keys import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._storage.recovery_key import is_recovery_key, new_recovery_key
from ansible_collections.bareon.allocator.plugins.plugin_utils._common import files, lasting
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.recovery_keys import Folder

Plain = dict[str, t.Any]

RECOVERY_KEY = "-".join(["cbdefghi", "jklnrtuv"] * 4)
SLOTS = [{"slot": 0, "opened_by": "keys"}, {"slot": 3, "opened_by": "recovery"}]
CONTAINERS = [
    {"name": "data/1", "device": "/dev/sda1", "unlock": [{"method": "recovery"}]},
    {"name": "logs", "device": "/dev/sda2", "unlock": [{"method": "passphrase"}]},
]
STEP = {"kind": "enrol", "container": "data/1", "device": "/dev/sda1", "says": "add", "done": True}
CONFIRM = {**STEP, "kind": "confirm"}
BEGIN: Plain = {"changed": False, "steps": [], "containers": [], "recovery_needed": ["data/1"], "recovery_slots": {}, "added": {}}
ADD: Plain = {**BEGIN, "changed": True, "steps": [STEP], "recovery_needed": [], "recovery_slots": {"data/1": 3}, "added": {"data/1": [3]}}
FINISH: Plain = {**ADD, "steps": [CONFIRM], "added": {}}


class Task:
    """A task with its arguments."""

    def __init__(self, check_mode: bool = False, **args: object) -> None:
        self.args, self.check_mode, self.async_val, self.environment = {"containers": CONTAINERS, **args}, check_mode, 0, None
        self.diff, self.collections, self._parent = False, [], None


class Host:
    """A host that answers each part of the module as it is told; `given` is what it was handed."""

    def __init__(self, **answers: t.Any) -> None:
        self.answers, self.given = {"begin": BEGIN, "add": ADD, "finish": FINISH, **answers}, []

    def __call__(self, _action: object, **how: t.Any) -> Plain:
        assert how["module_name"] == "bareon.allocator.disk_keys"
        self.given.append(how["module_args"])
        answer = self.answers[how["module_args"]["hand_over"]["part"]]
        if isinstance(answer, Exception):
            raise answer
        return copy.deepcopy({**answer, "invocation": {"module_args": how["module_args"]}})

    @property
    def parts(self) -> list[str]:
        return [given["hand_over"]["part"] for given in self.given]


@pytest.fixture
def action(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., Plain]:
    """Return a function that runs the action on a host."""

    def run(task: Task, host: Host | None = None, name: str = "db1.example", **variables: t.Any) -> Plain:
        found = object.__new__(ActionModule)
        found._discovered_interpreter_key = None
        found._task = task
        monkeypatch.setattr(ActionModule.__mro__[1], "run", lambda self, tmp=None, task_vars=None: {})
        answering = host or Host()

        def execute(self: t.Any, **how: t.Any) -> t.Any:
            return answering(self, **how)

        monkeypatch.setattr(ActionModule, "_execute_module", execute)
        return found.run(task_vars={"inventory_hostname": name, **variables})

    return run


@pytest.mark.parametrize("warnings", [5, None, "text", {"a": 1}])
def test_warnings_of_no_form_lose_no_key(action, tmp_path: Path, warnings: t.Any) -> None:
    result = action(Task(recovery_key_directory=str(tmp_path)), Host(finish={**FINISH, "warnings": warnings}))
    assert result["warnings"] == []
    assert result["recovery_key_files"]


@pytest.mark.parametrize("mark", ["podman", ""])
def test_a_key_that_would_go_with_the_container_of_a_job_is_a_warning(action, tmp_path: Path, monkeypatch, mark: str) -> None:
    monkeypatch.setattr(lasting, "MARK_FILES", ())
    monkeypatch.setenv("container", mark)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        result = action(Task(recovery_key_directory=folder))
        assert bool([one for one in result["warnings"] if folder in one and "recovery_key_directory" in one]) is bool(mark)
        assert result["recovery_key_files"]


def test_a_key_goes_into_a_file_of_its_owner_before_the_host_gets_it(action, tmp_path: Path) -> None:
    folder, host = tmp_path / "keys", Host()
    written = []

    class Looking(Host):
        def __call__(self, *given: t.Any, **how: t.Any) -> Plain:
            written.append(sorted(file.name for file in folder.iterdir()))
            return super().__call__(*given, **how)

    host = Looking()
    result = action(Task(recovery_key_directory=str(folder)), host)
    file = folder / "db1.example.data%2F1.3"
    assert host.parts == ["begin", "add", "finish"]
    assert written == [[], ["db1.example.data%2F1.new"], ["db1.example.data%2F1.new"]]
    assert result["recovery_key_files"] == {"data/1": str(file)}
    key = file.read_text().removesuffix("\n")
    assert is_recovery_key(key)
    assert [given["hand_over"]["recovery_keys"] for given in host.given] == [{}, {"data/1": key}, {"data/1": key}]
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(folder.stat().st_mode)) == (0o600, 0o700)
    assert key not in json.dumps(result)
    assert [step["kind"] for step in result["steps"]] == ["enrol"]
    assert "hand_over" not in result["invocation"]["module_args"]
    assert not any({"recovery_key_directory", "show_recovery_keys"} & set(given) for given in host.given)


LOOK: Plain = {**BEGIN, "steps": [{**STEP, "done": False}]}
UUID = "0b0fd0e8-7d1c-4f25-9d2e-3f0c8f3c7a11"
WITH_UUID = [{**CONTAINERS[0], "uuid": UUID}, CONTAINERS[1]]


def staged(folder: Path, stage: str, **more: t.Any) -> Task:
    return Task(**{"recovery_key_directory": str(folder), "recovery_key_stage": stage, "containers": WITH_UUID, **more})


def test_a_key_is_prepared_handed_over_and_enrolled(action, tmp_path: Path) -> None:
    host = Host(look=LOOK)
    foreseen = action(staged(tmp_path, "prepare", check_mode=True), host)
    assert (foreseen["changed"], foreseen["prepared"], list(tmp_path.iterdir())) == (True, [], [])
    first = action(staged(tmp_path, "prepare"), host)
    file = tmp_path / "db1.example.data%2F1.new"
    assert (first["changed"], first["prepared"]) == (True, [{"container": "data/1", "file": str(file), "uuid": UUID}])
    key = file.read_text().strip()
    # Whatever became of the tasks in between, it is the same key that is handed over again.
    again = action(staged(tmp_path, "prepare"), host)
    assert (again["changed"], again["prepared"], file.read_text().strip()) == (False, first["prepared"], key)
    assert set(host.parts) == {"look"}
    assert not any({"recovery_key_stage", "keep_recovery_keys"} & set(given) for given in host.given)
    done = action(staged(tmp_path, "enrol", keep_recovery_keys=False), host)
    assert host.parts[-3:] == ["begin", "add", "finish"]
    assert host.given[-1]["hand_over"]["recovery_keys"] == {"data/1": key}
    assert (done["recovery_key_files"], list(tmp_path.iterdir())) == ({}, [])
    assert key not in json.dumps([first, again, done])


def test_what_was_enrolled_and_not_confirmed_is_handed_over_again(action, tmp_path: Path) -> None:
    """The run before may have known nothing of a store of keys."""
    (tmp_path / "db1.example.data%2F1.new").write_text(f"{RECOVERY_KEY}\n")
    (tmp_path / "db1.example.data%2F1.new").chmod(0o600)
    result = action(staged(tmp_path, "prepare"), Host(look={**LOOK, "recovery_needed": [], "recovery_slots": {"data/1": 3}}))
    assert (result["changed"], [row["container"] for row in result["prepared"]]) == (False, ["data/1"])


def test_only_prepared_keys_are_enrolled(action, tmp_path: Path) -> None:
    host = Host()
    result = action(staged(tmp_path, "enrol"), host)
    assert result["failed"]
    assert "no key was prepared for data/1" in result["msg"]
    assert (host.parts, list(tmp_path.iterdir())) == (["begin"], [])


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"recovery_key_stage": "later"}, "recovery_key_stage"),
        ({"recovery_key_stage": "prepare", "recovery_key_directory": None}, "recovery_key_stage"),
        ({"recovery_key_stage": "complete", "keep_recovery_keys": False}, "keep_recovery_keys"),
        ({"recovery_key_stage": "prepare", "containers": [{**CONTAINERS[0], "uuid": "../../other"}]}, "containers"),
    ],
)
def test_a_stage_that_cannot_be_is_refused(action, tmp_path: Path, given: Plain, place: str) -> None:
    host = Host(look=LOOK)
    task = staged(tmp_path, given.pop("recovery_key_stage"), **given)
    task.args = {name: value for name, value in task.args.items() if value is not None}
    result = action(task, host)
    assert result["failed"]
    assert result["msg"].startswith(f"{place}: ")
    assert set(host.parts) <= {"look"}


def test_a_key_of_an_earlier_container_is_kept(action, tmp_path: Path) -> None:
    (tmp_path / "db1.example.data%2F1.3").write_text("earlier")
    action(Task(recovery_key_directory=str(tmp_path)))
    assert is_recovery_key((tmp_path / "db1.example.data%2F1.3").read_text().strip())
    assert (tmp_path / "db1.example.data%2F1.3.old1").read_text() == "earlier"


def test_a_key_is_shown_only_when_that_is_asked_for(action) -> None:
    host = Host()
    result = action(Task(), host)
    assert result["failed"]
    assert all(name in result["msg"] for name in ("recovery_key_directory", "show_recovery_keys"))
    assert host.parts == ["begin"]
    host = Host()
    assert action(Task(show_recovery_keys=True), host)["recovery_keys"] == host.given[1]["hand_over"]["recovery_keys"]
    assert [given["hand_over"]["written"] for given in host.given] == [False] * 3


def test_where_no_key_is_needed_the_host_is_asked_once(action, tmp_path: Path) -> None:
    for more in ({"recovery_key_directory": str(tmp_path)}, {}):
        host = Host(begin={**BEGIN, "recovery_needed": []})
        result = action(Task(**more), host)
        assert (host.parts, result.get("failed"), result["recovery_keys"]) == (["begin"], None, {})
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_nothing_is_begun(action, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    host = Host()
    result = action(Task(recovery_key_directory=str(tmp_path / "file")), host)
    assert result["failed"]
    assert "cannot be written to" in result["msg"]
    assert host.parts == []


def test_a_key_that_cannot_be_written_is_given_to_nobody(action, tmp_path: Path, monkeypatch) -> None:
    def full(*_given: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(files.os, "fsync", full)
    host = Host()
    result = action(Task(recovery_key_directory=str(tmp_path)), host)
    assert result["failed"]
    assert "no space left" in result["msg"]
    assert host.parts == ["begin"]
    assert list(tmp_path.iterdir()) == []


def test_the_next_run_hands_over_the_key_that_waits(action, tmp_path: Path) -> None:
    """The host was lost while it added the key, and the connection after it had done so."""
    for answers in ({"add": ConnectionError()}, {"finish": ConnectionError()}):
        first = Host(**answers)
        with pytest.raises(ConnectionError):
            action(Task(recovery_key_directory=str(tmp_path)), first)
        (file,) = tmp_path.iterdir()
        key = file.read_text().strip()
        assert file.name.endswith(".new")
        # It had come to the end there: nothing is needed any more.
        host = Host(begin={**FINISH, "recovery_needed": []}) if "finish" in answers else Host()
        result = action(Task(recovery_key_directory=str(tmp_path)), host)
        assert all(given["hand_over"]["recovery_keys"] == {"data/1": key} for given in host.given)
        assert list(result["recovery_key_files"].values()) == [str(tmp_path / "db1.example.data%2F1.3")]
        assert (tmp_path / "db1.example.data%2F1.3").read_text().strip() == key
        (tmp_path / "db1.example.data%2F1.3").unlink()


def test_a_run_that_failed_names_the_files_of_its_keys(action, tmp_path: Path) -> None:
    for part in ("add", "finish"):
        result = action(Task(recovery_key_directory=str(tmp_path)), Host(**{part: {**ADD, "failed": True, "msg": "no"}}))
        assert (result["failed"], result["msg"]) == (True, "no")
        assert result["recovery_key_files"] == {"data/1": str(tmp_path / "db1.example.data%2F1.new")}
    result = action(Task(recovery_key_directory=str(tmp_path)), Host(finish={**FINISH, "recovery_slots": {}}))
    assert result["failed"]
    assert "data/1" in result["msg"]


LIES: list[tuple[str, Plain]] = [
    ("evil", {"recovery_needed": ["evil"]}),
    ("logs", {"recovery_needed": ["logs"]}),
    ("../../etc", {"recovery_needed": ["../../etc"]}),
    ("None", {"recovery_needed": "data/1"}),
    ("None", {"recovery_needed": {"data/1": "x"}}),
    ("[]", {"recovery_needed": [[]]}),
    ("evil", {"recovery_slots": {"evil": 1}}),
    ("../x", {"recovery_slots": {"data/1": "../x"}}),
    ("True", {"recovery_slots": {"data/1": True}}),
    ("99", {"recovery_slots": {"data/1": 99}}),
    ("None", {"recovery_slots": [1]}),
    ("x", {"added": {"data/1": ["x"]}}),
    ("recovery keys", {"recovery_keys": {"data/1": "- hosts: localhost\n  tasks: []"}}),
    ("recovery keys", {"recovery_keys": {"data/1": new_recovery_key()}}),
    ("recovery keys", {"recovery_key_files": {"data/1": "/etc/passwd"}}),
]


@pytest.mark.parametrize("shows", [False, True])
@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(("named", "lie"), LIES)
def test_what_a_host_makes_up_is_refused_and_nothing_is_written(action, tmp_path: Path, named, lie, check_mode, shows) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    for part in ("begin",) if check_mode else ("begin", "add", "finish"):
        host = Host(**{part: {**{"begin": BEGIN, "add": ADD, "finish": FINISH}[part], **lie}})
        result = action(Task(check_mode, recovery_key_directory=str(folder), show_recovery_keys=shows), host)
        assert result["failed"], part
        assert named in result["msg"]
        written = [file.name for file in folder.iterdir()]
        assert written == ([] if part == "begin" else ["db1.example.data%2F1.new"])
        assert all(is_recovery_key(file.read_text().strip()) for file in folder.iterdir())
        assert [file.name for file in tmp_path.iterdir()] == ["keys"]
        assert host.parts[-1] == part


def test_nothing_is_written_in_check_mode(action, tmp_path: Path) -> None:
    host = Host()
    result = action(Task(check_mode=True, recovery_key_directory=str(tmp_path / "keys")), host)
    assert not result.get("failed")
    assert host.parts == ["begin"]
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("content", ["", "- hosts: all\n", "cbdefghi-jklnrtuv\n", f"{RECOVERY_KEY}\nmore", None])
def test_a_waiting_file_that_is_none_of_ours_is_refused(action, tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "db1.example.data%2F1.new"
    if content is None:
        (tmp_path / "elsewhere").write_text(f"{new_recovery_key()}\n")
        (tmp_path / "elsewhere").chmod(0o600)
        file.symlink_to(tmp_path / "elsewhere")
    else:
        file.write_text(content)
        file.chmod(0o600)
    host = Host()
    result = action(Task(recovery_key_directory=str(tmp_path)), host)
    assert result["failed"]
    assert str(file) in result["msg"]
    assert host.parts == []


@pytest.mark.parametrize("planted", ["folder", "pipe", "socket"])
def test_what_is_no_file_in_the_place_of_a_waiting_key_is_refused(action, tmp_path: Path, planted: str) -> None:
    file = tmp_path / "db1.example.data%2F1.new"
    if planted == "socket":
        with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(tmp_path):
            server.bind(file.name)
    else:
        {"folder": file.mkdir, "pipe": lambda: os.mkfifo(file)}[planted]()
    host = Host()
    result = action(Task(recovery_key_directory=str(tmp_path)), host)
    assert result["failed"]
    assert str(file) in result["msg"]
    assert host.parts == []


def test_a_host_with_facts_that_have_names_of_options_is_not_asked(action, tmp_path: Path) -> None:
    host = Host()
    facts = {"ansible_facts": {"bareon_recovery_key_directory": "/elsewhere"}}
    result = action(Task(recovery_key_directory=str(tmp_path)), host, **facts)
    assert result["failed"]
    assert "db1.example.ansible_facts.bareon_recovery_key_directory" in result["msg"]
    assert host.parts == []
    assert list(tmp_path.iterdir()) == []


def test_what_opens_a_container_is_what_the_schema_lists_and_not_what_a_host_says(action, tmp_path: Path) -> None:
    own = [{"method": "recovery"}]
    schema = {"luks": [{"name": "data/1", "unlock": [{"method": "passphrase"}]}, {"name": "logs", "unlock": own}, {"name": "bare"}]}
    told = [{"name": "data/1", "device": "/dev/sda1", "unlock": own}, {"name": "logs", "device": "/dev/sda2", "unlock": []}]
    host = Host(begin={**BEGIN, "recovery_needed": []})
    result = action(Task(recovery_key_directory=str(tmp_path), containers=told, schema=schema), host)
    assert not result.get("failed")
    assert [one["unlock"] for one in host.given[0]["containers"]] == [[{"method": "passphrase"}], own]
    assert "schema" not in host.given[0]
    for name in ("data/1", "bare", "unknown", None, ["x"]):
        host = Host(begin={**BEGIN, "recovery_needed": [name]})
        asked = [{"name": name, "device": "/dev/sda1", "unlock": own}] if name != "data/1" else told
        assert action(Task(recovery_key_directory=str(tmp_path), containers=asked, schema=schema), host)["failed"], name
    assert list(tmp_path.iterdir()) == []


def test_a_waiting_key_that_others_can_read_is_refused(action, tmp_path: Path) -> None:
    file = tmp_path / "db1.example.data%2F1.new"
    file.write_text(f"{new_recovery_key()}\n")
    for mode in (0o640, 0o604, 0o644):
        file.chmod(mode)
        assert str(file) in action(Task(recovery_key_directory=str(tmp_path)))["msg"]


def test_a_waiting_key_of_another_user_is_refused(action, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has planted it would know what opens the container."""
    waiting = tmp_path / "db1.example.data%2F1.new"
    waiting.write_text(f"{new_recovery_key()}\n")
    waiting.chmod(0o600)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    host = Host()
    assert "another user" in action(Task(recovery_key_directory=str(tmp_path)), host)["msg"]
    assert host.parts == []


def test_links_that_somebody_has_planted_are_not_followed(action, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    folder = tmp_path / "keys"
    folder.mkdir()
    os.symlink(target, folder / "db1.example.data%2F1.3")
    action(Task(recovery_key_directory=str(folder)))
    assert target.read_text() == "precious"
    assert not (folder / "db1.example.data%2F1.3").is_symlink()


def test_no_two_hosts_or_containers_share_a_file() -> None:
    hosts = ["db.x", "db_x", "db%2Ex", "db", "db.x.data", "../db", "/db", "d\u00fc", "d\udcff"]
    names = ["data", "x.data", "x%2Edata", "data/1", "data_1", "data.1", "../data", "\ud800", "data.3"]
    files = [Folder(Path("keys"), host).new(name) for host in hosts for name in names]
    assert len(set(files)) == len(files) == len(hosts) * len(names)
    assert {file.parent for file in files} == {Path("keys")}


def test_a_key_that_waits_for_one_host_is_not_given_to_another(action, tmp_path: Path) -> None:
    """The names of both were once written alike."""
    waiting = tmp_path / "db1.example.data%2F1.new"
    action(Task(recovery_key_directory=str(tmp_path)), Host(add={**ADD, "failed": True, "msg": "cut off"}))
    key = waiting.read_text()
    other = Host()
    action(Task(recovery_key_directory=str(tmp_path)), other, "db1_example")
    assert other.given[0]["hand_over"]["recovery_keys"] == {}
    assert waiting.read_text() == key
    assert (tmp_path / "db1_example.data%2F1.3").read_text() != key


def test_messages_of_hosts_have_marks_where_nobody_sees_anything(action) -> None:
    result = action(Task(), Host(begin={**BEGIN, "failed": True, "msg": "no\x1b[2J\nyes", "warnings": ["a\u202eb"]}))
    assert (result["msg"], result["warnings"]) == ("no\ufffd[2J\nyes", ["a\ufffdb"])


def test_what_the_controller_says_cannot_be_given(action) -> None:
    host = Host()
    assert "hand_over" in action(Task(hand_over={}), host)["msg"]
    assert host.parts == []


@pytest.mark.parametrize("option", ["recovery_key_directory", "header_backup_directory"])
def test_secrets_do_not_go_into_a_ledger(action, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    host = Host()
    result = action(Task(**{option: "ledger"}), host)
    assert result["failed"]
    assert result["msg"].startswith(f"{option}: ")
    assert "disk_layout_escrow_tasks" in result["msg"]
    assert list(tmp_path.iterdir()) == []
