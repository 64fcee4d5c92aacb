# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger against a plain reading of its rules, over random histories of tasks.

The oracle below keeps dictionaries and knows no database, no generation arithmetic and none of the ledger's code.
"""

from __future__ import annotations

import copy
import re
import uuid
from fractions import Fraction
from functools import partial

from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import Ledger, ledger_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims, parse_reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers, remove_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_consumers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.reshape import reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.model import World
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

NAMES = ["a", "b", "c", "d"]
CLASSES = ["VCPU", "CUSTOM_X"]
TRAITS = ["MISC_SHARES_VIA_AGGREGATE", "CUSTOM_T"]
AGGREGATES = [str(uuid.uuid5(uuid.NAMESPACE_DNS, name)) for name in ("one", "two")]
CONSUMERS = [str(uuid.uuid5(uuid.NAMESPACE_DNS, name)) for name in ("x", "y", "z")]

inventories = st.dictionaries(
    st.sampled_from(CLASSES),
    st.fixed_dictionaries(
        {"total": st.integers(2, 12)},
        optional={
            "reserved": st.integers(0, 2),
            "min_unit": st.integers(1, 5),
            "max_unit": st.integers(1, 12),
            "step_size": st.integers(1, 4),
            "allocation_ratio": st.sampled_from([0.5, 1.0, 1.5, 2.0]),
        },
    ),
    max_size=2,
)
full_inventories = st.fixed_dictionaries({name: st.fixed_dictionaries({"total": st.integers(6, 12)}) for name in CLASSES})
entries = st.fixed_dictionaries(
    {"name": st.sampled_from(NAMES)},
    optional={
        "parent": st.sampled_from([*NAMES, ""]),
        "inventories": inventories,
        "traits": st.lists(st.sampled_from(TRAITS), unique=True),
        "aggregates": st.lists(st.sampled_from(AGGREGATES), unique=True),
    },
)
several_entries = st.lists(entries, min_size=1, max_size=4, unique_by=lambda entry: entry["name"])
amounts = st.dictionaries(
    st.sampled_from(NAMES), st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 5), min_size=1, max_size=2), max_size=2
)
claims = st.dictionaries(st.sampled_from(CONSUMERS), amounts, min_size=1, max_size=3)


class Refused(Exception):
    """What the oracle says to a task that must fail."""


class Oracle:
    """Providers by name, holdings by consumer, and how often each provider had to change."""

    def __init__(self):
        self.providers = {}
        self.holdings = {}

    def put(self, declared):
        for entry in declared:
            known = self.providers.setdefault(entry["name"], {"parent": None, "inventories": {}, "traits": set(), "aggregates": set()})
            for key in ("traits", "aggregates"):
                if key in entry:
                    known[key] = set(entry[key])
            if "parent" in entry:
                known["parent"] = entry["parent"] or None
            if "inventories" in entry:
                self.restock(entry["name"], entry["inventories"])
        for name in self.providers:
            seen, here = set(), name
            while here is not None:
                if here not in self.providers or here in seen:
                    raise Refused
                seen.add(here)
                here = self.providers[here]["parent"]

    def restock(self, name, declared):
        if any(self.used(name, gone) for gone in self.providers[name]["inventories"].keys() - declared.keys()):
            raise Refused
        self.providers[name]["inventories"] = copy.deepcopy(declared)

    def remove(self, names):
        for name in names:
            if any(self.used(name, each) for each in CLASSES):
                raise Refused
            self.providers.pop(name, None)
        if any(provider["parent"] is not None and provider["parent"] not in self.providers for provider in self.providers.values()):
            raise Refused

    def claim(self, wanted):
        before = copy.deepcopy(self.holdings)
        for consumer, parts in wanted.items():
            if parts.keys() - self.providers.keys():
                raise Refused
            self.holdings[consumer] = copy.deepcopy(parts)
        for consumer in wanted:
            for name, held in self.holdings[consumer].items():
                for each, amount in held.items():
                    if before.get(consumer, {}).get(name, {}).get(each) != amount and not self.allows(name, each, amount):
                        raise Refused
            if not self.holdings[consumer]:
                del self.holdings[consumer]
        for name, provider in self.providers.items():
            for each, stock in provider["inventories"].items():
                total, was = self.used(name, each), sum_of(before, name, each)
                room = (stock["total"] - stock.get("reserved", 0)) * Fraction(stock.get("allocation_ratio", 1))
                if total > was and total > room:
                    raise Refused

    def allows(self, name, each, amount):
        stock = self.providers[name]["inventories"].get(each)
        if stock is None or not stock.get("min_unit", 1) <= amount <= stock.get("max_unit", 2**31 - 1):
            return False
        return amount == stock.get("min_unit", 1) or amount % stock.get("step_size", 1) == 0

    def reshape(self, forms, wanted):
        if forms.keys() - self.providers.keys():
            raise Refused
        for name, declared in forms.items():
            self.providers[name]["inventories"] = {**self.providers[name]["inventories"], **copy.deepcopy(declared)}
        self.claim(wanted)
        for name, declared in forms.items():
            self.restock(name, declared)

    def used(self, name, each):
        return sum_of(self.holdings, name, each)

    def parts_of(self, name):
        """All that a provider's generation must witness, those above it included, for its root."""
        provider = self.providers[name]
        held = {consumer: parts[name] for consumer, parts in self.holdings.items() if name in parts}
        above, here = [], provider["parent"]
        while here is not None:
            above.append(here)
            here = self.providers[here]["parent"]
        return copy.deepcopy((provider, held, above))


