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
import tempfile
import threading
import typing as t
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.facts import DOCUMENTED
from ansible_collections.bareon.allocator.tests.support.disk.planned import data_plan
from ansible_collections.bareon.allocator.tests.support.host.lying import CONTAINER, HONEST, Lie, asked, draw_values, install, install_ssh
from ansible_collections.bareon.allocator.tests.support.house.variables import variables_read

ROOT = Path(__file__).parents[2]
DRAWS = int(os.environ.get("TEST_LYING_HOST_DRAWS", "1"))
OURS = re.compile(r"(__)?(bareon|disk_layout|group_moves|follow)_")
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
PARTS = ("facts", "plan", "apply", "mount")
VAULT = [
    {
        "id": "vault",
        "type": "partition",
        "size": 1000,
        "mount": "/vault",
        "fs_type": "ext4",
        "encrypt": True,
        "unlock": [{"method": "recovery"}],
    }
]


class Case(t.NamedTuple):
    """A play: of the collection by its name, or of a user; its options, what it asks a host, and what it writes on the controller."""

    play: str
    options: dict[str, t.Any]
    asks: tuple[str, ...]
    writes: tuple[str, ...] = ()
    roles: tuple[dict[str, t.Any], ...] = ()
    check: bool = False
    heard: Mapping[str, dict[str, t.Any]] = {}
    """What an honest host answers in this play only."""


def moves(driver: str, **more: t.Any) -> dict[str, t.Any]:
    known = {"group_moves_plan": PLAN, "group_moves_check_where": False, "group_moves_timeout": 1, "group_moves_poll": 0}
    return {**known, "group_moves_driver": driver, **more}


INSTALLED = {"bareon_overrides": VAULT, "bareon_luks_key": "correct horse battery", "bareon_recovery_key_directory": "keys"}
ENCRYPTED = {"disk_layout": {"containers": [CONTAINER]}}
APPLIED = ("disk_facts", "command", "disk_layout", "disk_mounts", "disk_tables")
BUILTIN = ("stat", "copy", "file")
FLEETS = {
    "plan": Case("plan", {}, ("disk_facts",), ("layouts",)),
    "report": Case("report", {}, ("disk_facts",), ("layouts.html",)),
    "drift": Case("drift", {}, ("disk_facts",), ("drift.html",)),
    "erase": Case("erase", {"bareon_erase": ["/dev/disk/by-id/ata-A"]}, ("disk_erase",), ("erased", "erased.html")),
    "register": Case("register", {}, ("disk_facts", "setup", "node_facts")),
    "apply": Case("apply", INSTALLED, (*APPLIED, "disk_keys"), ("keys",), heard=ENCRYPTED),
    "apply in check mode": Case("apply", INSTALLED, (*APPLIED, "disk_keys"), check=True, heard=ENCRYPTED),
    "install": Case(
        "install",
        {**INSTALLED, "bareon_image": "image.tar", "bareon_install_tasks": "finish.yml"},
        (*APPLIED, *BUILTIN, "disk_keys", "disk_boot"),
        ("keys",),
        heard=ENCRYPTED,
    ),
    "the role of a user": Case("", {"disk_layout_profile": "general"}, ("setup", *APPLIED), roles=({"name": "disk_layout"},)),
    "the parts of the role": Case(
        "", {"disk_layout_profile": "general"}, APPLIED, roles=tuple({"name": "disk_layout", "tasks_from": part} for part in PARTS)
    ),
}
"""Plays for many hosts, of which each lies in another answer."""
GUESTS = json.dumps([{"id": "qemu/101", "vmid": 101, "name": "web", "node": "a", "type": "qemu", "status": "running"}])
MOVED = {"roles": ({"name": "group_moves"},), "writes": ("group_moves",)}
MOVERS = {
    "move": Case("move", {"plan_file": "plan.json", **moves("ganeti")}, ("command",), ("journals",)),
    "follow": Case(
        "follow", {"follow_carry_out": True, "follow_max_moves": 1, "follow_urgent_polls": 1, **moves("ganeti")}, ("command",), ("follow",)
    ),
    "virsh": Case("", moves("virsh", group_moves_hosts={"a": "web0", "b": "web0"}), ("setup", "command"), **MOVED),
    "pvesh": Case("", moves("proxmox"), ("setup", "command"), **MOVED, heard={"command": {"stdout": GUESTS}}),
}
"""Plays for one host, which others are moved from."""
HERE = ("balance", "demo", "evacuate", "follow", "ledger", "move", "place", "providers", "recorded", "redistribute")
"""Playbooks that ask no host, or can do without one."""


