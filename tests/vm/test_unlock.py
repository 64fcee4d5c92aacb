# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes that nobody has to open: a TPM (swtpm), a Tang server and a key file do, after a restart of what the playbook has made.

One has two servers, of which one is gone by then, and one wants somebody to type a PIN. The root file system is none of them: what is
opened is opened by systemd.
"""

from __future__ import annotations

import contextlib
import json
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.bareon.allocator.tests.support.host.tang import new_keys, serving
from ansible_collections.bareon.allocator.tests.support.vm.ansible_run import ROOT, play
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, Machine

IMAGE = ROOT / ".build" / "unlock" / "trixie"
DISK = Disk("SEALED", 512 * 1024**2, "scsi")
KEY, PIN = "correct horse", "4711"
TYPED = """
cd /run/systemd/ask-password
for asked in $(seq 600); do file=$(grep --files-with-matches --no-messages ^Message=.*PIN ask.*) && break; sleep 1; done
/usr/lib/systemd/systemd-reply-password 1 "$(sed --quiet s/^Socket=//p "$file")"
"""
"""What somebody at a console does: wait until systemd asks for the PIN, and type it; what clevis answers is asked for at the same time."""


def profile(*servers: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return spaces of which each is opened by something else; all have a recovery key."""
    methods: dict[str, tuple[dict[str, t.Any], ...]] = {
        "sealed": ({"method": "tpm2", "pcrs": [7]},),
        "pinned": ({"method": "tpm2", "pcrs": [7], "pin": True},),
        "served": servers,
        "filed": ({"method": "key_file", "path": "/etc/keys/filed"},),
    }
    common = {"type": "partition", "size": 64, "fs_type": "ext4", "encrypt": True}
    return [{"id": name, **common, "mount": f"/srv/{name}", "unlock": [*those, {"method": "recovery"}]} for name, those in methods.items()]


@pytest.fixture
def second_server(tmp_path: Path) -> t.Iterator[contextlib.ExitStack]:
    """What has the second Tang server run until it is closed."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def host(tmp_path: Path, second_server: contextlib.ExitStack) -> t.Iterator[Machine]:
    if not (IMAGE / "root.img").exists():
        pytest.fail("there is no machine to start; as root run: make test-unlock")
    started = Machine(IMAGE, tmp_path)
    started.has_tpm, started.reaches_host = True, True
    keys = [tmp_path / "second", tmp_path / "tang"]
    thumbprints = [new_keys(folder) for folder in keys]
    with serving(keys[1]) as url:
        urls = [second_server.enter_context(serving(keys[0])), url]
        servers = [
            {"method": "tang", "url": url.replace("127.0.0.1", "10.0.2.2"), "thumbprint": known}
            for url, known in zip(urls, thumbprints, strict=True)
        ]
        (tmp_path / "profile.yml").write_text(yaml.safe_dump(profile(*servers)), encoding="utf-8")
        try:
            started.start([DISK])
            yield started
        finally:
            started.throw_away()


def mounted(host: Machine) -> list[str]:
    found = json.loads(host.run("findmnt", "--json", "--list", "--output", "TARGET"))["filesystems"]
    return sorted(entry["target"] for entry in found if entry["target"].startswith("/srv/"))


def slots(host: Machine, name: str) -> int:
    dumped = host.run("cryptsetup", "luksDump", "--dump-json-metadata", f"/dev/disk/by-partlabel/{name}")
    return len(json.loads(dumped)["keyslots"])


def test_all_open_by_themselves_after_a_restart(host: Machine, second_server: contextlib.ExitStack, tmp_path: Path) -> None:
    given = {
        "bareon_profile": str(tmp_path / "profile.yml"),
        "bareon_devices": [DISK.link],
        "bareon_become": False,
        "bareon_luks_key": KEY,
        "bareon_tpm2_pin": PIN,
        "bareon_nofail": ["/srv/pinned"],
        "bareon_keys_take_away": ["keys"],
        "bareon_recovery_key_directory": str(tmp_path / "recovery"),
    }
    apply = ROOT / "playbooks" / "apply.yml"
    first = play(host, tmp_path, apply, given)
    assert KEY not in first.output
    assert PIN not in first.output
    names = ["filed", "pinned", "sealed", "served"]
    everything = [f"/srv/{name}" for name in names]
    assert mounted(host) == everything
    assert [slots(host, name) for name in names] == [2, 2, 2, 3]
    keys = {file.name.split(".")[1]: file.read_text(encoding="utf-8").strip() for file in (tmp_path / "recovery").iterdir()}
    assert sorted(keys) == [f"{name}-crypt" for name in names]
    assert not any(key in first.output for key in keys.values())
    for name in names:
        test = ("cryptsetup", "open", "--test-passphrase", "--disable-external-tokens", "--key-file=-", f"/dev/disk/by-partlabel/{name}")
        assert host.attempt(*test, text=keys[f"{name}-crypt"]).returncode == 0
        assert host.attempt(*test, text=KEY).returncode == 2
    # Without the option the TPM answers for any key, but not for one that wants to be told a PIN.
    tokens = ("cryptsetup", "open", "--test-passphrase", "--token-only", "/dev/disk/by-partlabel/pinned")
    assert (
        host.attempt("cryptsetup", "open", "--test-passphrase", "--key-file=-", "/dev/disk/by-partlabel/sealed", text=KEY).returncode == 0
    )
    assert host.attempt(*tokens, text="4712").returncode != 0
    assert host.attempt(*tokens, text=PIN).returncode == 0
    assert play(host, tmp_path, apply, given).changed == 0

    second_server.close()
    host.restart()
    host.run("bash", "-euo", "pipefail", "-c", TYPED, text=PIN)
    # What a server opens is opened after there is a network, and so is the way in.
    host.attempt("systemctl", "is-system-running", "--wait")
    assert host.run("systemctl", "--failed", "--quiet", "--plain") == "", host.run("journalctl", "--boot", "--priority=warning")
    assert mounted(host) == everything
    assert play(host, tmp_path, apply, given).changed == 0
