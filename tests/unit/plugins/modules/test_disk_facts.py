# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import pathlib
import re
import sys

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.bareon.allocator.plugins.module_utils._facts import hardware
from ansible_collections.bareon.allocator.plugins.module_utils._facts.hardware import read_hardware, with_health
from ansible_collections.bareon.allocator.plugins.modules import disk_facts
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost


def run(monkeypatch, capsys, record, **arguments):
    """The result that the module prints on a recorded host."""
    monkeypatch.setattr(disk_facts, "LocalHost", lambda: RecordedHost.load(record))
    with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
        disk_facts.main()
    return ended.value.code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("check_mode", [False, True])
def test_facts_come_out_and_nothing_changes(monkeypatch, capsys, check_mode):
    code, result = run(monkeypatch, capsys, "vm-storage.json", _ansible_check_mode=check_mode)

    assert code == 0
    assert result["changed"] is False
    host = RecordedHost.load("vm-storage.json")
    assert result["ansible_facts"] == {"bareon_hardware": with_health(host, read_hardware(host)[0])}


def test_options_reach_the_readers(monkeypatch, capsys):
    _code, result = run(monkeypatch, capsys, "no-udev.json", include=["loop"], devices=["/dev/loop*"])

    assert [disk["dev"] for disk in result["ansible_facts"]["bareon_hardware"]["disks"]] == ["/dev/loop0"]


def test_warnings_come_out(monkeypatch, capsys):
    # Where other tests have loaded the controller's code, a warning would go to its display, not into the result.
    warnings = []
    monkeypatch.setattr(disk_facts.AnsibleModule, "warn", lambda _module, text: warnings.append(text))
    run(monkeypatch, capsys, "vm-storage-unprivileged.json")

    assert any("empty is false" in text for text in warnings)


def test_an_unknown_transport_is_refused(monkeypatch, capsys):
    code, result = run(monkeypatch, capsys, "no-udev.json", include=["floppies"])

    assert code == 1
    assert "floppies" in result["msg"]


def _documented(contains):
    return {name: _documented(value["contains"]) if "contains" in value else None for name, value in contains.items()}


def _returned(value):
    """The keys of a result; those of a list are the keys of all its items."""
    if isinstance(value, dict):
        return {key: _returned(item) for key, item in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return {key: _returned(item) for part in value for key, item in part.items()}
    return None


def _merged(first, second):
    if first is None or second is None:
        return first if second is None else second
    return {key: _merged(first.get(key), second.get(key)) for key in {**first, **second}}


def _with_a_copy_and_an_export():
    """A host of which one disk has the table of another one, and one is exported by nvmet."""
    host = RecordedHost.load("vm-storage.json")
    one, other = [disk["dev"] for disk in read_hardware(host)[0]["disks"] if disk["table"] == "gpt"][:2]
    folder = "/sys/kernel/config/nvmet/subsystems"
    exported = host.with_files(
        directories={folder: ["nqn"], f"{folder}/nqn/namespaces": ["1"]},
        files={f"{folder}/nqn/namespaces/1/device_path": one, f"{folder}/nqn/namespaces/1/enable": "1"},
    )
    return exported.with_command(f"sfdisk --json {other}", host.record["commands"][f"sfdisk --json {one}"]["stdout"])


def _with_a_health():
    """A host with a disk that smartctl can ask, and its facts."""
    host = RecordedHost.load("vm-storage.json")
    facts = read_hardware(host)[0]
    asking = f"smartctl --json --nocheck=standby --health --attributes --info {facts['disks'][0]['dev']}"
    return host.with_command(asking, json.dumps({"smart_status": {"passed": True}, "temperature": {"current": 30}})), {
        **facts,
        "disks": facts["disks"][:1],
    }


def test_what_is_returned_is_what_is_documented():
    documented = _documented(yaml.safe_load(disk_facts.RETURN))["ansible_facts"]["bareon_hardware"]

    returned = None
    for record in ("vm-storage.json", "vm-stopped.json", "vm-mbr.json"):
        disks = read_hardware(RecordedHost.load(record))[0]
        per_disk = [_returned({**disks, "disks": [disk]}) for disk in disks["disks"]]
        for keys in per_disk:
            returned = _merged(returned, keys)
    luks = [
        holder["luks"]
        for disk in read_hardware(RecordedHost.load("vm-storage.json"))[0]["disks"]
        for holder in disk["holders"]
        if holder["luks"]
    ]
    returned["disks"]["holders"]["luks"] = _returned(luks[0])
    for disk in read_hardware(_with_a_copy_and_an_export())[0]["disks"]:
        returned = _merged(returned, {"disks": {key: _returned(disk[key]) for key in ("used_by", "twins")}})
    returned = _merged(returned, _returned(with_health(*_with_a_health())))

    assert returned == {key: keys for key, keys in documented.items() if key != "zpools"}


def test_every_value_has_the_type_that_is_documented():
    types = {"str": str, "int": int, "bool": bool, "list": list, "dict": dict}

    def check(contains, value, place):
        for name, item in value.items():
            said = contains[name]
            none_is_documented = "V(none)" in " ".join(
                said["description"] if isinstance(said["description"], list) else [said["description"]]
            )
            if item is None:
                assert none_is_documented, f"{place}.{name} is null"
                continue
            assert item.__class__ is types[said["type"]], f"{place}.{name}"
            for part in item if isinstance(item, list) else [item]:
                if isinstance(part, dict):
                    check(said["contains"], part, f"{place}.{name}")

    contains = yaml.safe_load(disk_facts.RETURN)["ansible_facts"]["contains"]["bareon_hardware"]["contains"]
    for record in (
        "vm-fresh.json",
        "vm-storage.json",
        "vm-storage-unprivileged.json",
        "vm-stopped.json",
        "vm-mbr.json",
        "no-udev-nodes.json",
    ):
        check(contains, read_hardware(RecordedHost.load(record), include=["loop"])[0], record)
    check(contains, with_health(*_with_a_health()), "a disk with its health")


def test_the_module_needs_nothing_but_the_standard_library_and_the_collection():
    folder = pathlib.Path(hardware.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))]

    imported = {name for text in texts for name in re.findall(r"^(?:from|import) ([a-z_]+)", text, re.MULTILINE)}

    assert imported - {"__future__"} <= sys.stdlib_module_names
