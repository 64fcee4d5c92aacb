# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task provider_candidates: worlds inline and from a database, groups and queries, results and reasons."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates import find
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.import_world import store_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.tables import aggregates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks import candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.candidates import run_provider_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import provider_uuid
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time
from sqlalchemy import insert

WORLD = {
    "providers": [
        {"name": "host"},
        {"name": "numa0", "parent": "host", "inventories": {"VCPU": 4}},
        {"name": "numa1", "parent": "host", "inventories": {"VCPU": 8}},
    ]
}
DEFAULTS = {
    "database": None,
    "world": None,
    "timeout": 60.0,
    "query": None,
    "limit": None,
    "distinct": "allocations",
    "order": "none",
    "budget": 1000000,
    "explain_below": 1,
    "groups": None,
    "summaries": False,
}
NUMA0, NUMA1 = provider_uuid("numa0"), provider_uuid("numa1")


def run(**arguments):
    return run_provider_candidates({**DEFAULTS, **arguments})


def test_candidates_with_the_names_of_their_providers():
    result = run(world=WORLD, groups={"A": {"resources": {"VCPU": 2}}})
    assert result == {
        "candidates": [
            {"allocations": {NUMA0: {"VCPU": 2}}, "mappings": {"A": [NUMA0]}, "score": 0.5},
            {"allocations": {NUMA1: {"VCPU": 2}}, "mappings": {"A": [NUMA1]}, "score": 0.25},
        ],
        "truncated": False,
        "names": {NUMA0: "numa0", NUMA1: "numa1"},
    }


@pytest.mark.parametrize("limit", [2**63, 2**64])
def test_a_limit_that_no_database_counts_to_limits_nothing(limit, tmp_path):
    asked = {"groups": {"A": {"resources": {"VCPU": 2}}}, "limit": limit}
    database = f"sqlite:///{tmp_path}/ledger.sqlite"
    with open_ledger(database) as ledger:
        ledger.write(lambda connection: store_world(connection, parse_world(WORLD)))
    found = [run(world=WORLD, **asked), run(database=database, **asked), run(world=WORLD, query="resourcesA=VCPU:2", limit=limit)]
    assert [len(result["candidates"]) for result in found] == [2, 2, 2]


@pytest.mark.parametrize("ratio", [2**63, 3e38])
def test_a_ratio_beyond_all_counting_makes_a_capacity_that_can_be_counted(ratio):
    endless = {"providers": [{"name": "host", "inventories": {"VCPU": {"total": 2**31 - 1, "allocation_ratio": ratio}}}]}
    (candidate,) = run(world=endless, groups={"A": {"resources": {"VCPU": 2}}})["candidates"]
    assert 0 < candidate["score"] < 1e-15


def test_a_query_is_the_same_request_and_the_task_s_limit_goes_before_its_own():
    groups = run(world=WORLD, groups={"A": {"resources": {"VCPU": 2}}}, limit=1)
    assert run(world=WORLD, query="resourcesA=VCPU:2&limit=2", limit=1) == groups
    assert len(run(world=WORLD, query="resourcesA=VCPU:2&limit=2")["candidates"]) == 2


def test_a_database_answers_as_the_same_world_inline(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    with open_ledger(url) as ledger:
        ledger.write(lambda connection: store_world(connection, parse_world(WORLD)))
    groups = {"": {"resources": {"VCPU": 6}}}
    assert run(database=url, groups=groups, can_split=["VCPU"]) == run(world=WORLD, groups=groups, can_split=["VCPU"])


def test_a_database_that_is_not_there_yet_has_no_providers(tmp_path):
    result = run(database=f"sqlite:///{tmp_path}/none.sqlite", query="resources=VCPU:1")
    assert result["msg"] == "There are no providers at all."
    assert not (tmp_path / "none.sqlite").exists()


def test_no_candidates_come_with_reasons():
    result = run(world=WORLD, query="resources=VCPU:9")
    assert result["candidates"] == []
    assert result["why"]["first"]["kind"] == "room"
    assert "It would fit with 8 VCPU instead of 9" in result["msg"]


def test_few_candidates_come_with_reasons_when_asked_for():
    assert "why" not in run(world=WORLD, query="resources=VCPU:5")
    assert run(world=WORLD, query="resources=VCPU:5", explain_below=2)["why"]["says"] == [
        "More would fit with 4 VCPU instead of 5 (groups.''.resources.VCPU)."
    ]


def test_a_spent_budget_is_told():
    assert run(world=WORLD, query="resources=VCPU:1", budget=1)["truncated"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"world": {"providers": [{"name": ""}]}, "query": "resources=VCPU:1"}, "world.providers"),
        ({"world": WORLD, "query": "resources=VCPUS:1"}, "did you mean VCPU"),
        ({"world": WORLD, "groups": {"A": {"resources": {"VCPU": 1}, "required": ["CUSTOM_X"]}}}, "there is no trait 'CUSTOM_X'"),
        ({"world": WORLD, "query": "resources=VCPU:1", "budget": 0, "explain_below": -1}, "2 mistakes"),
        ({"world": WORLD, "query": "resources=VCPU:1", "limit": 0}, "limit"),
        ({"database": "nothing", "query": "resources=VCPU:1"}, "database"),
    ],
)
def test_mistakes(arguments, says):
    with pytest.raises(InputError, match=says):
        run(**arguments)


