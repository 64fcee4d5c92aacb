# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random histories of several controllers, compared with a model, on every server; and no generation that two writers get.

TEST_HISTORIES says how many tasks each history has; `make test-histories` runs many.
"""

from __future__ import annotations

import os
import random
import threading
import uuid
from collections import Counter
from functools import partial

from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.retry import RetryPolicy
from ansible_collections.bareon.allocator.tests.support.provider.histories import History

TASKS = int(os.environ.get("TEST_HISTORIES", "400"))
WRITERS, CLAIMS = 6, 40


def test_every_task_ends_as_the_model_says(empty):
    history = History([empty[number % len(empty)] for number in range(3)], "server")
    history.run(TASKS)
    print(f"{empty[0].split(':')[0]}: {dict(history.ended)}")
    assert min(history.ended[how] for how in ("refused", "changed", "same")) > TASKS // 50


def test_no_two_changes_of_a_consumer_or_provider_have_one_generation(nodes):
    run = uuid.uuid4().hex[:8]
    hosts = [f"{run}-{number}" for number in range(3)]
    with open_ledger(nodes[0]) as ledger:
        entries = [{"name": name, "inventories": {"VCPU": 6}} for name in hosts]
        ledger.write(partial(put_providers, changes=parse_changes(entries, "providers[{}]")))
    given, errors = [], []

    def write(number):
        chance = random.Random(f"{run}{number}")
        try:
            with open_ledger(nodes[number % len(nodes)], RetryPolicy(retries=400), timeout=600) as ledger:
                for _unused in range(CLAIMS):
                    amounts = {chance.choice(hosts): {"VCPU": chance.randint(1, 3)}} if chance.random() < 0.6 else {}
                    entry = {"consumer": f"{run}-{chance.choice('abc')}", "allocations": amounts, "project": chance.choice([None, "red"])}
                    entry = {key: value for key, value in entry.items() if value is not None}
                    try:
                        claimed = make_claims(ledger, parse_claims([entry], "consumers[{}]"))
                    except NoSolution:
                        continue
                    if claimed.changed:
                        given.extend(claimed.generations.items())
                        given.extend((consumer, state.consumer.generation) for consumer, state in claimed.after.items())
        except Exception as error:
            errors.append(error)

    started = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    assert errors == []
    assert [entry for entry, count in Counter(given).items() if count > 1] == []
    with open_ledger(nodes[0]) as ledger:
        assert [finding for finding in ledger.read(audit) if run in finding.name] == []
