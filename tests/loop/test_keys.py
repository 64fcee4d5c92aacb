# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys of real headers, which lie in files: added, changed, taken away, and made again after a run that was cut off anywhere."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils.keys.options import request_of
from ansible_collections.bareon.allocator.plugins.module_utils.keys.report import as_result
from ansible_collections.bareon.allocator.plugins.module_utils.keys.run import Report, apply, foresee
from ansible_collections.bareon.allocator.plugins.module_utils.steps.machine import LocalMachine, StepFailed
from ansible_collections.bareon.allocator.tests.support.host.tang import new_keys, serving

OLD, NEW = "correct horse", "battery staple"
PASSPHRASE, RECOVERY = {"method": "passphrase"}, {"method": "recovery"}
DEFAULTS = {
    **dict.fromkeys(("luks_key", "luks_key_file", "luks_old_key", "luks_old_key_file", "tpm2_pin")),
    **{"luks_key_files": {}, "take_away": [], "renew": [], "root": "/"},
}
QUICK = ("--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000")
Plain = dict[str, t.Any]


@pytest.fixture
def device(tmp_path: Path) -> str:
    """A container that OLD opens."""
    file = tmp_path / "container"
    file.touch()
    os.truncate(file, 20 * 1024**2)
    words = ["cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", *QUICK, "--key-file=-", str(file)]
    subprocess.run(words, input=OLD.encode(), check=True)
    return str(file)


class QuickMachine(LocalMachine):
    """Passphrases are made as quick to try as recovery keys are; nothing else differs. `left` commands may run, then it is cut off."""

    def __init__(self, left: int = 1000) -> None:
        self.left = left
        self.commands: list[str] = []

    def change(self, command: t.Any, given: bytes = b"", **how: t.Any) -> str:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.commands.append(" ".join(command))
        quick = QUICK if command[1] == "luksAddKey" and QUICK[0] not in command else ()
        return super().change([*command[:2], *quick, *command[2:]], given, **how)


def go(device: str, *unlock: Plain, machine: LocalMachine | None = None, check: bool = False, **options: t.Any) -> tuple[Plain, Report]:
    """Change the keys, which may fail, and return the result and the report."""
    given = {**DEFAULTS, **options, "containers": [{"name": "data", "device": device, "unlock": list(unlock)}]}
    request, machine = request_of(given), machine or QuickMachine()
    report = foresee(request, machine) if check else apply(request, machine, lambda: False)
    return as_result(report, request, check), report


def done(device: str, *unlock: Plain, **options: t.Any) -> Plain:
    """Change the keys, and see that a second run has nothing to do."""
    result, report = go(device, *unlock, **options)
    assert report.problem is None
    if not options.get("renew"):
        again, second = go(device, *unlock, **options)
        assert second.problem is None
        assert (again["changed"], again["steps"]) == (False, [])
    return result


def opens(device: str, key: bytes) -> bool:
    words = ["cryptsetup", "open", "--test-passphrase", "--key-file=-", device]
    return subprocess.run(words, input=key, capture_output=True, check=False).returncode == 0


def header(device: str) -> Plain:
    dumped = subprocess.run(["cryptsetup", "luksDump", "--dump-json-metadata", device], stdout=subprocess.PIPE, check=True).stdout
    return t.cast("Plain", json.loads(dumped))


def test_a_recovery_key_is_made_once_and_shown_once(device: str) -> None:
    result = done(device, PASSPHRASE, RECOVERY, luks_key=OLD)
    key = result["recovery_keys"]["data"]
    assert len(key) == 64 + 7
    assert opens(device, key.encode())
    assert opens(device, OLD.encode())
    assert header(device)["tokens"] == {"1": {"type": "systemd-recovery", "keyslots": ["1"]}}
    assert key not in json.dumps({name: value for name, value in result.items() if name != "recovery_keys"})
    assert [slot["opened_by"] for slot in result["containers"][0]["slots"]] == ["keys", "recovery"]
    assert go(device, PASSPHRASE, RECOVERY, luks_key=OLD)[0]["recovery_keys"] == {}