def test_trees_go_by_the_names_of_their_providers(tmp_path):
    world = {"providers": [*WORLD["providers"], {"name": "other", "inventories": {"VCPU": 9}}]}
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    with open_ledger(url) as ledger:
        ledger.write(lambda connection: store_world(connection, parse_world(world)))
    for where in ({"world": world}, {"database": url}):
        by_name = run(**where, groups={"A": {"resources": {"VCPU": 6}, "in_tree": "numa0"}})
        assert list(by_name["names"].values()) == ["numa1"]
        assert by_name == run(**where, groups={"A": {"resources": {"VCPU": 6}, "in_tree": NUMA0.upper()}})
        with pytest.raises(InputError, match="groups.A.in_tree: there is no provider 'numa2' .did you mean numa"):
            run(**where, groups={"A": {"resources": {"VCPU": 6}, "in_tree": "numa2"}})


@pytest.mark.parametrize("where", ["inline", "database"])
def test_summaries_tell_of_whole_trees(where, tmp_path):
    world = {
        "providers": [
            *WORLD["providers"],
            {"name": "nic", "parent": "host", "inventories": {"SRIOV_NET_VF": {"total": 8, "reserved": 1}}},
            {"name": "elsewhere", "inventories": {"DISK_GB": 1}},
        ],
        "allocations": {"web1": {"nic": {"SRIOV_NET_VF": 2}}},
        "custom_traits": [],
    }
    world["providers"][3]["traits"] = ["HW_NUMA_ROOT"]
    given = {"world": world}
    if where == "database":
        given = {"database": f"sqlite:///{tmp_path}/x.sqlite"}
        with open_ledger(given["database"]) as ledger:
            ledger.write(lambda connection: store_world(connection, parse_world(world)))
    found = run(**given, groups={"A": {"resources": {"VCPU": 5}}}, summaries=True)["summaries"]
    assert [entry["name"] for entry in found.values()] == ["host", "nic", "numa0", "numa1"]
    assert found[provider_uuid("nic")] == {
        "name": "nic",
        "parent": provider_uuid("host"),
        "root": provider_uuid("host"),
        "generation": 0,
        "traits": ["HW_NUMA_ROOT"],
        "resources": {"SRIOV_NET_VF": {"capacity": 7, "used": 2}},
    }
    assert "summaries" not in run(**given, groups={"A": {"resources": {"VCPU": 5}}})


AGGREGATE = "3d0e6f8c-7a55-4b7e-9a5f-0a54f8f3a001"
HOSTS = [{"name": "host", "inventories": {"VCPU": 4}}, {"name": "pair", "inventories": {"VCPU": 2, "FPGA": 1}}]


@pytest.fixture(params=[20_000, 1])
def racks(request, tmp_path, monkeypatch):
    """A ledger with an aggregate that has a name, small enough to be read whole or too large."""
    monkeypatch.setattr(candidates, "EXPLAINED_WHOLE", request.param)
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    with open_ledger(url) as ledger:
        ledger.write(lambda connection: store_world(connection, parse_world({"providers": HOSTS})))
        ledger.write(lambda connection: connection.execute(insert(aggregates).values(uuid=AGGREGATE, name="rack1")))
    return url


