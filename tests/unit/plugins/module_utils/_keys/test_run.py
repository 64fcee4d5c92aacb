# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys of simulated headers. What cryptsetup itself makes of the same is seen in tests/loop/test_keys.py."""

from __future__ import annotations

import copy
import json
import tempfile
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._keys.jwe import thumbprints
from ansible_collections.bareon.allocator.plugins.module_utils._keys.options import request_of
from ansible_collections.bareon.allocator.plugins.module_utils._keys.report import as_result
from ansible_collections.bareon.allocator.plugins.module_utils._keys.run import foresee
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes
from ansible_collections.bareon.allocator.tests.support.host.key_changes import DEFAULTS, change
from ansible_collections.bareon.allocator.tests.support.host.luks_machine import CutOff, LuksMachine, SimulatedHeader

Plain = dict[str, t.Any]

OLD, NEW = "correct horse", "battery staple"
DEVICE = "/dev/sda1"
FILE = "/etc/keys/data.key"
PASSPHRASE, RECOVERY, KEY_FILE = {"method": "passphrase"}, {"method": "recovery"}, {"method": "key_file", "path": FILE}
SIGNS = {"kty": "EC", "crv": "P-521", "x": "AAx", "y": "AAy", "alg": "ES512"}
(THUMBPRINT,) = thumbprints({"adv": {"keys": [SIGNS]}})
URL = "http://tang.example"
TANG: Plain = {"method": "tang", "url": f"{URL}/", "thumbprint": THUMBPRINT}
TPM: Plain = {"method": "tpm2"}


def fresh() -> dict[str, SimulatedHeader]:
    return {DEVICE: SimulatedHeader({0: OLD.encode()})}


def machine_with(headers: dict[str, SimulatedHeader] | None = None, **how: t.Any) -> LuksMachine:
    machine = LuksMachine(fresh() if headers is None else headers, **how)
    machine.servers[URL] = SIGNS
    return machine


def options_of(*unlock: Plain, **options: t.Any) -> Plain:
    container = {"name": "data", "device": "/dev/disk/by-id/wwn-1-part1", "node": DEVICE, "unlock": list(unlock)}
    return {**DEFAULTS, "containers": [container], **options}


def request(*unlock: Plain, **options: t.Any) -> t.Any:
    return request_of(options_of(*unlock, **options))


def go(machine: LuksMachine, *unlock: Plain, shows: bool = False, check: bool = False, **options: t.Any) -> Plain:
    """Change the keys and return the result; `problem` is what was in the way."""
    result = change(machine, options_of(*unlock, **options), None if shows else folder_of(machine), check=check, shows=shows)
    return {**result, "problem": result.get("msg")}


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def folder_of(machine: LuksMachine) -> Path:
    """The folder of the controller for the recovery keys of a machine."""
    if not hasattr(machine, "folder"):
        machine.folder = Path(tempfile.mkdtemp())
    return machine.folder


def held(machine: LuksMachine) -> dict[str, bytes]:
    """The recovery keys in files of the controller, by the ends of the files' names."""
    return {file.name.partition(".data.")[2]: file.read_bytes().strip() for file in folder_of(machine).iterdir() if "data" in file.name}


def says(result: Plain) -> list[str]:
    return [step["says"] for step in result["steps"]]


