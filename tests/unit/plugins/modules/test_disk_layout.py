# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ast
import dataclasses
import json
import pathlib
import sys

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.bareon.allocator.plugins.doc_fragments.keys import ModuleDocFragment as KeysFragment
from ansible_collections.bareon.allocator.plugins.doc_fragments.lock import ModuleDocFragment as LockFragment
from ansible_collections.bareon.allocator.plugins.module_utils._facts import hardware as hardware_facts
from ansible_collections.bareon.allocator.plugins.module_utils._layout import apply as layout_run
from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import only_run
from ansible_collections.bareon.allocator.plugins.module_utils._layout.losses import DiskLoss, Loss
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import StepFailed
from ansible_collections.bareon.allocator.plugins.modules import disk_layout
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine
from ansible_collections.bareon.allocator.tests.support.host.step_kinds import all_kinds
from ansible_collections.bareon.allocator.tests.unit.examples.library.pretended_layout import empty_host

DISK = "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"
KEY = "correct horse battery"

# One of everything: a mirror with LUKS on it, and a group with a volume.
SCHEMA = {
    "parteds": [
        {
            "name": f"{DISK}{number}",
            "disk_size": 2000,
            "partitions": [
                {"count": 1, "begin": 1, "end": 501, "space_id": "keys"},
                {"count": 2, "begin": 501, "end": 1501, "space_id": "os"},
            ],
        }
        for number in (1, 2)
    ],
    "mds": [{"name": "/dev/md/keys", "level": "raid1", "devices": [f"{DISK}1-part1", f"{DISK}2-part1"], "metadata": "1.0"}],
    "luks": [{"name": "keys", "device": "/dev/md/keys"}],
    "pvs": [{"name": f"{DISK}{number}-part2"} for number in (1, 2)],
    "vgs": [{"name": "os", "pvnames": [f"{DISK}1-part2", f"{DISK}2-part2"]}],
    "lvs": [{"name": "root", "vgname": "os", "size": 400}],
    "fss": [
        {"device": "/dev/mapper/keys", "mount": "/keys", "fs_type": "xfs"},
        {"device": "/dev/mapper/os-root", "mount": "/srv", "fs_type": "ext4", "fs_label": "root"},
    ],
}
ABLE = {"/proc/misc": "device-mapper", "/proc/devices": "9 md"}


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with the disks of the schema, all empty, on which nothing happens."""
    found = RecordingMachine(files=ABLE)
    monkeypatch.setattr(disk_layout, "LocalMachine", found.with_key)
    monkeypatch.setattr(disk_layout.os, "geteuid", lambda: 0)
    monkeypatch.setattr(layout_run, "read_present", lambda _machine, layout: empty_host(layout))
    for kind in all_kinds():
        monkeypatch.setattr(kind, "run", lambda step, _machine: None)
    monkeypatch.setattr(disk_layout, "only_run", lambda command, timeout: only_run(command, timeout, str(tmp_path / "lock")))
    return found


def run(capsys, **arguments):
    """The code and the result that the module prints."""
    with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
        disk_layout.main()
    return ended.value.code, json.loads(capsys.readouterr().out)


def test_check_mode_shows_the_steps_and_does_nothing(machine, capsys):
    code, result = run(capsys, schema=SCHEMA, luks_key=KEY, _ansible_check_mode=True, _ansible_diff=True)

    assert code == 0
    assert result["changed"] is True
    assert {step["done"] for step in result["steps"]} == {False}
    kinds = list(dict.fromkeys(step["kind"] for step in result["steps"]))
    assert {"write_partition_table", "create_array", "format_luks", "open_luks", "create_logical_volume", "make_filesystem"} <= set(kinds)
    assert kinds[0] == "write_partition_table"
    assert not [event for event in machine.events if event[0] in ("change", "zero")]
    disks, steps = result["diff"]
    assert disks["before"] == f"disk {DISK}1 without a partition table\ndisk {DISK}2 without a partition table\n"
    assert disks["after"] == "\n".join(
        [
            f"disk {DISK}1",
            "  1: keys, 500 MiB, member of an array",
            "  2: os, 1000 MiB, physical volume of os",
            f"disk {DISK}2",
            "  1: keys, 500 MiB, member of an array",
            "  2: os, 1000 MiB, physical volume of os",
            "LUKS mappings",
            "  keys, xfs",
            "arrays",
            "  keys raid1, LUKS",
            "volume group os",
            "  root, 400 MiB, ext4 root",
            "",
        ]
    )
    assert steps["prepared"].splitlines()[1:] == [step["says"] for step in result["steps"]]


def test_a_run_that_leaves_something_to_do_fails(machine, capsys):
    """The steps are only said to be done: a second look finds the disks as empty as before."""
    code, result = run(capsys, schema=SCHEMA, luks_key=KEY)

    assert code == 1
    assert "All steps are done, but a second look finds more to do" in result["msg"]
    assert all(step["done"] for step in result["steps"][: len(result["steps"]) // 2])


def test_a_failure_is_short(machine, capsys):
    """Of the layout it has nothing that its message does not say: a screen of schema would hide that."""
    for given in ({"schema": SCHEMA}, {"schema": SCHEMA, "luks_key": KEY}, {"schema": {**SCHEMA, "fss": 3}}):
        code, result = run(capsys, **given)
        assert code == 1
        assert not {"schema", "filesystems", "containers", "arrays", "diff"} & set(result)


def test_keys_do_not_show(machine, capsys):
    for check in (True, False):
        _code, result = run(capsys, schema=SCHEMA, luks_key=KEY, _ansible_check_mode=check)
        assert KEY not in json.dumps({name: value for name, value in result.items() if name != "invocation"})


def test_without_a_key_nothing_is_begun(machine, capsys):
    code, result = run(capsys, schema=SCHEMA)
    assert code == 1
    assert "luks_key" in result["msg"]
    assert not any(step["done"] for step in result["steps"])
    assert result["changed"] is False


def test_keys_of_single_containers_do(machine, capsys, tmp_path):
    file = tmp_path / "key"
    file.write_text("open sesame, open")
    file.chmod(0o400)
    code, result = run(capsys, schema=SCHEMA, luks_key_files={"keys": str(file)}, _ansible_check_mode=True)
    assert code == 0, result
    code, result = run(capsys, schema=SCHEMA, luks_key_files={"other": str(file)})
    assert code == 1
    assert result["msg"] == "luks_key_files.other: there is no container of that name in the schema"


def test_all_mistakes_are_told_at_once(machine, capsys):
    wrong = {**SCHEMA, "lvs": [{"name": "root", "vgname": "other", "size": 0}], "fss": [{"device": "/dev/nowhere", "fs_type": "ext9"}]}
    code, result = run(capsys, schema=wrong, luks_key_file="/nowhere/key")
    assert code == 1
    assert len(result["mistakes"]) >= 3
    assert all(mistake in result["msg"] for mistake in result["mistakes"])
    assert any("/nowhere/key" in mistake for mistake in result["mistakes"])
    assert machine.events == []


def test_a_passphrase_with_a_line_break_is_a_mistake(machine, capsys):
    """YAML's | adds one; a container made with it could be opened by no console."""
    for check in (True, False):
        code, result = run(capsys, schema=SCHEMA, luks_key="open sesame\n", _ansible_check_mode=check)
        assert (code, [mistake.split(":")[0] for mistake in result["mistakes"]]) == (1, ["luks_key"])
    assert machine.events == []


