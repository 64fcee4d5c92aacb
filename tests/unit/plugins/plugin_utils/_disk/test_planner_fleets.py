# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Planning fleets: what is alike is solved once, and what fails concerns its own host only."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk import planner as planner_module
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner

SCHEMA = [
    {"id": "a", "type": "partitions", "best_with_disks": 'yaql=$.disks.where($.type = "ssd")'},
    {"id": "b", "type": "partition", "size": "yaql=$.ram / 1000"},
]


def twins(number: int) -> dict[str, dict[str, t.Any]]:
    def twin(host: int) -> dict[str, t.Any]:
        made = [{"id": f"wwn-{host}-{disk}", "serial": f"S{host}{disk}", "size": 1000, "type": "ssd"} for disk in range(2)]
        return {"ram": 2000 + host, "disks": made}

    return {f"host{host}": twin(host) for host in range(number)}


def count_solutions(monkeypatch: pytest.MonkeyPatch) -> list[t.Any]:
    calls: list[t.Any] = []
    solve = planner_module.allocate_fair

    def counting(*arguments: t.Any, **options: t.Any) -> t.Any:
        calls.append(arguments)
        return solve(*arguments, **options)

    monkeypatch.setattr(planner_module, "allocate_fair", counting)
    return calls


def test_equal_problems_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_solutions(monkeypatch)
    fleet = Planner(SCHEMA).plan_fleet(twins(50))
    assert len(calls) == 1
    assert len(fleet.plans) == 50
    assert fleet.plans["host7"] == Planner(SCHEMA).plan(twins(50)["host7"])
    assert len({planned["fingerprint"] for planned in fleet.plans.values()}) == 50


def test_a_reason_names_the_disks_of_its_own_host() -> None:
    """Names of which one is the beginning of another are not mixed up."""
    sizes = (1000, 2000)
    hosts = {
        host: {"disks": [{"id": name, "size": size} for name, size in zip(names, sizes, strict=True)]}
        for host, names in {"one": ("/dev/md", "/dev/md/0"), "two": ("/dev/disk/a", "/dev/disk/b")}.items()
    }
    schema = [{"id": "a", "type": "partition", "min_size": 3000, "disks": ["yaql=$.disks.where($.size = 2000).id.first()"]}]
    fleet = Planner(schema).plan_fleet(hosts)
    told = {host: (str(error), error.conflict) for host, error in fleet.failures.items()}
    for host, facts in hosts.items():
        with pytest.raises(NoSolution) as alone:
            Planner(schema).plan(facts)
        assert told[host] == (str(alone.value), alone.value.conflict)
    assert "/dev/disk/b" in str(told["two"])


@pytest.mark.parametrize(
    "change",
    [
        {"ram": 3000},
        {"firmware": "uefi"},
        {"disks": [{"id": "a", "size": 1001, "type": "ssd"}, {"id": "b", "size": 1000, "type": "ssd"}]},
        {"disks": [{"id": "a", "size": 1000, "type": "hdd"}, {"id": "b", "size": 1000, "type": "ssd"}]},
        {"disks": [{"id": "a", "size": 1000, "type": "ssd", "logical_block": 4096}, {"id": "b", "size": 1000, "type": "ssd"}]},
    ],
)
def test_different_problems_are_not_confused(monkeypatch: pytest.MonkeyPatch, change: dict[str, t.Any]) -> None:
    calls = count_solutions(monkeypatch)
    hosts = twins(1)
    Planner(SCHEMA).plan_fleet({**hosts, "other": {**hosts["host0"], **change}})
    assert len(calls) == 2


def test_a_host_without_a_plan_does_not_spoil_the_others() -> None:
    hosts: dict[str, t.Any] = {**twins(2), "small": {"disks": [{"id": "sda", "size": 10}]}, "odd": {"disks": []}}
    fleet = Planner([{"id": "a", "type": "partition", "min_size": 500}]).plan_fleet(hosts)
    assert set(fleet.plans) == {"host0", "host1"}
    assert {host: type(error) for host, error in fleet.failures.items()} == {"small": NoSolution, "odd": InputError}


def test_twins_without_a_plan_are_told_about_their_own_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_solutions(monkeypatch)
    schema = [{"id": "a", "type": "partition", "min_size": 5000}]
    Planner(schema).plan_fleet(twins(1))
    # Remedies are planned, too.
    of_one = len(calls)
    fleet = Planner(schema).plan_fleet(twins(3))
    assert len(calls) == 2 * of_one
    for host, error in fleet.failures.items():
        assert isinstance(error, NoSolution)
        own = host.removeprefix("host")
        text = str(error) + json.dumps(error.conflict)
        assert f"wwn-{own}-0" in text
        assert not any(f"wwn-{other}-" in text for other in range(3) if str(other) != own)
