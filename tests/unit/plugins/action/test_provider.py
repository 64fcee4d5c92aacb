# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""provider, provider_info, provider_allocation and the lookup usages as a playbook meets them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[4]
VM = "{{ '%s' | ansible.builtin.to_uuid }}"
HOST = {"name": "host", "inventories": {"VCPU": {"total": 8, "reserved": 2}, "DISK_GB": 100}, "traits": ["CUSTOM_FAST"]}
NUMA = {"name": "numa", "parent": "host", "inventories": {"VCPU": "{{ cpus }}"}}
REQUEST = {"groups": {"": {"resources": {"VCPU": 3}}}}
PROVIDER, INFO = "bareon.allocator.provider", "bareon.allocator.provider_info"
ALLOCATION, CANDIDATES = "bareon.allocator.provider_allocation", "bareon.allocator.provider_candidates"
TASKS: dict[str, tuple[str, dict[str, t.Any]]] = {
    "empty": (INFO, {}),
    "checked": (PROVIDER, {"providers": [NUMA, HOST], "check": True}),
    "registered": (PROVIDER, {"providers": [NUMA, HOST]}),
    "again": (PROVIDER, {"providers": [NUMA, HOST]}),
    "warned": (PROVIDER, {"name": "tiny", "inventories": {"VCPU": {"total": 1, "min_unit": 2}}}),
    "removed": (PROVIDER, {"name": "tiny", "state": "absent"}),
    "found": (CANDIDATES, {**REQUEST, "order": "spread"}),
    "claim_checked": (ALLOCATION, {"consumer": VM % "vm1", "allocations": {"host": {"VCPU": 3}}, "check": True}),
    "claimed": (ALLOCATION, {"consumer": VM % "vm1", "candidates": "{{ found.candidates }}", "project": "web"}),
    "kept": (ALLOCATION, {"consumer": VM % "vm1", "candidates": "{{ found.candidates }}", "project": "web"}),
    "placed": (ALLOCATION, {"consumer": VM % "vm2", "request": REQUEST}),
    "nowhere": (ALLOCATION, {"consumer": VM % "vm3", "request": {"query": "resources=VCPU:7"}}),
    "whole": (ALLOCATION, {"consumer": VM % "vm2", "allocations": "{{ found.candidates[0] }}"}),
    "full": (ALLOCATION, {"consumer": VM % "vm3", "allocations": {"numa": {"VCPU": 4}, "host": {"VCPU": 4, "DISK_GB": 200}}}),
    "moved": (ALLOCATION, {"consumer": VM % "vm2", "allocations": {"host": {"DISK_GB": 1}}, "consumer_generation": 7}),
    "in_use": (PROVIDER, {"name": "host", "inventories": {}}),
    "info": (INFO, {"audit": True}),
    "filtered": (INFO, {"projects": ["web"]}),
    "nothing_asked": (INFO, {"providers": ["nobody"]}),
    "reshaped": (
        ALLOCATION,
        {
            "inventories": {"numa": {"PCPU": 8}, "host": {"DISK_GB": 100, "VCPU": 6}},
            "consumers": [
                {"consumer": VM % "vm1", "allocations": {"numa": {"PCPU": 3}}},
                {"consumer": VM % "vm2", "allocations": {"numa": {"PCPU": 3}}},
            ],
        },
    ),
    "released": (ALLOCATION, {"consumers": [VM % "vm1", VM % "vm2"], "state": "absent"}),
    "released_again": (ALLOCATION, {"consumer": VM % "vm1", "state": "absent"}),
    "inline": (
        ALLOCATION,
        {"world": {"providers": [{"name": "x", "inventories": {"VCPU": 1}}]}, "consumer": VM % "v", "allocations": {"x": {"VCPU": 1}}},
    ),
    "mistakes": (PROVIDER, {"name": "bad", "inventories": {"VCPU": {"total": -1}, "NONSENSE": 1}, "traits": ["FAST"]}),
    "no_consumer": (ALLOCATION, {"allocations": {"host": {"VCPU": 1}}}),
    "no_amounts": (ALLOCATION, {"consumer": VM % "vm1"}),
    "bad_consumer": (ALLOCATION, {"consumer": "vm1 ", "allocations": {"host": {"VCPU": "many"}}}),
    "no_database": (INFO, {"database": "postgresql://nobody:secret@127.0.0.1:1/x"}),
    "no_url": (INFO, {"database": "/tmp/x"}),
}


class Run(t.NamedTuple):
    """Results by name, what the lookup gave, and what Ansible printed."""

    results: dict[str, dict[str, t.Any]]
    looked_up: list[t.Any]
    output: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("provider")
    tasks: list[dict[str, t.Any]] = []
    for name, (module, arguments) in TASKS.items():
        given = {key: value for key, value in arguments.items() if key != "check"}
        tasks.append({"name": name, module: given, "register": name, "ignore_errors": True, "check_mode": bool(arguments.get("check"))})
        if name == "checked":
            tasks.append({"name": "look", "ansible.builtin.stat": {"path": "{{ folder }}/x.sqlite"}, "register": "file"})
        if name == "info":
            terms = "lookup('bareon.allocator.usages', 'host', 'numa', database=url, wantlist=true)"
            tree = "lookup('bareon.allocator.usages', 'host', database=url, tree=true, wantlist=true)"
            total = "lookup('bareon.allocator.usages', database=url, wantlist=true)"
            tasks.append({"name": "usages", "ansible.builtin.set_fact": {"usages": "{{ " + f"[{terms}, {tree}, {total}]" + " }}"}})
    own = ", ".join(f"'{name}': {name}" for name in [*TASKS, "file", "usages"])
    content = "{{ {" + own + "} | to_json }}"
    tasks.append({"ansible.builtin.copy": {"dest": str(folder / "results.json"), "content": content, "mode": "0600"}, "diff": False})
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "cpus": 6,
        "folder": str(folder),
        "url": f"sqlite:///{folder}/x.sqlite",
    }
    defaults = {"group/bareon.allocator.provider": {"database": "{{ omit if world is defined else url }}"}}
    inline = next(task for task in tasks if task.get("name") == "inline")
    inline["vars"] = {"world": True}
    play = [{"hosts": "localhost", "gather_facts": False, "vars": variables, "module_defaults": defaults, "tasks": tasks}]
    (folder / "play.yml").write_text(yaml.safe_dump(play, sort_keys=False), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "--diff", "play.yml"],
        cwd=folder,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "home"), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return Run(results, results.pop("usages"), done.stdout + done.stderr)


