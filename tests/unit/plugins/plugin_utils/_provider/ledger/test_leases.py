# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A claim with a lease holds until the lease ends; then whoever needs its room has it, in one transaction and without a daemon."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import ClaimRefused
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claims import (
    apply_plan,
    guard_consumers,
    plan_claims,
    settle,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.clock import read_now
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.expired import read_expired
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.guards import GenerationMoved, guard_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.inventories import StillInUse
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_claims, parse_reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_guarded
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.reap import reap
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.reshape import reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.retry import LostRace
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.usages import read_total_usages, read_usages
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.times import NEVER, Time, TimeKind
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time

HOUR = 3600


class Tasks:
    """Claims by name, and time that passes."""

    def __init__(self, bench):
        self.bench, self.ledger = bench, bench.ledger
        bench.put({"name": "h1", "inventories": {"VCPU": 4, "PGPU": 1}}, {"name": "h2", "inventories": {"VCPU": 4}})

    def claim(self, name, host="h1", amount=1, **options):
        amounts = {host: {"VCPU": amount}} if amount else {}
        return make_claims(self.ledger, parse_claims([{"consumer": name, "allocations": amounts, **options}], "consumers[{}]"))

    def sleep(self, hours):
        pass_time(self.ledger, round(hours * HOUR))

    @property
    def holders(self):
        return sorted(each.label for each in self.bench.consumers.values())

    def left(self, name):
        """Hours until the lease of a consumer ends."""
        (found,) = [each for each in self.bench.consumers.values() if each.name == name]
        return None if found.expires_at is None else round((found.expires_at - self.ledger.read(read_now)) / HOUR, 1)


@pytest.fixture
def tasks(bench):
    return Tasks(bench)


def labels(claimed):
    return [state.consumer.label for state in claimed.ended]


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("90m", Time(distance=5400)),
        ("45s", Time(distance=45)),
        ("2h", Time(distance=7200)),
        ("7d", Time(distance=604800)),
        ("2w", Time(distance=1209600)),
        ("none", NEVER),
        ("2030-12-31", Time(at=1924905600)),
        ("2030-12-31T18:00:00Z", Time(at=1924970400)),
        ("2030-12-31 19:00:00+01:00", Time(at=1924970400)),
    ],
)
def test_what_a_time_may_be(written, time):
    assert TimeKind(never="none").read(written) == time


@pytest.mark.parametrize(
    "written", ["", "0h", "90", "h", "-1h", "1.5h", "1h\n", "99999d", "None", "tomorrow", "2030-13-01", "1969-01-01", 90, None]
)
def test_what_no_time_may_be(written):
    with pytest.raises(ValueError, match="must be a time such as 90m"):
        TimeKind(never="none").read(written)


def test_a_lease_ends_by_itself(tasks):
    tasks.claim("job", amount=4, lease="2h")
    tasks.claim("stays", host="h2")
    tasks.sleep(1.9)
    assert tasks.holders == ["job", "stays"]
    assert tasks.bench.used == {("h1", "VCPU"): 4, ("h2", "VCPU"): 1}
    tasks.sleep(0.2)
    assert tasks.holders == ["stays"]
    assert tasks.bench.used == {("h2", "VCPU"): 1}
    assert tasks.ledger.read(read_total_usages)["VCPU"] == {"capacity": 8, "used": 1, "free": 7}
    assert tasks.ledger.read(partial(read_usages, references=["h1"]))["h1"]["VCPU"] == {"capacity": 4, "used": 0, "free": 4}


def test_it_is_extended_shortened_and_ended(tasks):
    tasks.claim("job", lease="2h")
    tasks.sleep(1)
    assert tasks.claim("job", lease="2h").changed
    assert tasks.left("job") == 2
    assert not tasks.claim("job").changed
    assert tasks.claim("job", amount=2).changed
    assert tasks.left("job") == 2
    tasks.claim("job", amount=2, lease="1h")
    assert tasks.left("job") == 1
    assert tasks.claim("job", amount=2, lease="none").changed
    assert not tasks.claim("job", amount=2, lease="none").changed
    assert tasks.left("job") is None
    assert tasks.claim("job", amount=2, lease="2130-01-01").changed
    assert not tasks.claim("job", amount=2, lease="2130-01-01").changed


def test_claimed_at_is_when_it_came(tasks):
    def since():
        (found,) = tasks.bench.consumers.values()
        return round((tasks.ledger.read(read_now) - found.claimed_at) / HOUR, 1)

    tasks.claim("job", lease="2h")
    assert since() == 0
    tasks.sleep(1)
    tasks.claim("job", amount=2, lease="2h")
    assert since() == 1
    tasks.sleep(3)
    tasks.claim("job", amount=2)
    assert since() == 0
    tasks.claim("job", amount=0)
    tasks.claim("job")
    assert since() == 0


