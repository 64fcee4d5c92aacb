# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger in an SQLite file of its own, and short ways to fill and ask it."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers, remove_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_consumers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_world
from ansible_collections.bareon.allocator.tests.support.provider.consumers import consumer


class Bench:
    """What a task does with a ledger, in the words of a task."""

    def __init__(self, ledger):
        self.ledger = ledger

    def put(self, *entries):
        return self.ledger.write(partial(put_providers, changes=parse_changes(entries, "providers[{}]")))

    def remove(self, *names):
        return self.ledger.write(partial(remove_providers, changes=parse_changes([{"name": name} for name in names], "providers[{}]")))

    def claim(self, *entries, generations=None):
        claims = parse_claims(
            [{"consumer": consumer(name), "allocations": amounts, **more} for name, amounts, more in map(_with_options, entries)],
            "consumers[{}]",
        )
        return make_claims(self.ledger, claims, generations)

    @property
    def world(self):
        return self.ledger.read(read_world)

    @property
    def consumers(self):
        return self.ledger.read(read_consumers)

    @property
    def generations(self):
        return {provider.name: provider.generation for provider in self.world.providers}

    @property
    def used(self):
        names = {provider.uuid: provider.name for provider in self.world.providers}
        return {(names[uuid], name): amount for (uuid, name), amount in self.world.usages().items()}

    @property
    def findings(self):
        return self.ledger.read(audit)


def _with_options(entry):
    name, amounts, *more = entry
    return name, amounts, more[0] if more else {}


@pytest.fixture
def unaudited(tmp_path):
    with open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as ledger:
        yield Bench(ledger)


@pytest.fixture
def bench(unaudited):
    """A ledger that must be in order when the test is over."""
    yield unaudited
    assert unaudited.findings == []
