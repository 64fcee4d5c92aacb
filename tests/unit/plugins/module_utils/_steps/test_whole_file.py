# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""After a power cut at any moment a table has its old text or its new one."""

from __future__ import annotations

import contextlib
import os
import stat

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._steps import machine, whole_file
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.whole_file import read_file, replace_file
from ansible_collections.bareon.allocator.tests.support.host.losing_files import LosingFiles

TABLE, OLD, NEW = "/etc/fstab", b"old text", b"another text\n"


@pytest.fixture
def losing(monkeypatch):
    def made(files, failing=""):
        found = LosingFiles(files, failing)
        # Folders and links are those of the real machine.
        monkeypatch.setattr(whole_file, "os", found)
        monkeypatch.setattr(machine, "os", found)
        return found

    return made


def test_no_cut_leaves_less_than_a_whole_table(losing):
    files = losing({TABLE: OLD, "/etc/other": b"other"})
    replace_file(TABLE, NEW.decode())
    assert {state[TABLE] for state in files.cuts} == {OLD, NEW}
    assert {state["/etc/other"] for state in files.cuts} == {b"other"}
    # When it is done, no cut brings the old one back.
    files.cuts.clear()
    files.open("/etc/other", files.O_WRONLY | files.O_CREAT)
    assert {state[TABLE] for state in files.cuts} == {NEW}
    assert set(files.names) == {TABLE, "/etc/other"}


def test_no_cut_leaves_less_than_a_whole_new_table(losing):
    files = losing({})
    replace_file(TABLE, NEW.decode())
    assert {state.get(TABLE) for state in files.cuts} == {None, NEW}


@pytest.mark.parametrize("order", ["without fsync", "rename first"])
def test_the_model_loses_what_is_not_flushed(losing, order):
    """The orders of writing that left a table of 0 bytes on a real XFS are found out."""
    files = losing({TABLE: OLD})
    handle = files.open("/etc/draft", files.O_WRONLY | files.O_CREAT)
    files.write(handle, NEW[:3])
    files.replace("/etc/draft", TABLE)
    if order == "rename first":
        files.fsync(handle)
    assert b"" in {state[TABLE] for state in files.cuts}


@pytest.mark.parametrize("failing", ["open", "write", "fsync", "replace"])
def test_what_fails_leaves_the_old_table_and_no_draft(losing, failing):
    files = losing({TABLE: OLD}, failing)
    with pytest.raises(StepFailed, match="cannot write /etc/fstab: No space left on device"):
        replace_file(TABLE, NEW.decode())
    assert {state[TABLE] for state in files.cuts} == {OLD}
    assert {path: inode.text for path, inode in files.names.items()} == {TABLE: OLD}


def test_owner_mode_and_attributes_stay(losing):
    files = losing({TABLE: OLD})
    files.names[TABLE].st_uid, files.names[TABLE].mode = 5, 0o640
    files.names[TABLE].attributes["security.selinux"] = b"etc_t"
    replace_file(TABLE, NEW.decode())
    found = files.names[TABLE]
    assert (found.st_uid, found.mode, found.attributes) == (5, 0o640, {"security.selinux": b"etc_t"})


def test_a_draft_of_a_run_that_was_killed_is_not_in_the_way(losing):
    files = losing({TABLE: OLD, "/etc/.fstab.7.new": b"half"})
    replace_file(TABLE, NEW.decode())
    assert set(files.names) == {TABLE}


def test_real_files(tmp_path):
    table = tmp_path / "a/b/table"
    replace_file(str(table), "one\r\n\udcff", 0o600)
    assert table.read_bytes() == b"one\r\n\xff"
    assert read_file(str(table)) == "one\r\n\udcff"
    assert stat.S_IMODE(table.stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to("a/b/table")
    replace_file(str(tmp_path / "link"), "two")
    assert (tmp_path / "link").is_symlink()
    assert table.read_text(encoding="utf-8") == "two"
    assert os.listdir(table.parent) == ["table"]
    assert read_file(str(tmp_path / "none")) is None
    with pytest.raises(StepFailed, match="cannot read"):
        read_file(str(tmp_path))


@pytest.mark.parametrize("planted", ["link", "dangling link", "hard link", "file"])
def test_a_draft_that_somebody_plants_meanwhile_is_not_written_to(tmp_path, monkeypatch, planted):
    """A name that is there already is removed first; what comes after that moment is refused."""
    table, victim = tmp_path / "fstab", tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    table.write_bytes(OLD)
    draft = tmp_path / f".fstab.{os.getpid()}.new"
    unlink = os.unlink

    def plant(path):
        with contextlib.suppress(FileNotFoundError):
            unlink(path)
        if planted == "hard link":
            os.link(victim, draft)
        elif planted == "file":
            draft.write_bytes(b"")
        else:
            draft.symlink_to(victim if planted == "link" else tmp_path / "none")

    monkeypatch.setattr(whole_file.os, "unlink", plant)
    with pytest.raises(StepFailed):
        replace_file(str(table), NEW.decode())
    assert victim.read_text(encoding="utf-8") == "precious"
    assert table.read_bytes() == OLD
    assert not (tmp_path / "none").exists()