def test_one_mistake_is_told_alone(machine, capsys):
    code, result = run(capsys, schema=SCHEMA, luks_key_file="/nowhere/key")
    assert code == 1
    assert result["msg"] == result["mistakes"][0]


@pytest.mark.parametrize("schema", [None, 3, "text", {"disks": []}, [], {"partitions": {}}])
def test_what_is_no_schema_is_refused(machine, capsys, monkeypatch, schema):
    monkeypatch.setattr(hardware_facts, "read_hardware", lambda *_arguments: ({"disks": [], "firmware": "bios"}, ()))
    code, result = run(capsys, schema=schema)
    assert code == 1
    assert result["msg"]
    assert "Traceback" not in result["msg"]


def test_a_hand_written_list_is_laid_out_on_this_hosts_disks(machine, capsys, monkeypatch):
    disk = {"id": DISK, "path": None, "dev": "/dev/sda", "links": [DISK], "size": 2000, "size_bytes": 2000 * 1024**2, "logical_block": 512}
    hardware = {"disks": [{**disk, "partitions": [], "holders": []}], "firmware": "bios"}
    monkeypatch.setattr(hardware_facts, "read_hardware", lambda *_arguments: (hardware, ("a warning",)))
    warnings = []
    monkeypatch.setattr(disk_layout.AnsibleModule, "warn", lambda _module, text: warnings.append(text))
    volumes = [{"type": "partition", "size": "1 GiB", "mount": "/srv", "file_system": "xfs"}]
    entry = {"type": "disk", "id": {"type": "path", "value": DISK}, "size": "1999 MiB", "volumes": volumes}
    given = {"partitions": [entry], "images": []}

    code, result = run(capsys, schema=given, _ansible_check_mode=True)

    assert code == 0, result
    assert [one["mount"] for one in result["schema"]["fss"]] == ["/srv"]
    assert "a warning" in warnings
    assert any("images" in text for text in warnings)

    code, result = run(capsys, schema=[{**entry, "volumes": [{**volumes[0], "size": "much"}, {**volumes[0], "mount": 3}]}])
    assert code == 1
    assert len(result["mistakes"]) == 2


