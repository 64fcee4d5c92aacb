# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_keys as a playbook runs it: the controller is killed while the host works on, and no key shows in output, logs or command lines."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

ROOT = Path(__file__).parents[2]
OLD = "Zq7OldPhrase7731"
Task = dict[str, t.Any]
PLAY: list[Task] = [
    {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [
            {
                "bareon.allocator.disk_keys": {
                    "containers": [{"name": "data", "device": "{{ device }}", "unlock": [{"method": "recovery"}]}],
                    "luks_key": "{{ old }}",
                    "take_away": ["keys"],
                    "recovery_key_directory": "{{ folder }}",
                    # There is one lock on this machine.
                    "lock_timeout": 300,
                },
                "register": "changed_keys",
            },
            {"ansible.builtin.debug": {"var": "changed_keys"}},
        ],
    }
]
# Every command of cryptsetup is written down; after the one that is named the host takes its time.
SLOW = """#!/bin/sh
printf '%s\\n' "$*" >>"{notes}/argv"
{cryptsetup} "$@"
code=$?
case "$*" in *"{slow}"*) touch "{notes}/reached"; sleep 3;; esac
exit $code
"""
SITE = """
import os, syslog
def note(*given):
    with open(os.environ["BAREON_NOTES"] + "/syslog", "a") as file:
        file.write(repr(given) + "\\n")
syslog.syslog = note
"""


