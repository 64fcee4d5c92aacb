# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many requests in one task: each that fits, all or nothing, gangs, and what a second run, other writers and owners make of them."""

from __future__ import annotations

import os

import pytest
from ansible_collections.bareon.allocator.plugins.action.provider_allocation import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.arguments import REQUEST_ARGUMENTS
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.owners import NotOwner
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.quotas import QuotaExceeded, put_quota
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks import batch as batches
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.batch import parse_batch, place_batch
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time

OPTIONS = {name: spec.get("default") for name, spec in ActionModule.ARGUMENTS.items()}
REQUEST = {name: spec.get("default") for name, spec in REQUEST_ARGUMENTS.items()}
IN_ONE_RACK = {"within": "aggregate", "apart": "root"}


def needs(amount, **more):
    return {**REQUEST, "groups": {"": {"resources": {"VCPU": amount}}}, **more}


def run(bench, requests, **more):
    entries = [{**({"consumer": who} if isinstance(who, str) else who), "request": request} for who, request in requests]
    return place_batch(bench.ledger, parse_batch({**OPTIONS, "requests": entries, **more}, {}))


def put_hosts(bench, count, size=4, racks=1):
    bench.put(
        *(
            {"name": f"host{number:02}", "inventories": {"VCPU": size}, "aggregates": [f"rack{number * racks // count}"]}
            for number in range(count)
        )
    )


def names(entries):
    return [entry["name"] for entry in entries]


def test_each_that_fits_is_placed_and_the_others_say_why(bench):
    put_hosts(bench, 2)
    result = run(bench, [("a", needs(3)), ("b", needs(5)), ("c", needs(3)), ("d", needs(2)), ("e", needs(1))])
    assert names(result["placed"]) == ["a", "c", "e"]
    assert [entry["index"] for entry in result["refused"]] == [1, 3]
    assert result["refused"][0]["why"]["largest"][0]["free"] == 4
    assert "why" not in result["refused"][1], "only the requests before it are in its way"
    assert bench.used == {("host00", "VCPU"): 4, ("host01", "VCPU"): 3}


def test_a_second_run_changes_nothing_and_places_who_is_new(bench):
    put_hosts(bench, 2)
    requests = [(f"vm{number}", needs(1, order="spread")) for number in range(4)]
    assert run(bench, requests)["changed"]
    before = bench.used
    again = run(bench, requests)
    assert (again["changed"], names(again["placed"])) == (False, [f"vm{number}" for number in range(4)])
    assert names(run(bench, [*requests, ("new", needs(4))])["refused"]) == ["new"]
    assert bench.used == before


def test_all_or_nothing_takes_nothing_where_one_has_no_room(bench):
    put_hosts(bench, 2)
    with pytest.raises(NoSolution) as error:
        run(bench, [("a", needs(3)), ("b", needs(3)), ("c", needs(2))], all_or_nothing=True)
    assert bench.used == {}
    assert names(error.value.conflict["refused"]) == ["c"]
    assert error.value.conflict["fits"] == 2


def test_all_or_nothing_finds_the_way_that_one_after_the_other_misses(bench):
    """3 + 2 on the first host leave too little for 4 + 3 on the second."""
    put_hosts(bench, 2, size=6)
    asked = [("a", needs(3)), ("b", needs(2)), ("c", needs(4)), ("d", needs(3))]
    assert names(run(bench, asked, all_or_nothing=True)["placed"]) == list("abcd")
    assert set(bench.used.values()) == {6}


def test_who_has_few_hosts_to_go_to_goes_first(bench):
    put_hosts(bench, 40, size=1)
    bench.put({"name": "host00", "traits": ["CUSTOM_FAST"]})
    asked = [(f"any{number}", needs(1)) for number in range(39)]
    fast = ("fast", needs(1, root_required=["CUSTOM_FAST"]))
    assert names(run(bench, [*asked, fast], all_or_nothing=True)["placed"])[-1] == "fast"


def test_a_gang_is_in_the_smallest_rack_that_has_room_each_on_a_host_of_its_own(bench):
    put_hosts(bench, 6, racks=2)
    bench.put(*({"name": f"small{number}", "inventories": {"VCPU": 4}, "aggregates": ["rack9"]} for number in range(2)))
    asked = [(f"w{number}", needs(1)) for number in range(3)]
    result = run(bench, asked, gang=IN_ONE_RACK)
    assert result["aggregate"] in ("rack0", "rack1")
    assert sorted(bench.used.values()) == [1, 1, 1]
    assert not run(bench, asked, gang=IN_ONE_RACK)["changed"]
    two = run(bench, [(f"x{number}", needs(4)) for number in range(2)], gang=IN_ONE_RACK)
    assert two["aggregate"] == "rack9"
    listed = run(bench, [(f"y{number}", needs(1)) for number in range(2)], gang={**IN_ONE_RACK, "aggregates": ["rack1", "rack0"]})
    assert listed["aggregate"] == "rack1"


