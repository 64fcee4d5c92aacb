# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many writers at once, on every database: nothing is given twice, nothing is lost, and nobody sees an error but `full`."""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import Claim, ClaimRefused
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.guards import guard_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.import_world import ensure_names
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import load_world, open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_numbers, run_batches
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.retry import RetryPolicy
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.tables import traits
from sqlalchemy import event

ROOM = 500
WRITERS = 8
CLAIMER = Path(__file__).with_name("claimer.py")
REGISTRAR = Path(__file__).with_name("registrar.py")


def put(ledger, *entries):
    return ledger.write(partial(put_providers, changes=parse_changes(entries, "providers[{}]")))


@pytest.fixture
def provider(nodes):
    """A new provider with room for exactly ROOM, and 100 more that are reserved."""
    name = f"host-{uuid.uuid4()}"
    with open_ledger(nodes[0]) as ledger:
        put(ledger, {"name": name, "inventories": {"VCPU": {"total": ROOM + 100, "reserved": 100}}})
    return name


@pytest.mark.parametrize(("processes", "tasks"), [(3, 15), (16, 13)])
def test_many_controllers_register_one_fleet_at_once(nodes, processes, tasks):
    """Every task succeeds, and of those that register one host exactly one has changed something."""
    run = f"R{uuid.uuid4().hex[:8].upper()}"
    put_nothing(nodes[0])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, str(REGISTRAR)]
    started = [
        subprocess.Popen([*command, url, run, str(tasks)], env={"PYTHONPATH": ":".join(sys.path)}, **pipes)
        for _number, url in zip(range(processes), itertools.cycle(nodes))
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [process.communicate(timeout=600) for process in started]
    assert [errors for _output, errors in told if errors] == []
    changed = [output.split() for output, _errors in told]
    assert [len(each) for each in changed] == [tasks] * processes
    assert [sum(each[number] == "True" for each in changed) for number in range(tasks)] == [1] * tasks
    with open_ledger(nodes[0]) as ledger:
        assert [finding for finding in ledger.read(audit) if run in finding.name] == []
    world = load_world(nodes[0])
    assert sum(provider.name.startswith(run) for provider in world.providers) == 1 + 2 * tasks


def put_nothing(url):
    """Make the tables, which is not what is measured."""
    with open_ledger(url):
        pass


def start_claimer(url, provider, output):
    command = [sys.executable, str(CLAIMER), url, provider]
    return subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, env={"PYTHONPATH": ":".join(sys.path)})


def state_of(url, provider):
    with open_ledger(url) as ledger:
        findings = ledger.read(audit)
    world = load_world(url)
    (found,) = (entry for entry in world.providers if entry.name == provider)
    granted = {consumer: amounts[found.uuid]["VCPU"] for consumer, amounts in world.allocations.items() if found.uuid in amounts}
    return findings, granted, found.generation


def test_exactly_what_there_is_room_for_is_granted(nodes, provider, tmp_path):
    logs = [tmp_path / f"log{number}" for number in range(WRITERS)]
    started = [start_claimer(url, provider, log.open("wb")) for log, url in zip(logs, itertools.cycle(nodes))]
    errors = [process.communicate(timeout=300)[1].decode() for process in started]
    assert errors == [""] * WRITERS
    lines = [line for log in logs for line in log.read_text().splitlines()]
    told = [line for line in lines if line != "full"]
    assert lines.count("full") == WRITERS
    assert len(told) == len(set(told)) == ROOM
    for url in nodes:
        findings, granted, generation = state_of(url, provider)
        assert findings == []
        assert granted == dict.fromkeys(told, 1)
        assert generation == ROOM


def test_killed_writers_leave_nothing_half_done(nodes, provider, tmp_path):
    chance = random.Random(7)
    logs = []

    def start(url):
        logs.append(tmp_path / f"log{len(logs)}")
        return start_claimer(url, provider, logs[-1].open("wb"))

    running = [start(url) for _unused, url in zip(range(WRITERS), itertools.cycle(nodes))]
    kills = 0
    while kills < 20 and any(process.poll() is None for process in running):
        time.sleep(chance.uniform(0.02, 0.25))
        index = chance.randrange(WRITERS)
        if running[index].poll() is None:
            running[index].send_signal(signal.SIGKILL)
            running[index].wait()
            kills += 1
            running[index] = start(nodes[index % len(nodes)])
    errors = [process.communicate(timeout=300)[1].decode() for process in running]
    assert errors == [""] * WRITERS
    told = {line for log in logs for line in log.read_text().splitlines() if line != "full" and len(line) == 36}
    assert kills > 0
    for url in nodes:
        findings, granted, generation = state_of(url, provider)
        assert findings == []
        assert sum(granted.values()) == generation == ROOM
        assert told <= granted.keys()


def in_threads(count, work):
    """Run `work(number)` in threads that start together; return what each returned or raised."""
    barrier, results = threading.Barrier(count), [None] * count

    def run(number):
        barrier.wait()
        try:
            results[number] = work(number)
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_two_moves_at_once_make_no_loop(nodes):
    names = [f"{letter}-{uuid.uuid4()}" for letter in "ab"]
    with open_ledger(nodes[0]) as first, open_ledger(nodes[-1]) as second:
        ledgers = [first, second]
        put(first, *({"name": name} for name in names))
        for _unused in range(20):
            put(first, *({"name": name, "parent": ""} for name in names))
            results = in_threads(2, lambda number: put(ledgers[number], {"name": names[number], "parent": names[1 - number]}))
            assert sorted(type(result).__name__ for result in results) == ["InputError", "ProvidersChanged"]
            assert first.read(audit) == []