class Controller:
    """Runs of a playbook on this machine; `device` is a container in a file that OLD opens."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.device, self.keys = folder, folder / "container", folder / "keys"
        self.device.touch()
        os.truncate(self.device, 20 * 1024**2)
        words = ["cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000"]
        subprocess.run([*words, "--key-file=-", str(self.device)], input=OLD.encode(), check=True)
        for name in ("bin", "notes", "site", "tmp", "remote"):
            (folder / name).mkdir()
        (folder / "site" / "sitecustomize.py").write_text(SITE, encoding="utf-8")
        (folder / "play.yml").write_text(json.dumps(PLAY), encoding="utf-8")
        given = {"device": str(self.device), "folder": str(self.keys), "old": OLD, "ansible_python_interpreter": sys.executable}
        (folder / "vars.json").write_text(json.dumps(given), encoding="utf-8")

    def start(self, slow: str = "nothing is slow") -> subprocess.Popen[bytes]:
        # Tools have no environment but a search path and a language.
        tool = self.folder / "bin" / "cryptsetup"
        tool.write_text(SLOW.format(cryptsetup=shutil.which("cryptsetup"), notes=self.folder / "notes", slow=slow), encoding="utf-8")
        tool.chmod(0o755)
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder / "site"),
            "BAREON_NOTES": str(self.folder / "notes"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
            "ANSIBLE_HOME": str(self.folder / "tmp"),
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "tmp"),
            "ANSIBLE_REMOTE_TEMP": str(self.folder / "remote"),
            "ANSIBLE_LOG_PATH": str(self.folder / "notes" / "log"),
        }
        environment.pop("ANSIBLE_CONFIG", None)
        command = [sys.executable, "-m", "ansible", "playbook", "-vvv", "--diff", "--inventory", "localhost,", "--connection", "local"]
        with (self.folder / "notes" / "output").open("ab") as output:
            return subprocess.Popen(
                [*command, "--extra-vars", "@vars.json", "play.yml"],
                cwd=self.folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the controller, and let what it has begun on the host work on, as when a connection is lost."""
        workers = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                # A worker has a session of its own, so it is known by its parent.
                parent = int((path.parent / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
                if parent == process.pid and b"play.yml" in path.read_bytes():
                    workers.append(int(path.parent.name))
            except OSError:
                continue
        process.kill()
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        process.wait()

    def works_on(self) -> bool:
        """Return whether a module that was begun still runs."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.folder / "remote").encode() in path.read_bytes():
                    return True
            except OSError:
                continue
        return False

    def opens(self, key: str) -> bool:
        words = ["cryptsetup", "open", "--test-passphrase", "--key-file=-", str(self.device)]
        return subprocess.run(words, input=key.encode(), capture_output=True, check=False).returncode == 0

    def held(self) -> dict[str, str]:
        return {file.name: file.read_text(encoding="utf-8").strip() for file in self.keys.glob("localhost.*")}

    def header(self) -> t.Any:
        dumped = subprocess.run(["cryptsetup", "luksDump", "--dump-json-metadata", str(self.device)], stdout=subprocess.PIPE, check=True)
        return json.loads(dumped.stdout)

    def shown(self) -> str:
        """All that runs have shown, logged, or left in folders for temporary files."""
        left = [file for name in ("notes", "tmp", "remote") for file in (self.folder / name).rglob("*") if file.is_file()]
        return "".join(file.read_bytes().decode(errors="replace") for file in left)


# After a part of this command the controller is killed: the slot is filled, its token is written, the mark goes, the old key goes.
@pytest.mark.parametrize("slow", ["luksAddKey", "token import", "token remove", "luksKillSlot"])
def test_a_controller_that_is_killed_loses_no_key(tmp_path: Path, slow: str) -> None:
    controller = Controller(tmp_path)
    process = controller.start(slow)
    reached = tmp_path / "notes" / "reached"
    while not reached.exists():
        assert process.poll() is None, (tmp_path / "notes" / "output").read_text(encoding="utf-8")
        time.sleep(0.02)
    controller.kill(process)
    assert any(controller.opens(key) for key in (OLD, *controller.held().values()))
    # The host goes on by itself, and its lock is free again when it has come to its end.
    while controller.works_on():
        time.sleep(0.1)
    assert any(controller.opens(key) for key in (OLD, *controller.held().values()))
    again = controller.start()
    assert again.wait() == 0, (tmp_path / "notes" / "output").read_text(encoding="utf-8")
    ((name, key),) = controller.held().items()
    assert not name.endswith(".new")
    assert controller.opens(key)
    assert not controller.opens(OLD)
    assert [token["type"] for token in controller.header()["tokens"].values()] == ["systemd-recovery"]
    assert len(controller.header()["keyslots"]) == 1


def test_no_key_shows(tmp_path: Path) -> None:
    controller = Controller(tmp_path)
    assert controller.start().wait() == 0
    assert controller.start().wait() == 0
    (key,) = controller.held().values()
    shown = controller.shown()
    for word in ("luksAddKey", "Invoked with", "NOT_LOGGING_PARAMETER", "remove key slot 0"):
        assert word in shown, "what is searched is what is there"
    for secret in (OLD, key, key.partition("-")[0]):
        assert secret not in shown


@pytest.mark.parametrize(
    ("more", "stops"),
    [
        ({}, True),
        ({"bareon_show_recovery_keys": "true"}, False),
        ({"bareon_recovery_key_directory": "recovery"}, False),
    ],
)
def test_the_role_asks_for_a_place_for_recovery_keys_before_disks_are_written(
    tmp_path: Path, loops: Loops, more: Task, stops: bool
) -> None:
    device = loops.hardware([512 * 1024**2])["disks"][0]["dev"]
    unlock = [{"method": "passphrase"}, {"method": "recovery"}]
    space = {
        "id": "keys",
        "type": "partition",
        "size": 100,
        "mount": "/srv/bareon-keys",
        "fs_type": "ext4",
        "encrypt": True,
        "unlock": unlock,
    }
    (tmp_path / "profile.yml").write_text(json.dumps([space]), encoding="utf-8")
    given = {
        "bareon_profile": str(tmp_path / "profile.yml"),
        "bareon_devices": [device],
        "bareon_include": ["loop"],
        "bareon_luks_key": OLD,
        "bareon_become": False,
        "ansible_python_interpreter": sys.executable,
        **more,
    }
    (tmp_path / "vars.json").write_text(json.dumps(given), encoding="utf-8")
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"), "ANSIBLE_HOME": str(tmp_path / "home")}
    environment.pop("ANSIBLE_CONFIG", None)
    command = [sys.executable, "-m", "ansible", "playbook", "--check", "--inventory", "localhost,", "--connection", "local"]
    with (tmp_path / "output").open("w+", encoding="utf-8") as output:
        done = subprocess.run(
            [*command, "--extra-vars", "@vars.json", "bareon.allocator.apply"],
            cwd=tmp_path,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
        output.seek(0)
        text = output.read()
    assert (done.returncode != 0) == stops, text
    assert ("disk_layout_show_recovery_keys" in text) == stops, text
    assert ("Change what opens the containers" in text) != stops, text
    assert not (tmp_path / "recovery").exists()
