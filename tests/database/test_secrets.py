# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A password that a real server asks for, and takes: nothing shows it, whether the task can do its work or not."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy as sa

ROOT = Path(__file__).parents[2]
PASSWORD, OTHER, WRONG = "Zq7Keeper/7731@x", "Zq7Reader:9942%y", "Zq7Nobody5513zz"
UUID = "f743c90f-45d7-5765-af56-12889982af99"
PROVIDERS = [{"name": "node1", "inventories": {"VCPU": 8, "MEMORY_MB": 1024}}]
GROUPS = {"": {"resources": {"VCPU": 1}}}
CLUSTER = {"nodes": [{"name": name, "total_memory": "64 GiB", "total_disk": 0, "total_cpus": 16} for name in ("n1", "n2")]}
MOVE = {"instance": "i1", "from": ["n1"], "data": 0, "steps": [{"kind": "migrate", "from": ["n1"], "to": ["n2"]}]}
STATE = {"state": "ledger", "state_name": "prod"}
FOLLOW = {"cluster": CLUSTER, **STATE}
PROGRESS = {"plan": {"moves": [MOVE], "stages": [[0]]}, **STATE}
# Who asks: `keeper` may do everything, `reader` nothing, and `wrong` has another password.
TASKS: list[tuple[str, str, dict[str, t.Any], bool]] = [
    ("keeper", "provider", {"providers": PROVIDERS}, True),
    ("keeper", "provider_allocation", {"consumer": UUID, "allocations": {"node1": {"VCPU": 1}}}, True),
    ("keeper", "provider_allocation", {"consumer": "too-much", "allocations": {"node1": {"VCPU": 100}}}, False),
    ("keeper", "provider_allocation", {"consumer": "x", "allocations": {"nobody": {"VCPU": 1}}}, False),
    ("keeper", "provider_candidates", {"groups": GROUPS}, True),
    ("keeper", "provider_info", {"audit": True}, True),
    ("keeper", "group_info", {"source": {"type": "ledger"}}, True),
    ("keeper", "provider_info", {"providers": ["nobody"]}, True),
    ("keeper", "provider_backup", {"path": "saved.sqlite"}, True),
    ("keeper", "provider_restore", {"path": "saved.sqlite"}, True),
    ("keeper", "provider_restore", {"path": "none.sqlite"}, False),
    ("keeper", "provider_quota", {"project": "red", "limits": {"VCPU": 4}}, True),
    ("keeper", "provider_reap", {}, True),
    ("keeper", "provider_reconcile", {"existing": [UUID]}, True),
    ("keeper", "provider_reconcile", {"existing": [], "release": True}, False),
    ("keeper", "provider_history_info", {}, True),
    ("keeper", "provider_capacity", {"groups": GROUPS}, True),
    ("keeper", "group_follow", FOLLOW, True),
    ("keeper", "group_progress", PROGRESS, True),
    ("keeper", "group_progress", {**STATE, "journal": "0123456789abcdef"}, False),
    ("wrong", "group_follow", FOLLOW, False),
    ("reader", "group_progress", PROGRESS, False),
    ("wrong", "provider_backup", {"path": "other.sqlite"}, False),
    ("wrong", "provider_restore", {"path": "saved.sqlite"}, False),
    ("wrong", "provider_quota", {"project": "red", "limits": {"VCPU": 4}}, False),
    ("wrong", "provider_history_info", {}, False),
    ("reader", "provider_info", {}, False),
    ("reader", "provider", {"providers": PROVIDERS}, False),
    ("wrong", "provider_info", {}, False),
    ("wrong", "provider_allocation", {"consumer": UUID, "state": "absent"}, False),
]