def test_many_moves_at_once_make_no_loop(nodes):
    names = [f"{number}-{uuid.uuid4()}" for number in range(6)]
    with open_ledger(nodes[0]) as ledger:
        put(ledger, *({"name": name} for name in names))

    def move(number):
        chance = random.Random(number)
        with open_ledger(nodes[number % len(nodes)]) as ledger:
            for _unused in range(15):
                child, parent = chance.sample(names, 2)
                try:
                    put(ledger, {"name": child, "parent": parent})
                except InputError:
                    put(ledger, {"name": child, "parent": ""})

    assert in_threads(4, move) == [None] * 4
    with open_ledger(nodes[0]) as ledger:
        assert ledger.read(audit) == []


def test_moves_of_consumers_between_two_providers_neither_lose_nor_double(nodes):
    """Claimers push consumers to and fro in both directions, which would deadlock without one order of the guards."""
    names = [f"{letter}-{uuid.uuid4()}" for letter in "ab"]
    consumers = [str(uuid.uuid4()) for _unused in range(12)]
    with open_ledger(nodes[0]) as ledger:
        put(ledger, *({"name": name, "inventories": {"VCPU": 16}} for name in names))

    def push(number):
        chance = random.Random(number)
        with open_ledger(nodes[number % len(nodes)]) as ledger:
            for _unused in range(25):
                moved = chance.sample(consumers, 2)
                claims = [Claim(consumer, {chance.choice(names): {"VCPU": chance.randint(1, 3)}}) for consumer in moved]
                try:
                    make_claims(ledger, claims)
                except ClaimRefused:
                    make_claims(ledger, [Claim(consumer, {}) for consumer in moved])

    assert in_threads(4, push) == [None] * 4
    with open_ledger(nodes[0]) as ledger:
        assert ledger.read(audit) == []


def test_guards_of_the_same_providers_in_opposite_orders_wait_and_do_not_deadlock(nodes):
    """Each takes its first provider before the other may take its second; there is no second try that could hide a deadlock."""
    names = [f"{letter}-{uuid.uuid4()}" for letter in "ab"]
    with open_ledger(nodes[0]) as ledger:
        put(ledger, *({"name": name} for name in names))
        numbers = [number for number, _uuid in ledger.read(lambda connection: read_numbers(connection, names)).values()]
    both_hold_one = threading.Barrier(2)

    def wait_for_the_other(_connection, _cursor, statement, *_unused):
        if statement.startswith("UPDATE resource_providers"):
            with contextlib.suppress(threading.BrokenBarrierError):
                both_hold_one.wait(1)

    def guard(turn):
        # One node: on two nodes of Galera nobody waits, and the later one is refused at COMMIT.
        with open_ledger(nodes[0], RetryPolicy(retries=0)) as ledger:
            event.listen(ledger.engine, "after_cursor_execute", wait_for_the_other)
            ledger.write(partial(guard_providers, expected=dict.fromkeys(numbers[::-1] if turn else numbers)))

    assert in_threads(2, guard) == [None, None]


def test_the_same_provider_and_names_registered_at_once(nodes):
    entry = {
        "name": f"host-{uuid.uuid4()}",
        "inventories": {f"CUSTOM_{uuid.uuid4().hex.upper()}": 1},
        "traits": [f"CUSTOM_{uuid.uuid4().hex.upper()}"],
    }

    # Alembic makes tables in one thread of a process at a time; tasks are processes.
    with open_ledger(nodes[0]):
        pass

    def register(number):
        with open_ledger(nodes[number % len(nodes)]) as ledger:
            return put(ledger, entry).changed

    results = in_threads(6, register)
    assert sorted(results) == [False] * 5 + [True]


def test_a_lost_race_writes_no_warning(nodes, caplog, capfd):
    """A batch that fails on PostgreSQL would tell of its error on stderr, although the task runs it again."""
    name = f"CUSTOM_{uuid.uuid4().hex.upper()}"
    attempts = []

    def insert(connection):
        attempts.append(connection)
        # So many that the server refuses the first one before the last one is sent.
        missing = [{"name": name}, *({"name": f"{name}_{number}"} for number in range(2000))][len(attempts) - 1 :]
        if len(attempts) == 1:
            with open_ledger(nodes[-1]) as other:
                other.write(lambda theirs: ensure_names(theirs, traits, [name]))
        run_batches(connection, sqlalchemy.insert(traits), missing)

    # Of SQLite there is one writer at a time, so that nobody comes first.
    if not nodes[0].startswith("sqlite"):
        with open_ledger(nodes[0]) as ledger:
            ledger.write(insert)
        assert len(attempts) == 2
    assert caplog.records == []
    assert capfd.readouterr().err == ""


def test_one_consumer_claimed_at_once_is_one_consumer(nodes, provider):
    consumer = str(uuid.uuid4())

    def claim(number):
        with open_ledger(nodes[number % len(nodes)]) as ledger:
            make_claims(ledger, [Claim(consumer, {provider: {"VCPU": number + 1}})])

    assert in_threads(6, claim) == [None] * 6
    findings, granted, generation = state_of(nodes[0], provider)
    assert findings == []
    assert granted.keys() == {consumer}
    assert generation == 6
