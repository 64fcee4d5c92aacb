# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real machine: what does not depend on what it is."""

from __future__ import annotations

import os

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts import host as host_module
from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import LocalHost


def test_a_tool_is_run_in_a_plain_locale_without_input():
    outcome = LocalHost().run(["sh", "-c", "echo $LC_ALL; cat; echo problem >&2; exit 3"])

    assert (outcome.code, outcome.stdout, outcome.stderr) == (3, "C\n", "problem\n")


def test_a_tool_that_is_missing_or_cannot_run():
    assert LocalHost().run(["no-such-tool-anywhere"]) is None


def test_tools_are_found_without_a_path(monkeypatch):
    monkeypatch.setenv("PATH", "")

    assert LocalHost().run(["sh", "-c", "exit 0"]).code == 0


def test_a_tool_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(host_module, "TOOL_TIMEOUT", 0.2)

    assert LocalHost().run(["sh", "-c", "exec sleep 30"]) is None


def test_output_that_is_no_text_is_not_fatal():
    assert LocalHost().run(["printf", r"\377x"]).stdout == "\ufffdx"


def test_files_and_directories(tmp_path):
    (tmp_path / "b").write_text(" text\n")
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    machine = LocalHost()

    assert machine.names(str(tmp_path)) == ("a", "b", "dangling")
    assert machine.read(str(tmp_path / "a")) == "text"
    assert machine.resolve(str(tmp_path / "a")) == os.path.realpath(tmp_path / "b")
    assert machine.resolve(str(tmp_path / "dangling")) is None
    assert machine.read(str(tmp_path / "nothing")) is None
    assert machine.names(str(tmp_path / "nothing")) == ()


def test_a_claim_is_unknown_when_the_device_cannot_be_opened(tmp_path):
    assert LocalHost().claimed(str(tmp_path / "nothing")) is None


@pytest.mark.parametrize(("number", "claimed"), [(16, True), (13, None)], ids=["busy", "forbidden"])
def test_what_the_kernel_answers_to_an_exclusive_open(monkeypatch, number, claimed):
    def refuse(path, flags):
        assert flags & os.O_EXCL
        assert flags & os.O_ACCMODE == os.O_RDONLY
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(os, "open", refuse)

    assert LocalHost().claimed("/dev/sda") is claimed


def test_a_free_device_is_closed_again(tmp_path):
    free = tmp_path / "free"
    free.write_text("")
    before = len(os.listdir("/proc/self/fd"))

    assert LocalHost().claimed(str(free)) is False
    assert len(os.listdir("/proc/self/fd")) == before