@pytest.mark.parametrize("exists", [False, True])
def test_a_lease_that_is_over_is_refused(tasks, exists):
    if exists:
        tasks.claim("job", amount=2)
    with pytest.raises(InputError, match=r"lease: of job would end at 2001-01-01T00:00:00Z, but it is 20"):
        tasks.claim("job", lease="2001-01-01")
    assert tasks.bench.used == ({("h1", "VCPU"): 2} if exists else {})


def test_who_needs_the_room_takes_it(tasks):
    tasks.claim("job", amount=3, lease="1h", project="red", user="ann")
    tasks.sleep(2)
    claimed = tasks.claim("next", amount=4)
    assert [(state.consumer.label, state.consumer.project, state.consumer.user) for state in claimed.ended] == [("job", "red", "ann")]
    assert tasks.bench.used == {("h1", "VCPU"): 4}
    with pytest.raises(ClaimRefused, match=r"VCPU of h1: 3 more requested, 0 of 4 free"):
        tasks.claim("job", amount=3, project="red", user="ann")


def test_nobody_who_has_room_takes_it(tasks):
    tasks.claim("job", amount=2, lease="1h")
    tasks.sleep(2)
    assert labels(tasks.claim("next", amount=2)) == []
    assert tasks.claim("job", amount=2, lease="1h").changed
    assert tasks.bench.used == {("h1", "VCPU"): 4}


def test_no_more_is_taken_than_is_needed_the_first_first(tasks):
    for number, hours in enumerate((3, 1, 2, 4)):
        tasks.claim(f"job{number}", lease=f"{hours}h")
    tasks.sleep(3.5)
    assert labels(tasks.claim("next", amount=2)) == ["job1", "job2"]
    with pytest.raises(ClaimRefused, match="2 more requested, 1 of 4 free"):
        tasks.claim("more", amount=2)
    assert labels(tasks.claim("more")) == ["job0"]


def test_a_lease_that_ended_is_no_consumer(tasks):
    tasks.claim("job", amount=2, lease="1h", project="red", user="ann")
    tasks.sleep(2)
    with pytest.raises(GenerationMoved, match="job is at generation 0, not 1"):
        tasks.claim("job", amount=2, project="red", user="ann", consumer_generation=1)
    # Nobody owns it any more, and there is nothing to release.
    assert not tasks.claim("job", amount=0, project="red").changed
    claimed = tasks.claim("job", amount=2, project="red", user="cat", consumer_generation=0)
    assert claimed.before == {}
    assert [state.consumer.generation for state in claimed.after.values()] == [2]


def test_what_expired_is_claimed_under_the_rules_of_a_new_claim(tasks):
    tasks.claim("job", amount=4, lease="1h")
    tasks.bench.put({"name": "h1", "inventories": {"VCPU": {"total": 4, "max_unit": 3}, "PGPU": 1}})
    assert not tasks.claim("job", amount=4).changed
    tasks.sleep(2)
    with pytest.raises(ClaimRefused, match="4 requested, but one consumer may have from 1"):
        tasks.claim("job", amount=4)
    tasks.bench.put({"name": "h1", "inventories": {"VCPU": 3, "PGPU": 1}})
    with pytest.raises(ClaimRefused):
        tasks.claim("job", amount=4)
    assert tasks.claim("job", amount=3).changed


def test_expired_and_claiming_in_one_call(tasks):
    tasks.claim("old", amount=4, lease="1h")
    tasks.sleep(2)
    entries = [{"consumer": "old", "allocations": {}}, {"consumer": "new", "allocations": {"h1": {"VCPU": 4}}}]
    claimed = make_claims(tasks.ledger, parse_claims(entries, "consumers[{}]"))
    assert labels(claimed) == ["old"]
    assert tasks.holders == ["new"]


def test_providers_and_classes_go_with_what_expired(tasks):
    for name, host, amounts in (("a", "h1", {"VCPU": 1, "PGPU": 1}), ("b", "h2", {"VCPU": 1})):
        entry = {"consumer": name, "allocations": {host: amounts}, "lease": "1h"}
        make_claims(tasks.ledger, parse_claims([entry], "consumers[{}]"))
    with pytest.raises(StillInUse):
        tasks.bench.put({"name": "h1", "inventories": {"VCPU": 4}})
    with pytest.raises(StillInUse):
        tasks.bench.remove("h2")
    tasks.sleep(2)
    assert tasks.bench.put({"name": "h1", "inventories": {"VCPU": 4}}).changed
    assert tasks.bench.remove("h2").changed
    assert tasks.bench.findings == []


