# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys of simulated headers. What cryptsetup itself makes of the same is seen in tests/loop/test_keys.py."""

from __future__ import annotations

import copy
import json
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils.keys.options import request_of
from ansible_collections.bareon.allocator.plugins.module_utils.keys.report import as_result
from ansible_collections.bareon.allocator.plugins.module_utils.keys.run import apply, foresee
from ansible_collections.bareon.allocator.plugins.module_utils.schema.static import SchemaMistakes
from ansible_collections.bareon.allocator.tests.support.host.luks_machine import CutOff, LuksMachine, SimulatedHeader

Plain = dict[str, t.Any]

OLD, NEW = "correct horse", "battery staple"
DEVICE = "/dev/sda1"
FILE = "/etc/keys/data.key"
PASSPHRASE, RECOVERY, KEY_FILE = {"method": "passphrase"}, {"method": "recovery"}, {"method": "key_file", "path": FILE}
DEFAULTS = {
    **dict.fromkeys(("luks_key", "luks_key_file", "luks_old_key", "luks_old_key_file")),
    **{"luks_key_files": {}, "take_away": [], "renew": [], "root": "/"},
}


def fresh() -> dict[str, SimulatedHeader]:
    return {DEVICE: SimulatedHeader({0: OLD.encode()})}


def request(*unlock: Plain, **options: t.Any) -> t.Any:
    container = {"name": "data", "device": "/dev/disk/by-id/wwn-1-part1", "node": DEVICE, "unlock": list(unlock)}
    return request_of({**DEFAULTS, "containers": [container], **options})


def go(machine: LuksMachine, *unlock: Plain, **options: t.Any) -> Plain:
    """Change the keys and return the result; `problem` is what was in the way."""
    asked = request(*unlock, **options)
    report = apply(asked, machine, lambda: False)
    return {**as_result(report, asked, False), "problem": report.problem}


def says(result: Plain) -> list[str]:
    return [step["says"] for step in result["steps"]]


@pytest.mark.parametrize(
    ("unlock", "options", "keys"),
    [
        ([PASSPHRASE, RECOVERY], {"luks_key": OLD}, [OLD]),
        ([PASSPHRASE], {"luks_key": NEW, "luks_old_key": OLD}, [OLD, NEW]),
        ([PASSPHRASE], {"luks_key": NEW, "luks_old_key": OLD, "take_away": ["keys"]}, [NEW]),
        ([KEY_FILE], {"luks_key": OLD, "take_away": ["keys"]}, []),
        ([KEY_FILE, PASSPHRASE, RECOVERY], {"luks_key": NEW, "luks_old_key": OLD, "take_away": ["keys", "recovery"]}, [NEW]),
    ],
)
def test_what_is_wanted_is_there_whenever_the_power_went(unlock: list[Plain], options: Plain, keys: list[str]) -> None:
    whole = LuksMachine(fresh())
    assert go(whole, *unlock, **options)["problem"] is None
    assert go(whole, *unlock, **options)["changed"] is False
    for left in range(10**6 - whole.left):
        machine = LuksMachine(fresh(), left=left)
        with pytest.raises(CutOff):
            go(machine, *unlock, **options)
        known = {OLD.encode(), NEW.encode(), machine.secrets.get(FILE)}
        assert known & set(machine.headers[DEVICE].slots.values()), "nobody has a key any more"
        machine.left = 10**6
        assert go(machine, *unlock, **options)["problem"] is None
        assert go(machine, *unlock, **options)["changed"] is False
        header = machine.headers[DEVICE]
        assert sorted(token["type"] for token in header.tokens.values()) == ["systemd-recovery"] * (RECOVERY in unlock)
        assert len(header.slots) == len(keys) + len(header.tokens) + (KEY_FILE in unlock)
        assert set(map(str.encode, keys)) <= set(header.slots.values())


def test_a_recovery_key_shows_in_one_place_only() -> None:
    machine = LuksMachine(fresh())
    result = go(machine, RECOVERY, luks_key=OLD)
    key = result["recovery_keys"].pop("data")
    assert machine.headers[DEVICE].slots[1] == key.encode()
    assert [len(part) for part in key.split("-")] == [8] * 8
    assert key not in json.dumps(result)
    assert key not in repr(machine.commands)
    assert OLD not in repr(machine.commands)
    assert result["containers"] == [
        {
            "name": "data",
            "device": DEVICE,
            "slots": [{"slot": 0, "opened_by": "keys"}, {"slot": 1, "opened_by": "recovery"}],
            "unlisted": [{"slot": 0, "opened_by": "keys"}],
        }
    ]


def test_a_run_that_fails_tells_the_recovery_key_that_it_made() -> None:
    result = go(LuksMachine(fresh()), RECOVERY, luks_key=OLD, take_away=["keys"])
    assert result["problem"] is None, "the new recovery key was seen to open it"
    machine = LuksMachine({DEVICE: SimulatedHeader({slot: str(slot).encode() for slot in range(31)})})
    result = go(machine, RECOVERY, KEY_FILE, luks_key="3")
    assert "all key slots or tokens of /dev/sda1 are taken" in result["problem"]
    assert result["recovery_keys"]["data"].encode() == machine.headers[DEVICE].slots[31]
    assert [step["done"] for step in result["steps"]] == [True, False]


