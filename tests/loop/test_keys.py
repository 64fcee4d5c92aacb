# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys of real headers, which lie in files: added, changed, taken away, and made again after a run that was cut off anywhere."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine, StepFailed
from ansible_collections.bareon.allocator.plugins.plugin_utils._common import files
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk import recovery_keys
from ansible_collections.bareon.allocator.tests.support.host.key_changes import change
from ansible_collections.bareon.allocator.tests.support.host.tang import new_keys, serving

OLD, NEW = "correct horse", "battery staple"
PASSPHRASE, RECOVERY = {"method": "passphrase"}, {"method": "recovery"}
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


class Cut(BaseException):
    """The power went, here or there."""


class Life:
    """What happens on both sides, in order; after `left` events it is cut off."""

    def __init__(self, left: int = 10**6) -> None:
        self.left, self.events = left, 0

    def spend(self) -> None:
        if self.events == self.left:
            raise Cut
        self.events += 1


class QuickMachine(LocalMachine):
    """Passphrases are made as quick to try as recovery keys are; nothing else differs."""

    def __init__(self, life: Life | None = None) -> None:
        self.life = life or Life()
        self.commands: list[str] = []

    def change(self, command: t.Any, given: bytes = b"", **how: t.Any) -> str:
        self.life.spend()
        self.commands.append(" ".join(command))
        quick = QUICK if command[1] == "luksAddKey" and QUICK[0] not in command else ()
        return super().change([*command[:2], *quick, *command[2:]], given, **how)


@contextlib.contextmanager
def controller_of(life: Life) -> t.Iterator[None]:
    """Count what the controller does with its files, and each answer that reaches it."""
    with pytest.MonkeyPatch.context() as patched:
        for place, name in ((os, "link"), (Path, "rename"), (files, "sync_folder"), (recovery_keys, "_checked")):
            done = getattr(place, name)
            patched.setattr(place, name, lambda *given, done=done, **how: (life.spend(), done(*given, **how), life.spend())[1])
        yield


def go(
    device: str, *unlock: Plain, machine: LocalMachine | None = None, check: bool = False, shows: bool = False, **options: t.Any
) -> Plain:
    """Change the keys, which may fail, and return the result; `problem` is what was in the way. Recovery keys are in a folder beside."""
    given = {**options, "containers": [{"name": "data", "device": device, "unlock": list(unlock)}]}
    result = change(machine or QuickMachine(), given, None if shows else folder_of(device), check=check, shows=shows)
    return {**result, "problem": result.get("msg")}


def folder_of(device: str) -> Path:
    return Path(device).with_name("recovery")


def held(device: str) -> dict[str, str]:
    """The recovery keys in files of the controller, by the ends of the files' names."""
    files = folder_of(device).iterdir() if folder_of(device).is_dir() else ()
    return {file.name.removeprefix("db1.data."): file.read_text().strip() for file in files if file.name.startswith("db1.")}


def done(device: str, *unlock: Plain, **options: t.Any) -> Plain:
    """Change the keys, and see that a second run has nothing to do."""
    result = go(device, *unlock, **options)
    assert result["problem"] is None
    if not options.get("renew"):
        again = go(device, *unlock, **options)
        assert again["problem"] is None
        assert (again["changed"], again["steps"]) == (False, [])
    return result


def opens(device: str, key: bytes) -> bool:
    words = ["cryptsetup", "open", "--test-passphrase", "--key-file=-", device]
    return subprocess.run(words, input=key, capture_output=True, check=False).returncode == 0


def header(device: str) -> Plain:
    dumped = subprocess.run(["cryptsetup", "luksDump", "--dump-json-metadata", device], stdout=subprocess.PIPE, check=True).stdout
    return t.cast("Plain", json.loads(dumped))


