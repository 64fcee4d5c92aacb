# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys while a playbook changes them, seen by others on the host: arguments of all processes, however deep, and the system's journal.

A real systemd-journald takes what is logged, strace writes down every program that is run, and the tools work on a real LUKS header.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.host.journal import Logged, logged
from ansible_collections.bareon.allocator.tests.support.host.tang import new_keys, serving

ROOT = Path(__file__).parents[2]
OLD, NEW, WRONG = "Zq7OldPhrase7731xx", "Zq7NewPhrase9942yy", "Zq7WrongPhrase5513"
UNLOCK = [{"method": "passphrase"}, {"method": "recovery"}, {"method": "tang", "url": "{{ url }}", "thumbprint": "{{ thumbprint }}"}]
COMMON: dict[str, t.Any] = {
    "containers": [{"name": "data", "device": "{{ device }}", "unlock": UNLOCK}],
    "recovery_key_directory": "{{ keys }}",
    "lock_timeout": 300,
}


def task(**more: t.Any) -> dict[str, t.Any]:
    return {"bareon.allocator.disk_keys": {**COMMON, **more}, "register": "changed_keys", "ignore_errors": True}


# A run that fails at the key, one that enrols all, and one that renews the recovery key and Tang by the recovery key itself.
TASKS = [
    task(luks_key=WRONG),
    task(luks_key=NEW, luks_old_key=OLD, take_away=["keys"]),
    task(
        luks_key="{{ lookup('ansible.builtin.file', query('ansible.builtin.fileglob', keys ~ '/*') | first) }}", renew=["recovery", "tang"]
    ),
    {"ansible.builtin.debug": {"var": "changed_keys"}},
]


class Seen(t.NamedTuple):
    """What there was to see, and the secrets that it must not show."""

    run: Logged
    programs: str
    secrets: dict[str, str]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("secrets")
    device, keys, tang = (folder / name for name in ("container", "keys", "tang"))
    device.touch()
    os.truncate(device, 20 * 1024**2)
    words = ["cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000", "--key-file=-"]
    subprocess.run([*words, str(device)], input=OLD.encode(), check=True)
    thumbprint = new_keys(tang)
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": TASKS}]
    (folder / "play.yml").write_text(json.dumps(play), encoding="utf-8")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_REMOTE_TMP": str(folder / "remote"),
        "ANSIBLE_NOCOLOR": "1",
    }
    command = ["strace", "--follow-forks", "--quiet=all", "--trace=execve,execveat", "--no-abbrev", "--string-limit=100000"]
    command += [f"--output={folder / 'programs'}", sys.executable, "-m", "ansible", "playbook", "-vvv", "--diff"]
    command += ["--inventory", "localhost,", "--connection", "local", "--extra-vars", "@vars.json", "play.yml"]
    with serving(tang) as url:
        given = {
            "device": str(device),
            "keys": str(keys),
            "url": url,
            "thumbprint": thumbprint,
            "ansible_python_interpreter": sys.executable,
        }
        (folder / "vars.json").write_text(json.dumps(given), encoding="utf-8")
        run = logged(command, folder / "run", folder, environment)
    recovery = {file.name: file.read_text(encoding="utf-8").strip() for file in keys.iterdir()}
    programs = (folder / "programs").read_text(encoding="utf-8", errors="replace")
    return Seen(run, programs, {"old": OLD, "new": NEW, "wrong": WRONG, **recovery})


def test_the_run_did_what_it_is_looked_at_for(seen: Seen) -> None:
    assert seen.run.code == 0, seen.run.output.decode()
    assert len(seen.secrets) == 5, "the recovery key, and the one that came after it"
    text = seen.run.entries.decode(errors="replace")
    assert text.count("Invoked with containers=") >= 3 * 2, "the parts of the module have logged what they were called with"
    assert "NOT_LOGGING_PARAMETER" in text
    assert "_CMDLINE=" in text
    for program in ("cryptsetup", "clevis", "jose"):
        assert re.search(rf'execve\("[^"]*/{program}"', seen.programs), f"{program} was run, and seen"


def forms(secret: str) -> list[bytes]:
    """Return a secret, its parts, and its base64 at all positions."""
    parts = [secret, secret.partition("-")[0]] if "-" in secret else [secret]
    encoded = [base64.b64encode(b"x" * before + secret.encode())[4:-4] for before in range(3)]
    return [*(part.encode() for part in parts), *encoded, secret.encode().hex().encode()]


@pytest.mark.parametrize("place", ["arguments and environments", "the journal", "the output"])
def test_no_key_shows(seen: Seen, place: str) -> None:
    text = {
        "arguments and environments": seen.programs.encode(),
        "the journal": seen.run.entries,
        "the output": seen.run.output,
    }[place]
    for name, secret in seen.secrets.items():
        for form in forms(secret):
            at = text.find(form)
            assert at < 0, f"{name}: ...{text[max(0, at - 400) : at + 100]!r}..."