def names(result: dict[str, t.Any]) -> list[str]:
    return [provider["name"] for provider in result["providers"]]


def test_check_mode_returns_the_same_and_writes_nothing(run: Run) -> None:
    checked, registered = run.results["checked"], run.results["registered"]
    assert checked["changed"]
    assert checked["providers"] == registered["providers"]
    assert run.results["file"]["stat"]["exists"] is False
    assert run.results["empty"]["providers"] == []


def test_second_run_changes_nothing(run: Run) -> None:
    assert run.results["registered"]["changed"]
    assert not run.results["again"]["changed"]
    assert not run.results["kept"]["changed"]
    assert run.results["kept"]["consumers"] == run.results["claimed"]["consumers"]
    assert not run.results["released_again"]["changed"]


def test_inventory_that_can_never_be_satisfied_is_warned_of(run: Run) -> None:
    assert "]: inventories.VCPU: nothing can ever be taken from it" in run.output
    assert run.results["removed"]["changed"]


def test_candidates_feed_the_claim(run: Run) -> None:
    (state,) = run.results["claimed"]["consumers"].values()
    assert state["allocations"] == run.results["found"]["candidates"][0]["allocations"]
    assert (state["project"], state["generation"]) == ("web", 1)
    assert run.results["claim_checked"]["changed"]


def test_place_in_one_task(run: Run) -> None:
    placed = run.results["placed"]
    assert placed["changed"]
    assert list(placed["mappings"]) == [""]
    assert run.results["nowhere"]["failed"]
    assert run.results["nowhere"]["conflict"]["why"]["says"]


def test_refusals_carry_data(run: Run) -> None:
    refused = run.results["full"]["conflict"]["refused"]
    assert {(entry["resource_class"], entry["reason"], entry["free"]) for entry in refused} == {
        ("VCPU", "full", 0),
        ("DISK_GB", "full", 100),
    }
    assert run.results["moved"]["conflict"]["generations"][0]["expected"] == 7
    assert "VCPU of host is used by 38f417cf-" in run.results["in_use"]["msg"]


def test_info_tells_all(run: Run) -> None:
    info = run.results["info"]
    assert names(info) == ["host", "numa"]
    assert [child["name"] for child in info["trees"][0]["children"]] == ["numa"]
    assert info["audit"] == []
    assert info["projects"]["web"] == {"VCPU": 3}
    assert info["totals"]["VCPU"] == {"capacity": 12, "used": 6, "free": 6}
    assert {claim["consumer"]: claim["allocations"] for claim in info["claims"]} == {
        about["name"]: info["allocations"][uuid] for uuid, about in info["consumers"].items()
    }
    assert sorted(claim.get("project", "") for claim in info["claims"]) == sorted(
        about["project"] or "" for about in info["consumers"].values()
    )
    assert info["custom_traits"] == ["CUSTOM_FAST"]
    assert "host" in info["summary"]
    assert len(run.results["filtered"]["consumers"]) == 1
    assert names(run.results["nothing_asked"]) == []


def test_lookup_gives_usages(run: Run) -> None:
    (host, numa), (tree,), (total,) = run.looked_up
    assert host["DISK_GB"] == {"capacity": 100, "used": 0, "free": 100}
    assert host["VCPU"]["used"] + numa["VCPU"]["used"] == tree["VCPU"]["used"] == total["VCPU"]["used"] == 6


def test_reshape_and_release(run: Run) -> None:
    assert run.results["reshaped"]["changed"]
    classes = sorted(sorted(inventories) for inventories in run.results["reshaped"]["inventories"].values())
    assert classes == [["DISK_GB", "VCPU"], ["PCPU"]]
    assert run.results["released"]["changed"]
    assert run.results["released"]["consumers"] == {}


def test_inline_world_is_returned_changed(run: Run) -> None:
    assert [list(parts.values()) for parts in run.results["inline"]["world"]["allocations"].values()] == [[{"VCPU": 1}]]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "mistakes",
            ["3 mistakes", "VCPU.total: is -1; must be", "'NONSENSE' is not a standard resource class", "traits[0]: 'FAST'"],
        ),
        ("no_consumer", ["one of the following is required: consumer"]),
        ("no_amounts", ["allocations: is needed"]),
        ("bad_consumer", ["2 mistakes", "consumer: 'vm1 ' must be printable", "allocations.host.VCPU: is 'many'; must be a whole number"]),
        ("no_database", ["postgresql+psycopg://nobody:***@127.0.0.1:1/x does not answer"]),
        ("no_url", ["database: is not a URL", "sqlite:////tmp/x"]),
    ],
)
def test_failures_are_sentences(run: Run, name: str, words: list[str]) -> None:
    result = run.results[name]
    assert result["failed"]
    for word in words:
        assert word in result["msg"]
    assert "secret" not in result["msg"]
    assert "Traceback" not in run.output
