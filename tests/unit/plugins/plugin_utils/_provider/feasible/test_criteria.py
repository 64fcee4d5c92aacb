# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a request asks of a tree in SQL: which roots its criteria leave, by which way they are found, and that none is lost."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.requirements import Sql
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.feasible.criteria import (
    conjunction,
    make_criteria,
    numbers_in,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.feasible.parts import Asker
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.feasible.roots import Finder
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.feasible.why import explain_from_indexes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import ledger_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_holdings
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_known_names
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.groups import parse_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import consumer_uuid
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world

SHARES = "MISC_SHARES_VIA_AGGREGATE"
WORLD = {
    "providers": [
        {"name": "a", "inventories": {"VCPU": 8}, "traits": ["CUSTOM_FAST"], "aggregates": ["rack"]},
        {"name": "b", "inventories": {"VCPU": {"total": 8, "max_unit": 2}}, "aggregates": ["rack"]},
        {"name": "c"},
        {"name": "c gpu0", "parent": "c", "inventories": {"PGPU": 1}, "traits": ["CUSTOM_FAST"]},
        {"name": "c gpu1", "parent": "c", "inventories": {"PGPU": 1}},
        {"name": "c numa", "parent": "c", "inventories": {"VCPU": {"total": 16, "min_unit": 3, "step_size": 4}}},
        {"name": "pool", "inventories": {"DISK_GB": 100}, "traits": [SHARES], "aggregates": ["rack"]},
    ],
    "allocations": {"web": {"a": {"VCPU": 5}, "c gpu1": {"PGPU": 1}}},
}


def vcpu(amount, **more):
    return {"resources": {"VCPU": amount}, **more}


@pytest.fixture(scope="module")
def ledger():
    with ledger_of(parse_world(WORLD)) as opened:
        yield opened


def roots(ledger, limit=None, **asked):
    """The names of the roots that SQL leaves."""

    def read(connection):
        request = parse_groups(asked, read_known_names(connection))
        finder = Finder(connection, make_criteria(request, {}, {}, ()))
        numbers = [number for part in finder.by_name(limit) for number in part]
        names = dict(tuple(row) for row in connection.exec_driver_sql("SELECT id, name FROM resource_providers"))
        return [names[number] for number in numbers]

    return ledger.read(read)


@pytest.mark.parametrize("limit", [None, 1, 100])
@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ({"": vcpu(3)}, ["a", "c"]),
        ({"": vcpu(2)}, ["a", "b"]),
        ({"": vcpu(4)}, ["c"]),
        ({"": vcpu(6)}, []),
        ({"": vcpu(1, required=["CUSTOM_FAST"])}, ["a"]),
        ({"": vcpu(1, forbidden=["CUSTOM_FAST"])}, ["b"]),
        ({"": vcpu(1, member_of=["rack"])}, ["a", "b"]),
        ({"": vcpu(3, not_member_of=["rack"])}, ["c"]),
        ({"G": {"resources": {"PGPU": 1}}}, ["c"]),
        ({"G": {"resources": {"PGPU": 1}, "required": ["CUSTOM_FAST"]}, "C": vcpu(3)}, ["c"]),
        ({"": {"resources": {"VCPU": 1, "DISK_GB": 10}}}, ["a", "b"]),
        ({"": {"resources": {"DISK_GB": 101}}}, []),
    ],
)
def test_roots_that_may_do(ledger, groups, found, limit):
    assert roots(ledger, limit, groups=groups) == found


def test_as_many_providers_as_groups_must_differ(ledger):
    gpu = {"resources": {"PGPU": 1}}
    assert roots(ledger, groups={"A": gpu, "B": gpu}, group_policy="isolate") == []
    assert roots(ledger, groups={"A": gpu}, group_policy="isolate") == ["c"]


def test_roots_are_asked_for_traits_and_aggregates_themselves(ledger):
    assert roots(ledger, groups={"": vcpu(1)}, root_required=["CUSTOM_FAST"]) == ["a"]
    assert roots(ledger, groups={"": vcpu(2)}, root_forbidden=["CUSTOM_FAST"]) == ["b"]
    assert roots(ledger, groups={"": vcpu(3)}, root_member_of=["!rack"]) == ["c"]


def test_what_a_consumer_has_counts_as_free(ledger):
    assert ledger.read(partial(anchors, holding=None)) == []
    (held,) = ledger.read(partial(read_holdings, uuids=[consumer_uuid("web")])).values()
    assert ledger.read(partial(anchors, holding=held)) == ["a"]


def anchors(connection, holding):
    """The names of the roots with a candidate of 8 CPUs."""
    request = parse_groups({"groups": {"": vcpu(8, required=["CUSTOM_FAST"])}}, read_known_names(connection))
    answer = Asker(connection, holding).find(request, SearchOptions())
    return [index.providers[root].name for index, root in answer.anchors]


def test_why_is_told_from_counts(ledger):
    def read(connection):
        request = parse_groups({"groups": {"": vcpu(7)}}, read_known_names(connection))
        return explain_from_indexes(Asker(connection), request, 0, truncated=False)

    told = ledger.read(read)
    assert [entry["left"] for entry in told["groups"][""][0]["constraints"]] == [3, 1, 0]
    assert (told["largest"][0]["free"], told["largest"][0]["name"]) == (16, "c numa")
    assert told["says"][-1] == "The ledger is too large to try out what would help."


def test_few_candidates_of_a_large_ledger_are_explained_as_well(ledger):
    def read(connection):
        request = parse_groups({"groups": {"": vcpu(3)}}, read_known_names(connection))
        return explain_from_indexes(Asker(connection), request, 2, truncated=False)

    told = ledger.read(read)
    assert told["first"] is None
    assert told["says"] == ["The ledger is too large to try out what would help."]


def test_pieces_of_sql():
    assert conjunction([]).text == "1 = 1"
    assert conjunction([Sql("a = ?", (1,)), Sql("{p}.b = ?", (2,)).of("x")]) == Sql("a = ? AND x.b = ?", (1, 2))
    assert numbers_in([]) == "NULL"
    assert numbers_in([3, 1]) == "3,1"
