# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ast
import functools
import json
import pathlib
import stat

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.bareon.allocator.plugins.module_utils._layout import lock
from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import only_writer
from ansible_collections.bareon.allocator.plugins.modules import disk_mounts
from ansible_collections.bareon.allocator.tests.support.host.mounting_machine import MountingMachine


@pytest.fixture
def machine(monkeypatch):
    found = MountingMachine(files={"/proc/self/mountinfo": ""})
    monkeypatch.setattr(disk_mounts, "LocalMachine", lambda: found)
    return found


def run(capsys, tmp_path, **arguments):
    """The result that the module prints for one file system."""
    mounts = [{"src": "UUID=1", "path": str(tmp_path / "srv"), "fstype": "xfs"}]
    given = {"mounts": mounts, "fstab": str(tmp_path / "fstab"), **arguments}
    with patch_module_args(given), pytest.raises(SystemExit):
        disk_mounts.main()
    return json.loads(capsys.readouterr().out)


def test_it_is_mounted_once(machine, capsys, tmp_path):
    fstab = tmp_path / "fstab"
    fstab.write_text("# mine\n", encoding="utf-8")
    fstab.chmod(0o640)
    line = f"UUID=1 {tmp_path}/srv xfs defaults 0 0\n"

    first = run(capsys, tmp_path, _ansible_diff=True)
    second = run(capsys, tmp_path)

    assert (first["changed"], first["mounted"], first["remounted"]) == (True, [f"{tmp_path}/srv"], [])
    assert (first["diff"]["before"], first["diff"]["after"]) == ("# mine\n", f"# mine\n{line}")
    assert fstab.read_text(encoding="utf-8") == f"# mine\n{line}"
    assert stat.S_IMODE(fstab.stat().st_mode) == 0o640
    assert (second["changed"], second["mounted"]) == (False, [])
    assert machine.commands == [f"mount --fstab {fstab} {tmp_path}/srv"]


def test_check_mode_tells_the_same_and_does_nothing(machine, capsys, tmp_path):
    seen = run(capsys, tmp_path, _ansible_check_mode=True)
    assert (machine.events, list(tmp_path.iterdir())) == ([], [])
    assert seen == run(capsys, tmp_path)


def test_what_fstab_was_stays_beside_it_where_that_is_asked_for(machine, capsys, tmp_path):
    assert "backup_file" not in run(capsys, tmp_path, backup=True)
    fstab = tmp_path / "fstab"
    fstab.write_text("LABEL=old /srv xfs noauto 0 0\n", encoding="utf-8")
    seen = run(capsys, tmp_path, backup=True, _ansible_check_mode=True)
    made = run(capsys, tmp_path, backup=True)
    again = run(capsys, tmp_path, backup=True)
    assert pathlib.Path(made["backup_file"]).read_text(encoding="utf-8") == "LABEL=old /srv xfs noauto 0 0\n"
    assert "backup_file" not in {**seen, **again}
    assert [file.name for file in tmp_path.iterdir() if "fstab." in file.name] == [pathlib.Path(made["backup_file"]).name]


def test_a_new_system_leaves_the_table_of_this_one_alone(machine, capsys, tmp_path):
    fstab = tmp_path / "fstab"
    fstab.write_text("# mine\n", encoding="utf-8")
    mounts = [{"src": "UUID=1", "path": path, "fstype": "ext4", "passno": "1"} for path in ("/", "/srv")]
    options = {"mounts": mounts, "root": str(tmp_path / "target"), "backup": True}

    seen = run(capsys, tmp_path, **options, _ansible_check_mode=True)
    assert machine.events == []
    first, second = run(capsys, tmp_path, **options), run(capsys, tmp_path, **options)

    places = [f"{tmp_path}/target", f"{tmp_path}/target/srv"]
    assert seen == first
    assert (first["changed"], first["mounted"]) == (True, places)
    assert (second["changed"], second["mounted"]) == (False, [])
    assert machine.commands == [f"mount -t ext4 -o defaults UUID=1 {place}" for place in places]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fstab", "target"]
    assert fstab.read_text(encoding="utf-8") == "# mine\n"


def test_what_fails_is_told(machine, capsys, tmp_path):
    machine.failing["mount"] = 32
    result = run(capsys, tmp_path)
    assert result["failed"]
    assert "mount --fstab" in result["msg"]


def test_a_table_is_found_behind_its_link(machine, capsys, tmp_path):
    (tmp_path / "real").touch()
    (tmp_path / "fstab").symlink_to("real")
    run(capsys, tmp_path)
    assert (tmp_path / "fstab").is_symlink()
    assert (tmp_path / "real").read_text(encoding="utf-8").startswith("UUID=1 ")


def test_no_line_of_another_run_is_lost(machine, capsys, tmp_path, monkeypatch):
    """The other run comes between the reading and the writing of this one."""
    monkeypatch.setattr(lock.os, "geteuid", lambda: 0)
    monkeypatch.setattr(disk_mounts, "only_writer", functools.partial(only_writer, path=str(tmp_path / "lock"), patience=0))
    write, others = disk_mounts.replace_file, []
    other = {"mounts": [{"src": "UUID=9", "path": str(tmp_path / "other"), "fstype": "xfs"}]}

    def write_late(*arguments):
        monkeypatch.setattr(disk_mounts, "replace_file", write)
        others.append(run(capsys, tmp_path, **other))
        write(*arguments)

    monkeypatch.setattr(disk_mounts, "replace_file", write_late)
    run(capsys, tmp_path)
    assert others[0]["failed"]
    assert "another run of disk_mounts is active" in others[0]["msg"]
    assert run(capsys, tmp_path, **other)["changed"]
    lines = (tmp_path / "fstab").read_text(encoding="utf-8").splitlines()
    assert [line.split()[1] for line in lines] == [f"{tmp_path}/{name}" for name in ("srv", "other")]


def test_what_is_documented_is_returned(machine, capsys, tmp_path):
    tree = ast.parse(pathlib.Path(disk_mounts.__file__).read_text(encoding="utf-8"))
    (text,) = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "RETURN"]
    (tmp_path / "fstab").touch()
    result = run(capsys, tmp_path, backup=True)
    assert set(yaml.safe_load(text)) == set(result) - {"changed", "diff", "invocation"}