def test_a_recovery_key_is_made_once_and_shown_once(device: str) -> None:
    result = done(device, PASSPHRASE, RECOVERY, luks_key=OLD, shows=True)
    key = result["recovery_keys"]["data"]
    assert len(key) == 64 + 7
    assert opens(device, key.encode())
    assert opens(device, OLD.encode())
    assert header(device)["tokens"] == {"1": {"type": "systemd-recovery", "keyslots": ["1"]}}
    assert key not in json.dumps({name: value for name, value in result.items() if name != "recovery_keys"})
    assert [slot["opened_by"] for slot in result["containers"][0]["slots"]] == ["keys", "recovery"]
    assert go(device, PASSPHRASE, RECOVERY, luks_key=OLD, shows=True)["recovery_keys"] == {}


def test_keys_are_in_no_command(device: str) -> None:
    machine = QuickMachine()
    result = go(device, PASSPHRASE, RECOVERY, luks_key=NEW, luks_old_key=OLD, machine=machine, shows=True)
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


def test_a_recovery_key_is_renewed_and_opens_for_it(device: str) -> None:
    done(device, RECOVERY, luks_key=OLD, take_away=["keys"])
    first = held(device)["1"]
    assert not opens(device, OLD.encode())
    done(device, RECOVERY, luks_key=first, renew=["recovery"])
    assert sorted(held(device)) == ["0", "1"]
    assert opens(device, held(device)["0"].encode())
    assert not opens(device, first.encode())
    assert len(header(device)["keyslots"]) == len(header(device)["tokens"]) == 1


def test_nothing_goes_before_something_that_stays_was_seen_to_open(device: str) -> None:
    done(device, RECOVERY, luks_key=OLD)
    result = go(device, RECOVERY, luks_key=OLD, take_away=["keys"])
    assert "nothing that stays was seen to open the container" in result["problem"]
    assert opens(device, OLD.encode())
    assert "nothing that opens data would be left" in go(device, luks_key=OLD, take_away=["keys", "recovery"])["problem"]
    recovery = held(device)["1"]
    done(device, RECOVERY, luks_key=recovery, take_away=["keys"])
    assert opens(device, recovery.encode())


def test_a_wrong_key_changes_nothing(device: str) -> None:
    before = header(device)
    assert "none of the given keys opens data" in go(device, RECOVERY, luks_key=NEW)["problem"]
    assert header(device) == before
    assert held(device) == {}


def test_check_mode_says_it_all_and_does_nothing(device: str, tmp_path: Path) -> None:
    before = header(device)
    unlock = [PASSPHRASE, RECOVERY, {"method": "key_file", "path": str(tmp_path / "key")}]
    result = go(device, *unlock, luks_key=NEW, luks_old_key=OLD, take_away=["keys"], check=True)
    assert result["problem"] is None
    assert header(device) == before
    assert not (tmp_path / "key").exists()
    assert not folder_of(device).exists()
    assert result["recovery_keys"] == {}
    assert result["diff"]["before"] == "data\n  a passphrase or key file\n"
    assert result["diff"]["after"] == f"data\n  a passphrase\n  a recovery key\n  the key file {tmp_path / 'key'}\n"
    real = go(device, *unlock, luks_key=NEW, luks_old_key=OLD, take_away=["keys"])
    assert [step["says"] for step in real["steps"]] == [step["says"] for step in result["steps"]]