def sum_of(holdings, name, each):
    return sum(parts.get(name, {}).get(each, 0) for parts in holdings.values())


def untimed(result):
    """Return a result in words, without the moments of claims."""
    return re.sub(r"claimed_at=\d+", "claimed_at", repr(result))


class LedgerHistory(RuleBasedStateMachine):
    """Every task is given to both; they must agree on whether it succeeds and on all there is after."""

    @initialize(stocks=st.tuples(*[full_inventories] * len(NAMES)))
    def open(self, stocks):
        self.opened = ledger_of(World(()))
        self.ledger = self.opened.__enter__()
        self.oracle = Oracle()
        self.put([{"name": name, "inventories": stock} for name, stock in zip(NAMES, stocks, strict=True)])

    def teardown(self):
        if hasattr(self, "opened"):
            self.opened.__exit__(None, None, None)

    def both(self, work, told):
        """Run a task, of one transaction, on both; see run_both."""
        self.run_both(lambda ledger: ledger.write(work), told)

    def run_both(self, work, told):
        """Run a task on both; try it in a dry run first, which must give the same and leave no trace."""
        oracle = copy.deepcopy(self.oracle)
        try:
            told(oracle)
            is_refused = False
        except Refused:
            is_refused = True
        before, was = self.state(), self.oracle
        tried = self.attempt(Ledger(self.ledger.url, self.ledger.engine, dry_run=True), work)
        assert self.state() == before
        done = self.attempt(self.ledger, work)
        # The second of a claim may begin between the two.
        assert tried == done or untimed(tried) == untimed(done)
        assert (done is None) == is_refused
        if is_refused:
            assert self.state() == before
            return
        self.oracle = oracle
        self.check_generations(was, before[0])
        assert done.changed == (self.state() != before)
        again = self.attempt(self.ledger, work)
        assert again is not None
        assert not again.changed

    @staticmethod
    def attempt(ledger, work):
        try:
            return work(ledger)
        except (InputError, NoSolution):
            return None

    def state(self):
        world, consumers = self.ledger.read(lambda connection: (read_world(connection), read_consumers(connection)))
        return {provider.name: provider.generation for provider in world.providers}, world, consumers

    def check_generations(self, was, generations):
        """A generation moves exactly when something that it witnesses does; a reshape back and forth may move it more than once."""
        for name, generation in self.state()[0].items():
            if name in was.providers and name in self.oracle.providers:
                is_changed = was.parts_of(name) != self.oracle.parts_of(name)
                assert (generation > generations[name]) == is_changed

    @rule(declared=several_entries)
    def put(self, declared):
        changes = parse_changes(declared, "providers[{}]")
        self.both(partial(put_providers, changes=changes), lambda oracle: oracle.put(declared))

    @rule(child=st.sampled_from(NAMES), parent=st.sampled_from([*NAMES, ""]))
    def move(self, child, parent):
        self.put([{"name": child, "parent": parent}])

    @rule(names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    def remove(self, names):
        changes = parse_changes([{"name": name} for name in names], "providers[{}]")
        self.both(partial(remove_providers, changes=changes), lambda oracle: oracle.remove(names))

    @rule(consumer=st.sampled_from(CONSUMERS), name=st.sampled_from(NAMES), each=st.sampled_from(CLASSES), amount=st.integers(0, 8))
    def claim_one(self, consumer, name, each, amount):
        self.claim({consumer: {name: {each: amount}} if amount else {}})

    @rule(wanted=claims)
    def claim(self, wanted):
        self.run_both(partial(make_claims, claims=parse_wanted(wanted)), lambda oracle: oracle.claim(wanted))

    @rule(forms=st.dictionaries(st.sampled_from(NAMES), inventories, min_size=1, max_size=2), wanted=claims)
    def reshape(self, forms, wanted):
        work = partial(reshape, inventories=parse_reshape(forms, ""), claims=parse_wanted(wanted), generations={})
        self.both(work, lambda oracle: oracle.reshape(forms, wanted))

    @invariant()
    def same_world(self):
        if not hasattr(self, "ledger"):
            return
        _generations, world, consumers = self.state()
        names = {provider.uuid: provider.name for provider in world.providers}
        assert {provider.name: names.get(provider.parent) for provider in world.providers} == {
            name: provider["parent"] for name, provider in self.oracle.providers.items()
        }
        for provider in world.providers:
            told = self.oracle.providers[provider.name]
            assert (provider.traits, provider.aggregates) == (told["traits"], told["aggregates"])
            assert provider.inventories.keys() == told["inventories"].keys()
            for name, stock in told["inventories"].items():
                assert {key: getattr(provider.inventories[name], key) for key in stock} == stock
        held = {consumer: {names[uuid]: parts for uuid, parts in held.items()} for consumer, held in world.allocations.items()}
        assert held == self.oracle.holdings
        assert consumers.keys() == held.keys()

    @invariant()
    def audit_finds_nothing_but_what_tasks_may_do(self):
        if hasattr(self, "ledger"):
            assert {finding.kind for finding in self.ledger.read(audit)} <= {"overfull", "piece"}


def parse_wanted(wanted):
    return parse_claims([{"consumer": consumer, "allocations": parts} for consumer, parts in wanted.items()], "consumers[{}]")


TestLedgerHistory = LedgerHistory.TestCase
TestLedgerHistory.settings = settings(max_examples=examples(40), stateful_step_count=25, deadline=None)
