# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every task ends by its deadline, whatever it waits for, says what is known, and can be run again."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.action.provider_allocation import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import at_once
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.guards import guard_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_numbers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.allocation import run_provider_allocation
from sqlalchemy import make_url

from .proxy import Proxy

DEFAULTS = {name: spec.get("default") for name, spec in ActionModule.ARGUMENTS.items()}
SECONDS = 2.0
LATE = 3.0
"""How much later than its deadline a task may end on a busy machine."""


@pytest.fixture(autouse=True)
def notes(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def host(nodes):
    name = f"host-{uuid.uuid4()}"
    with open_ledger(nodes[0]) as ledger:
        ledger.write(lambda connection: put_providers(connection, parse_changes([{"name": name, "inventories": {"VCPU": 8}}], "")))
    return name


@pytest.fixture(params=["postgresql", "mariadb"])
def nodes_of_server(request):
    return [request.getfixturevalue(request.param)]


@contextmanager
def proxy_to(url):
    proxy = Proxy(make_url(url).port)
    try:
        yield proxy, make_url(url).set(port=proxy.port).render_as_string(hide_password=False)
    finally:
        proxy.close()


def claim(url, consumer, host, timeout=SECONDS):
    return run_provider_allocation(
        {**DEFAULTS, "database": url, "consumer": consumer, "allocations": {host: {"VCPU": 1}}, "timeout": timeout}, dry_run=False
    )


def refusal(url, consumer, host):
    began = time.monotonic()
    with pytest.raises(Unavailable) as error:
        claim(url, consumer, host)
    assert time.monotonic() - began < SECONDS + LATE
    return str(error.value)


def new_host(url):
    name = f"host-{uuid.uuid4()}"
    with open_ledger(url) as ledger:
        ledger.write(lambda connection: put_providers(connection, parse_changes([{"name": name, "inventories": {"VCPU": 8}}], "")))
    return name


@pytest.mark.parametrize("when", ["before", "in"])
def test_silence_at_commit(nodes_of_server, when):
    (server,) = nodes_of_server
    host, consumer = new_host(server), str(uuid.uuid4())
    with proxy_to(server) as (proxy, url):
        proxy.fail("silent", when)
        says = refusal(url, consumer, host)
        assert "not known whether the change was made" in says
        assert "Running the task again is safe" in says
        proxy.heal()
        again = claim(url, consumer, host, timeout=30)
        assert again["changed"]
        assert again.get("recovered", False) == (when == "in")
        last = claim(url, consumer, host, timeout=30)
        assert (last["changed"], "recovered" in last) == (False, False)
    with open_ledger(server) as ledger:
        assert ledger.read(audit) == []


@pytest.mark.parametrize("when", ["before", "in"])
def test_connection_cut_at_commit_is_made_again_in_the_same_task(nodes_of_server, when):
    (server,) = nodes_of_server
    host, consumer = new_host(server), str(uuid.uuid4())
    with proxy_to(server) as (proxy, url):
        proxy.fail("cut", when)
        result = claim(url, consumer, host, timeout=30)
        assert result["changed"]
        assert result.get("recovered", False) == (when == "in")
        assert result["consumers"][consumer]["generation"] == 1


@pytest.mark.parametrize("failure", ["silent", "cut"])
def test_what_was_answered_is_done(nodes_of_server, failure):
    (server,) = nodes_of_server
    host, consumer = new_host(server), str(uuid.uuid4())
    with proxy_to(server) as (proxy, url):
        proxy.fail(failure, "after")
        result = claim(url, consumer, host)
        assert (result["changed"], "recovered" in result) == (True, False)


def test_server_that_never_greets(nodes_of_server):
    (server,) = nodes_of_server
    host = new_host(server)
    with proxy_to(server) as (proxy, url):
        proxy.fail("mute")
        says = refusal(url, str(uuid.uuid4()), host)
        assert "Nothing was changed" in says


def server_process(connection):
    """Return the process that serves a connection: one of many of PostgreSQL, all of MariaDB."""
    if connection.dialect.name == "postgresql":
        return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
    return int(Path(connection.exec_driver_sql("SELECT @@pid_file").scalar()).read_text())


def stop(process):
    """Stop a process; return when all of its threads stand still, which one by one they do."""
    os.kill(process, signal.SIGSTOP)
    deadline = time.monotonic() + 30
    while any(task.read_text().rpartition(")")[2].split()[0] != "T" for task in Path(f"/proc/{process}/task").glob("*/stat")):
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_server_that_is_stopped_before_it_commits(nodes_of_server, monkeypatch):
    (server,) = nodes_of_server
    host, consumer = new_host(server), str(uuid.uuid4())
    stopped, claimed = [], at_once._claim_at_once

    def claim_and_stop(connection, **claims):
        found = claimed(connection, **claims)
        stopped.append(server_process(connection))
        stop(stopped[0])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(at_once, "_claim_at_once", claim_and_stop)
        try:
            says = refusal(server, consumer, host)
        finally:
            os.kill(stopped[0], signal.SIGCONT)
    assert "not known whether the change was made" in says
    again = claim(server, consumer, host, timeout=30)
    assert again["changed"]
    assert again["consumers"][consumer]["generation"] == 1
    with open_ledger(server) as ledger:
        assert ledger.read(audit) == []


def test_lock_that_somebody_else_holds(nodes, host):
    """A writer that was stopped in the middle of its transaction; when it goes on, so can everybody."""
    holds, done = threading.Event(), threading.Event()

    def hold(connection):
        guard_providers(connection, {number: None for number, _uuid in read_numbers(connection, [host]).values()})
        holds.set()
        done.wait(30)

    def stop():
        with open_ledger(nodes[0]) as ledger:
            ledger.write(hold)

    holder = threading.Thread(target=stop)
    holder.start()
    consumer = str(uuid.uuid4())
    try:
        assert holds.wait(30)
        says = refusal(nodes[0], consumer, host)
    finally:
        done.set()
        holder.join()
    assert "2 seconds of timeout" in says
    assert "Nothing was changed" in says
    assert claim(nodes[0], consumer, host, timeout=30)["changed"]