def test_reasons_call_aggregates_and_trees_by_name_although_a_query_has_uuids(racks):
    asked = f"resources1=VCPU:1&member_of1={AGGREGATE.upper()}&in_tree1={provider_uuid('host')}"
    result = run(database=racks, query=asked)
    assert "in aggregate rack1" in result["msg"]
    assert AGGREGATE not in str(result["why"]).lower()
    assert provider_uuid("host") not in str(result["why"]["groups"])


def test_groups_that_exclude_each_other_are_told_of_a_ledger_of_any_size(racks):
    groups = {suffix: {"resources": {"VCPU": amount}} for suffix, amount in (("A", 2), ("B", 1), ("C", 3))}
    result = run(database=racks, groups=groups)
    assert result["why"]["excluding"] == {"groups": ["A", "C"], "because": []}
    isolated = run(database=racks, groups={"A": groups["A"], "B": {"resources": {"FPGA": 1}}}, isolate=["A", "B"])
    assert isolated["why"]["excluding"] == {"groups": ["A", "B"], "because": ["isolate"]}


def many_cards(count):
    cards = [{"name": f"card{number:02}", "parent": "host", "inventories": {"PGPU": 1}} for number in range(count)]
    return {"providers": [{"name": "host"}, *cards]}


def test_without_a_limit_there_are_a_thousand_candidates(tmp_path):
    asked = {"groups": {f"_{number}": {"resources": {"PGPU": 1}} for number in range(3)}, "distinct": "mappings"}
    world = many_cards(20)
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    with open_ledger(url) as ledger:
        ledger.write(lambda connection: store_world(connection, parse_world(world)))
    found = [run(world=world, **asked), run(database=url, **asked), run(world=world, **asked, limit=20 * 19 * 18 + 1)]
    assert [(len(result["candidates"]), result["truncated"]) for result in found] == [(1000, False), (1000, False), (20 * 19 * 18, False)]


def test_an_answer_ends_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(find, "MOST_ENTRIES", 100)
    asked = {"groups": {f"_{number}": {"resources": {"PGPU": 1}} for number in range(3)}, "distinct": "mappings"}
    result = run(world=many_cards(20), **asked, limit=10**6)
    assert result["truncated"]
    entries = sum(len(candidate["allocations"]) + len(candidate["mappings"]) for candidate in result["candidates"])
    assert 100 < entries <= 106


@pytest.mark.parametrize(("nodes", "pairs", "fits"), [(4, 4, True), (4, 5, False), (8, 9, False), (16, 17, False)])
def test_pairs_that_ask_for_the_same_are_counted_and_not_tried_in_every_order(nodes, pairs, fits):
    """Each node has three cards, so that one pair finds room below it; the budget is what one way through the nodes takes."""
    numas = [{"name": f"numa{node:02}", "parent": "host", "inventories": {"MEMORY_MB": 100}} for node in range(nodes)]
    cards = [
        {"name": f"numa{node:02}card{card}", "parent": f"numa{node:02}", "inventories": {"PGPU": 1}}
        for node in range(nodes)
        for card in range(3)
    ]
    groups, same_subtree = {}, []
    for pair in range(pairs):
        suffixes = [f"_m{pair}", f"_a{pair}", f"_b{pair}"]
        groups.update(zip(suffixes, [{"resources": {"MEMORY_MB": 10}}, *[{"resources": {"PGPU": 1}}] * 2], strict=True))
        same_subtree.append(suffixes)
    world = {"providers": [{"name": "host"}, *numas, *cards]}
    result = run(world=world, groups=groups, same_subtree=same_subtree, limit=1, budget=2000, explain_below=0)
    assert (len(result["candidates"]), result["truncated"]) == (int(fits), False)


