# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Roles and playbooks read options where pinned_options has put them, and nowhere by their own names."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.bareon.allocator.tests.support.house.variables import documented_variables, names_read

ROOT = Path(__file__).parents[2]
ROLES = ("disk_layout", "group_moves")
PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
HANDED_ON = ("apply.yml", "install.yml")
"""Playbooks that hand all their options to the role, which pins them."""


def options(role: str) -> set[str]:
    specs = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    return {name for entry in specs.values() for name in entry.get("options", {})}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_pins_all_its_options(role: str) -> None:
    (task,) = yaml.safe_load((ROOT / "roles" / role / "tasks" / "pin_options.yml").read_text(encoding="utf-8"))
    pinned = task["bareon.allocator.pinned_options"]
    assert {pinned["prefix"] + name for name in pinned["options"]} == options(role)


@pytest.mark.parametrize("role", ROLES)
def test_no_task_of_a_role_reads_an_option_by_its_own_name(role: str) -> None:
    files = [file for part in ("tasks", "handlers", "vars") for file in sorted((ROOT / "roles" / role).glob(f"{part}/**/*.yml"))]
    # The names that loops and tasks of the role give to something of their own.
    local = {"group_moves_node", "group_moves_nodes"}
    read = {f"{file.relative_to(ROOT)}: {name}" for file in files for name in names_read(file) & options(role) - local}
    assert not read, "a fact could have its name; read it from the pinned options"


@pytest.mark.parametrize("role", ROLES)
def test_a_name_is_of_a_result_or_of_vars_and_never_of_both(role: str) -> None:
    """A result outranks `vars` to the end of the run: one driver's result would be what another driver computes."""
    parts = [
        part for file in (ROOT / "roles" / role / "tasks").glob("**/*.yml") for part in mappings(yaml.safe_load(file.read_text("utf-8")))
    ]
    results = {part["register"] for part in parts if isinstance(part.get("register"), str)}
    results |= {name for part in parts for name in part.get("ansible.builtin.set_fact") or {}}
    assert not results & {name for part in parts if isinstance(part.get("vars"), dict) for name in part["vars"]}


def mappings(value: t.Any) -> Iterator[dict[str, t.Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from mappings(inner)


def test_every_module_has_an_action_that_checks_facts() -> None:
    """A module without an action of ours would have facts of any name become variables."""
    lacking = []
    for module in sorted((ROOT / "plugins" / "modules").glob("*.py")):
        action = ROOT / "plugins" / "action" / module.name
        text = action.read_text(encoding="utf-8") if action.exists() else ""
        if not any(check in text for check in ("HostAction", "PlanningAction", "refuse_facts(", "run_checked(")):
            lacking.append(module.stem)
    assert not lacking


ON_THE_CONTROLLER = {"add_host", "assert", "debug", "fail", "import_tasks", "include_role", "include_tasks", "set_fact"}
"""What of ansible.builtin asks no host. Any other module's answer can have facts, which are settings of Ansible for the next task."""


@pytest.mark.parametrize("role", ROLES)
def test_a_role_asks_hosts_by_host_answer(role: str) -> None:
    files = [file for part in ("tasks", "handlers") for file in sorted((ROOT / "roles" / role).glob(f"{part}/**/*.yml"))]
    asks = {f"{file.relative_to(ROOT)}: {key}" for file in files for key in modules_of(yaml.safe_load(file.read_text(encoding="utf-8")))}
    assert not asks


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.stem)
def test_a_playbook_asks_hosts_by_host_answer(playbook: Path) -> None:
    for play in yaml.safe_load(playbook.read_text(encoding="utf-8")):
        if (play["hosts"], play.get("connection")) != ("localhost", "local"):
            assert not modules_of(play), play["name"]


def modules_of(tasks: t.Any) -> set[str]:
    """Return the modules of Ansible that tasks have hosts run by themselves."""
    names = {key for part in mappings(tasks) for key in part if str(key).startswith("ansible.")}
    return {name for name in names if name.removeprefix("ansible.builtin.") not in ON_THE_CONTROLLER}


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.stem)
def test_a_playbook_pins_its_options_first(playbook: Path) -> None:
    for play in yaml.safe_load(playbook.read_text(encoding="utf-8")):
        if playbook.name in HANDED_ON:
            assert [role["role"] for role in play["roles"]] == ["bareon.allocator.disk_layout"]
        first = (play.get("pre_tasks") or play["tasks"])[0]
        if {"ansible.builtin.add_host", "ansible.builtin.fail"} & first.keys():
            # A play that only lists hosts, or fails for them, asks none of them, and decides nothing for them.
            assert len(play["tasks"]) == 1
            continue
        assert "bareon.allocator.pinned_options" in first, f"{play['name']} begins with {first['name']}"


@pytest.mark.parametrize("playbook", [path for path in PLAYBOOKS if path.name not in HANDED_ON], ids=lambda path: path.stem)
def test_no_task_of_a_playbook_reads_an_option_by_its_own_name(playbook: Path) -> None:
    plays = yaml.safe_load(playbook.read_text(encoding="utf-8"))
    # Variables of the play outrank facts.
    given = {name for play in plays for name in play.get("vars", {})}
    # Hosts are chosen before there are facts of any.
    chosen = {"bareon_hosts", "mover"}
    read = names_read(playbook) & documented_variables(playbook) - given - chosen
    assert not read, "a fact could have its name; read it from the pinned options"
