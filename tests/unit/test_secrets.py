# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No secret that a task is given shows: in output with -vvv, logs, the system's journal, command lines, caches, or files that are left.

One run of Ansible has a task for every option of every module that takes a secret, given as it should be and as it should not. Each has a
secret of its own. What the run shows and leaves is kept, and searched for all of them, also as base64 has them. That tools get keys on
standard input is seen in tests/loop/test_keys.py, with real headers; the arguments of the programs that these run and a real journal, in
tests/loop/test_secrets_of_the_host.py; logins with a password, in tests/database/test_secrets.py. Here the journal is a stand-in.
"""

from __future__ import annotations

import base64
import http.server
import json
import os
import subprocess
import sys
import threading
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.house.documented import documented_options

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py"))
# Options that hold a secret, and suboptions that do; whatever else is called so is listed below.
SECRETS = {"luks_key", "luks_old_key", "tpm2_pin", "database", "password", "token_secret", "recovery_keys", "earlier_keys"}
NO_SECRETS = {"luks_key_files", "key_file", "key_files", "token_id", "recovery_key_stage"}
MAY_BE = {"password", "passwd", "passphrase", "secret", "token", "key", "keys", "pin", "credentials"}
Task = dict[str, t.Any]

CONTAINER = {"name": "data", "device": "/dev/bareon-is-not-there", "unlock": [{"method": "passphrase"}, {"method": "tpm2", "pin": True}]}
SCHEMA = {"luks": [{"name": "data", "device": "/dev/bareon-is-not-there"}]}
DRY = {"check_mode": True}
# What each module needs besides its secret.
ENOUGH: dict[str, Task] = {
    "disk_keys": {"containers": [CONTAINER]},
    "disk_layout": {"schema": SCHEMA},
    "provider": {"name": "node1"},
    "provider_allocation": {"consumer": "web", "state": "absent"},
    "provider_backup": {"path": "saved.sqlite"},
    "provider_quota": {"project": "red", "limits": {"VCPU": 1}},
    "provider_capacity": {"groups": {"": {"resources": {"VCPU": 1}}}},
    "provider_history_info": {"since": "7d"},
    "provider_restore": {"path": "saved.sqlite"},
    "provider_candidates": {"groups": {"": {"resources": {"VCPU": 1}}}},
    "group_follow": {"state_file": "state/follow.json"},
    "group_capacity": {"instances": [{"memory": "1 GiB", "vcpus": 1}]},
    "group_place": {"instances": [{"name": "web", "memory": "1 GiB", "vcpus": 1}]},
    "group_evacuate": {"nodes": ["a"]},
    "group_maintenance": {"nodes": ["a"]},
}
# The arguments without which a module does not read an option.
ENOUGH_BESIDE: dict[str, Task] = {"link_ledger": {"cluster": {"nodes": [{"name": "a", "total_memory": 1024, "total_cpus": 1}]}}}
# Where a database has its password: where it belongs, and where people put it by mistake. Nobody answers at this port.
URLS = [
    "postgresql://user:{}@127.0.0.1:1/name",
    "mariadb://user:{}@127.0.0.1:1/name",
    "postgresql://127.0.0.1:1/name?user=me&password={}",
    "postgresql://user:{}@127.0.0.1:port/name",
    "postgresql://user:pa/{}@127.0.0.1/name",
    "user:{}@127.0.0.1/name",
    "postgresql:user:{}@127.0.0.1",
    "sqlite:////nowhere/x?password={}",
]
SITE = """
import os, sys, syslog
def note(place, text):
    with open(os.environ["BAREON_NOTES"] + place, "a") as file:
        file.write(text + "\\n")
