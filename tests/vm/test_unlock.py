# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes that nobody has to open: a TPM (swtpm), a Tang server and a key file do, after a restart of what the playbook has made.

The root file system is none of them: what is opened is opened by systemd.
"""

from __future__ import annotations

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
KEY, NEXT_KEY = "correct horse", "battery staple"


def profile(url: str, thumbprint: str) -> list[dict[str, t.Any]]:
    """Return spaces of which each is opened by something else; all have a recovery key."""
    methods = {
        "sealed": {"method": "tpm2", "pcrs": [7]},
        "served": {"method": "tang", "url": url, "thumbprint": thumbprint},
        "filed": {"method": "key_file", "path": "/etc/keys/filed"},
    }
    common = {"type": "partition", "size": 64, "fs_type": "ext4", "encrypt": True}
    return [{"id": name, **common, "mount": f"/srv/{name}", "unlock": [method, {"method": "recovery"}]} for name, method in methods.items()]


@pytest.fixture
def host(tmp_path: Path) -> t.Iterator[Machine]:
    if not (IMAGE / "root.img").exists():
        pytest.fail("there is no machine to start; as root run: make test-unlock")
    started = Machine(IMAGE, tmp_path)
    started.has_tpm, started.reaches_host = True, True
    thumbprint = new_keys(tmp_path / "tang")
    with serving(tmp_path / "tang") as url:
        spaces = profile(url.replace("127.0.0.1", "10.0.2.2"), thumbprint)
        (tmp_path / "profile.yml").write_text(yaml.safe_dump(spaces), encoding="utf-8")
        try:
            started.start([DISK])
            started.wait_longer_for_disks()
            yield started
        finally:
            started.throw_away()


def mounted(host: Machine) -> list[str]:
    found = json.loads(host.run("findmnt", "--json", "--list", "--output", "TARGET"))["filesystems"]
    return sorted(entry["target"] for entry in found if entry["target"].startswith("/srv/"))


def slots(host: Machine, name: str) -> int:
    dumped = host.run("cryptsetup", "luksDump", "--dump-json-metadata", f"/dev/disk/by-partlabel/{name}")
    return len(json.loads(dumped)["keyslots"])


def test_all_open_by_themselves_after_a_restart(host: Machine, tmp_path: Path) -> None:
    given = {
        "bareon_profile": str(tmp_path / "profile.yml"),
        "bareon_devices": [DISK.link],
        "bareon_become": False,
        "bareon_luks_key": KEY,
        "bareon_keys_take_away": ["keys"],
        "bareon_recovery_key_directory": str(tmp_path / "recovery"),
    }
    apply = ROOT / "playbooks" / "apply.yml"
    first = play(host, tmp_path, apply, given)
    assert KEY not in first.output
    everything = ["/srv/filed", "/srv/sealed", "/srv/served"]
    assert mounted(host) == everything
    assert [slots(host, name) for name in ("sealed", "served", "filed")] == [2, 2, 2]
    keys = {file.name.split(".")[1]: file.read_text(encoding="utf-8").strip() for file in (tmp_path / "recovery").iterdir()}
    assert sorted(keys) == ["filed-crypt", "sealed-crypt", "served-crypt"]
    assert not any(key in first.output for key in keys.values())
    for name in ("sealed", "served", "filed"):
        test = ("cryptsetup", "open", "--test-passphrase", "--disable-external-tokens", "--key-file=-", f"/dev/disk/by-partlabel/{name}")
        assert host.attempt(*test, text=keys[f"{name}-crypt"]).returncode == 0
        assert host.attempt(*test, text=KEY).returncode == 2
    assert play(host, tmp_path, apply, given).changed == 0

    host.restart()
    # What a server opens is opened after there is a network, and so is the way in.
    host.attempt("systemctl", "is-system-running", "--wait")
    assert host.run("systemctl", "--failed", "--quiet", "--plain") == "", host.run("journalctl", "--boot", "--priority=warning")
    assert mounted(host) == everything
    assert play(host, tmp_path, apply, given).changed == 0