def test_a_gang_without_room_names_the_rack_that_comes_nearest(bench):
    put_hosts(bench, 6, racks=2)
    bench.claim(("other", {"host00": {"VCPU": 4}}))
    with pytest.raises(NoSolution) as error:
        run(bench, [(f"w{number}", needs(1)) for number in range(4)], gang=IN_ONE_RACK)
    assert (error.value.conflict["nearest"]["name"], error.value.conflict["nearest"]["fits"]) == ("rack1", 3)
    with pytest.raises(NoSolution) as error:
        run(bench, [("w", needs(1))], gang={"within": "aggregate", "aggregates": ["5f0d3e2c-93f5-4a9b-9c0c-6cbd7e8b9a01"]})
    assert "nearest" not in error.value.conflict
    assert bench.used == {("host00", "VCPU"): 4}


def test_a_gang_apart_by_provider_may_share_a_root(bench):
    bench.put({"name": "host"}, *({"name": f"numa{number}", "parent": "host", "inventories": {"VCPU": 4}} for number in range(2)))
    run(bench, [("a", needs(1)), ("b", needs(1))], gang={"apart": "provider"})
    assert bench.used == {("numa0", "VCPU"): 1, ("numa1", "VCPU"): 1}
    with pytest.raises(NoSolution):
        run(bench, [("c", needs(1)), ("d", needs(1))], gang={"apart": "root"})


def test_a_gang_that_is_not_in_one_rack_any_more_moves(bench):
    put_hosts(bench, 4, racks=2)
    asked = [(f"w{number}", needs(1)) for number in range(2)]
    run(bench, [("w0", needs(1, root_member_of=["rack0"])), ("w1", needs(1, root_member_of=["rack1"]))])
    result = run(bench, asked, gang=IN_ONE_RACK)
    assert result["changed"]
    assert sorted(host for host, _name in bench.used) in (["host00", "host01"], ["host02", "host03"])


def test_leases_are_passed_on_and_expired_claims_make_room(bench):
    put_hosts(bench, 3)
    bench.put({"name": "host02", "aggregates": ["rack9"]})
    run(bench, [({"consumer": name, "lease": "1h"}, needs(4)) for name in "ab"])
    run(bench, [("forever", needs(4))])
    assert run(bench, [("c", needs(4))])["refused"]
    pass_time(bench.ledger, 7200)
    gang = {"within": "aggregate", "aggregates": ["rack0"]}
    asked = [("c", needs(4)), ("d", needs(2)), ("e", needs(2))]
    assert names(run(bench, asked, gang=gang)["placed"]) == ["c", "d", "e"]
    assert not run(bench, asked, gang=gang)["changed"]


def test_drained_hosts_get_nothing_unless_they_are_included(bench):
    put_hosts(bench, 2)
    bench.put({"name": "host00", "drained": True})
    asked = [("a", needs(4)), ("b", needs(4))]
    assert names(run(bench, asked)["refused"]) == ["b"]
    assert bench.used == {("host01", "VCPU"): 4}
    for more in ({"drained": "include"}, {}):
        done = run(bench, [asked[0], ("b", needs(4, drained="include"))], **more)
        assert names(done["placed"]) == ["a", "b"]
    assert bench.used == {("host00", "VCPU"): 4, ("host01", "VCPU"): 4}


def test_requests_beyond_a_quota_are_refused_and_the_others_placed(bench):
    put_hosts(bench, 2)
    bench.ledger.write(lambda connection: put_quota(connection, "red", {"VCPU": 3}))
    asked = [({"consumer": name, "project": project}, needs(2)) for name, project in (("a", "red"), ("b", "red"), ("c", "blue"))]
    small = ({"consumer": "d", "project": "red"}, needs(1))
    result = run(bench, [*asked, small])
    assert (names(result["placed"]), names(result["refused"])) == (["a", "c", "d"], ["b"])
    assert result["refused"][0]["conflict"]["quotas"] == [{"project": "red", "resource_class": "VCPU", "asked": 2, "used": 2, "limit": 3}]
    assert not run(bench, [*asked, small])["changed"]
    with pytest.raises(QuotaExceeded):
        run(bench, asked, all_or_nothing=True)


