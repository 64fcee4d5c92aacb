# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recovery keys that the role hands over to Vault (a stand-in of its API) before a container, with a real header in a file, gets them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.standins import vault as standin

ROOT = Path(__file__).parents[2]
OLD = "Zq7OldPhrase7731"
CONTAINER = {"name": "data", "unlock": [{"method": "passphrase"}, {"method": "recovery"}]}
ROLE = "bareon.allocator.disk_layout"


class Controller:
    """Runs of the part of the role that changes keys; `device` is a container in a file that OLD opens."""

    def __init__(self, folder: Path, vault: standin.Vault) -> None:
        self.folder, self.vault, self.device, self.keys = folder, vault, folder / "container", folder / "keys"
        self.device.touch()
        os.truncate(self.device, 20 * 1024**2)
        words = ["cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000"]
        subprocess.run([*words, "--key-file=-", str(self.device)], input=OLD.encode(), check=True)
        said = subprocess.run(["cryptsetup", "luksUUID", str(self.device)], stdout=subprocess.PIPE, text=True, check=True)
        self.uuid = said.stdout.strip()
        self.path = f"secret/data/luks/localhost/{self.uuid}"
        shutil.copy(ROOT / "playbooks" / "files" / "escrow_to_vault.yml", folder / "escrow.yml")

    def run(self, token: str = standin.TOKEN, tasks: str = "escrow.yml", **options: t.Any) -> tuple[int, str]:
        schema = {"luks": [{**CONTAINER, "device": str(self.device)}]}
        given = {
            "disk_layout_luks_key": OLD,
            "disk_layout_recovery_key_directory": str(self.keys),
            "disk_layout_escrow_tasks": tasks,
            "disk_layout_lock_timeout": 300,
            "disk_layout_result": {"containers": [{**CONTAINER, "device": str(self.device), "uuid": self.uuid}]},
            "disk_layout_chosen": {"schema": schema},
            **options,
        }
        parts = [{"ansible.builtin.include_role": {"name": ROLE, "tasks_from": part}} for part in ("pin_options", "keys")]
        (self.folder / "play.yml").write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": parts}]), encoding="utf-8")
        values = {**given, "ansible_python_interpreter": sys.executable}
        (self.folder / "vars.json").write_text(json.dumps(values), encoding="utf-8")
        environment = {
            **os.environ,
            "VAULT_ADDR": self.vault.url,
            "VAULT_TOKEN": token,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "home"),
        }
        environment.pop("ANSIBLE_CONFIG", None)
        command = [sys.executable, "-m", "ansible", "playbook", "-vvv", "--diff", "--inventory", "localhost,", "--connection", "local"]
        done = subprocess.run(
            [*command, "--extra-vars", "@vars.json", "play.yml"],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def opens(self, key: str) -> bool:
        words = ["cryptsetup", "open", "--test-passphrase", "--key-file=-", str(self.device)]
        return subprocess.run(words, input=key.encode(), capture_output=True, check=False).returncode == 0

    def header(self) -> bytes:
        return self.device.read_bytes()[: 16 * 1024**2]

    def files(self) -> list[str]:
        return sorted(file.name for file in self.keys.iterdir())


@pytest.fixture
def controller(tmp_path: Path) -> t.Iterator[Controller]:
    with standin.serving() as vault:
        yield Controller(tmp_path, vault)


def test_vault_has_the_key_before_the_container_has_it(controller: Controller) -> None:
    before = controller.header()
    # Without a token, sealed, or when somebody else has written meanwhile, Vault refuses, and the container stays as it is.
    code, said = controller.run(token="hvs.wrong")
    assert code == 2, said
    controller.vault.meddle = {"recovery_key": "of somebody else"}
    code, said = controller.run()
    assert code == 2, said
    assert controller.header() == before
    assert controller.vault.current(controller.path) == {"recovery_key": "of somebody else"}
    assert controller.files() == ["localhost.data.new"]
    (key,) = ((controller.keys / name).read_text(encoding="utf-8").strip() for name in controller.files())
    # The key that was created first is the one that Vault and the container get.
    code, last = controller.run(disk_layout_keep_recovery_keys=False)
    assert code == 0, last
    assert controller.vault.current(controller.path) == {"recovery_key": key, "container": "data"}
    assert controller.opens(key)
    assert controller.opens(OLD)
    assert controller.files() == []
    after = controller.header()
    assert key not in said
    assert key not in last
    code, again = controller.run(disk_layout_keep_recovery_keys=False)
    assert (code, "changed=0" in again) == (0, True), again
    assert controller.header() == after
    assert len(controller.vault.secrets[controller.path]) == 2


@pytest.mark.parametrize(("place", "code"), [("kv/data/luks", 404), ("secret/luks", 404), ("secret/data/other", 403)])
def test_a_wrong_path_is_refused(controller: Controller, place: str, code: int) -> None:
    """The answers of the stand-in, as the documentation of Vault's API has them; a run with one of them is above."""
    body = json.dumps({"data": {}}).encode()
    assert controller.vault.answer("POST", f"{place}/localhost/1", standin.TOKEN, body)[0] == code
    assert controller.vault.answer("POST", f"{standin.POLICY}1", None, body)[0] == 403
    assert controller.vault.answer("POST", f"{standin.POLICY}1", standin.TOKEN, b"{")[0] == 400
    assert controller.vault.secrets == {}
