# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module around module_utils/_booting: a system of empty files in a folder, and a machine that writes down what it is asked to do."""

from __future__ import annotations

import json
import subprocess

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.bareon.allocator.plugins.module_utils._layout.protected import Protection
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine
from ansible_collections.bareon.allocator.plugins.modules import disk_boot

SCHEMA = {"parteds": [{"name": "/dev/sda", "partitions": [{"name": "/dev/sda1", "guid": "21686148-6449-6e6f-744e-656564454649"}]}]}
STEPS = ["make the initramfs of 6.12", "install GRUB for BIOS on /dev/sda", "write the menu of GRUB"]


class Machine(LocalMachine):
    """This machine, on which nothing is carried out."""

    def __init__(self):
        self.commands = []

    def change(self, command, given=b"", patience=0, accepted=(0,)):
        self.commands.append(command)
        return ""


@pytest.fixture
def machine(monkeypatch):
    found = Machine()
    monkeypatch.setattr(disk_boot, "LocalMachine", lambda: found)
    return found


@pytest.fixture
def system(tmp_path):
    for file in ("boot/vmlinuz-6.12", "usr/sbin/update-initramfs", "usr/sbin/grub-install", "usr/lib/grub/i386-pc/normal.mod"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    return tmp_path


def run(capsys, system, **more):
    with patch_module_args({"root": str(system), "schema": SCHEMA, **more}), pytest.raises(SystemExit):
        disk_boot.main()
    return json.loads(capsys.readouterr().out)


def test_it_is_done_once(machine, capsys, system):
    first, second = run(capsys, system), run(capsys, system)
    assert (first["changed"], first["steps"]) == (True, STEPS)
    assert (second["changed"], second["steps"]) == (False, [])
    assert len(machine.commands) == len(STEPS)


def test_check_mode_tells_the_same_and_does_nothing(machine, capsys, system):
    before = sorted(system.rglob("*"))
    seen = run(capsys, system, _ansible_check_mode=True)
    assert (machine.commands, sorted(system.rglob("*"))) == ([], before)
    assert seen == run(capsys, system)


def test_what_is_lacking_is_told_at_once(machine, capsys, tmp_path):
    said = run(capsys, tmp_path)
    assert said["failed"]
    assert said["msg"].startswith(
        "The system cannot be made bootable, and nothing was changed:\n- there is no kernel (vmlinuz-VERSION) in boot of "
    )
    assert "no grub-install" in said["msg"]
    assert machine.commands == []


def test_an_archive_is_looked_into_and_nothing_is_done(capsys, system, tmp_path):
    archive = tmp_path / "system.tar.gz"
    subprocess.run(["tar", "--create", "--gzip", f"--file={archive}", f"--directory={system}", "boot", "usr"], check=True)
    with patch_module_args({"archive": str(archive), "schema": SCHEMA}), pytest.raises(SystemExit):
        disk_boot.main()
    assert json.loads(capsys.readouterr().out)["compression"] == "gzip"
    archive.write_bytes(archive.read_bytes()[:-20])
    for complete in (True, False):
        with patch_module_args({"archive": str(archive), "schema": SCHEMA, "complete": complete}), pytest.raises(SystemExit):
            disk_boot.main()
        assert "is not an archive of a root file system that can be read to its end" in json.loads(capsys.readouterr().out)["msg"]


def test_what_an_archive_lacks_is_told_unless_it_need_not_be_complete(capsys, tmp_path):
    archive = tmp_path / "system.tar"
    subprocess.run(["tar", "--create", f"--file={archive}", "--files-from=/dev/null"], check=True)
    said = []
    for complete in (True, False):
        with patch_module_args({"archive": str(archive), "schema": SCHEMA, "complete": complete}), pytest.raises(SystemExit):
            disk_boot.main()
        said.append(json.loads(capsys.readouterr().out))
    assert said[0]["msg"].startswith("The system in the archive would not start, and nothing was changed:\n- there is no kernel ")
    assert not said[1].get("failed")


def test_an_archive_that_does_not_go_with_the_layout_is_refused(capsys, system, tmp_path):
    (system / "usr/big").write_bytes(b"a" * 3 * 1024**2)
    archive = tmp_path / "system.tar"
    subprocess.run(["tar", "--create", f"--file={archive}", f"--directory={system}", "boot", "usr"], check=True)
    parts = [{"count": 1, "begin": 1, "end": 2, "guid": "21686148-6449-6e6f-744e-656564454649"}, {"count": 2, "begin": 2, "end": 6}]
    schema = {"parteds": [{"name": "/dev/sda", "partitions": parts}], "fss": [{"device": "/dev/sda2", "mount": "/", "fs_type": "ext2"}]}
    said = []
    for more in ({}, {"copied": True}, {"users": ["postgres"], "complete": False}):
        with patch_module_args({"archive": str(archive), "schema": schema, **more}), pytest.raises(SystemExit):
            disk_boot.main()
        said.append(json.loads(capsys.readouterr().out))
    assert not said[0].get("failed")
    assert said[1]["msg"].startswith("The archive does not go with the layout, and nothing was changed:\n- ")
    assert "takes 7 MiB in /, which has 4 MiB" in said[1]["msg"]
    assert f"- there is no user postgres in {archive}, which is to own a mount point" in said[2]["msg"]


def test_no_boot_loader_is_written_to_a_protected_disk(machine, capsys, system, monkeypatch):
    protects = (Protection("wwn-1", "protect"),)
    monkeypatch.setattr(disk_boot, "protections_of_node", lambda _machine, node, given: protects if given and node == "/dev/sda" else ())
    refused = run(capsys, system, protect=["wwn-1"])
    assert refused["failed"]
    assert "/dev/sda is on a disk that is protected by 'wwn-1' of protect" in refused["msg"]
    assert machine.commands == []
    assert run(capsys, system)["changed"]
    # One that has its boot loader does not matter.
    assert run(capsys, system, protect=["wwn-1"])["changed"] is False