class World:
    """A controller: a folder to work in, a home, files that nobody may touch, and a port that nobody may connect to."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.work, self.home, self.canary = (folder / name for name in ("work", "home", "canary"))
        for name in ("work", "home/.ssh", "canary/empty"):
            (folder / name).mkdir(parents=True)
        self.pwned = folder / "pwned"
        self.template = f"{{{{ query('ansible.builtin.pipe', 'touch {self.pwned}') }}}}"
        tasks = [{"name": "Not of the operator", "ansible.builtin.debug": {"msg": self.template}}]
        (self.canary / "tasks.yml").write_text(json.dumps(tasks), encoding="utf-8")
        for place in ("canary/key", "home/.ssh/authorized_keys", "work/image.tar", "work/mine"):
            (folder / place).write_text("of the operator\n", encoding="utf-8")
            (folder / place).chmod(0o600)
        self.program = self.canary / "program"
        self.program.write_text(f"#!/bin/sh\ntouch {self.pwned}\n", encoding="utf-8")
        self.program.chmod(0o755)
        (self.work / "finish.yml").write_text("[]\n", encoding="utf-8")
        (self.work / "plan.json").write_text(json.dumps(PLAN), encoding="utf-8")
        (self.work / "plans").mkdir()
        for number in range(5):
            (self.work / "plans" / f"web{number}.json").write_text(json.dumps(data_plan()), encoding="utf-8")
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
        for top in ("playbooks", "roles", "plugins"):
            for path in sorted((ROOT / top).rglob("*")):
                if "__pycache__" not in path.parts:
                    found[str(path)] = (path.stat().st_mode, str(path.stat().st_mtime_ns if path.is_file() else 0).encode())
        return found

    def run(self, case: Case, hosts: Mapping[str, t.Any], **settings: str) -> tuple[int, str]:
        """Run a playbook of the collection, or a play of a user with the defaults of Ansible; return the exit code and what it says."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment |= {
            "HOME": str(self.home),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
            "ANSIBLE_NOCOLOR": "1",
            **{name: str(self.folder / name) for name in ("ANSIBLE_HOME", "ANSIBLE_REMOTE_TMP", "ANSIBLE_ASYNC_DIR", "ANSIBLE_LOCAL_TEMP")},
            **settings,
        }
        local = {"ansible_connection": "local", "bareon_become": False}
        # As variables of the inventory: a fact outranks these.
        everywhere = {"hosts": {**hosts, "localhost": {"ansible_python_interpreter": sys.executable}}, "vars": {**local, **case.options}}
        if "plan_file" in case.options:
            everywhere["vars"]["plan_file"] = str(self.work / "plan.json")
        (self.folder / "inventory.json").write_text(json.dumps({"all": everywhere}), encoding="utf-8")
        play = f"bareon.allocator.{case.play}"
        if case.roles:
            tasks = [{"ansible.builtin.include_role": {**role, "name": f"bareon.allocator.{role['name']}"}} for role in case.roles]
            play = str(self.work / "play.yml")
            Path(play).write_text(yaml.safe_dump([{"hosts": "all:!localhost", "tasks": tasks}]), encoding="utf-8")
            self.before[f"work/{Path(play).name}"] = (Path(play).stat().st_mode, Path(play).read_bytes())
        chosen = {"bareon_hosts": "all:!localhost" if hosts else "localhost", **({"mover": next(iter(hosts))} if hosts else {})}
        command = [sys.executable, "-m", "ansible", "playbook", "-i", str(self.folder / "inventory.json"), play, "-e", json.dumps(chosen)]
        command += ["--check"] if case.check else []
        # Ansible has sockets in there, whose paths must be short.
        with tempfile.TemporaryDirectory(prefix="lie") as temporary, (self.folder / "output").open("w+", encoding="utf-8") as output:
            environment["TMPDIR"] = temporary
            done = subprocess.run(
                command, cwd=self.work, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
            )
            output.seek(0)
            # Facts are long, and an assertion shows all that was said.
            return done.returncode, "\n".join(line[:400] for line in output.read().splitlines())

    def host(self, case: Case, name: str, lies: Mapping[str, Lie]) -> dict[str, t.Any]:
        """Return the variables of a host that lies."""
        honest = {module: Lie({}, values) for module, values in case.heard.items()}
        return {"ansible_python_interpreter": str(install(self.folder / "hosts" / name, {**honest, **lies}))}


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