@pytest.mark.parametrize(
    ("unlock", "options", "keys"),
    [
        ([PASSPHRASE, RECOVERY], {"luks_key": OLD}, [OLD]),
        ([PASSPHRASE], {"luks_key": NEW, "luks_old_key": OLD}, [OLD, NEW]),
        ([PASSPHRASE], {"luks_key": NEW, "luks_old_key": OLD, "take_away": ["keys"]}, [NEW]),
        ([KEY_FILE], {"luks_key": OLD, "take_away": ["keys"]}, []),
        ([TANG], {"luks_key": OLD}, [OLD]),
        ([TANG], {"luks_key": OLD, "take_away": ["keys"], "take_last_key": True}, []),
        ([RECOVERY], {"luks_key": OLD, "take_away": ["keys"]}, []),
        ([TPM, TANG, RECOVERY], {"luks_key": OLD, "take_away": ["keys"]}, []),
        ([KEY_FILE, PASSPHRASE, RECOVERY], {"luks_key": NEW, "luks_old_key": OLD, "take_away": ["keys", "recovery"]}, [NEW]),
    ],
)
def test_what_is_wanted_is_there_whenever_the_power_went(unlock: list[Plain], options: Plain, keys: list[str]) -> None:
    whole = machine_with(fresh())
    assert go(whole, *unlock, **options)["problem"] is None
    assert go(whole, *unlock, **options)["changed"] is False
    for left in range(10**6 - whole.left):
        machine = machine_with(fresh(), left=left)
        with pytest.raises(CutOff):
            go(machine, *unlock, **options)
        header = machine.headers[DEVICE]
        known = {OLD.encode(), NEW.encode(), machine.secrets.get(FILE), *held(machine).values()}
        assert known & set(header.slots.values()) or len(header.tokens) == len(unlock), "nobody has a key any more"
        machine.left = 10**6
        assert go(machine, *unlock, **options)["problem"] is None
        assert go(machine, *unlock, **options)["changed"] is False
        types = {"recovery": "systemd-recovery", "tang": "clevis", "tpm2": "systemd-tpm2"}
        wanted = sorted(types[one["method"]] for one in unlock if one["method"] in types)
        assert sorted(token["type"] for token in header.tokens.values()) == wanted
        assert len(header.slots) == len(keys) + len(header.tokens) + (KEY_FILE in unlock)
        assert set(map(str.encode, keys)) <= set(header.slots.values())
        if RECOVERY in unlock:
            ((slot, key),) = held(machine).items()
            assert header.slots[int(slot)] == key


def test_a_recovery_key_is_in_its_file_only() -> None:
    machine = machine_with(fresh())
    result = go(machine, RECOVERY, luks_key=OLD)
    key = held(machine)["1"].decode()
    assert machine.headers[DEVICE].slots[1] == key.encode()
    assert [len(part) for part in key.split("-")] == [8] * 8
    assert key not in json.dumps(result)
    assert key not in repr(machine.commands)
    assert OLD not in repr(machine.commands)
    assert says(result) == ["add a recovery key to the LUKS container data"]
    assert result["containers"] == [
        {
            "name": "data",
            "device": DEVICE,
            "slots": [{"slot": 0, "opened_by": "keys"}, {"slot": 1, "opened_by": "recovery"}],
            "unlisted": [{"slot": 0, "opened_by": "keys"}],
        }
    ]


def test_a_recovery_key_is_shown_when_that_is_asked_for() -> None:
    machine = machine_with(fresh())
    result = go(machine, RECOVERY, luks_key=OLD, shows=True)
    key = result["recovery_keys"].pop("data")
    assert machine.headers[DEVICE].slots[1] == key.encode()
    assert key not in json.dumps(result)
    assert machine.headers[DEVICE].tokens == {1: {"type": "systemd-recovery", "keyslots": ["1"]}}
    assert go(machine, RECOVERY, luks_key=OLD, shows=True)["changed"] is False


def test_nothing_is_removed_on_account_of_a_key_that_is_only_shown() -> None:
    machine = machine_with(fresh())
    result = go(machine, RECOVERY, luks_key=OLD, take_away=["keys"], shows=True)
    assert result["failed"]
    assert machine.headers == fresh()
    key = go(machine, RECOVERY, luks_key=OLD, shows=True)["recovery_keys"]["data"]
    assert go(machine, RECOVERY, luks_old_key=key, take_away=["keys"], shows=True)["problem"] is None
    assert list(machine.headers[DEVICE].slots.values()) == [key.encode()]


def test_without_a_place_for_recovery_keys_nothing_is_changed() -> None:
    machine = machine_with(fresh())
    result = change(machine, options_of(RECOVERY, KEY_FILE, luks_key=OLD))
    assert result["failed"]
    assert all(name in result["msg"] for name in ("recovery_key_directory", "show_recovery_keys"))
    assert (machine.headers, FILE in machine.secrets) == (fresh(), False)
    go(machine, RECOVERY, KEY_FILE, luks_key=OLD)
    assert change(machine, options_of(RECOVERY, KEY_FILE, luks_key=OLD))["changed"] is False


