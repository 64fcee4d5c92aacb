# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A consumer is changed and released by its own project and user alone, or by who takes it over; names are unique in a project."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.guards import GenerationMoved
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.owners import NameNotUnique, NotOwner
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import consumer_uuid
from ansible_collections.bareon.allocator.tests.support.provider.old_ledgers import check_migrated, fill_named, make_ledger
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time

ANN, BOB, CAT = {"project": "red", "user": "ann"}, {"project": "blue", "user": "bob"}, {"project": "red", "user": "cat"}


class Tasks:
    """Claims by name, as tasks make them."""

    def __init__(self, bench):
        self.bench = bench

    def claim(self, name, amounts, **options):
        return make_claims(self.bench.ledger, parse_claims([{"consumer": name, "allocations": amounts, **options}], "consumers[{}]"))

    def release(self, name, **options):
        return self.claim(name, {}, **options)

    @property
    def owners(self):
        """What there is: (name, project, user) to amounts by provider's name."""
        world = self.bench.world
        names = {provider.uuid: provider.name for provider in world.providers}
        return {
            (each.name, each.project, each.user): {names[uuid]: amounts["VCPU"] for uuid, amounts in world.allocations[uuid].items()}
            for uuid, each in self.bench.consumers.items()
        }


@pytest.fixture
def tasks(bench):
    bench.put({"name": "b1", "inventories": {"VCPU": 4}}, {"name": "b2", "inventories": {"VCPU": 4}})
    return Tasks(bench)


def test_two_projects_have_a_consumer_of_one_name_each(tasks):
    tasks.claim("ci", {"b1": {"VCPU": 1}}, **ANN)
    assert tasks.claim("ci", {"b2": {"VCPU": 2}}, **BOB).changed
    assert tasks.owners == {("ci", "red", "ann"): {"b1": 1}, ("ci", "blue", "bob"): {"b2": 2}}
    assert not tasks.claim("ci", {"b1": {"VCPU": 1}}, **ANN).changed
    assert tasks.release("ci", project="blue").changed
    assert not tasks.release("ci", project="blue").changed
    assert tasks.owners == {("ci", "red", "ann"): {"b1": 1}}


@pytest.mark.parametrize("amounts", [{"b2": {"VCPU": 1}}, {"b1": {"VCPU": 1}}, {}])
@pytest.mark.parametrize("by_uuid", [False, True])
def test_another_user_of_the_project_is_refused(tasks, amounts, by_uuid):
    tasks.claim("ci", {"b1": {"VCPU": 1}}, **ANN)
    name = consumer_uuid("ci", "red") if by_uuid else "ci"
    with pytest.raises(NotOwner) as error:
        tasks.claim(name, amounts, **CAT)
    assert error.value.conflict["owners"] == [{"consumer": consumer_uuid("ci", "red"), "name": "ci", "project": "red", "user": "ann"}]
    assert "ci belongs to project red, user ann" in str(error.value)
    assert tasks.owners == {("ci", "red", "ann"): {"b1": 1}}
    tasks.claim(name, amounts, **CAT, take_over=True)
    assert tasks.owners == ({("ci", "red", "cat"): {next(iter(amounts)): 1}} if amounts else {})


@pytest.mark.parametrize("amounts", [{"b2": {"VCPU": 1}}, {}])
def test_another_project_is_refused_by_uuid_and_takes_over_by_name(tasks, amounts):
    tasks.claim("ci", {"b1": {"VCPU": 1}}, **ANN)
    with pytest.raises(NotOwner, match="project red, user ann"):
        tasks.claim(consumer_uuid("ci", "red"), amounts, **BOB)
    tasks.claim("ci", amounts, **BOB, take_over=True)
    assert tasks.owners == ({("ci", "blue", "bob"): {"b2": 1}} if amounts else {})
    # The name is free in the first project again, although the consumer has kept the UUID.
    tasks.claim("ci", {"b1": {"VCPU": 2}}, **ANN)
    assert tasks.owners[("ci", "red", "ann")] == {"b1": 2}
    assert not tasks.claim("ci", {"b1": {"VCPU": 2}}, **ANN).changed


def test_release_of_another_projects_consumer_changes_nothing(tasks):
    tasks.claim("ci", {"b1": {"VCPU": 1}}, **ANN)
    assert not tasks.release("ci", project="blue").changed
    with pytest.raises(NotOwner):
        tasks.release("ci", user="bob")
    assert tasks.owners == {("ci", "red", "ann"): {"b1": 1}}


def test_who_names_no_owner_means_the_only_one(tasks):
    tasks.claim("ci", {"b1": {"VCPU": 1}}, **ANN)
    tasks.claim("ci", {"b1": {"VCPU": 2}})
    assert tasks.owners == {("ci", "red", "ann"): {"b1": 2}}
    tasks.claim("ci", {"b2": {"VCPU": 1}}, **BOB)
    with pytest.raises(NameNotUnique) as error:
        tasks.release("ci")
    assert set(error.value.conflict["consumers"]) == {consumer_uuid("ci", "red"), consumer_uuid("ci", "blue")}
    tasks.release("ci", user="bob")
    assert list(tasks.owners) == [("ci", "red", "ann")]