def accounts(url: str) -> dict[str, str]:
    """Create users that need a password, and return a URL for each."""
    parsed = sa.make_url(url)
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        if parsed.get_backend_name() == "postgresql":
            for name, password in (("keeper", PASSWORD), ("reader", OTHER)):
                connection.exec_driver_sql(f"CREATE ROLE {name} LOGIN PASSWORD '{password.replace('%', '%%')}'")
            connection.exec_driver_sql("CREATE DATABASE books OWNER keeper")
            connection.exec_driver_sql("REVOKE CONNECT ON DATABASE books FROM PUBLIC")
            file = Path(str(connection.exec_driver_sql("SHOW hba_file").scalar()))
            file.write_text(f"host all keeper,reader 127.0.0.1/32 scram-sha-256\n{file.read_text()}", encoding="utf-8")
            connection.exec_driver_sql("SELECT pg_reload_conf()")
        else:
            for name, password in (("keeper", PASSWORD), ("reader", OTHER)):
                connection.exec_driver_sql(f"CREATE USER {name}@'127.0.0.1' IDENTIFIED BY '{password.replace('%', '%%')}'")
            connection.exec_driver_sql("CREATE DATABASE books")
            connection.exec_driver_sql("GRANT ALL ON books.* TO keeper@'127.0.0.1'")
    engine.dispose()
    scheme = "postgresql" if parsed.get_backend_name() == "postgresql" else "mariadb"
    users = {"keeper": ("keeper", PASSWORD), "reader": ("reader", OTHER), "wrong": ("keeper", WRONG)}
    return {who: f"{scheme}://{name}:{quote(given, safe='')}@127.0.0.1:{parsed.port}/books" for who, (name, given) in users.items()}


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_a_password_that_lets_in_shows_nowhere(request: pytest.FixtureRequest, tmp_path: Path, server: str) -> None:
    urls = accounts(request.getfixturevalue(server))
    for name in ("tmp", "home", "remote", "cache", "work"):
        (tmp_path / name).mkdir()
    tasks: list[dict[str, t.Any]] = []
    for number, (who, module, options, _well) in enumerate(TASKS):
        database = f"{{{{ {who} }}}}"
        given = (
            {**options, "source": {**options["source"], "database": database}} if "source" in options else {**options, "database": database}
        )
        tasks.append({f"bareon.allocator.{module}": given, "register": f"result_{number}", "ignore_errors": True, "diff": True})
    looked_up = "{{ query('bareon.allocator.usages', 'node1', database=DATABASE) }}"
    for who in urls:
        tasks.append({"ansible.builtin.debug": {"msg": looked_up.replace("DATABASE", who)}, "ignore_errors": True})
    tasks.append({"ansible.builtin.set_fact": {"kept": "in the cache", "cacheable": True}})
    failed = {f"result_{number}": f"{{{{ result_{number}.failed }}}}" for number in range(len(TASKS))}
    tasks.append({"ansible.builtin.copy": {"dest": str(tmp_path / "failed.json"), "content": failed, "mode": "0600"}})
    tasks.append({"ansible.builtin.debug": {"msg": {name: f"{{{{ {name} }}}}" for name in failed}}})
    (tmp_path / "work" / "play.yml").write_text(
        json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]), encoding="utf-8"
    )
    (tmp_path / "vars.json").write_text(json.dumps(urls), encoding="utf-8")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "TMPDIR": str(tmp_path / "tmp"),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp"),
        "ANSIBLE_REMOTE_TMP": str(tmp_path / "remote"),
        "ANSIBLE_LOG_PATH": str(tmp_path / "log"),
        "ANSIBLE_CACHE_PLUGIN": "jsonfile",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(tmp_path / "cache"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
        "ANSIBLE_NOCOLOR": "1",
    }
    command = [sys.executable, "-m", "ansible", "playbook", "-vvv", "--diff", "--inventory", "localhost,", "--connection", "local"]
    command += ["--extra-vars", f"ansible_python_interpreter={sys.executable}", "--extra-vars", "@../vars.json", "play.yml"]
    done = subprocess.run(command, cwd=tmp_path / "work", env=environment, capture_output=True, check=False)
    (tmp_path / "vars.json").unlink()
    output = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, output
    failures = json.loads((tmp_path / "failed.json").read_text(encoding="utf-8"))
    wrong = [
        (TASKS[number], failures[f"result_{number}"]) for number in range(len(TASKS)) if failures[f"result_{number}"] == TASKS[number][3]
    ]
    assert not wrong, output
    left = {str(file.relative_to(tmp_path)): file.read_bytes().decode(errors="replace") for file in tmp_path.rglob("*") if file.is_file()}
    assert any(place.startswith("cache/") and "in the cache" in text for place, text in left.items())
    left["output"] = output
    for secret in (PASSWORD, OTHER, WRONG):
        encoded = [base64.b64encode(b"x" * before + secret.encode()).decode()[4:-4] for before in range(3)]
        for form in {secret, quote(secret, safe=""), quote(secret), secret[:11], secret.encode().hex(), *encoded}:
            assert [place for place, text in left.items() if form in text and place != "work/play.yml"] == [], form