def test_only_root_may(machine, capsys, monkeypatch):
    monkeypatch.setattr(disk_layout.os, "geteuid", lambda: 1000)
    code, result = run(capsys, schema=SCHEMA)
    assert code == 1
    assert "become" in result["msg"]


def test_a_run_beside_another_is_refused(machine, capsys, monkeypatch):
    class Busy:
        def __init__(self, *_arguments):
            pass

        def __enter__(self):
            raise StepFailed("another run is at work")

        def __exit__(self, *_error):
            return None

    monkeypatch.setattr(disk_layout, "only_run", Busy)
    code, result = run(capsys, schema=SCHEMA, luks_key=KEY)
    assert (code, result["msg"]) == (1, "another run is at work")
    assert run(capsys, schema=SCHEMA, luks_key=KEY, _ansible_check_mode=True)[0] == 0


def test_one_key_at_a_time(machine, capsys):
    code, result = run(capsys, schema=SCHEMA, luks_key=KEY, luks_key_file="/etc/key")
    assert code == 1
    assert "mutually exclusive" in result["msg"]


def test_what_is_returned_is_what_is_documented(machine, capsys):
    documented = yaml.safe_load(disk_layout.RETURN)
    _code, result = run(capsys, schema=SCHEMA, luks_key=KEY, _ansible_check_mode=True)
    own = set(result) - {"changed", "diff", "invocation", "warnings"}
    _code, failed = run(capsys, schema=SCHEMA)
    assert own | set(failed) - {"changed", "failed", "msg", "invocation", "warnings"} | {"failed_step", "mistakes"} == set(documented)
    assert (result["destroys"], result["destroys_digest"]) == (failed["destroys"], failed["destroys_digest"])
    assert set(documented["destroys"]["contains"]) == {field.name for field in dataclasses.fields(DiskLoss)}
    assert set(documented["destroys"]["contains"]["contents"]["contains"]) == {field.name for field in dataclasses.fields(Loss)}
    for name in ("steps", "filesystems", "containers", "arrays"):
        assert result[name]
        for item in result[name]:
            assert set(item) == set(documented[name]["contains"]), name
            assert all(value is None or isinstance(value, (str, bool, list)) for value in item.values())


def test_the_documented_options_are_those_of_the_module(monkeypatch):
    given = {}

    def noted(**arguments):
        given.update(arguments)
        raise SystemExit

    monkeypatch.setattr(disk_layout, "AnsibleModule", noted)
    pytest.raises(SystemExit, disk_layout.main)
    texts = (disk_layout.DOCUMENTATION, KeysFragment.DOCUMENTATION, LockFragment.DOCUMENTATION)
    documented = {name: option for text in texts for name, option in yaml.safe_load(text)["options"].items()}
    spec = given["argument_spec"]
    assert {name: option["type"] for name, option in documented.items()} == {name: option["type"] for name, option in spec.items()}
    assert {name: option.get("default") for name, option in documented.items()} == {
        name: option.get("default") for name, option in spec.items()
    }


def test_the_module_needs_nothing_but_the_standard_library_and_the_collection():
    """What the files of the host's side import is either here or in the standard library."""
    outside = set()
    for path in pathlib.Path(layout_run.__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                outside.add(str(node.module).split(".", 1)[0])
            elif isinstance(node, ast.Import):
                outside |= {alias.name.split(".", 1)[0] for alias in node.names}
    assert outside - {"__future__"} <= sys.stdlib_module_names
