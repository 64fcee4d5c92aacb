# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that modules, roles and playbooks share: the copies are compared with the module's, and exceptions stand in one table.

Only those of the disks are handed on so; the options of the role group_moves are its own.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.bareon.allocator.tests.support.house.documented import documented_options

ROOT = Path(__file__).parents[2]
ROLE = "disk_layout"
MODULES = ("disk_plan", "disk_layout", "disk_keys")
PLAYBOOKS = ("apply", "install")
COMPARED = ("type", "elements", "choices", "default")

OTHER_MEANING = {("schema", "disk_layout"), ("schema", "disk_keys")}
"""Options of the role that are not the module's: its `schema` is dynamic, theirs static."""
ROLE_ONLY = {
    *("schema", "static", "objective", "reserve", "keep_existing", "hardware", "keep_unlisted"),
    *("key_files", "crypttab_options", "install_packages", "mount", "mount_points"),
}
"""Options that no playbook has: a play of one's own calls the role."""
INSTALL_ONLY = {"image", "image_on_host", "install_tasks"}
"""Options about a new system."""
OTHER_DEFAULT = {("apply", "overrides"), ("apply", "eligible")} | {("install", key) for key in ("overrides", "eligible", "root", "boot")}
"""Options that a playbook has another default for."""
NO_PLAIN_DEFAULT = {"profile"}
"""Depends on whether there are plans."""


def role_options(role: str) -> dict[str, t.Any]:
    entries = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    return {name.removeprefix(f"{role}_"): option for name, option in entries["main"]["options"].items()}


def defaults(role: str) -> dict[str, t.Any]:
    read = yaml.safe_load((ROOT / "roles" / role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    return {name.removeprefix(f"{role}_"): value for name, value in read.items()}


def handed_on(playbook: str) -> dict[str, t.Any]:
    (play,) = yaml.safe_load((ROOT / "playbooks" / f"{playbook}.yml").read_text(encoding="utf-8"))
    return {name.removeprefix(f"{ROLE}_"): value for name, value in play["roles"][0]["vars"].items()}


@pytest.mark.parametrize("module", MODULES)
def test_options_of_the_role_are_those_of_the_module(module: str) -> None:
    theirs = documented_options(module)
    shared = {name: option for name, option in role_options(ROLE).items() if name in theirs and (name, module) not in OTHER_MEANING}
    assert len(shared) > 5
    described = {name: {key: option[key] for key in COMPARED if key in option} for name, option in shared.items()}
    assert described == {name: {key: theirs[name][key] for key in COMPARED if key in theirs[name]} for name in shared}


@pytest.mark.parametrize("role", [ROLE, "group_moves"])
def test_defaults_of_a_role_are_those_that_it_documents(role: str) -> None:
    options = role_options(role)
    # A template has no value yet, and what it documents is in words.
    plain = {name: value for name, value in defaults(role).items() if not (isinstance(value, str) and "{{" in value)}
    said = {name: option["default"] for name, option in options.items() if option.get("default") is not None}
    assert said.items() <= plain.items()
    assert {name for name in plain if name in options and plain[name] is not None and options[name].get("default") is None} <= {"driver"}


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_a_playbook_hands_on_every_option(playbook: str) -> None:
    without = ROLE_ONLY | (INSTALL_ONLY if playbook == "apply" else set())
    assert set(handed_on(playbook)) == set(role_options(ROLE)) - without


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_a_playbook_has_the_default_of_the_role(playbook: str) -> None:
    options = role_options(ROLE)
    other = set()
    for name, template in handed_on(playbook).items():
        found = re.fullmatch(rf"\{{\{{ bareon_{name} \| default\((.*)\) \}}\}}", str(template))
        if found and name not in NO_PLAIN_DEFAULT and yaml.safe_load(found[1].replace("none", "null")) != options[name].get("default"):
            other.add((playbook, name))
    assert other == {(book, name) for book, name in OTHER_DEFAULT if book == playbook}
