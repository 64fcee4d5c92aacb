# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import fcntl
import os
import sys

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._steps import machine as machines
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import CommandFailed, LocalMachine, Region, StepFailed

MIB = 1024**2


def test_a_command_gets_its_input_and_gives_its_output():
    assert LocalMachine().change([sys.executable, "-c", "print(input()[::-1])"], b"abc\n") == "cba\n"


def test_a_command_runs_in_one_language_and_without_the_terminals_signals():
    script = "import os; print(os.environ['LC_ALL'], os.getsid(0) == os.getpid())"
    assert LocalMachine().change([sys.executable, "-c", script]).split() == ["C", "True"]


def test_a_command_that_fails_says_what_it_said():
    script = "import sys; print('out'); print(' first\\n\\n second ', file=sys.stderr); sys.exit(3)"
    with pytest.raises(CommandFailed, match="failed with code 3: first; second") as failed:
        LocalMachine().change([sys.executable, "-c", script])
    assert failed.value.code == 3
    assert LocalMachine().change([sys.executable, "-c", script], accepted=(0, 3)) == "out\n"


def test_what_a_command_was_given_does_not_show_when_it_fails():
    with pytest.raises(CommandFailed) as failed:
        LocalMachine().change([sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(1)"], b"secret")
    assert "secret" not in str(failed.value)


def test_a_missing_tool_and_one_that_hangs_are_failures():
    with pytest.raises(CommandFailed, match="there is no no-such-tool"):
        LocalMachine().change(["no-such-tool"])
    with pytest.raises(CommandFailed, match="nothing within 1 s") as failed:
        LocalMachine().change([sys.executable, "-c", "import time; time.sleep(60)"], patience=1)
    assert failed.value.code is None


def test_tools_are_there_or_not():
    assert LocalMachine().has("sh")
    assert not LocalMachine().has("no-such-tool")


def test_zeros_are_written_where_they_are_wanted(tmp_path):
    file = tmp_path / "disk"
    file.write_bytes(b"x" * (3 * MIB + 10))
    LocalMachine().zero(str(file), [Region(1, MIB + 7), Region(3 * MIB, 10)], exclusively=False)
    left = [position for position, byte in enumerate(file.read_bytes()) if byte]
    assert left == [0, *range(MIB + 8, 3 * MIB)]


def test_zeros_that_cannot_be_written_are_a_failure(tmp_path):
    with pytest.raises(StepFailed, match="cannot write zeros on .*No such file"):
        LocalMachine().zero(str(tmp_path / "none"), [Region(0, 1)], exclusively=False)


def test_a_disk_is_locked_as_udev_respects_it(tmp_path, monkeypatch):
    file = tmp_path / "disk"
    file.touch()
    with file.open("rb") as other:
        with LocalMachine().locked(str(file)), pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        monkeypatch.setattr(machines, "_NODE_PATIENCE", 0)
        with pytest.raises(StepFailed, match="locked by another program"), LocalMachine().locked(str(file)):
            pass
    with pytest.raises(StepFailed, match="cannot open"), LocalMachine().locked(str(tmp_path / "none")):
        pass


def test_nodes_are_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(machines, "_NODE_PATIENCE", 0.2)
    LocalMachine().wait_for([str(tmp_path)])
    with pytest.raises(StepFailed, match="none did not appear"):
        LocalMachine().wait_for([str(tmp_path), str(tmp_path / "none")])


def test_only_what_is_meant_to_be_is_inherited_by_tools(tmp_path):
    """The lock of a run is, so that a tool which outlives its run keeps the next one out."""
    kept, closed = (os.open(tmp_path / name, os.O_RDWR | os.O_CREAT) for name in ("kept", "closed"))
    os.set_inheritable(kept, True)
    script = "import pathlib; print(*(link.resolve().name for link in pathlib.Path('/proc/self/fd').iterdir()))"
    try:
        said = LocalMachine().change([sys.executable, "-c", script]).split()
        assert "kept" in said
        assert "closed" not in said
    finally:
        os.close(kept)
        os.close(closed)
