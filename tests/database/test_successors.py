# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server is replaced again and again under its own name while others claim of it, on every database: no claim is lost or doubled."""

from __future__ import annotations

import random
import threading
import uuid
from functools import partial

from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import ClaimRefused
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.inventories import StillInUse
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import load_world, open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.retry import RetryPolicy
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_world

WRITERS, CLAIMS, REPLACEMENTS = 3, 25, 12
POLICY = RetryPolicy(retries=400)


def put(ledger, *entries):
    return ledger.write(partial(put_providers, changes=parse_changes(entries, "providers[{}]")))


def test_claims_go_on_while_a_server_is_replaced(nodes):
    run = uuid.uuid4().hex[:8]
    host, numa = f"{run}-host", f"{run}-host-numa"
    with open_ledger(nodes[0]) as ledger:
        put(ledger, {"name": host, "inventories": {"VCPU": 6}}, {"name": numa, "parent": host, "inventories": {"VCPU": 6}})
    held, errors, generations, reasons, small = {}, [], [], set(), set()

    def claim(number):
        chance = random.Random(f"{run}{number}")
        try:
            with open_ledger(nodes[number % len(nodes)], POLICY, timeout=600) as ledger:
                for _unused in range(CLAIMS):
                    name = f"{run}-{number}-{chance.choice('ab')}"
                    amounts = {chance.choice([host, numa]): {"VCPU": chance.randint(1, 2)}} if chance.random() < 0.7 else {}
                    try:
                        make_claims(ledger, parse_claims([{"consumer": name, "allocations": amounts}], "consumers[{}]"))
                    except ClaimRefused as error:
                        reasons.update(each["reason"] for each in error.conflict["refused"])
                    else:
                        held[name] = amounts
        except Exception as error:
            errors.append(error)

    def replace():
        chance = random.Random(run)
        try:
            with open_ledger(nodes[-1], POLICY, timeout=600) as ledger:
                for _unused in range(REPLACEMENTS):
                    new = [{"name": host, "uuid": str(uuid.uuid4()), "replaces": host, "inventories": {"VCPU": chance.choice([2, 6])}}]
                    if chance.random() < 0.5:
                        new.append({"name": numa, "uuid": str(uuid.uuid4()), "parent": host, "inventories": {"VCPU": 6}})
                    try:
                        assert put(ledger, *new).changed
                    except StillInUse as error:
                        small.update(error.conflict["used_by"])
                    world = ledger.read(read_world)
                    generations.append(next(each.generation for each in world.providers if each.name == host))
        except Exception as error:
            errors.append(error)

    started = [threading.Thread(target=claim, args=(number,)) for number in range(WRITERS)] + [threading.Thread(target=replace)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    assert errors == []
    assert reasons <= {"full"}
    assert small <= {host, numa}
    assert generations == sorted(generations)
    world = load_world(nodes[0])
    names = {provider.uuid: provider.name for provider in world.providers}
    present = {
        world.consumer_names[consumer]: {names[each]: dict(amounts) for each, amounts in parts.items()}
        for consumer, parts in world.allocations.items()
        if world.consumer_names.get(consumer, "").startswith(run)
    }
    assert present == {name: amounts for name, amounts in held.items() if amounts}
    with open_ledger(nodes[0]) as ledger:
        assert [finding for finding in ledger.read(audit) if run in finding.name and finding.kind not in {"overfull", "piece"}] == []


def test_two_controllers_replace_one_server_at_once(nodes):
    """One of them replaces it; the other one finds it done, whatever it began with."""
    run = uuid.uuid4().hex[:8]
    entry = {"name": f"{run}-new", "replaces": f"{run}-old", "inventories": {"VCPU": 4}, "traits": [f"CUSTOM_{run.upper()}"]}
    with open_ledger(nodes[0]) as ledger:
        put(ledger, {"name": f"{run}-old", "inventories": {"VCPU": 4}})
        make_claims(ledger, parse_claims([{"consumer": run, "allocations": {f"{run}-old": {"VCPU": 3}}}], "consumers[{}]"))
    changed, errors, barrier = [], [], threading.Barrier(4)

    def replace(number):
        try:
            with open_ledger(nodes[number % len(nodes)], POLICY, timeout=600) as ledger:
                barrier.wait()
                changed.append(put(ledger, entry).changed)
        except Exception as error:
            errors.append(error)

    started = [threading.Thread(target=replace, args=(number,)) for number in range(4)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    assert errors == []
    assert sorted(changed) == [False, False, False, True]
    with open_ledger(nodes[0]) as ledger:
        world = ledger.read(read_world)
        assert [finding for finding in ledger.read(audit) if run in finding.name] == []
    (new,) = (provider for provider in world.providers if provider.name.startswith(run))
    assert world.usages()[new.uuid, "VCPU"] == 3
