# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lock of a host: one run at a time, others wait as long as they are told, and learn who holds it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout import lock
from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import only_run, only_writer, why_no_timeout
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import StepFailed


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "lock")


def refused(path, timeout=0):
    with pytest.raises(StepFailed) as failed, only_run("disk_layout", timeout, path):
        pass
    return str(failed.value)


def test_one_run_keeps_others_out_and_says_who_it_is(path, monkeypatch):
    monkeypatch.setattr(lock, "_origin", lambda: "192.0.2.7")
    with only_run("disk_keys", 0, path):
        said = refused(path)
        holder = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    assert (holder["pid"], holder["command"], holder["from"]) == (os.getpid(), "disk_keys", "192.0.2.7")
    for part in ("another run of disk_keys", "192.0.2.7", str(os.getpid()), holder["since"], path, "nothing was changed"):
        assert part in said
    with only_run("disk_layout", 0, path):
        assert "another run of disk_layout" in refused(path)


def test_a_run_waits_for_another_as_long_as_it_may(path, monkeypatch):
    pauses = []
    monkeypatch.setattr(lock.time, "monotonic", lambda: float(sum(pauses)))
    monkeypatch.setattr(lock.time, "sleep", pauses.append)
    with only_run("disk_layout", 0, path):
        assert "waited 3 s" in refused(path, 3)
    assert sum(pauses) >= 3


def test_a_run_goes_on_when_the_other_has_ended(path):
    held, release, order = threading.Event(), threading.Event(), []

    def other():
        with only_run("disk_layout", 0, path):
            held.set()
            release.wait()
            order.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    held.wait()
    threading.Timer(0.3, release.set).start()
    with only_run("disk_layout", 600, path):
        order.append("this")
    thread.join()
    assert order == ["other", "this"]


def test_a_tool_that_outlives_its_run_holds_the_lock_and_is_told_apart(path):
    program = (
        "import os, subprocess, sys\n"
        "from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import only_run\n"
        "with only_run('disk_layout', 0, sys.argv[1]):\n"
        "    tool = subprocess.Popen(['cat'], stdin=sys.stdin, close_fds=False)\n"
        "    print(os.getpid(), flush=True)\n"
        "    os._exit(0)\n"
    )
    read, write = os.pipe()
    started = subprocess.Popen(
        [sys.executable, "-c", program, path],
        stdin=read,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    pid = started.stdout.readline().strip()
    started.wait()
    said = refused(path)
    os.close(write)
    os.close(read)
    assert f"process {pid}, which has ended" in said


def test_a_program_that_outlives_a_writing_does_not_hold_its_lock(path, monkeypatch):
    monkeypatch.setattr(lock.os, "geteuid", lambda: 0)
    with only_writer("disk_mounts", path):
        helper = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
        with pytest.raises(StepFailed) as failed, only_writer("disk_tables", path, 0):
            pass
    assert "another run of disk_mounts is active on this host, since" in str(failed.value)
    with only_writer("disk_tables", path, 0):
        assert helper.poll() is None
    helper.communicate()


def test_others_than_root_write_no_table_that_others_read(path, monkeypatch):
    monkeypatch.setattr(lock.os, "geteuid", lambda: 1000)
    with only_writer("disk_tables", path):
        assert not os.path.exists(path)


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"pid": "x"}', '{"pid": 1, "command": "a\\u001b", "since": "b", "from": "c"}'])
def test_a_lock_that_does_not_say_whose_it_is_keeps_others_out_all_the_same(path, content):
    with only_run("disk_layout", 0, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        assert "another run of disk_layout is active on this host (it holds" in refused(path)


def test_a_lock_that_cannot_be_had_is_a_failure(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for name in ("none/lock", "link"):
        assert "cannot lock out other runs" in refused(str(tmp_path / name))
    assert not (tmp_path / "target").exists()


def test_the_address_comes_from_the_nearest_process_that_has_it():
    program = "from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import _origin\nprint(_origin())\n"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    without = [sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], env={'PYTHONPATH': %r}).returncode)"]
    without[2] = without[2] % environment["PYTHONPATH"]
    said = subprocess.run(
        [*without, sys.executable, "-c", program],
        env={**environment, "SSH_CONNECTION": "2001:db8::7 50000 192.0.2.1 22"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == "2001:db8::7"


def test_a_time_below_zero_is_a_mistake():
    assert [text.partition(":")[0] for text in why_no_timeout({"lock_timeout": -1})] == ["lock_timeout"]
    assert list(why_no_timeout({"lock_timeout": 0})) == []