def hostile_facts(world: World, draw: random.Random, *, ours: bool) -> dict[str, t.Any]:
    """Return facts with names of variables that playbooks and roles read: those of the collection, or also those of Ansible."""
    values = [draw.choice(world.hostile()) for _kind in range(3)]
    names = {name for name in variables_read() if not ours or OURS.match(name)} - DOCUMENTED - {"ansible_facts"}
    names |= set() if ours else {f"ansible_{name}" for name in CONNECTION}
    return {name: draw.choice(values) for name in sorted(names) if draw.random() < 0.8}


def check_nothing_happened(world: World, case: Case, text: str) -> None:
    assert not world.pwned.exists(), f"a command ran on the controller\n{text}"
    after = world.look(case.writes)
    changed = sorted(name for name in {*world.before, *after} if world.before.get(name) != after.get(name))
    assert not changed, f"{changed}\n{text}"
    assert "Traceback" not in text, text
    assert "Unexpected Exception" not in text, text


def fails(text: str, host: str, *, named: bool) -> bool:
    """Return whether a run has failed for a host; `named` with the name of a fact, or of an option whose value is of another kind."""
    failures = [line for line in text.splitlines() if re.match(rf"(fatal|failed): \[{host}\b", line)]
    says = re.search(rf"(host|{host})\.ansible_facts\.\w", text) or any("argument_errors" in line for line in failures)
    return bool(failures) and (bool(says) or not named)


@pytest.mark.parametrize("number", range(DRAWS))
@pytest.mark.parametrize("name", FLEETS)
def test_facts_of_a_fleet_are_no_options(world: World, name: str, number: int) -> None:
    """Each host lies in its answer to another module: all of them fail, and the run names the host and a fact."""
    case, draw = FLEETS[name], random.Random(f"{name} {number}")
    lying = {f"web{index}": module for index, module in enumerate(case.asks)}
    ours = {host: index % 2 == number % 2 for index, host in enumerate(lying)}
    hosts = {}
    for host, module in lying.items():
        lie = Lie(hostile_facts(world, draw, ours=ours[host]), case.heard.get(module, {}))
        hosts[host] = world.host(case, host, {module: lie})
    code, text = world.run(case, hosts)
    check_nothing_happened(world, case, text)
    assert code != 0, text
    for host, module in lying.items():
        assert module in asked(world.folder / "hosts" / host), f"{host} was not asked to run {module}\n{text}"
        assert fails(text, host, named=ours[host]), f"nobody says that {host} lied in the answer of {module}\n{text}"