def test_keys_are_in_no_command(device: str) -> None:
    machine = QuickMachine()
    result, _report = go(device, PASSPHRASE, RECOVERY, luks_key=NEW, luks_old_key=OLD, machine=machine)
    assert machine.commands
    for key in (OLD, NEW, result["recovery_keys"]["data"]):
        assert key not in "\n".join(machine.commands)


def test_a_passphrase_is_changed_and_the_old_one_goes_when_it_may(device: str) -> None:
    done(device, PASSPHRASE, luks_key=NEW, luks_old_key=OLD)
    assert opens(device, NEW.encode())
    assert opens(device, OLD.encode())
    result = done(device, PASSPHRASE, luks_key=NEW, luks_old_key=OLD, take_away=["keys"])
    assert [step["says"] for step in result["steps"]] == ["remove key slot 0 (a passphrase or key file) from the LUKS container data"]
    assert opens(device, NEW.encode())
    assert not opens(device, OLD.encode())


def test_a_key_file_is_made_where_there_is_none(device: str, tmp_path: Path) -> None:
    file = tmp_path / "keys" / "data.key"
    method = {"method": "key_file", "path": str(file)}
    done(device, method, luks_key=OLD)
    assert (file.stat().st_size, stat.S_IMODE(file.stat().st_mode)) == (64, 0o400)
    assert opens(device, file.read_bytes())
    # From now on it opens what is to be changed.
    done(device, method, RECOVERY, take_away=["keys"])
    assert not opens(device, OLD.encode())


def test_a_recovery_key_is_made_anew_and_opens_for_it(device: str) -> None:
    first = done(device, RECOVERY, luks_key=OLD, take_away=["keys"])["recovery_keys"]["data"]
    assert not opens(device, OLD.encode())
    second = done(device, RECOVERY, luks_key=first, renew=["recovery"])["recovery_keys"]["data"]
    assert opens(device, second.encode())
    assert not opens(device, first.encode())
    assert len(header(device)["keyslots"]) == len(header(device)["tokens"]) == 1


def test_nothing_goes_before_something_that_stays_was_seen_to_open(device: str) -> None:
    recovery = done(device, RECOVERY, luks_key=OLD)["recovery_keys"]["data"]
    result, report = go(device, RECOVERY, luks_key=OLD, take_away=["keys"])
    assert "nothing that stays was seen to open the container" in str(report.problem)
    assert result["changed"]
    assert opens(device, OLD.encode())
    _result, report = go(device, luks_key=OLD, take_away=["keys", "recovery"])
    assert "nothing that opens data would be left" in str(report.problem)
    done(device, RECOVERY, luks_key=recovery, take_away=["keys"])
    assert opens(device, recovery.encode())


def test_a_wrong_key_changes_nothing(device: str) -> None:
    before = header(device)
    _result, report = go(device, RECOVERY, luks_key=NEW)
    assert "none of the given keys opens data" in str(report.problem)
    assert header(device) == before


def test_check_mode_says_it_all_and_does_nothing(device: str, tmp_path: Path) -> None:
    before = header(device)
    unlock = [PASSPHRASE, RECOVERY, {"method": "key_file", "path": str(tmp_path / "key")}]
    result, report = go(device, *unlock, luks_key=NEW, luks_old_key=OLD, take_away=["keys"], check=True)
    assert report.problem is None
    assert header(device) == before
    assert not (tmp_path / "key").exists()
    assert result["recovery_keys"] == {}
    assert result["diff"]["before"] == "data\n  a passphrase or key file\n"
    assert result["diff"]["after"] == f"data\n  a passphrase\n  a recovery key\n  the key file {tmp_path / 'key'}\n"
    real, _report = go(device, *unlock, luks_key=NEW, luks_old_key=OLD, take_away=["keys"])
    assert [step["says"] for step in real["steps"]] == [step["says"] for step in result["steps"]]


