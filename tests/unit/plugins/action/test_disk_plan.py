# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_plan as a playbook meets it: arguments, registered results, failures, warnings, diffs, a whole fleet."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[4]
SCHEMA = [
    {"id": "os", "type": "vg", "contains": ["root"]},
    {"id": "root", "type": "lv", "min_size": "{{ least }}", "mount": "/", "fs_type": "ext4"},
]
ANYTHING = [{"id": "all", "type": "partitions"}]
SMALL = {"ram": 512, "disks": [{"id": "sda", "size": 100, "type": "hdd"}]}
BIG = {
    "ram": 512,
    "disks": [
        {
            "id": "sda",
            "size": 10_000,
            "type": "hdd",
            "partitions": [{"number": 1, "start": 1, "size": 500, "fs_type": "ext4", "mountpoints": ["/"]}],
        }
    ],
}
WRITTEN = {"ram": 512, "disks": [{"id": "sdz", "size": 300, "type": "hdd"}]}
FILE_PROFILE = "description: One partition.\nschema:\n  - {id: all, type: partition, max_size: 50}\n"
TASKS: dict[str, dict[str, t.Any]] = {
    "own": {"schema": SCHEMA},
    "given": {"schema": SCHEMA, "hardware": SMALL},
    "text": {"schema": SCHEMA, "hardware": "{{ small_as_text | from_json }}", "reserve": "{{ '40' }}", "objective": "ordered"},
    "fleet": {"schema": SCHEMA, "hosts": ["localhost", "big"]},
    "warned": {"schema": [{"id": "p", "type": "partition", "best_with_disks": "yaql=[]"}], "hosts": ["localhost", "big"]},
    "partly": {"schema": [{"id": "p", "type": "partition", "size": 5000}], "hosts": ["localhost", "big"]},
    "no_facts": {"schema": SCHEMA, "hosts": ["big", "bare", "nobody"], "unreachable": "fail"},
    "some_dead": {"schema": SCHEMA, "hosts": ["big", "bare"]},
    "dead_refused": {"schema": SCHEMA, "hosts": ["big", "bare"], "unreachable": "fail"},
    "all_dead": {"schema": SCHEMA, "hosts": ["bare"]},
    "spoilt_facts": {"schema": SCHEMA, "hosts": ["spoilt", "big"]},
    "infeasible": {"schema": [{"id": "p", "type": "partition", "size": 500}]},
    "mistakes": {"schema": [{"id": "p", "type": "partitoin", "sise": 5}, {"id": "q", "type": "lv", "size": "yaql=$.x"}]},
    "not_a_list": {"schema": {"id": "p"}},
    "no_disks": {"schema": SCHEMA, "hardware": {"disks": []}},
    "into_files": {"schema": SCHEMA, "hosts": ["localhost", "big"], "plans_to": "layouts"},
    "into_files_again": {"schema": SCHEMA, "hosts": ["localhost", "big"], "plans_to": "layouts"},
    "one_into_a_file": {"schema": SCHEMA, "plans_to": "alone"},
    "partly_into_files": {"schema": [{"id": "p", "type": "partition", "size": 5000}], "hosts": ["localhost", "big"], "plans_to": "part"},
    "reserve": {"schema": SCHEMA, "reserve": "much"},
    "both": {"schema": SCHEMA, "profile": "general"},
    "neither": {},
    "unknown_option": {"schema": SCHEMA, "shema": []},
    "unknown_objective": {"schema": SCHEMA, "objective": "best"},
    "unknown_profile": {"profile": "genral"},
    "file_profile": {"profile": "mine.yml", "overrides": [{"id": "all", "size": 60}]},
    "written": {"schema": ANYTHING},
    "empty_query": {"schema": [{"id": "p", "type": "partition", "best_with_disks": 'yaql=$.disks.where($.type = "ssd")'}]},
}


class Run(t.NamedTuple):
    """What one run of all tasks gave: results by name, and what Ansible printed."""

    results: dict[str, dict[str, t.Any]]
    output: str
    folder: pathlib.Path