@pytest.mark.parametrize("name", [*FLEETS, *MOVERS])
def test_settings_of_ansible_are_no_facts(world: World, name: str) -> None:
    """Ansible takes settings of ssh from facts: with these, the next file that goes to the host runs a program on the controller."""
    case = {**FLEETS, **MOVERS}[name]
    settings = {
        "ansible_sftp_executable": str(world.program),
        "ansible_scp_executable": str(world.program),
        "ansible_control_path_dir": str(world.canary / "made"),
        "ansible_remote_tmp": f"{world.folder}/$(touch {world.pwned})",
        "ansible_async_dir": f"{world.folder}/$(touch {world.pwned})",
    }
    hosts = {}
    for index, module in enumerate(case.asks if name in FLEETS else case.asks[-1:]):
        lie = Lie(settings, case.heard.get(module, {}))
        hosts[f"web{index}"] = {**world.host(case, f"web{index}", {module: lie}), "ansible_connection": "ssh"}
    path = f"{install_ssh(world.folder / 'bin')}:{os.environ['PATH']}"
    _code, text = world.run(case, hosts, PATH=path, ANSIBLE_SSH_CONTROL_PATH_DIR=str(world.folder / "control"))
    check_nothing_happened(world, case, text)
    for index, module in enumerate(case.asks if name in FLEETS else case.asks[-1:]):
        assert module in asked(world.folder / "hosts" / f"web{index}"), f"web{index} was not asked to run {module}\n{text}"
        assert fails(text, f"web{index}", named=True), text


@pytest.mark.parametrize("number", range(DRAWS))
@pytest.mark.parametrize(("name", "module"), [(name, module) for name, case in MOVERS.items() for module in case.asks])
def test_facts_of_one_host_are_no_options(world: World, name: str, module: str, number: int) -> None:
    case, draw = MOVERS[name], random.Random(f"{name} {module} {number}")
    ours = number % 2 == 0
    lie = Lie(hostile_facts(world, draw, ours=ours), case.heard.get(module, {}))
    code, text = world.run(case, {"web0": world.host(case, "web0", {module: lie})})
    check_nothing_happened(world, case, text)
    assert code != 0, text
    assert module in asked(world.folder / "hosts" / "web0"), text
    assert fails(text, "web0", named=ours), text


@pytest.mark.parametrize("name", FLEETS)
def test_an_honest_host_whose_python_ansible_finds_is_believed(world: World, name: str) -> None:
    """Ansible adds a fact of its own to the first answer of a host: the Python that it has found there."""
    case = FLEETS[name]
    found = world.host(case, "web0", {})["ansible_python_interpreter"]
    host = {"ansible_connection": "apart", "ansible_interpreter_python_fallback": [found]}
    _code, text = world.run(case, {"web0": host}, ANSIBLE_CONNECTION_PLUGINS=str(ROOT / "tests" / "support" / "connections"))
    assert not fails(text, "web0", named=True), text
    assert [module for module in case.asks if module not in asked(world.folder / "hosts" / "web0")] == [], text


@pytest.mark.parametrize("name", ["plan", "report", "apply"])
def test_a_host_that_is_called_like_a_path_is_refused(world: World, name: str) -> None:
    """Plays write files that are called like hosts, and an inventory can take its hosts' names from a cluster."""
    case = FLEETS[name]._replace(options=INSTALLED if name == "apply" else {"bareon_drawings": "layouts"})
    called = ["../canary/key", "a/../../canary/key", "/etc/made"]
    hosts = {host: world.host(case, f"web{number}", {}) for number, host in enumerate(called)}
    code, text = world.run(case, {**hosts, "honest": world.host(case, "honest", {})})
    check_nothing_happened(world, case, text)
    assert code != 0, text
    assert not [number for number, _host in enumerate(called) if asked(world.folder / "hosts" / f"web{number}")], text
    assert asked(world.folder / "hosts" / "honest"), text


ANSIBLES_OWN = re.compile("has no attribute '(splitlines|keys)'")
"""Ansible itself splits what commands print, and its release 2.19 asks the facts of any module of its own for their keys."""