def test_why_names_who_uses_what_some_have_and_says_of_the_rest_that_nobody_has_it(tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    hosts = [{"name": "m1", "inventories": {"PGPU": 1}, "traits": ["CUSTOM_SAS"]}, {"name": "m2", "inventories": {"PGPU": 1}}]
    claim = {"consumer": "nightly", "project": "red", "allocations": {"m1": {"PGPU": 1}}, "lease": "2100-01-01T14:00:00Z"}
    with open_ledger(url) as ledger:
        names = {"providers": hosts, "custom_traits": ["CUSTOM_RARE"]}
        ledger.write(lambda connection: store_world(connection, parse_world(names)))
        make_claims(ledger, parse_claims([claim], "consumers[{}]"))
    busy, rare = (
        run(database=url, groups={"": {"resources": {"PGPU": 1}, "required": [trait]}}) for trait in ("CUSTOM_SAS", "CUSTOM_RARE")
    )
    assert "1 has trait CUSTOM_SAS, but none has 1 PGPU free: m1, used by nightly (project red, until 2100-01-01T14:00:00Z)." in busy["msg"]
    ((provider,), (user,)) = busy["why"]["busy"], busy["why"]["busy"][0]["used_by"]
    assert (provider["name"], user["name"], user["project"], user["enough"]) == ("m1", "nightly", "red", True)
    assert user["expires_at"] == "2100-01-01T14:00:00Z"
    assert rare["why"]["busy"] == []
    assert "nightly" not in rare["msg"]


SITE = [
    {"name": "a", "inventories": {"PGPU": 1, "VCPU": 8}, "traits": ["CUSTOM_SAS"], "aggregates": ["rack1"]},
    {"name": "b", "inventories": {"PGPU": 2}, "traits": ["CUSTOM_SAS", "CUSTOM_OLD"], "drained": {"reason": "fans"}},
    {"name": "b0", "parent": "b", "inventories": {"PGPU": 8}, "traits": ["CUSTOM_SAS"]},
    {"name": "c", "inventories": {"PGPU": {"total": 4, "max_unit": 2}}, "aggregates": ["rack1"]},
    {"name": "d", "inventories": {"VCPU": 16}, "traits": ["CUSTOM_SAS"]},
]
CLAIMS = [
    {"consumer": "nightly", "project": "red", "allocations": {"a": {"PGPU": 1}}, "lease": "2100-01-01T14:00:00Z"},
    {"consumer": "over", "allocations": {"c": {"PGPU": 2}}, "lease": "1h"},
    {"consumer": "stays", "allocations": {"c": {"PGPU": 1}, "d": {"VCPU": 10}}},
]


def without_idle_drains(constraints):
    """The constraints but for drains that leave as many as were left before: a large ledger does not look at those."""
    before = [None, *(each["left"] for each in constraints)]
    return [each for each, left in zip(constraints, before) if each["kind"] != "drained" or each["left"] != left]


@pytest.mark.parametrize(
    "group",
    [
        {"resources": {"PGPU": 1}, "required": ["CUSTOM_SAS"]},
        {"resources": {"PGPU": 2}, "member_of": ["rack1"], "required": ["CUSTOM_SAS"]},
        {"resources": {"PGPU": 2}, "forbidden": ["CUSTOM_OLD"], "member_of": ["!rack1"]},
        {"resources": {"PGPU": 3}},
        {"resources": {"VCPU": 7}, "required": ["CUSTOM_SAS"], "member_of": ["!rack1"]},
        {"resources": {"VCPU": 9}},
        {"resources": {"VCPU": 4, "PGPU": 1}, "required": ["CUSTOM_OLD"]},
        {"resources": {"FPGA": 1}},
    ],
)
@pytest.mark.parametrize("suffix", ["", "_A"])
@pytest.mark.parametrize("drained", ["exclude", "include"])
def test_a_large_ledger_is_explained_as_a_small_one(tmp_path, monkeypatch, group, suffix, drained):
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    with open_ledger(url) as ledger:
        ledger.write(lambda connection: put_providers(connection, parse_changes(SITE, "providers[{}]")))
        make_claims(ledger, parse_claims(CLAIMS, "consumers[{}]"))
        pass_time(ledger, 7200)
    asked = {"database": url, "groups": {suffix: group}, "drained": drained, "explain_below": 1000}
    small = run(**asked)
    monkeypatch.setattr(candidates, "EXPLAINED_WHOLE", 1)
    large = run(**asked)
    assert large["candidates"] == small["candidates"]
    seen, counted = ([without_idle_drains(each["constraints"]) for each in result["why"]["groups"][suffix]] for result in (small, large))
    assert counted[: len(seen)] == seen
    assert large["why"]["busy"] == small["why"]["busy"]
    if small["why"]["first"] is not None and small["why"]["first"]["where"] == "group":
        assert large["why"]["first"] == small["why"]["first"]
