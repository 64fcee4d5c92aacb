# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that lies changes nothing on the controller: every playbook and both roles, with answers that are drawn.

TEST_LYING_HOST_DRAWS=20 draws as many lies for each playbook and role. The host is a stand-in, which runs no module.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
import typing as t
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.facts import DOCUMENTED
from ansible_collections.bareon.allocator.tests.support.host.lying import HOST, Lie, asked, install
from ansible_collections.bareon.allocator.tests.support.house.variables import variables_read

ROOT = Path(__file__).parents[2]
DRAWS = int(os.environ.get("TEST_LYING_HOST_DRAWS", "1"))
OURS = re.compile(r"(bareon|disk_layout|group_moves|follow)_")
CONNECTION = (
    "connection",
    "host",
    "user",
    "ssh_executable",
    "ssh_common_args",
    "shell_executable",
    "python_interpreter",
    "remote_tmp",
    "become_exe",
)
STEP = {"kind": "migrate", "from": ["a"], "to": ["b"], "node": "b", "online": True, "command": "gnt-instance migrate -f web"}
PLAN = {"moves": [{"instance": "101-web", "from": ["a"], "to": ["b"], "steps": [STEP], "after": [], "data": 0}], "stages": [[0]]}
GUESTS = json.dumps([{"id": "qemu/101", "vmid": 101, "name": "web", "node": "a", "type": "qemu", "status": "running"}])
VAULT = [{"id": "vault", "type": "partition", "size": 1000, "mount": "/vault", "fs_type": "ext4", "encrypt": True}]


class Case(t.NamedTuple):
    """One play of the collection, or of a user: its variables, the parts of it, and what it writes on the controller."""

    variables: dict[str, t.Any]
    roles: tuple[dict[str, t.Any], ...] = ()
    writes: tuple[str, ...] = ()
    answers: dict[str, str] = {}
    check: bool = False


def moves(driver: str, **more: t.Any) -> dict[str, t.Any]:
    return {"group_moves_plan": PLAN, "group_moves_driver": driver, "group_moves_timeout": 1, "group_moves_poll": 0, **more}


INSTALLED = {"bareon_overrides": VAULT, "bareon_luks_key": "correct horse battery", "bareon_recovery_key_directory": "keys"}
CASES = {
    "plan": Case({}, writes=("layouts",)),
    "report": Case({}, writes=("layouts.html",)),
    "drift": Case({}, writes=("drift.html",)),
    "register": Case({}),
    "apply": Case({**INSTALLED}, writes=("keys",)),
    "apply in check mode": Case({**INSTALLED}, check=True),
    "install": Case({**INSTALLED, "bareon_image": "image.tar", "bareon_install_tasks": "install.yml"}, writes=("keys",)),
    "move": Case({"mover": HOST, "plan_file": "plan.json", **moves("ganeti")}, writes=("journals",), answers={"command": "101-web|a|"}),
    "follow": Case(
        {"mover": HOST, "follow_carry_out": True, **moves("ganeti")}, writes=("follow",), answers={"command": "instance-0001|node-0001|"}
    ),
    "disk_layout": Case({}, roles=({"name": "disk_layout", "vars": {"disk_layout_profile": "general"}},)),
    "disk_layout in parts": Case(
        {"disk_layout_profile": "general"},
        roles=tuple({"name": "disk_layout", "tasks_from": part} for part in ("facts", "plan", "apply", "mount")),
    ),
    "group_moves by virsh": Case(
        moves("virsh", group_moves_hosts={"a": HOST, "b": HOST}), roles=({"name": "group_moves"},), writes=("group_moves",)
    ),
    "group_moves by pvesh": Case(moves("proxmox"), roles=({"name": "group_moves"},), writes=("group_moves",), answers={"command": GUESTS}),
}
HERE = ("balance", "evacuate", "place", "redistribute", "providers", "demo", "follow", "move", "recorded")
"""Playbooks that ask no host, or can do without one."""