def test_full_headers_are_refused_before_anything_is_changed() -> None:
    """Also in check mode: 31 slots take one key, and not two."""
    for room, unlock in ((0, [RECOVERY]), (1, [RECOVERY, KEY_FILE])):
        machine = LuksMachine({DEVICE: SimulatedHeader({slot: str(slot).encode() for slot in range(32 - room)})})
        before = copy.deepcopy(machine.headers)
        for check in (True, False):
            result = go(machine, *unlock, luks_key="3", check=check)
            assert result["failed"]
            assert machine.headers == before
            assert held(machine) == {}
    tokens = {number: {"type": "other", "keyslots": []} for number in range(31)}
    assert go(LuksMachine({DEVICE: SimulatedHeader({0: OLD.encode()}, tokens)}), RECOVERY, luks_key=OLD, check=True)["failed"]
    tokens.popitem()
    assert go(LuksMachine({DEVICE: SimulatedHeader({0: OLD.encode()}, tokens)}), RECOVERY, luks_key=OLD)["problem"] is None


def test_a_recovery_key_is_renewed_by_itself() -> None:
    machine = machine_with(fresh())
    go(machine, RECOVERY, luks_key=OLD, take_away=["keys"])
    first = held(machine)["1"].decode()
    result = go(machine, RECOVERY, luks_key=first, renew=["recovery"])
    assert says(result) == [
        "add a recovery key to the LUKS container data",
        "remove key slot 1 (a recovery key) from the LUKS container data",
    ]
    assert list(machine.headers[DEVICE].slots.values()) == [held(machine)["0"]]
    assert [token["keyslots"] for token in machine.headers[DEVICE].tokens.values()] == [["0"]]


def test_all_methods_are_renewed_once_by_one_run() -> None:
    machine = machine_with(fresh())
    go(machine, TPM, TANG, RECOVERY, luks_key=OLD)
    result = go(machine, TPM, TANG, RECOVERY, luks_key=OLD, renew=["recovery", "tang", "tpm2"])
    assert [step["kind"] for step in result["steps"]] == ["enrol"] * 3 + ["take_away"] * 3
    assert len(machine.headers[DEVICE].slots) == 4


def test_nothing_is_removed_unless_something_that_stays_was_seen_to_open() -> None:
    machine = machine_with(fresh())
    go(machine, RECOVERY, luks_key=OLD)
    result = go(machine, RECOVERY, luks_key=OLD, take_away=["keys"])
    assert "nothing that stays was seen to open the container" in result["problem"]
    assert OLD.encode() in machine.headers[DEVICE].slots.values()
    assert "nothing that opens data would be left" in go(machine, luks_key=OLD, take_away=["keys", "recovery"])["problem"]


def test_the_last_key_that_somebody_holds_is_removed_by_an_explicit_word_only() -> None:
    for methods in ([TPM], [TANG], [TPM, TANG]):
        machine = machine_with(fresh())
        for check in (True, False):
            assert "take_last_key" in go(machine, *methods, luks_key=OLD, take_away=["keys"], check=check)["problem"]
        assert machine.headers == fresh()
        assert go(machine, *methods, luks_key=OLD, take_away=["keys"], take_last_key=True)["problem"] is None
        assert len(machine.headers[DEVICE].slots) == len(methods)
    machine = machine_with(fresh())
    go(machine, TPM, RECOVERY, luks_key=OLD, take_away=["keys"])
    (key,) = map(bytes.decode, held(machine).values())
    assert "take_last_key" in go(machine, TPM, luks_key=key, take_away=["recovery"])["problem"]


def test_key_files_that_are_none_are_refused() -> None:
    for content in (b"", bytes(15)):
        machine = machine_with(fresh(), secrets={FILE: content})
        machine.headers[DEVICE].slots[1] = content
        before = copy.deepcopy(machine.headers)
        for check in (True, False):
            assert FILE in go(machine, KEY_FILE, luks_key=OLD, take_away=["keys"], check=check)["problem"]
        assert machine.headers == before


def test_without_a_key_that_opens_nothing_is_begun() -> None:
    machine = machine_with(fresh())
    before = copy.deepcopy(machine.headers)
    assert "none of the given keys opens data on /dev/sda1; give one" in go(machine, RECOVERY, luks_key=NEW)["problem"]
    assert "data needs a passphrase: give it as luks_key" in go(LuksMachine({DEVICE: SimulatedHeader({})}), PASSPHRASE)["problem"]
    assert machine.headers == before