@pytest.mark.parametrize("renews", [False, True])
def test_no_key_is_ever_half(device: str, tmp_path: Path, renews: bool) -> None:
    """Both sides are cut off before and after every command and every file: somebody has a key at any time, and the next run completes.

    Where the old recovery key is the only key, it is replaced; otherwise the passphrase is.
    """
    file = tmp_path / "key"
    unlock: list[Plain] = [RECOVERY, {"method": "key_file", "path": str(file)}]
    options: Plain = {"luks_old_key": OLD, "take_away": ["keys"]}
    old = OLD
    if renews:
        done(device, RECOVERY, luks_key=OLD, take_away=["keys"])
        (old,) = held(device).values()
        shutil.rmtree(folder_of(device))
        unlock, options = [RECOVERY], {"luks_old_key": old, "renew": ["recovery"]}
    fresh = Path(device).read_bytes()
    whole = Life()
    with controller_of(whole):
        go(device, *unlock, **options, machine=QuickMachine(whole))
    assert whole.events > 15
    for cut in range(whole.events):
        Path(device).write_bytes(fresh)
        file.unlink(missing_ok=True)
        shutil.rmtree(folder_of(device))
        life = Life(cut)
        with pytest.raises(Cut), controller_of(life):
            go(device, *unlock, **options, machine=QuickMachine(life))
        known = [old, *held(device).values()]
        assert any(opens(device, key.encode()) for key in known), f"after {cut} events nobody has a key any more"
        opened = {slot_of(device, key.encode()) for key in known} | ({slot_of(device, file.read_bytes())} if file.exists() else set())
        marked = {token["slot"] for token in header(device)["tokens"].values() if token["type"] == "bareon.unfinished"}
        assert set(header(device)["keyslots"]) <= opened | marked, f"after {cut} events there is a slot that nobody can open"
        # Where all was done but the answer, the new key is in its file and opens what is renewed once more.
        given = {**options, "luks_old_key": held(device)["0"]} if renews and "0" in held(device) else options
        assert go(device, *unlock, **given)["problem"] is None
        kept = {slot: key for slot, key in held(device).items() if slot in header(device)["keyslots"] and opens(device, key.encode())}
        assert len(kept) == 1
        assert all(slot_of(device, key.encode()) == slot for slot, key in kept.items())
        assert [token["type"] for token in header(device)["tokens"].values()] == ["systemd-recovery"]
        assert len(header(device)["keyslots"]) == len(unlock)
        assert not opens(device, old.encode())
        assert renews or opens(device, file.read_bytes())


def slot_of(device: str, key: bytes) -> str:
    words = ["cryptsetup", "open", "--test-passphrase", "--verbose", "--key-file=-", device]
    said = subprocess.run(words, input=key, capture_output=True, check=False).stdout.decode()
    return said.partition("Key slot ")[2].partition(" ")[0]


def test_a_recovery_key_that_was_never_confirmed_is_replaced(device: str) -> None:
    """The controller lost its files, as a container of a CI job does: the slot that nobody can open goes."""
    whole = Life()
    with controller_of(whole):
        go(device, RECOVERY, luks_key=OLD, machine=QuickMachine(whole))
    assert list(held(device)) == ["1"]
    lost = held(device)["1"]
    shutil.rmtree(folder_of(device))
    assert go(device, RECOVERY, luks_key=OLD)["changed"] is False
    for cut in range(whole.events):
        words = ["cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", *QUICK, "--key-file=-", device]
        subprocess.run(words, input=OLD.encode(), check=True)
        life = Life(cut)
        with pytest.raises(Cut), controller_of(life):
            go(device, RECOVERY, luks_key=OLD, machine=QuickMachine(life))
        marks = [token for token in header(device)["tokens"].values() if token["type"] == "bareon.unfinished"]
        lost = "".join(held(device).values())
        shutil.rmtree(folder_of(device))
        assert go(device, RECOVERY, luks_key=OLD)["problem"] is None
        assert set(header(device)["keyslots"]) == {"0", "1"}
        assert [token["type"] for token in header(device)["tokens"].values()] == ["systemd-recovery"]
        if marks:
            assert opens(device, held(device)["1"].encode())
            assert not opens(device, lost.encode())


def test_what_somebody_added_after_a_cut_stays(device: str, tmp_path: Path) -> None:
    """The slot that is marked is free, and takes the next key that is added by hand."""
    with pytest.raises(Cut):
        go(device, RECOVERY, luks_key=OLD, machine=QuickMachine(Life(4)))
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
        assert "Could not add Tang at" in go(device, {**method, "thumbprint": "A" * 43}, luks_key=OLD)["problem"]
        assert set(header(device)["keyslots"]) == {"0"}
        done(device, method, luks_key=OLD, take_away=["keys"], take_last_key=True)
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
            done(device, *both, luks_key=OLD, take_away=["keys"], take_last_key=True)
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
    for check in (True, False):
        with pytest.raises(StepFailed, match="has no LUKS 2 header"):
            go(device, RECOVERY, luks_key=OLD, check=check)