def test_what_nobody_owns_belongs_to_who_names_himself_first(tasks):
    tasks.claim("vm", {"b1": {"VCPU": 1}})
    tasks.claim("vm", {"b1": {"VCPU": 1}}, project="red")
    tasks.claim("vm", {"b1": {"VCPU": 1}}, user="ann")
    assert tasks.owners == {("vm", "red", "ann"): {"b1": 1}}
    assert list(tasks.bench.consumers) == [consumer_uuid("vm")]
    with pytest.raises(NotOwner):
        tasks.claim(consumer_uuid("vm"), {"b1": {"VCPU": 1}}, project="blue")


def test_a_name_that_the_project_has_is_not_taken_twice(tasks):
    tasks.claim("ci", {"b1": {"VCPU": 1}}, **ANN)
    tasks.claim("ci", {"b2": {"VCPU": 1}}, **BOB)
    with pytest.raises(NameNotUnique, match="ci is already the name of a consumer of project blue"):
        tasks.claim(consumer_uuid("ci", "red"), {"b2": {"VCPU": 1}}, **BOB, take_over=True)


def test_a_name_goes_over_with_a_generation_above_that_of_who_had_it(tasks):
    for amount in (1, 2, 3):
        tasks.claim("ci", {"b1": {"VCPU": amount}}, **BOB)
    tasks.release("ci", **BOB)
    tasks.claim("ci", {"b1": {"VCPU": 1}}, **ANN)
    (state,) = tasks.claim("ci", {"b1": {"VCPU": 1}}, **BOB, take_over=True).after.values()
    assert (state.consumer.uuid, state.consumer.project) == (consumer_uuid("ci", "red"), "blue")
    assert state.consumer.generation > 4
    for generation in range(1, 5):
        with pytest.raises(GenerationMoved):
            tasks.release("ci", **BOB, consumer_generation=generation)
    tasks.release("ci", **BOB)
    tasks.claim("ci", {"b1": {"VCPU": 1}}, **BOB)


def test_one_consumer_given_twice_is_a_mistake(tasks):
    tasks.claim("ci", {"b1": {"VCPU": 1}}, **ANN)
    entries = [{"consumer": name, "allocations": {"b1": {"VCPU": 1}}} for name in ("ci", consumer_uuid("ci", "red"))]
    with pytest.raises(InputError, match="consumers: ci and another entry are one consumer"):
        make_claims(tasks.bench.ledger, parse_claims(entries, "consumers[{}]"))


def test_the_generation_of_a_consumer_goes_on_after_its_release(tasks):
    seen = tasks.claim("lease", {"b1": {"VCPU": 1}}, user="ann").after
    (generation,) = (state.consumer.generation for state in seen.values())
    tasks.release("lease")
    tasks.claim("lease", {"b1": {"VCPU": 1}}, user="bob", consumer_generation=0)
    with pytest.raises(GenerationMoved):
        tasks.release("lease", consumer_generation=generation)
    with pytest.raises(NotOwner):
        tasks.release("lease", user="ann")
    assert tasks.owners == {("lease", None, "bob"): {"b1": 1}}


def test_rows_of_an_earlier_release_keep_their_uuids_and_are_found_by_name(tmp_path, unaudited):
    url = f"sqlite:///{tmp_path}/old.sqlite"
    fill_named(make_ledger(url, "named", tmp_path / "migrations"))
    check_migrated(url)


@pytest.mark.parametrize("project", ["red", "green", "white", "black"])
@pytest.mark.parametrize("name", ["ci", "web"])
def test_a_name_goes_over_together_with_the_room_of_a_lease_that_has_ended(tasks, project, name):
    """Of UUIDs in both orders, in which consumers are guarded."""
    tasks.claim(name, {"b1": {"VCPU": 4}}, project=project, lease="1h")
    tasks.claim(name, {"b2": {"VCPU": 1}}, **BOB)
    pass_time(tasks.bench.ledger, 7200)
    assert tasks.claim(name, {"b1": {"VCPU": 4}}, project=project, take_over=True).changed
    assert tasks.owners == {(name, project, "bob"): {"b1": 4}}
    assert not tasks.claim(name, {"b1": {"VCPU": 4}}, project=project).changed
    assert tasks.bench.ledger.read(audit) == []


def test_two_claims_for_one_name_of_a_project_are_refused(tasks):
    tasks.claim("ci", {"b1": {"VCPU": 1}}, **ANN)
    uuid = consumer_uuid("ci", "red")
    entries = [
        {"consumer": uuid, "allocations": {"b1": {"VCPU": 1}}, "project": "blue", "take_over": True},
        {"consumer": "ci", "allocations": {"b2": {"VCPU": 1}}, "project": "blue"},
    ]
    with pytest.raises(InputError, match="ci of one project"):
        make_claims(tasks.bench.ledger, parse_claims(entries, "consumers[{}]"))
    assert tasks.owners == {("ci", "red", "ann"): {"b1": 1}}
