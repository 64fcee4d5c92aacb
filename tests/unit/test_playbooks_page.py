# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The heads of the playbooks name all variables that these read, and the page of playbooks says what the heads say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.bareon.allocator.tests.support.house.playbooks import PAGE, PLAYBOOKS, head, page

PATHS = sorted(PLAYBOOKS.glob("*.yml"))
INTERNAL = {"prefix", "options"}


def variables(playbook: Path) -> set[str]:
    return {name for variable in head(playbook).variables for name in variable.names}


def options(playbook: Path) -> set[str]:
    """Return the options that a playbook pins, hands to a role by their names, or chooses its hosts by."""
    found: set[str] = set()
    for play in yaml.safe_load(playbook.read_text(encoding="utf-8")):
        found |= set(re.findall(r"\{\{ (\w+) \| default", str(play["hosts"])))
        for task in [*play.get("pre_tasks", ()), *play.get("tasks", ())]:
            pinned = task.get("bareon.allocator.pinned_options", {})
            found |= {pinned.get("prefix", "") + name for name in pinned.get("options", ())}
        for role in play.get("roles", ()):
            found |= set(re.findall(r"\bbareon_\w+", str(role.get("vars", {}))))
    return found


def test_the_page_says_what_the_playbooks_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(PATHS), "run `make guide`"


@pytest.mark.parametrize("playbook", PATHS, ids=lambda path: path.stem)
def test_a_playbook_names_all_its_options_at_its_head(playbook: Path) -> None:
    results = {"bareon_pinned", "bareon_option", "bareon_planned", "bareon_become_option"}
    assert options(playbook) - results <= variables(playbook)


@pytest.mark.parametrize("playbook", PATHS, ids=lambda path: path.stem)
def test_a_playbook_reads_all_that_its_head_names(playbook: Path) -> None:
    text = playbook.read_text(encoding="utf-8")
    body = text[text.index("\n- name:") :]
    prefixes = set(re.findall(r"prefix: (\w+_)$", body, re.MULTILINE))
    unread = {
        name
        for name in variables(playbook)
        if not any(re.search(rf"\b{re.escape(part)}\b", body) for part in (name, *(name.removeprefix(prefix) for prefix in prefixes)))
    }
    assert unread - {"group_moves_driver"} == set()


@pytest.mark.parametrize("playbook", PATHS, ids=lambda path: path.stem)
def test_a_playbook_begins_with_what_it_does(playbook: Path) -> None:
    said = head(playbook)
    assert said.paragraphs
    assert not said.paragraphs[0].startswith(" ")
    assert all(variable.meaning for variable in said.variables)


def test_install_hands_on_what_apply_hands_on() -> None:
    """A new option of the role is one of both playbooks; install.yml says itself what a new system is."""
    (apply,), (install,) = (yaml.safe_load((PLAYBOOKS / f"{name}.yml").read_text(encoding="utf-8")) for name in ("apply", "install"))
    assert apply["roles"][0]["vars"].keys() <= install["roles"][0]["vars"].keys()


def test_commands_are_those_of_users_who_installed_the_collection() -> None:
    root = PLAYBOOKS.parent
    pages = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("roles/*/*.md"), *PATHS]
    typed = [line for path in pages for line in re.findall(r"ansible-playbook [^\n`]*", path.read_text(encoding="utf-8"))]
    assert len(typed) > 50
    assert [line for line in typed if re.search(r"\splaybooks/", line)] == []
