# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Providers by single parts, names of one's own, and what is told of providers and their users."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.allocation import run_provider_allocation
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.info import run_provider_info
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.provider import run_provider
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import aggregate_uuid, consumer_uuid

OPTIONS = ("uuid", "name", "parent", "inventories", "traits", "aggregates", "generation", "add", "remove", "providers")
CLAIM = ("consumer", "allocations", "candidates", "request", "consumers", "inventories", "project", "user", "consumer_type")


class Site:
    """The tasks with one database."""

    def __init__(self, url):
        self.database = {"database": url, "timeout": 60, "world": None}

    def provider(self, state="present", **given):
        arguments = dict.fromkeys((*OPTIONS, "custom_traits", "custom_classes"))
        return run_provider({**self.database, **arguments, "state": state, **given}, dry_run=False)

    def claim(self, consumer, allocations, **given):
        arguments = {**self.database, **dict.fromkeys(CLAIM), "state": "present", "generations": None, "consumer_generation": None}
        return run_provider_allocation(
            {**arguments, "retries": 40, "consumer": consumer, "allocations": allocations, **given}, dry_run=False
        )

    def info(self, **given):
        options = dict.fromkeys(("providers", "matching", "consumers", "projects", "users", "consumer_types"))
        return run_provider_info({**self.database, **options, "audit": False, **given})


@pytest.fixture
def site(tmp_path):
    return Site(f"sqlite:///{tmp_path}/ledger.sqlite")


def host(site, **given):
    (found,) = site.provider(name="host", **given)["providers"]
    return {key: found[key] for key in ("traits", "aggregates")} | {"classes": sorted(found["inventories"])}


def test_parts_are_added_and_removed_one_by_one(site):
    host(site, inventories={"VCPU": 4}, traits=["CUSTOM_A"], aggregates=["rack-a"])
    added = host(site, add={"inventories": {"DISK_GB": 10}, "traits": ["CUSTOM_B"], "aggregates": ["rack-b"]})
    assert added == {"traits": ["CUSTOM_A", "CUSTOM_B"], "aggregates": ["rack-a", "rack-b"], "classes": ["DISK_GB", "VCPU"]}
    again = site.provider(name="host", add={"traits": ["CUSTOM_B"]}, remove={"inventories": ["PGPU"], "aggregates": ["rack-c"]})
    assert not again["changed"]
    removed = host(site, remove={"inventories": ["VCPU"], "traits": ["CUSTOM_A"], "aggregates": [aggregate_uuid("rack-a")]})
    assert removed == {"traits": ["CUSTOM_B"], "aggregates": ["rack-b"], "classes": ["DISK_GB"]}
    changed = site.provider(name="host", add={"inventories": {"DISK_GB": {"total": 20}}})
    assert changed["diff"]["after"]["host"]["inventories"]["DISK_GB"]["total"] == 20


def test_a_new_provider_may_begin_with_parts(site):
    assert host(site, add={"traits": ["CUSTOM_A"]}, remove={"traits": ["CUSTOM_B"]})["traits"] == ["CUSTOM_A"]


def test_an_inventory_in_use_is_not_removed(site):
    host(site, inventories={"VCPU": 4})
    site.claim("web1", {"host": {"VCPU": 1}})
    with pytest.raises(NoSolution, match="VCPU of host is used by web1"):
        site.provider(name="host", remove={"inventories": ["VCPU"]})


def test_parts_and_wholes_exclude_each_other(site):
    with pytest.raises(InputError) as error:
        site.provider(name="host", traits=["CUSTOM_A"], add={"traits": ["CUSTOM_B"], "aggregates": ["x"]}, remove={"aggregates": ["x"]})
    assert [mistake.place for mistake in error.value.mistakes] == ["add.traits", "remove.aggregates"]


def test_names_of_ones_own_come_and_go(site):
    assert site.provider(custom_traits=["CUSTOM_A"], custom_classes=["CUSTOM_C"])["changed"]
    assert not site.provider(custom_traits=["CUSTOM_A"], custom_classes=["CUSTOM_C"])["changed"]
    assert (site.info()["custom_traits"], site.info()["custom_classes"]) == (["CUSTOM_A"], ["CUSTOM_C"])
    host(site, inventories={"CUSTOM_C": 1}, traits=["CUSTOM_A"])
    with pytest.raises(NoSolution, match="CUSTOM_A is used by host; CUSTOM_C is used by host"):
        site.provider("absent", custom_traits=["CUSTOM_A"], custom_classes=["CUSTOM_C"])
    gone = site.provider("absent", name="host", custom_traits=["CUSTOM_A", "CUSTOM_B"], custom_classes=["CUSTOM_C"])
    assert gone["diff"]["before"]["custom_traits"] == ["CUSTOM_A"]
    assert (site.info()["custom_traits"], site.info()["custom_classes"]) == ([], [])
    assert not site.provider("absent", custom_traits=["CUSTOM_A"])["changed"]


def test_standard_names_cannot_go(site):
    with pytest.raises(InputError, match=r"(?s)custom_traits: HW_NUMA_ROOT is a standard name.*custom_classes: VCPU is a standard name"):
        site.provider("absent", custom_traits=["HW_NUMA_ROOT"], custom_classes=["VCPU"])