def test_any_passphrase_will_do_where_none_is_given() -> None:
    machine = machine_with(fresh())
    assert go(machine, PASSPHRASE, take_away=["keys"]) | {"diff": None} == {
        "changed": False,
        "steps": [],
        "containers": [{"name": "data", "device": DEVICE, "slots": [{"slot": 0, "opened_by": "keys"}], "unlisted": []}],
        "recovery_keys": {},
        "recovery_key_files": {},
        "diff": None,
        "problem": None,
    }


def test_slots_of_others_stay() -> None:
    machine = machine_with(fresh())
    machine.headers[DEVICE].slots[1] = b"of a token"
    machine.headers[DEVICE].tokens[0] = {"type": "systemd-fido2", "keyslots": ["1"]}
    result = go(machine, PASSPHRASE, luks_key=OLD, take_away=["keys", "recovery"])
    assert result["changed"] is False
    assert result["containers"][0]["unlisted"] == [{"slot": 1, "opened_by": "other"}]


def test_check_mode_foresees_steps_and_keys() -> None:
    machine = machine_with(fresh())
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
    assert says(result) == ["add a passphrase to the LUKS container data", "add a recovery key to the LUKS container data"]
    assert result["diff"]["before"] == "data is not there yet\n"


def test_all_mistakes_are_told_at_once() -> None:
    containers = [
        {"name": "data", "device": DEVICE, "unlock": [{"method": "key_file"}, {"method": "passphrase", "path": FILE}]},
        {"name": "data", "device": DEVICE, "unlock": [RECOVERY, RECOVERY, {"method": "key_file", "path": "etc/key"}]},
    ]
    with pytest.raises(SchemaMistakes) as error:
        request_of({**DEFAULTS, "containers": containers, "luks_key_file": "/nowhere"})
    assert error.value.mistakes == (
        "containers[0].unlock[0].path: is missing; key_file needs it",
        "containers[0].unlock[1].path: does not apply to passphrase, which takes no other keys",
        "containers[1].unlock[2].path: is 'etc/key'; must be an absolute path without blanks, such as /etc/keys/data.key",
        "containers[1].unlock[1].method: recovery is listed already",
        "containers[1].name: data is listed already",
        "luks_key_file: /nowhere is not a key file on this host",
    )


def test_tang_that_signs_otherwise_is_refused_and_nothing_is_added() -> None:
    machine = machine_with()
    machine.servers[URL] = {**SIGNS, "x": "AAz"}
    assert "does not answer, or is not trusted" in go(machine, TANG, luks_key=OLD)["problem"]
    assert machine.headers == fresh()


def test_new_keys_of_the_server_are_bound_by_a_new_thumbprint() -> None:
    machine = machine_with()
    go(machine, TANG, luks_key=OLD, take_away=["keys"], take_last_key=True)
    new = {**SIGNS, "x": "AAz"}
    machine.servers[URL] = new
    (thumbprint,) = thumbprints({"adv": {"keys": [new]}})
    # Nobody has a passphrase any more: Tang itself opens what is to be changed.
    result = go(machine, {**TANG, "thumbprint": thumbprint}, take_away=["tang"])
    assert says(result) == [
        "add Tang at http://tang.example to the LUKS container data",
        "remove key slot 1 (Tang) from the LUKS container data",
    ]
    assert go(machine, {**TANG, "thumbprint": thumbprint}, take_away=["tang"])["changed"] is False


def test_other_registers_are_sealed_beside_those_that_are_there() -> None:
    machine = machine_with()
    go(machine, TPM, luks_key=OLD)
    assert go(machine, {**TPM, "pcrs": [7]}, luks_key=OLD)["changed"] is False
    result = go(machine, {**TPM, "pcrs": [7, 4]}, luks_key=OLD)
    assert says(result) == ["add the TPM (PCR 4+7) to the LUKS container data"]
    assert sorted(token["tpm2-pcrs"] for token in machine.headers[DEVICE].tokens.values()) == [[4, 7], [7]]
    go(machine, {**TPM, "pcrs": [7, 4]}, luks_key=OLD, take_away=["tpm2"])
    assert [token["tpm2-pcrs"] for token in machine.headers[DEVICE].tokens.values()] == [[4, 7]]


def test_a_tpm_whose_registers_have_changed_takes_a_new_key() -> None:
    machine = machine_with()
    go(machine, TPM, RECOVERY, luks_key=OLD, take_away=["keys"])
    (key,) = map(bytes.decode, held(machine).values())
    assert go(machine, TPM, RECOVERY, luks_key=key, renew=["tpm2"])["problem"] is None
    assert len(machine.headers[DEVICE].slots) == len(machine.headers[DEVICE].tokens) == 2