def test_what_was_cut_off_anywhere_is_completed(device: str, tmp_path: Path) -> None:
    """At no time is there no key that somebody knows; in the end there are those that are wanted, and no others."""
    file = tmp_path / "key"
    unlock = [RECOVERY, {"method": "key_file", "path": str(file)}]
    options: Plain = {"luks_old_key": OLD, "take_away": ["keys"]}
    fresh = Path(device).read_bytes()
    machine = QuickMachine()
    go(device, *unlock, **options, machine=machine)
    for cut in range(1, len(machine.commands)):
        Path(device).write_bytes(fresh)
        file.unlink(missing_ok=True)
        with pytest.raises(KeyboardInterrupt):
            go(device, *unlock, **options, machine=QuickMachine(cut))
        assert opens(device, OLD.encode()) or opens(device, file.read_bytes())
        assert go(device, *unlock, **options)[1].problem is None
        assert sorted(slot["opened_by"] for slot in go(device, *unlock, **options, check=True)[0]["containers"][0]["slots"]) == [
            "keys",
            "recovery",
        ]
        assert opens(device, file.read_bytes())
        assert not opens(device, OLD.encode())


def test_what_somebody_added_after_a_cut_stays(device: str, tmp_path: Path) -> None:
    """The slot that is marked is free, and takes the next key that is added by hand."""
    with pytest.raises(KeyboardInterrupt):
        go(device, RECOVERY, luks_key=OLD, machine=QuickMachine(2))
    (tmp_path / "added").write_text(NEW)
    words = ["cryptsetup", "luksAddKey", "--batch-mode", *QUICK, "--key-file=-", device, str(tmp_path / "added")]
    subprocess.run(words, input=OLD.encode(), check=True)
    assert set(header(device)["keyslots"]) == {"0", header(device)["tokens"]["0"]["slot"]}
    done(device, RECOVERY, luks_key=NEW)
    assert opens(device, NEW.encode())


def test_tang_opens_it_for_clevis_and_for_new_keys_of_its_own(device: str, tmp_path: Path) -> None:
    thumbprint = new_keys(tmp_path / "tang")
    with serving(tmp_path / "tang") as url:
        method = {"method": "tang", "url": url, "thumbprint": thumbprint}
        _result, report = go(device, {**method, "thumbprint": "A" * 43}, luks_key=OLD)
        assert "Could not add Tang at" in str(report.problem)
        assert set(header(device)["keyslots"]) == {"0"}
        done(device, method, luks_key=OLD, take_away=["keys"])
        passed = subprocess.run(["clevis", "luks", "pass", "-d", device, "-s", "1"], stdout=subprocess.PIPE, check=True).stdout
        assert opens(device, passed)
        assert not opens(device, OLD.encode())
        # Nobody knows a key any more, but the server helps to add one.
        done(device, method, PASSPHRASE, luks_key=NEW)
        assert opens(device, NEW.encode())
        for file in (tmp_path / "tang").glob("*.jwk"):
            file.rename(file.with_name(f".{file.name}"))
        new = {**method, "thumbprint": new_keys(tmp_path / "tang")}
        result = done(device, new, PASSPHRASE, luks_key=NEW, take_away=["tang"])
        assert [step["kind"] for step in result["steps"]] == ["enrol", "take_away"]
    shown = subprocess.run(["clevis", "luks", "list", "-d", device], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert url in shown


def test_one_of_two_tang_servers_is_enough(device: str, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "second")]
    thumbprints = [new_keys(folder) for folder in folders]
    with serving(folders[1]) as second:
        with serving(folders[0]) as first:
            both = [{"method": "tang", "url": url, "thumbprint": known} for url, known in zip((first, second), thumbprints, strict=True)]
            done(device, *both, luks_key=OLD, take_away=["keys"])
        # The first one is away; nobody knows a key, and the second one helps.
        words = ["clevis", "luks", "pass", "-d", device, "-s"]
        passed = [subprocess.run([*words, slot], stdout=subprocess.PIPE, check=False) for slot in ("1", "2")]
        assert passed[0].returncode != 0
        assert opens(device, passed[1].stdout)
        done(device, *both, PASSPHRASE, luks_key=NEW)
        assert opens(device, NEW.encode())


def test_luks_1_is_refused_by_name(device: str) -> None:
    words = ["cryptsetup", "luksFormat", "--batch-mode", "--type=luks1", "--pbkdf-force-iterations=1000", "--key-file=-", device]
    subprocess.run(words, input=OLD.encode(), check=True)
    with pytest.raises(StepFailed, match="has no LUKS 2 header"):
        go(device, RECOVERY, luks_key=OLD)
