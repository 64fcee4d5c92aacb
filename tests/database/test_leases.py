# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Leases that have ended, on every database: of many who want their room, and their owners who want them back, nobody gets it twice."""

from __future__ import annotations

import itertools
import subprocess
import sys
import uuid
from functools import partial
from pathlib import Path

from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import ClaimRefused
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import load_world, open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.reap import reap
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.usages import read_usages
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time

ROOM = 200
WRITERS = 6
CLAIMER = Path(__file__).with_name("claimer.py")


def claim(ledger, name, host, amount=1, **options):
    entry = {"consumer": name, "allocations": {host: {"VCPU": amount}}, **options}
    return make_claims(ledger, parse_claims([entry], "consumers[{}]"))


def make_host(ledger, room):
    name = f"host-{uuid.uuid4()}"
    changes = parse_changes([{"name": name, "inventories": {"VCPU": room}}], "providers[{}]")
    ledger.write(partial(put_providers, changes=changes))
    return name


def test_a_lease_on_every_database(nodes):
    with open_ledger(nodes[0]) as ledger:
        host = make_host(ledger, 2)
        name = f"{host} job"
        (state,) = claim(ledger, name, host, 2, lease="2h").after.values()
        assert state.consumer.expires_at - state.consumer.claimed_at == 7200
        pass_time(ledger, 7199)
        assert ledger.read(partial(read_usages, references=[host]))[host]["VCPU"]["used"] == 2
        assert claim(ledger, name, host, 2, lease="1h").changed
        pass_time(ledger, 3601)
        assert ledger.read(partial(read_usages, references=[host]))[host]["VCPU"]["used"] == 0
        claimed = claim(ledger, f"{host} next", host, 1)
        assert [ended.consumer.label for ended in claimed.ended] == [name]
        claim(ledger, f"{host} last", host, 1, lease="1h")
        pass_time(ledger, 3601)
        assert f"{host} last" in [ended.consumer.label for ended in ledger.write(reap)]
        assert [finding for finding in ledger.read(audit) if host in finding.says] == []


def test_the_room_of_what_ended_is_given_once(nodes):
    with open_ledger(nodes[0]) as ledger:
        host = make_host(ledger, ROOM)
        owners = [f"{host} {number}" for number in range(ROOM)]
        entries = [{"consumer": name, "allocations": {host: {"VCPU": 1}}, "lease": "1h"} for name in owners]
        make_claims(ledger, parse_claims(entries, "consumers[{}]"))
        pass_time(ledger, 3601)
        claim(ledger, owners[0], host, lease="1h")
        kept = [owners[0]]
        environment = {"PYTHONPATH": ":".join(sys.path)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started = [
            subprocess.Popen([sys.executable, str(CLAIMER), url, host], env=environment, **pipes)
            for _number, url in zip(range(WRITERS), itertools.cycle(nodes))
        ]
        first = started[0].stdout.readline()
        for name in owners[:0:-1]:
            try:
                claim(ledger, name, host, lease="1h")
            except ClaimRefused:
                continue
            kept.append(name)
        told = [process.communicate(timeout=300) for process in started]
        assert [errors for _output, errors in told if errors] == []
        given = [line for output in (first, *(output for output, _errors in told)) for line in output.splitlines() if line != "full"]
        assert len(given) + len(kept) == ROOM
        assert given
        assert [finding for finding in ledger.read(audit) if host in finding.says] == []
    for url in nodes:
        world = load_world(url)
        (found,) = (provider.uuid for provider in world.providers if provider.name == host)
        holders = {world.consumer_names.get(consumer, consumer) for consumer, held in world.allocations.items() if found in held}
        assert holders == {*given, *kept}