def test_a_recovery_key_is_made_anew_by_itself() -> None:
    machine = LuksMachine(fresh())
    first = go(machine, RECOVERY, luks_key=OLD, take_away=["keys"])["recovery_keys"]["data"]
    second = go(machine, RECOVERY, luks_key=first, renew=["recovery"])["recovery_keys"]["data"]
    assert list(machine.headers[DEVICE].slots.values()) == [second.encode()]
    assert [token["keyslots"] for token in machine.headers[DEVICE].tokens.values()] == [["0"]]


def test_nothing_is_taken_away_unless_something_that_stays_was_seen_to_open() -> None:
    machine = LuksMachine(fresh())
    go(machine, RECOVERY, luks_key=OLD)
    result = go(machine, RECOVERY, luks_key=OLD, take_away=["keys"])
    assert "nothing of what stays was seen to open the container" in result["problem"]
    assert OLD.encode() in machine.headers[DEVICE].slots.values()
    assert "nothing would be left that opens data" in go(machine, luks_key=OLD, take_away=["keys", "recovery"])["problem"]


def test_without_a_key_that_opens_nothing_is_begun() -> None:
    machine = LuksMachine(fresh())
    before = copy.deepcopy(machine.headers)
    assert "none of the keys that are given opens data on /dev/sda1; give one" in go(machine, RECOVERY, luks_key=NEW)["problem"]
    assert "data is to have a passphrase: give it as luks_key" in go(LuksMachine({DEVICE: SimulatedHeader({})}), PASSPHRASE)["problem"]
    assert machine.headers == before


def test_any_passphrase_will_do_where_none_is_given() -> None:
    machine = LuksMachine(fresh())
    assert go(machine, PASSPHRASE, take_away=["keys"]) | {"diff": None} == {
        "changed": False,
        "steps": [],
        "containers": [{"name": "data", "device": DEVICE, "slots": [{"slot": 0, "opened_by": "keys"}], "unlisted": []}],
        "recovery_keys": {},
        "diff": None,
        "problem": None,
    }


def test_slots_of_others_stay() -> None:
    machine = LuksMachine(fresh())
    machine.headers[DEVICE].slots[1] = b"of a token"
    machine.headers[DEVICE].tokens[0] = {"type": "systemd-fido2", "keyslots": ["1"]}
    result = go(machine, PASSPHRASE, luks_key=OLD, take_away=["keys", "recovery"])
    assert result["changed"] is False
    assert result["containers"][0]["unlisted"] == [{"slot": 1, "opened_by": "other"}]


def test_check_mode_foresees_steps_and_keys() -> None:
    machine = LuksMachine(fresh())
    asked = request(PASSPHRASE, RECOVERY, luks_key=NEW, luks_old_key=OLD, take_away=["keys"])
    result = as_result(foresee(asked, machine), asked, True)
    assert machine.headers == fresh()
    assert result["changed"] is True
    assert result["diff"]["before"] == "data\n  a passphrase or key file\n"
    assert result["diff"]["after"] == "data\n  a passphrase\n  a recovery key\n"
    assert says(result) == says(go(machine, PASSPHRASE, RECOVERY, luks_key=NEW, luks_old_key=OLD, take_away=["keys"]))


def test_check_mode_foresees_a_container_that_is_not_there_yet() -> None:
    asked = request(PASSPHRASE, RECOVERY, luks_key=NEW)
    result = as_result(foresee(asked, LuksMachine({})), asked, True)
    assert says(result) == ["have a passphrase open the LUKS container data", "have a recovery key open the LUKS container data"]
    assert result["diff"]["before"] == "data is not there yet\n"


def test_all_mistakes_are_told_at_once() -> None:
    containers = [
        {"name": "data", "device": DEVICE, "unlock": [{"method": "key_file"}, {"method": "passphrase", "path": FILE}]},
        {"name": "data", "device": DEVICE, "unlock": [RECOVERY, RECOVERY, {"method": "key_file", "path": "etc/key"}]},
    ]
    with pytest.raises(SchemaMistakes) as error:
        request_of({**DEFAULTS, "containers": containers, "luks_key_file": "/nowhere"})
    assert error.value.mistakes == (
        "containers[0].unlock[0].path: is missing; key_file takes it",
        "containers[0].unlock[1].path: is nothing for passphrase, which takes no more keys",
        "containers[1].unlock[2].path: is 'etc/key'; must be an absolute path without blanks, such as /etc/keys/data.key",
        "containers[1].unlock[1].method: recovery stands there already",
        "containers[1].name: data stands there already",
        "luks_key_file: /nowhere is not a key file on this host",
    )