@pytest.mark.parametrize("number", range(DRAWS))
@pytest.mark.parametrize("name", [*FLEETS, *MOVERS])
def test_answers_of_any_kind_change_nothing(world: World, name: str, number: int) -> None:
    """All values of all answers may be of other kinds, too long, paths or templates."""
    case, draw = {**FLEETS, **MOVERS}[name], random.Random(f"{name} {number}")
    hosts = {}
    for index, _module in enumerate(case.asks if name in FLEETS else case.asks[:1]):
        spoilt = draw.sample(sorted(HONEST), draw.randint(1, 3))
        lies = {module: Lie({}, draw_values(HONEST[module], world.hostile(), draw)) for module in spoilt}
        hosts[f"web{index}"] = world.host(case, f"web{index}", lies)
    _code, text = world.run(case, hosts)
    check_nothing_happened(world, case, text)
    # What an exception says that nobody has expected: a key, a method that a value of another kind lacks.
    unexpected = re.findall(r"Task failed: (?:Action failed: |Module failed: )?(?:'|\w+ indices|unhashable|unsupported|can only).*", text)
    assert [said for said in unexpected if not ANSIBLES_OWN.search(said)] == [], text


@pytest.mark.parametrize("name", HERE)
def test_facts_in_a_cache_are_no_options(world: World, name: str) -> None:
    """What a host said in an earlier run is in the cache of facts, perhaps under the name of the controller."""
    cache = world.folder / "cache"
    cache.mkdir()
    facts = json.dumps(hostile_facts(world, random.Random(name), ours=False))
    # As ansible-core keeps facts from 2.19 on.
    (cache / "s1_localhost").write_text(json.dumps({"__payload__": facts}), encoding="utf-8")
    case = Case(name, {}, ())
    settings = {"ANSIBLE_CACHE_PLUGIN": "jsonfile", "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(cache)}
    code, text = world.run(case._replace(options={"bareon_hosts": "localhost"}), {}, **settings)
    check_nothing_happened(world, case, text)
    assert code != 0, text
    assert fails(text, "localhost", named=True), text


@pytest.mark.parametrize("prefix", ["", "ansible_"])
def test_providers_in_a_cache_are_not_registered(world: World, prefix: str) -> None:
    """A host fails for the fact, before anything outranks it, and the books are kept of the others."""
    cache = world.folder / "cache"
    cache.mkdir()
    said = [{"name": "of_web1", "inventories": {"VCPU": 1000, "MEMORY_MB": 1000000, "DISK_GB": 100000}, "traits": ["STORAGE_DISK_SSD"]}]
    (cache / "s1_web0").write_text(json.dumps({"__payload__": json.dumps({f"{prefix}bareon_providers": said})}), encoding="utf-8")
    case = Case("register", {}, ("disk_facts",))
    settings = {"ANSIBLE_CACHE_PLUGIN": "jsonfile", "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(cache)}
    _code, text = world.run(case, {name: world.host(case, name, {}) for name in ("web0", "web1")}, **settings)
    check_nothing_happened(world, case, text)
    assert fails(text, "web0", named=True), text
    assert "of_web1" not in text, text
    assert "web1_vg_guests" in text, text


HARDWARE = HONEST["disk_facts"]["ansible_facts"]["bareon_hardware"]


@pytest.mark.parametrize("fact", ["bareon_overrides", "bareon_known_hardware", "omit", "inventory_hostname"])
@pytest.mark.parametrize("is_written", [False, True], ids=["asked", "written"])
def test_a_first_host_with_such_facts_in_a_cache_keeps_no_other_from_the_page(world: World, fact: str, is_written: bool) -> None:
    """A task for all hosts belongs to the first of them, and a play of which all hosts fail would be the last."""
    cache = world.folder / "cache"
    cache.mkdir()
    (cache / "s1_web0").write_text(json.dumps({"__payload__": json.dumps({fact: "web1"})}), encoding="utf-8")
    case = FLEETS["report"]
    settings = {"ANSIBLE_CACHE_PLUGIN": "jsonfile", "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(cache)}
    hosts = {name: world.host(case, name, {}) for name in ("web0", "web1")}
    for name in hosts if is_written else ("web1",):
        hosts[name]["bareon_known_hardware"] = HARDWARE
    code, text = world.run(case, hosts, **settings)
    check_nothing_happened(world, case, text)
    assert code != 0, text
    assert f"web0.ansible_facts.{fact}" in text or f"host.ansible_facts.{fact}" in text, text
    assert "shows 2 hosts (1 without a plan, 0 not reached)" in " ".join(text.split()), text


def test_the_only_host_that_is_asked_keeps_no_other_from_the_page(world: World) -> None:
    case = FLEETS["report"]
    lie = Lie({"bareon_overrides": []}, {})
    hosts = {"web0": world.host(case, "web0", {"disk_facts": lie}), "web1": {"bareon_known_hardware": HARDWARE}}
    code, text = world.run(case, hosts)
    check_nothing_happened(world, case, text)
    assert code != 0, text
    assert fails(text, "web0", named=True), text
    assert "shows 2 hosts (1 without a plan, 0 not reached)" in " ".join(text.split()), text


OTHER_KINDS: dict[str, dict[str, t.Any]] = {
    "none": {"ansible_facts": {}},
    "null": {"ansible_facts": {"bareon_hardware": None}},
    "text": {"ansible_facts": {"bareon_hardware": "x"}},
    "disks": {"ansible_facts": {"bareon_hardware": {"ram": 1, "disks": "x"}}},
    "disk": {"ansible_facts": {"bareon_hardware": {**HARDWARE, "disks": [*HARDWARE["disks"], 5]}}},
    "size": {"ansible_facts": {"bareon_hardware": {**HARDWARE, "disks": [{**HARDWARE["disks"][0], "size": ["x"]}]}}},
    "partition": {"ansible_facts": {"bareon_hardware": {**HARDWARE, "disks": [{**HARDWARE["disks"][0], "partitions": [5]}]}}},
    "ram": {"ansible_facts": {"bareon_hardware": {**HARDWARE, "ram": {}}}},
    "message": {"failed": True, "msg": [{"a": 5}], "ansible_facts": {}},
    "unreachable": {"unreachable": True},
}


def test_facts_of_another_kind_in_a_folder_end_no_comparison_of_others(world: World) -> None:
    case = FLEETS["drift"]._replace(options={"bareon_facts": "kept", "bareon_plans": "plans"})
    kept = {f"of_{name}": said["ansible_facts"] for name, said in OTHER_KINDS.items() if said.get("ansible_facts")}
    kept["honest"] = {"bareon_hardware": HARDWARE}
    (world.work / "kept").mkdir()
    for name, facts in kept.items():
        (world.work / "kept" / f"{name}.json").write_text(json.dumps(facts), encoding="utf-8")
        (world.work / "plans" / f"{name}.json").write_text(json.dumps(data_plan()), encoding="utf-8")
    (world.work / "plans" / "of_text.json").write_text("no JSON", encoding="utf-8")
    world.before = world.look()
    code, text = world.run(case, {name: world.host(case, name, {}) for name in kept})
    check_nothing_happened(world, case, text)
    assert code != 0, text
    page = (world.work / "drift.html").read_text(encoding="utf-8")
    assert "the disk is gone" in page, "what became of the plan of the honest host"
    assert [name for name in kept if name not in page and name != "of_null"] == [], text


@pytest.mark.parametrize("play", ["report", "drift"])
def test_an_answer_of_another_kind_ends_no_run_of_others(world: World, play: str) -> None:
    case = FLEETS[play]
    hosts = {f"of_{name}": world.host(case, f"of_{name}", {"disk_facts": Lie({}, said)}) for name, said in OTHER_KINDS.items()}
    hosts["honest"] = world.host(case, "honest", {})
    for name in hosts:
        (world.work / "plans" / f"{name}.json").write_text(json.dumps(data_plan()), encoding="utf-8")
    world.before = world.look()
    code, text = world.run(case, hosts)
    check_nothing_happened(world, case, text)
    assert code == 0, text
    if play == "report":
        page = (world.work / "layouts.html").read_text(encoding="utf-8")
        assert [name for name in hosts if name not in page] == [], text