def test_a_reshape_drops_a_class_that_only_expired_claims_use(tasks):
    tasks.claim("job", lease="1h")
    forms = parse_reshape({"h1": {"PCPU": 4}}, "")
    work = partial(reshape, inventories=forms, claims=[], generations={})
    with pytest.raises(StillInUse):
        tasks.ledger.write(work)
    tasks.sleep(2)
    assert tasks.ledger.write(work).changed


def test_reaping_releases_all_that_ended(tasks):
    for number in range(3):
        tasks.claim(f"job{number}", lease=f"{number + 1}h", project="red")
    tasks.sleep(2.5)
    assert [state.consumer.label for state in tasks.ledger.write(reap)] == ["job0", "job1"]
    assert tasks.ledger.write(reap) == []
    assert tasks.holders == ["job2"]
    assert tasks.bench.generations == {"h1": 4, "h2": 0}


def test_a_name_that_expired_is_free_for_another(tasks):
    tasks.claim("ci", project="red", user="ann", lease="1h")
    tasks.claim("ci", host="h2", project="blue")
    tasks.sleep(2)
    taken = tasks.claim("ci", host="h2", project="red", user="bob")
    assert taken.before == {}
    released = tasks.claim("ci", host="h2", amount=0, project="red")
    assert released.changed


def test_an_extension_that_came_first_wins(tasks):
    """The plan was made when the lease had ended; it was extended before the plan was carried out."""
    tasks.claim("job", amount=4, lease="1h")
    tasks.sleep(2)
    claims = parse_claims([{"consumer": "next", "allocations": {"h1": {"VCPU": 4}}}], "consumers[{}]")
    plan = tasks.ledger.read(lambda connection: plan_claims(connection, claims, {}))
    expired = tasks.ledger.read(lambda connection: plan.with_ended(read_expired(connection, plan.now)))
    tasks.claim("job", amount=4, lease="1h")
    # On SQLite one writes at a time, so the race is made by hand: of this plan nothing is left.
    with pytest.raises(LostRace):
        _once(tasks.ledger, lambda connection: apply_plan(connection, expired, claims))
    assert tasks.holders == ["job"]


def test_room_that_was_taken_meanwhile_is_looked_for_again(tasks):
    """There was room when the claim was planned; it is gone, and a lease that has ended has the same amount."""
    tasks.claim("job", amount=2, lease="1h")
    tasks.sleep(2)
    claims = parse_claims([{"consumer": "next", "allocations": {"h1": {"VCPU": 2}}}], "consumers[{}]")
    plan = tasks.ledger.read(lambda connection: plan_claims(connection, claims, {}))
    assert plan.ended == ()
    tasks.claim("quick", amount=2)
    with pytest.raises(LostRace):
        _once(tasks.ledger, lambda connection: _settle(connection, plan))
    assert labels(tasks.claim("next", amount=2)) == ["job"]


def _settle(connection, plan):
    consumers = guard_consumers(connection, plan.needed, plan.now)
    guard_providers(connection, plan.providers)
    settle(connection, plan, consumers, read_guarded(connection, plan.providers))


def _once(ledger, work):
    with ledger.engine.begin() as connection:
        work(connection)


def test_less_than_before_on_a_host_that_shrank_takes_the_room_of_others_that_have_ended(bench):
    bench.put({"name": "small", "inventories": {"VCPU": 10}})
    bench.claim(
        ("a", {"small": {"VCPU": 4}}, {"lease": "1h"}), ("b", {"small": {"VCPU": 3}}, {"lease": "1h"}), ("c", {"small": {"VCPU": 3}})
    )
    pass_time(bench.ledger, 3601)
    bench.put({"name": "small", "inventories": {"VCPU": 6}})
    bench.claim(("a", {"small": {"VCPU": 3}}))
    assert bench.used == {("small", "VCPU"): 6}


def test_an_owner_whose_own_lease_ended_first_takes_the_room_of_another(bench):
    bench.put({"name": "small", "inventories": {"VCPU": 6}})
    bench.claim(
        ("a", {"small": {"VCPU": 1}}, {"lease": "1h"}), ("b", {"small": {"VCPU": 1}}, {"lease": "2h"}), ("c", {"small": {"VCPU": 3}})
    )
    pass_time(bench.ledger, 7201)
    bench.claim(("a", {"small": {"VCPU": 3}}))
    assert bench.used == {("small", "VCPU"): 6}