@pytest.fixture
def fleet(site):
    gpu = {"PGPU": 1}
    site.provider(
        providers=[
            {"name": "rack", "aggregates": ["row-1"]},
            {"name": "host1", "parent": "rack", "inventories": {"VCPU": 8}},
            {"name": "gpu1", "parent": "host1", "inventories": gpu, "traits": ["CUSTOM_H100"], "aggregates": ["row-1"]},
            {"name": "gpu2", "parent": "host1", "inventories": gpu, "traits": ["CUSTOM_H100", "CUSTOM_SLOW"]},
            {"name": "other", "inventories": {"PGPU": 4}},
        ]
    )
    site.claim("web1", {"gpu1": {"PGPU": 1}}, project="web", user="ann", consumer_type="INSTANCE")
    site.claim("web2", {"other": {"PGPU": 3}}, project="web", user="bob", consumer_type="INSTANCE")
    site.claim("move", {"host1": {"VCPU": 2}}, user="ann", consumer_type="MIGRATION")
    return site


@pytest.mark.parametrize(
    ("matching", "found"),
    [
        ({"resources": {"PGPU": 1}}, ["gpu2", "other"]),
        ({"resources": {"PGPU": 2}}, []),
        ({"required": ["CUSTOM_H100"]}, ["gpu1", "gpu2"]),
        ({"required": ["CUSTOM_H100"], "forbidden": ["CUSTOM_SLOW"]}, ["gpu1"]),
        ({"forbidden": ["CUSTOM_H100"], "in_tree": "gpu1"}, ["host1", "rack"]),
        ({"any_of": [["CUSTOM_SLOW", "CUSTOM_H100"]], "resources": {"PGPU": 1}}, ["gpu2"]),
        ({"member_of": ["row-1"]}, ["gpu1", "rack"]),
        ({"not_member_of": ["row-1"], "in_tree": "rack"}, ["gpu2", "host1"]),
        ({"in_tree": "other"}, ["other"]),
        ({"in_tree": "7b6c1c1a-2d4a-4f0c-8c5a-0d3e3e1f9f10"}, []),
    ],
)
def test_providers_are_listed_by_what_they_satisfy(fleet, matching, found):
    assert sorted(provider["name"] for provider in fleet.info(matching=matching)["providers"]) == found


def test_listed_providers_stand_below_the_nearest_above_them(fleet):
    told = fleet.info(matching={"any_of": [["CUSTOM_H100"]]}, providers=["rack"])
    assert [node["name"] for node in told["trees"]] == ["gpu1", "gpu2"]
    assert told["summary"].splitlines()[1].split() == ["gpu1", "PGPU", "1", "1", "0", "web1"]
    assert list(told["allocations"]) == [consumer_uuid("web1", "web")]
    assert fleet.info(matching={"member_of": ["row-1"]})["trees"][0]["children"][0]["name"] == "gpu1"
    assert fleet.info(matching={"required": ["CUSTOM_H100"]}, providers=["other"])["providers"] == []


def test_what_no_provider_can_satisfy_is_told(fleet):
    mistakes = {"resources": {"PGPUS": 1}, "required": ["CUSTOM_H10"], "member_of": ["row-2"], "in_tree": "host"}
    with pytest.raises(InputError) as error:
        fleet.info(matching=mistakes)
    assert "matching.resources: 'PGPUS'" in str(error.value)
    with pytest.raises(InputError) as error:
        fleet.info(matching={**mistakes, "resources": {}})
    assert "matching.required: there is no trait 'CUSTOM_H10' (did you mean CUSTOM_H100?)" in str(error.value)
    assert "matching.member_of: there is no aggregate 'row-2' (did you mean row-1?)" in str(error.value)
    with pytest.raises(InputError, match=r"matching.in_tree: there is no provider 'host' \(did you mean host1\?\)"):
        fleet.info(matching={"in_tree": "host"})


def test_usages_by_project_user_and_type(fleet):
    told = fleet.info()
    assert told["projects"] == {"": {"VCPU": 2}, "web": {"PGPU": 4}}
    assert told["users"] == {"ann": {"PGPU": 1, "VCPU": 2}, "bob": {"PGPU": 3}}
    assert told["consumer_types"] == {
        "INSTANCE": {"consumers": 2, "usages": {"PGPU": 4}},
        "MIGRATION": {"consumers": 1, "usages": {"VCPU": 2}},
    }
    assert fleet.info(projects=["web"], users=["ann"])["consumer_types"] == {"INSTANCE": {"consumers": 1, "usages": {"PGPU": 1}}}
    assert list(fleet.info(projects=[""])["projects"]) == [""]
    assert list(fleet.info(consumer_types=["MIGRATION"])["allocations"]) == [consumer_uuid("move")]


def test_consumers_are_found_by_name_and_missed_by_name(fleet):
    told = fleet.info(consumers=["web1", "wev2"])
    assert list(told["allocations"]) == [consumer_uuid("web1", "web")]
    assert told["warnings"] == ["there is no consumer 'wev2' here (did you mean web2?)"]