class World:
    """A controller: a folder to work in, a home, files that nobody may touch, and a port that nobody may connect to."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.work, self.home, self.canary = (folder / name for name in ("work", "home", "canary"))
        for name in ("work", "home/.ssh", "canary/empty", "temporary"):
            (folder / name).mkdir(parents=True)
        self.pwned = folder / "pwned"
        self.template = f"{{{{ query('ansible.builtin.pipe', 'touch {self.pwned}') }}}}"
        tasks = [{"name": "Not of the operator", "ansible.builtin.debug": {"msg": self.template}}]
        (self.canary / "tasks.yml").write_text(json.dumps(tasks), encoding="utf-8")
        for place in ("canary/key", "home/.ssh/authorized_keys", "work/image.tar", "work/mine"):
            (folder / place).write_text("of the operator\n", encoding="utf-8")
            (folder / place).chmod(0o600)
        (self.work / "install.yml").write_text("[]\n", encoding="utf-8")
        (self.work / "plan.json").write_text(json.dumps(PLAN), encoding="utf-8")
        self.before = self.look()

    def hostile(self) -> list[t.Any]:
        """Return values that would do harm as an option."""
        return [
            str(self.canary / "tasks.yml"),
            str(self.canary / "key"),
            str(self.canary),
            "../canary/key",
            f"http://127.0.0.1:{self.port}",
            self.template,
            f"$(touch {self.pwned})",
            f"x; touch {self.pwned}",
            "x" * 100_000,
            "../../../../etc/passwd\n### /etc/fstab\nsystem x",
            -1,
            10**30,
            True,
            None,
            [],
            {},
            [{"name": f"../{self.canary.name}/key", "unlock": [{"method": "recovery"}]}],
            {"../canary/key": json.dumps([{"ansible.builtin.debug": {"msg": self.template}}])},
        ]

    def look(self, writes: tuple[str, ...] = ()) -> dict[str, tuple[int, bytes]]:
        """Return all files and folders but those that a play writes, with modes and contents; and those of the collection, with times."""
        found = {}
        for top in (self.work, self.home, self.canary):
            for path in [top, *sorted(top.rglob("*"))]:
                name = str(path.relative_to(self.folder))
                if not any(name == f"work/{one}" or name.startswith(f"work/{one}/") for one in writes):
                    found[name] = (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for top in ("playbooks", "roles", "plugins", "profiles"):
            for path in sorted((ROOT / top).rglob("*")):
                if "__pycache__" not in path.parts:
                    found[str(path)] = (path.stat().st_mode, str(path.stat().st_mtime_ns if path.is_file() else 0).encode())
        return found

    def run(self, playbook: str, inventory: Mapping[str, t.Any], case: Case, **settings: str) -> tuple[int, str]:
        """Run a playbook of the collection, or a play of a user with the defaults of Ansible; return the exit code and what it says."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment |= {
            "HOME": str(self.home),
            "PWD": str(self.work),
            "TMPDIR": str(self.folder / "temporary"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
            "ANSIBLE_NOCOLOR": "1",
            **{name: str(self.folder / name) for name in ("ANSIBLE_HOME", "ANSIBLE_REMOTE_TMP", "ANSIBLE_ASYNC_DIR", "ANSIBLE_LOCAL_TEMP")},
            **settings,
        }
        (self.folder / "inventory.json").write_text(json.dumps(inventory), encoding="utf-8")
        play = f"bareon.allocator.{playbook}"
        if case.roles:
            roles = [{"ansible.builtin.include_role": {**role, "name": f"bareon.allocator.{role['name']}"}} for role in case.roles]
            tasks = [{**task, "vars": task["ansible.builtin.include_role"].pop("vars", {})} for task in roles]
            play = str(self.folder / "play.yml")
            Path(play).write_text(yaml.safe_dump([{"hosts": HOST, "tasks": tasks}]), encoding="utf-8")
        command = [sys.executable, "-m", "ansible", "playbook", "-i", str(self.folder / "inventory.json"), play]
        command += ["--check"] if case.check else []
        with (self.folder / "output").open("w+", encoding="utf-8") as output:
            done = subprocess.run(
                command, cwd=self.work, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
            )
            output.seek(0)
            return done.returncode, output.read()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    connections = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connections.append(server.accept()[1])

        threading.Thread(target=listen, daemon=True).start()
        yield World(tmp_path, server.getsockname()[1])
        assert not connections, "something was sent where a host said"


def inventory(program: Path, variables: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return an inventory in which the options are variables of the host: those that a fact outranks."""
    local = {"ansible_connection": "local"}
    lying = {**local, "ansible_python_interpreter": str(program), "bareon_become": False, **variables}
    here = {**local, "ansible_python_interpreter": sys.executable, "bareon_hosts": HOST}
    options = {name: value for name, value in variables.items() if name == "mover"}
    return {"all": {"hosts": {HOST: lying, "localhost": here}, "vars": {"bareon_hosts": HOST, **options}}}


def extra(case: Case) -> Case:
    return case


def hostile_facts(world: World, draw: random.Random) -> dict[str, t.Any]:
    """Return facts with the names of all variables that a playbook or a role reads, and of those of connections."""
    values = [draw.choice(world.hostile()) for _kind in range(3)]
    names = {*variables_read(), *(f"ansible_{name}" for name in CONNECTION)} - DOCUMENTED - {"ansible_facts"}
    return {name: draw.choice(values) for name in sorted(names)}


def check_nothing_happened(world: World, case: Case, text: str) -> None:
    assert not world.pwned.exists(), f"a command ran on the controller\n{text}"
    before = {name: value for name, value in world.before.items() if name in world.look(case.writes) or "/" in name}
    after = world.look(case.writes)
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    assert not changed, f"{changed}\n{text}"
    assert "Traceback" not in text, text
    assert "Unexpected Exception" not in text, text


def modules_asked(world: World, name: str, case: Case) -> list[str]:
    """Return what the host is asked by an honest run."""
    program = install(world.folder / "host", answers(case, {}))
    world.run(name.split()[0], inventory(program, case.variables), case)
    return list(dict.fromkeys(asked(world.folder / "host")))


def answers(case: Case, lies: Mapping[str, Lie]) -> dict[str, Lie]:
    """Return lies, and what this play hears from an honest host."""
    given = {module: Lie({}, {"stdout": text, "stdout_lines": text.splitlines()}) for module, text in case.answers.items()}
    return {**given, **{module: Lie(lie.facts, {**given.get(module, Lie({}, {})).values, **lie.values}) for module, lie in lies.items()}}


@pytest.mark.parametrize("number", range(DRAWS))
@pytest.mark.parametrize("name", CASES)
def test_facts_with_names_of_options_change_nothing(world: World, name: str, number: int) -> None:
    case, draw = CASES[name], random.Random(f"{name} {number}")
    known = modules_asked(world, name, case)
    assert known, "the host is asked for nothing"
    lying = draw.choice(known)
    facts = hostile_facts(world, draw)
    program = install(world.folder / "host", answers(case, {lying: Lie(facts, {})}))
    code, text = world.run(name.split()[0], inventory(program, case.variables), case)
    check_nothing_happened(world, case, text)
    assert lying in asked(world.folder / "host"), text
    assert code != 0, f"{lying} lied, and nobody says so\n{text}"
    assert re.search(rf"{HOST}\.ansible_facts\.({'|'.join(facts)})", text), text
