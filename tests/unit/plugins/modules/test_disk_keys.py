# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import only_run
from ansible_collections.bareon.allocator.plugins.module_utils._layout.protected import Protection
from ansible_collections.bareon.allocator.plugins.module_utils._storage.recovery_key import new_recovery_key
from ansible_collections.bareon.allocator.plugins.modules import disk_keys, disk_layout
from ansible_collections.bareon.allocator.tests.support.host.luks_machine import LuksMachine, SimulatedHeader

OLD, NEW = "correct horse", "battery staple"
# What disk_layout returns of a container.
CONTAINER = {
    "name": "data",
    "device": "/dev/disk/by-id/wwn-1-part1",
    "node": "/dev/sda1",
    "uuid": "11111111-2222-5333-8444-555555555555",
    "names": [],
}


@pytest.fixture
def machine(monkeypatch, tmp_path):
    found = LuksMachine({"/dev/sda1": SimulatedHeader({0: OLD.encode()})})
    monkeypatch.setattr(disk_keys, "LocalMachine", lambda: found)
    monkeypatch.setattr(disk_keys.os, "geteuid", lambda: 0)
    monkeypatch.setattr(disk_keys, "only_run", lambda command, timeout: only_run(command, timeout, str(tmp_path / "lock")))
    return found


def run(capsys, *unlock, **arguments):
    """The code and the result that the module prints."""
    given = {"containers": [{**CONTAINER, "unlock": list(unlock)}], **arguments}
    with patch_module_args(given), pytest.raises(SystemExit) as ended:
        disk_keys.main()
    return ended.value.code, json.loads(capsys.readouterr().out)


def test_recovery_keys_come_from_the_controller_and_no_key_shows(machine, capsys):
    unlock, given = [{"method": "passphrase"}, {"method": "recovery"}], {"luks_key": NEW, "luks_old_key": OLD, "take_away": ["keys"]}
    code, result = run(capsys, *unlock, **given)
    assert (code, result["changed"], result["recovery_needed"]) == (0, False, ["data"])
    assert machine.headers["/dev/sda1"].slots == {0: OLD.encode()}
    key = new_recovery_key()
    hand_over = {"recovery_keys": {"data": key}, "written": True}
    code, result = run(capsys, *unlock, **given, hand_over={**hand_over, "part": "add"})
    assert (code, result["added"], result["recovery_slots"]) == (0, {"data": [1, 2]}, {"data": 2})
    assert set(machine.headers["/dev/sda1"].slots.values()) == {OLD.encode(), NEW.encode(), key.encode()}
    for secret in (OLD, NEW, key):
        assert secret not in json.dumps(result)
    code, result = run(capsys, *unlock, **given, hand_over={**hand_over, "part": "finish", "added": result["added"]}, _ansible_diff=True)
    assert (code, [step["kind"] for step in result["steps"]]) == (0, ["confirm", "take_away"])
    assert set(machine.headers["/dev/sda1"].slots.values()) == {NEW.encode(), key.encode()}
    assert result["diff"]["after"] == "data\n  a passphrase\n  a recovery key\n"
    for secret in (OLD, NEW, key):
        assert secret not in json.dumps(result)
    code, result = run(capsys, *unlock, **given)
    assert (code, result["changed"], result["recovery_needed"]) == (0, False, [])


def test_what_is_no_recovery_key_is_no_key(machine, capsys):
    for text in ("", "- hosts: all", new_recovery_key() + "\n", new_recovery_key().upper()):
        code, result = run(capsys, {"method": "recovery"}, luks_key=OLD, hand_over={"part": "add", "recovery_keys": {"data": text}})
        assert (code, [mistake.split(":")[0] for mistake in result["mistakes"]]) == (1, ["hand_over.recovery_keys.data"])
    assert machine.headers["/dev/sda1"].slots == {0: OLD.encode()}


def test_check_mode_changes_nothing(machine, capsys):
    code, result = run(capsys, {"method": "recovery"}, luks_key=OLD, _ansible_check_mode=True)
    assert (code, result["changed"], result["recovery_needed"]) == (0, True, ["data"])
    assert machine.headers["/dev/sda1"].slots == {0: OLD.encode()}


def test_mistakes_and_failures_are_told(machine, capsys):
    code, result = run(capsys, {"method": "key_file"})
    assert (code, result["mistakes"]) == (1, ["containers[0].unlock[0].path: is missing; key_file needs it"])
    code, result = run(capsys, {"method": "recovery"}, luks_key=NEW)
    assert code == 1
    assert "none of the given keys opens data" in result["msg"]
    machine.headers.clear()
    code, result = run(capsys, {"method": "recovery"}, luks_key=NEW)
    assert "/dev/sda1 has no LUKS 2 header" in result["msg"]


def test_it_takes_the_containers_of_disk_layout_as_they_are():
    returned, taken = yaml.safe_load(disk_layout.RETURN), yaml.safe_load(disk_keys.DOCUMENTATION)
    assert set(returned["containers"]["contains"]) <= set(taken["options"]["containers"]["suboptions"])


def test_only_root_can_do_it(machine, capsys, monkeypatch):
    monkeypatch.setattr(disk_keys.os, "geteuid", lambda: 1000)
    assert "only root" in run(capsys)[1]["msg"]


def test_no_key_is_changed_on_a_protected_disk(machine, capsys, monkeypatch):
    protects = [Protection("pgdata", "/etc/bareon/protected:2")]
    monkeypatch.setattr(disk_keys, "protections_of_node", lambda _host, node, _protections: tuple(protects) if node == "/dev/sda1" else ())
    for check in (True, False):
        code, result = run(capsys, {"method": "passphrase"}, luks_key=NEW, luks_old_key=OLD, _ansible_check_mode=check)
        assert code == 1
        assert "data (/dev/sda1)" in result["msg"]
        assert "'pgdata' of /etc/bareon/protected:2" in result["msg"]
    assert machine.headers["/dev/sda1"].slots == {0: OLD.encode()}
    # One that stays as it is does not matter.
    assert run(capsys, {"method": "passphrase"}, luks_key=OLD)[0] == 0


def test_a_list_of_protected_disks_that_cannot_be_read_is_a_mistake(machine, capsys):
    code, result = run(capsys, {"method": "passphrase"}, luks_key=OLD, protect=[" "])
    assert (code, [text.partition(":")[0] for text in result["mistakes"]]) == (1, ["protect[0]"])