def test_what_gives_back_makes_room_in_a_quota_for_others_of_the_task(bench):
    put_hosts(bench, 2)
    run(bench, [({"consumer": "a", "project": "red"}, needs(3))])
    bench.ledger.write(lambda connection: put_quota(connection, "red", {"VCPU": 3}))
    result = run(bench, [({"consumer": "b", "project": "red"}, needs(2)), ({"consumer": "a", "project": "red"}, needs(1))])
    assert (names(result["placed"]), result["refused"]) == (["b", "a"], [])
    refused = run(
        bench, [({"consumer": "b", "project": "red"}, needs(3, **{"with": ["a"]})), ({"consumer": "e", "project": "red"}, needs(1))]
    )
    assert names(refused["refused"]) == ["b", "e"]
    assert not refused["changed"]


def test_pack_goes_where_the_requests_before_have_filled_most(bench):
    bench.put({"name": "large", "inventories": {"VCPU": 4, "DISK_GB": 5}}, {"name": "small", "inventories": {"DISK_GB": 3}})
    both = {**needs(1), "groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 1}}}, "order": "pack"}
    disk = {**needs(1), "groups": {"": {"resources": {"DISK_GB": 1}}}, "order": "pack"}
    run(bench, [("a", both), ("b", disk)])
    assert bench.used["large", "DISK_GB"] == 2
    bench.put({"name": "small", "inventories": {"DISK_GB": 2}}, {"name": "large", "inventories": {"VCPU": 4, "DISK_GB": 6}})
    run(bench, [("c", disk)])
    assert bench.used["large", "DISK_GB"] == 3, "of equal shares the first by name"


def test_requests_that_name_each_other_stay_apart_and_together_both_ways(bench):
    put_hosts(bench, 3)
    run(bench, [("db", needs(1, not_with=["replica"])), ("replica", needs(1)), ("proxy", needs(1, **{"with": ["replica"]}))])
    assert bench.used == {("host00", "VCPU"): 1, ("host01", "VCPU"): 2}


def test_another_projects_consumer_is_refused(bench):
    put_hosts(bench, 2)
    run(bench, [({"consumer": "train", "project": "red", "user": "ann"}, needs(1))])
    theirs = [({"consumer": "train", "project": "red", "user": "bob"}, needs(2)), ("mine", needs(1))]
    result = run(bench, theirs)
    assert (names(result["placed"]), names(result["refused"])) == (["mine"], ["train"])
    assert result["refused"][0]["conflict"]["owners"][0]["user"] == "ann"
    with pytest.raises(NotOwner):
        run(bench, theirs, all_or_nothing=True)


@pytest.mark.parametrize(
    ("requests", "more", "place"),
    [
        ([], {}, "requests"),
        ([("a", needs(1)), ("a", needs(1))], {}, "requests[1].consumer"),
        ([("a", needs(1)), ("b", {**REQUEST, "query": "resources=X"})], {}, "requests[1].request.resources"),
        ([("a", needs(1))], {"gang": {}}, "gang"),
        ([("a", needs(1))], {"gang": {"apart": "rack"}}, "gang.apart"),
        ([("a", needs(1))], {"gang": {"apart": "root", "aggregates": ["rack0"]}}, "gang.aggregates"),
        ([("a", needs(1))], {"gang": {"within": "aggregate", "aggregates": ["rack8"]}}, "gang.aggregates"),
    ],
)
def test_mistakes_are_told_with_their_places(bench, requests, more, place):
    put_hosts(bench, 2)
    with pytest.raises(InputError) as error:
        run(bench, requests, **more)
    assert place in {mistake.place for mistake in error.value.mistakes}


def test_who_loses_a_place_to_another_writer_looks_again(bench, monkeypatch):
    put_hosts(bench, 2)
    claim = batches.make_claims

    def other_first(ledger, claims):
        monkeypatch.setattr(batches, "make_claims", claim)
        bench.claim(("quicker", {"host00": {"VCPU": 4}}))
        return claim(ledger, claims)

    monkeypatch.setattr(batches, "make_claims", other_first)
    result = run(bench, [("a", needs(2)), ("b", needs(2))], all_or_nothing=True)
    assert len(result["placed"]) == 2
    assert bench.used == {("host00", "VCPU"): 4, ("host01", "VCPU"): 4}


def test_five_hundred_jobs_take_seconds_of_processor_time(bench):
    put_hosts(bench, 210, size=16)
    begun = sum(os.times()[:2])
    result = run(bench, [(f"job{number}", needs(4, order="spread")) for number in range(500)])
    assert len(result["placed"]) == 500
    assert sum(os.times()[:2]) - begun < 10