def run_playbook(folder: pathlib.Path, *options: str) -> Run:
    tasks = [
        {"name": name, "bareon.allocator.disk_plan": arguments, "register": name, "ignore_errors": True}
        for name, arguments in TASKS.items()
    ]
    next(task for task in tasks if task["name"] == "written")["vars"] = {"bareon_known_hardware": WRITTEN}
    own = ", ".join(f"'{name}': {name}" for name in TASKS)
    of_empty = ", ".join(f"'{name}': hostvars.empty.{name}" for name in ("gathered", "facts"))
    results = "{{ {" + f"{own}, {of_empty}" + "} | to_json }}"
    keep = {
        "name": "keep",
        "ansible.builtin.copy": {"dest": str(folder / "results.json"), "content": results, "mode": "0600"},
        "diff": False,
        "check_mode": False,
    }
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "least": 20, "small_as_text": json.dumps(SMALL)}
    hosts = {"localhost": {"bareon_hardware": SMALL}, "big": {"bareon_hardware": BIG}, "empty": {}, "bare": {}, "spoilt": {}}
    (folder / "mine.yml").write_text(FILE_PROFILE, encoding="utf-8")
    (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": local}}), encoding="utf-8")
    facts = {"bareon.allocator.disk_facts": {}, "register": "facts"}
    anything = {"schema": ANYTHING, "eligible": ["in_use", "removable", "usb", "sd_card", "zoned", "iscsi", "fc"]}
    gathered = {"bareon.allocator.disk_plan": anything, "register": "gathered", "ignore_errors": True}
    play = [
        {"hosts": "empty", "gather_facts": False, "tasks": [gathered, facts]},
        {"hosts": "spoilt", "gather_facts": False, "tasks": [{"ansible.builtin.set_fact": {"bareon_overrides": "x", "cacheable": True}}]},
        {"hosts": "localhost", "gather_facts": False, "tasks": [*tasks, keep]},
    ]
    (folder / "play.yml").write_text(yaml.safe_dump(play, sort_keys=False), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.yml", "play.yml", *options],
        cwd=folder,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "home"), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Run(json.loads((folder / "results.json").read_text(encoding="utf-8")), done.stdout + done.stderr, folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_playbook(tmp_path_factory.mktemp("disk_plan"))


def spaces(plan: dict[str, t.Any]) -> dict[str, dict[str, int]]:
    return {disk["disk_id"]: {space["space_id"]: space["size"] for space in disk["spaces"]} for disk in plan["disks"]}


def test_the_host_is_planned_from_what_is_known_about_it(run: Run) -> None:
    result = run.results["own"]
    assert spaces(result["plan"]) == {"sda": {"os": 98}}
    assert result["plan"]["schema"]["lvs"][0]["size"] == 96
    assert result["changed"] is False
    assert result["failed"] is False
    assert "diff" not in result
    assert "root" in result["summary"]


def test_given_hardware_goes_first_and_the_same_input_gives_the_same_plan(run: Run) -> None:
    assert run.results["given"]["plan"] == run.results["own"]["plan"]


def test_without_any_hardware_the_facts_are_gathered(run: Run) -> None:
    """Whatever this machine has: its disks, or the message that it has none."""
    found = run.results["facts"]["ansible_facts"]["bareon_hardware"]["disks"]
    result = run.results["gathered"]
    if "plan" in result:
        told = [*result["plan"]["disks"], *result["plan"]["left_out_disks"]]
        assert {disk["disk_id"]: disk["size"] for disk in told} == {disk["id"]: disk["size"] for disk in found}
    elif found:
        assert "hardware.disks: no disk of this machine may be used" in result["msg"]
    else:
        assert "hardware.disks: is empty" in result["msg"]


def test_templated_arguments(run: Run) -> None:
    assert spaces(run.results["text"]["plan"]) == {"sda": {"os": 58}}


def test_a_fleet(run: Run) -> None:
    plans = run.results["fleet"]["plans"]
    assert plans["localhost"] == run.results["own"]["plan"]
    assert spaces(plans["big"]) == {"sda": {"os": 9998}}
    assert "plan" not in run.results["fleet"]
    assert run.results["fleet"]["summary"].splitlines()[1].split()[:2] == ["localhost", "1"]


def test_a_fleet_in_files(run: Run) -> None:
    result, again = run.results["into_files"], run.results["into_files_again"]
    for host, plan in run.results["fleet"]["plans"].items():
        text = (run.folder / "layouts" / f"{host}.json").read_bytes()
        assert json.loads(text) == plan
        assert result["digests"][host] == again["digests"][host] == hashlib.sha256(text).hexdigest()
    assert "plans" not in result
    assert (result["changed"], result["written"]) == (True, ["localhost", "big"])
    assert (again["changed"], again["written"]) == (False, [])
    assert " ".join(result["summary"].split()) == f"2 plans in {run.folder / 'layouts'}: 2 new, 0 changed, 0 as they were"


def test_one_host_in_a_file(run: Run) -> None:
    assert json.loads((run.folder / "alone" / "localhost.json").read_text()) == run.results["own"]["plan"]
    assert "plan" not in run.results["one_into_a_file"]
    assert spaces(run.results["own"]["plan"]) == {"sda": {"os": 98}}


def test_the_others_of_a_fleet_get_their_files(run: Run) -> None:
    result = run.results["partly_into_files"]
    assert list(result["failures"]) == ["localhost"]
    assert list(result["digests"]) == ["big"]
    assert [path.name for path in (run.folder / "part").iterdir()] == ["big.json"]


def test_check_mode_writes_no_file(tmp_path: pathlib.Path, run: Run) -> None:
    result = run_playbook(tmp_path, "--check", "--diff").results["into_files"]
    assert not (tmp_path / "layouts").exists()
    assert (result["changed"], result["digests"]) == (True, run.results["into_files"]["digests"])
    assert [(diff["before"], diff["after_header"]) for diff in result["diff"]] == [
        ("", str(tmp_path / "layouts" / "localhost.json")),
        ("", str(tmp_path / "layouts" / "big.json")),
    ]


def test_the_others_of_a_fleet_get_their_plans(run: Run) -> None:
    result = run.results["partly"]
    assert result["failed"] is True
    assert set(result["plans"]) == {"big"}
    assert result["msg"].startswith("1 of 2 hosts have no plan: localhost\n- localhost: ")
    assert result["failures"]["localhost"]["conflict"]["short"] == 4902


def test_facts_with_names_of_options_keep_no_other_host_from_its_plan(run: Run) -> None:
    result = run.results["spoilt_facts"]
    assert result["failed"] is True
    assert (set(result["plans"]), set(result["failures"])) == ({"big"}, {"spoilt"})
    assert "spoilt.ansible_facts.bareon_overrides" in result["failures"]["spoilt"]["msg"]


def test_hosts_without_hardware_are_all_named(run: Run) -> None:
    message = run.results["no_facts"]["msg"]
    assert "hosts: nobody is not in the inventory" in message
    assert "hosts: bare has no bareon_hardware" in message


def test_hosts_that_nothing_is_known_of_are_named_and_left_out(run: Run) -> None:
    result = run.results["some_dead"]
    assert set(result["plans"]) == {"big"}
    assert result["left_out_hosts"] == ["bare"]
    assert "bare: without bareon_hardware, so left out of the plans" in " ".join(result["summary"].split())
    assert "[WARNING]: bare: without bareon_hardware" in run.output


@pytest.mark.parametrize("name", ["dead_refused", "all_dead"])
def test_hosts_that_nothing_is_known_of_are_refused(run: Run, name: str) -> None:
    assert run.results[name]["failed"] is True
    assert "hosts: bare has no bareon_hardware" in run.results[name]["msg"]


def test_what_the_user_wrote_down_goes_before_facts(run: Run) -> None:
    assert spaces(run.results["written"]["plan"]) == {"sdz": {"all": 298}}


def test_the_profile_comes_back_with_its_reasons(run: Run) -> None:
    profile = run.results["file_profile"]["profile"]
    assert profile["description"] == "One partition."
    assert profile["schema"] == [{"id": "all", "type": "partition", "size": 60}]


def test_no_solution_comes_with_its_conflict(run: Run) -> None:
    result = run.results["infeasible"]
    assert result["failed"] is True
    assert result["conflict"]["short"] == 402
    assert {constraint["name"] for constraint in result["conflict"]["constraints"]} == {"min:p", "disk:sda"}
    assert all(constraint["says"] for constraint in result["conflict"]["constraints"])
    assert result["conflict"]["remedies"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mistakes", "3 mistakes in the input:"),
        ("mistakes", "schema[0].type: is 'partitoin'; must be one of"),
        ("mistakes", "schema[0].sise: is not a key of a space (did you mean size?)"),
        ("mistakes", "schema[1].size: expression '$.x' failed: the facts have no 'x'"),
        ("not_a_list", "schema: is a mapping; must be a list"),
        ("no_disks", "hardware.disks: is empty"),
        ("reserve", "reserve: 'much' is not a size"),
        ("both", "mutually exclusive: schema|profile"),
        ("neither", "one of the following is required: schema, profile"),
        ("unknown_option", "shema: is not an option of bareon.allocator.disk_plan (did you mean schema?)"),
        ("unknown_objective", "fair, ordered"),
        ("unknown_profile", "there is no profile 'genral' (did you mean general?)"),
    ],
)
def test_bad_input_fails_with_a_message(run: Run, name: str, says: str) -> None:
    result = run.results[name]
    assert result["failed"] is True
    assert says in result["msg"]
    assert "Traceback" not in json.dumps(result)


def test_a_profile_from_a_file_with_overrides(run: Run) -> None:
    assert spaces(run.results["file_profile"]["plan"]) == {"sda": {"all": 60}}


def test_warnings_are_shown(run: Run) -> None:
    warning = "schema[0].best_with_disks: no disk matches, so p goes wherever there is room"
    assert run.results["empty_query"]["plan"]["warnings"] == [warning]
    assert "no disk matches" in run.output


def test_a_warning_about_several_hosts_is_shown_once(run: Run) -> None:
    assert "[WARNING]: localhost and big: schema[0].best_with_disks: no disk matches" in run.output


def test_nothing_else_is_printed(run: Run) -> None:
    assert "errantly" not in run.output
    assert "Highs" not in run.output


def test_diff_shows_the_present_layout_against_the_planned_one(tmp_path: pathlib.Path, run: Run) -> None:
    other = run_playbook(tmp_path, "--diff")
    assert other.results["own"]["plan"] == run.results["own"]["plan"]
    assert other.results["own"]["changed"] is True
    for line in ("+++ after: big (planned layout)", "-  1: 500 MiB at 1 ext4 /", "+  1: 9998 MiB at 1 os", "+  root: 9996 MiB ext4 /"):
        assert line in other.output