def test_a_pin_is_wanted_given_and_changed_and_stands_in_no_command() -> None:
    machine = machine_with()
    pinned = {**TPM, "pin": True}
    assert "data needs a PIN: give it as tpm2_pin" in go(machine, pinned, luks_key=OLD)["problem"]
    assert machine.headers == fresh()
    result = go(machine, pinned, RECOVERY, luks_key=OLD, tpm2_pin="1 2 3", take_away=["keys"])
    assert says(result)[0] == "add the TPM (PCR 7) with a PIN to the LUKS container data"
    assert result["problem"] is None
    # The PIN is not tried where nothing is to be done, for a TPM counts wrong ones.
    assert go(machine, pinned, RECOVERY, tpm2_pin="other")["changed"] is False
    (key,) = map(bytes.decode, held(machine).values())
    assert go(machine, pinned, RECOVERY, luks_key=key, tpm2_pin="456", renew=["tpm2"])["problem"] is None
    assert list(machine.pins.values())[-1] == "456"
    assert "1 2 3" not in repr(machine.commands)
    # Without a PIN is something else.
    assert says(go(machine, TPM, RECOVERY, luks_key=key, take_away=["tpm2"])) == [
        "add the TPM (PCR 7) to the LUKS container data",
        "remove key slot 0 (the TPM) from the LUKS container data",
    ]


def test_any_of_several_tang_servers_opens_it() -> None:
    machine = machine_with()
    other = {**SIGNS, "x": "AAz"}
    machine.servers["http://second.example"] = other
    (thumbprint,) = thumbprints({"adv": {"keys": [other]}})
    both = [TANG, {"method": "tang", "url": "http://second.example", "thumbprint": thumbprint}]
    result = go(machine, *both, luks_key=OLD, take_away=["keys"], take_last_key=True)
    assert says(result)[:2] == [f"add Tang at {url} to the LUKS container data" for url in (URL, "http://second.example")]
    del machine.servers[URL]
    # The one that is left is asked, with nobody's passphrase; the other one is not missed where nothing is to be done.
    assert go(machine, *both)["changed"] is False
    assert go(machine, *both, RECOVERY)["problem"] is None
    assert says(go(machine, both[1], RECOVERY, take_away=["tang"])) == ["remove key slot 1 (Tang) from the LUKS container data"]


def test_what_the_tpm_does_not_open_does_not_count() -> None:
    machine = machine_with()
    last: Plain = {"luks_key": OLD, "take_away": ["keys"], "take_last_key": True}
    machine.registers_hold = False
    assert "the TPM (PCR 7) does not open /dev/sda1" in go(machine, TPM, **last)["problem"]
    assert OLD.encode() in machine.headers[DEVICE].slots.values()
    machine.registers_hold = True
    go(machine, TPM, luks_key=OLD)
    machine.registers_hold = False
    assert "nothing that stays was seen to open" in go(machine, TPM, **last)["problem"]
    machine.registers_hold = True
    assert go(machine, TPM, **last)["problem"] is None


def test_what_the_host_lacks_is_told_before_anything_is_done() -> None:
    machine = machine_with()
    machine.tools = {"cryptsetup"}
    del machine.secrets["/dev/tpmrm0"]
    problem = go(machine, TPM, TANG, luks_key=OLD)["problem"]
    for says in (
        "there is no clevis on this host",
        "there is no systemd-cryptenroll on this host",
        "there is no /dev/tpmrm0: this machine has no TPM 2",
    ):
        assert says in problem
    assert machine.headers == fresh()
    assert len(foresee(request(TPM, TANG, luks_key=OLD), machine).notes) == 3


def test_what_clevis_binds_to_otherwise_is_left_alone() -> None:
    machine = machine_with({DEVICE: SimulatedHeader({0: OLD.encode(), 1: b"sss"}, {0: {"type": "clevis", "keyslots": ["1"], "jwe": {}}})})
    result = go(machine, PASSPHRASE, luks_key=OLD, take_away=["keys", "tang", "tpm2"])
    assert result["changed"] is False
    assert result["containers"][0]["unlisted"] == [{"slot": 1, "opened_by": "other"}]