def hook(event, given):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        note("argv", repr(given[:2]))
sys.addaudithook(hook)
syslog.syslog = lambda *given: note("syslog", repr(given))
"""


class Case(t.NamedTuple):
    """One task: `given` is the value of its option, in which `{}` stands for the secret; `more` are keywords of the task."""

    module: str
    option: str
    given: t.Any
    more: Task


def secret_options(options: dict[str, t.Any], before: str = "") -> Iterator[str]:
    """Give the options that take a secret, with those they are in; fail for one of which nobody has said whether it is one."""
    for name, option in options.items():
        if name in SECRETS:
            yield before + name
        elif MAY_BE & set(name.split("_")) and name not in NO_SECRETS and option["type"] not in {"bool", "path"}:
            pytest.fail(f"is {before}{name} a secret?")
        yield from secret_options(option.get("suboptions") or {}, f"{before}{name}.")


def cases_of(module: str, option: str) -> Iterator[Case]:
    whole, _dot, part = option.partition(".")
    if part == "database":
        # All that a ledger reads goes through one reader of URLs.
        for given in URLS[:2]:
            of_state = {"state_name": "production"} if whole == "link_ledger" else {"type": "ledger"}
            yield Case(module, whole, of_state | {"database": given}, {})
    elif option == "database":
        for given in URLS:
            yield Case(module, option, given, {})
        yield Case(module, option, ["{}"], {})
        yield Case(module, option, {"password": "{}"}, {})
    elif whole == "source":
        source = {"type": "proxmox", "token_id": "me@pve!x"} if part == "token_secret" else {"type": "ganeti_rapi", "username": "planner"}
        for url in ("https://127.0.0.1:1", "$echo", "ftp://127.0.0.1"):
            yield Case(module, whole, {**source, "url": url, part: "{}"}, {})
        for wrong in (["{}"], {"a": "{}"}):
            yield Case(module, whole, {**source, "url": "https://127.0.0.1:1", part: wrong}, {})
        yield Case(module, whole, {**source, "url": "https://127.0.0.1:1", part: "{}", "passwrod": 1}, {})
    elif whole == "hand_over":
        yield Case(module, whole, {"part": "add", part: {"data": "{}"}}, {})
    else:
        for given in ("{}", "{}\n", ["{}"], {"a": "{}"}):
            yield Case(module, option, given, {})
        yield Case(module, option, "{}", DRY)


CASES = [case for module in MODULES for option in secret_options(documented_options(module)) for case in cases_of(module, option)]


def filled(value: t.Any, secret: str) -> t.Any:
    if isinstance(value, str):
        return value.replace("{}", secret)
    if isinstance(value, list):
        return [filled(one, secret) for one in value]
    return {key: filled(one, secret) for key, one in value.items()} if isinstance(value, dict) else value


def secret_of(number: int) -> str:
    return f"Zq7{number:04d}xWvK"


class Echo(http.server.BaseHTTPRequestHandler):
    """A server that refuses, and repeats the credentials that it was sent."""

    def do_GET(self) -> None:
        sent = self.headers.get("Authorization", "")
        self.send_response(401, f"no {sent} {base64.b64decode(sent.partition(' ')[2] + '==') if sent.startswith('Basic') else ''}")
        self.end_headers()
        self.wfile.write(sent.encode())

    def log_message(self, *_given: t.Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All that the run shows and leaves, by where."""
    folder = tmp_path_factory.mktemp("secrets")
    for name in ("site", "notes", "home", "tmp", "remote", "cache", "work"):
        (folder / name).mkdir()
    (folder / "site" / "sitecustomize.py").write_text(SITE, encoding="utf-8")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    secrets = {}
    tasks: list[Task] = []
    for number, case in enumerate(CASES):
        secrets[f"secret_{number}"] = json.loads(
            json.dumps(filled(case.given, secret_of(number))).replace("$echo", f"http://127.0.0.1:{server.server_port}")
        )
        options = {**ENOUGH.get(case.module, {}), **ENOUGH_BESIDE.get(case.option, {}), case.option: f"{{{{ secret_{number} }}}}"}
        tasks.append(
            {f"bareon.allocator.{case.module}": options, "register": f"result_{number}", "ignore_errors": True, "diff": True, **case.more}
        )
    results = {f"result_{number}": f"{{{{ result_{number} }}}}" for number in range(len(CASES))}
    tasks.append({"ansible.builtin.debug": {"msg": results}})
    # Facts are kept in the cache.
    tasks += [{"bareon.allocator.disk_facts": {}}, {"ansible.builtin.set_fact": {"kept": "{{ result_0 }}", "cacheable": True}}]
    role = {name: secret_of(len(CASES) + at) for at, name in enumerate(("luks_key", "tpm2_pin", "luks_old_key"))}
    secrets |= {f"disk_layout_{name}": secret for name, secret in role.items()}
    apply = {
        "block": [{"ansible.builtin.include_role": {"name": "bareon.allocator.disk_layout"}}],
        "rescue": [{"ansible.builtin.debug": {"var": "ansible_failed_result"}}],
        "vars": {"disk_layout_profile": "general", "disk_layout_devices": ["/dev/bareon-is-not-there"]},
    }
    moves = {
        "block": [{"ansible.builtin.include_role": {"name": "bareon.allocator.group_moves"}}],
        "rescue": [{"ansible.builtin.debug": {"var": "ansible_failed_result"}}],
        "vars": {
            "group_moves_plan": {"moves": [{"instance": "web", "kind": "migrate", "from": ["a"], "to": ["b"]}], "stages": [[0]]},
            "group_moves_driver": "proxmox",
            "group_moves_url": "https://127.0.0.1:1",
            "group_moves_username": "me@pve!x",
        },
    }
    secrets["group_moves_password"] = secret_of(len(CASES) + len(role))
    (folder / "vars.json").write_text(json.dumps(secrets), encoding="utf-8")
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": [*tasks, apply, moves]}]
    (folder / "work" / "play.yml").write_text(json.dumps(play), encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder / "site"),
        "BAREON_NOTES": f"{folder / 'notes'}/",
        "TMPDIR": str(folder / "tmp"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_REMOTE_TEMP": str(folder / "remote"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOG_PATH": str(folder / "log"),
        "ANSIBLE_CACHE_PLUGIN": "jsonfile",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(folder / "cache"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
        "XDG_STATE_HOME": str(folder / "home"),
        "XDG_DATA_HOME": str(folder / "home"),
    }
    environment.pop("ANSIBLE_CONFIG", None)
    command = [sys.executable, "-m", "ansible", "playbook", "-vvv", "--diff", "--inventory", "localhost,", "--connection", "local"]
    command += ["--extra-vars", f"ansible_python_interpreter={sys.executable}", "--extra-vars", "@../vars.json", "play.yml"]
    with (folder / "output").open("wb") as output:
        subprocess.run(command, cwd=folder / "work", env=environment, stdout=output, stderr=subprocess.STDOUT, check=False)
    server.shutdown()
    (folder / "vars.json").unlink()
    return {
        str(file.relative_to(folder)): file.read_bytes().decode(errors="replace")
        for file in folder.rglob("*")
        if file.is_file() and file.name not in {"play.yml", "sitecustomize.py"}
    }


def forms(secret: str) -> list[str]:
    """Return a secret as it is, and its base64 at all three positions."""
    texts = [base64.b64encode(b"x" * before + secret.encode()).decode() for before in range(3)]
    return [secret, *(text[4:-4] for text in texts)]


def test_all_tasks_have_run(left: dict[str, str]) -> None:
    output = left["output"]
    for number, case in enumerate(CASES):
        assert f'"result_{number}"' in output, case
    assert {f"{case.module}.{case.option}" for case in CASES} >= {"disk_keys.luks_key", "disk_layout.luks_key", "provider.database"}
    # What is searched is what is there.
    assert "Invoked with containers=" in left["notes/syslog"]
    assert "NOT_LOGGING_PARAMETER" in left["notes/syslog"]
    assert "AnsiballZ" in left["notes/argv"]
    cached = [text for place, text in left.items() if place.startswith("cache/")]
    assert any("bareon_hardware" in text and "kept" in text for text in cached)
    assert "group_moves" in output
    assert "/dev/bareon-is-not-there" in output


def test_the_table_has_every_module() -> None:
    """A module without secrets has no case; one whose options are not read would have none, either."""
    with_secrets = {case.module for case in CASES}
    without = {
        "controller_file",
        "disk_boot",
        "disk_drift",
        "disk_erase",
        "disk_facts",
        "disk_mounts",
        "disk_plan",
        "disk_plan_diff",
        "disk_report",
        "node_facts",
        "pinned_options",
    }
    assert with_secrets.isdisjoint(without)
    for module in set(MODULES) - with_secrets:
        assert not list(secret_options(documented_options(module)))
    assert len(with_secrets) >= 15


@pytest.mark.parametrize("number", range(len(CASES) + 4), ids=lambda number: "-".join(CASES[number][:2]) if number < len(CASES) else "role")
def test_a_secret_shows_nowhere(left: dict[str, str], number: int) -> None:
    found = {(place, form) for form in forms(secret_of(number)) for place, text in left.items() if form in text}
    where = [(place, left[place][max(0, (at := left[place].index(form)) - 300) : at + 100]) for place, form in found]
    assert not where, "\n".join(f"{place}: ...{text}..." for place, text in where)
