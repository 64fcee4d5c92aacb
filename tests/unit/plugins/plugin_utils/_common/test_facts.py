# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which names facts may have."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterator
from pathlib import Path

import ansible
import pytest
import yaml
from ansible.vars.clean import clean_facts
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.facts import SETTINGS, refuse_facts, refuse_undocumented

OURS = ("bareon_profile", "disk_layout_root", "__disk_layout_option", "group_moves_url", "follow_folder", "ansible_bareon_report")


def places(error: InputError) -> list[str]:
    return [mistake.place for mistake in error.mistakes]


@pytest.mark.parametrize("name", OURS)
def test_names_of_ours_are_refused_with_the_host(name: str) -> None:
    with pytest.raises(InputError) as refused:
        refuse_facts({"inventory_hostname": "web1", "ansible_facts": {"distribution": "Debian", name: "/root"}})
    assert places(refused.value) == [f"web1.ansible_facts.{name}"]


@pytest.mark.parametrize("name", [*OURS, "inventory_hostname", "omit", "lookup", "group_names", "plan_file"])
def test_names_that_no_fact_may_have_are_refused(name: str) -> None:
    with pytest.raises(InputError) as refused:
        refuse_facts({"inventory_hostname": "web1", "ansible_facts": {name: "../../root"}}, {"plan_file"})
    assert places(refused.value)[0].endswith(f".ansible_facts.{name}")
    assert "../../root" not in str(refused.value)


@pytest.mark.parametrize("name", ["sftp_executable", "control_path_dir", "remote_tmp", "paramiko_proxy_command", "delegated_vars"])
def test_settings_of_ansible_are_refused_where_they_are_such(name: str) -> None:
    """Ansible lists a fact without `ansible_`, whether it has it or not; only with it, it is a setting."""
    fact = {"ansible_facts": {name: "x"}}
    refuse_facts({"inventory_hostname": "web1", name: "x", **fact})
    with pytest.raises(InputError) as refused:
        refuse_facts({"inventory_hostname": "web1", f"ansible_{name}": "x", **fact})
    assert places(refused.value) == [f"web1.ansible_facts.{name}"]


def test_every_setting_that_this_release_of_ansible_takes_from_a_fact_is_refused() -> None:
    """As its plugins document them, less those that it takes out of facts itself."""
    documented = {name: "x" for name in settings_of_ansible() if name.startswith("ansible_")}
    assert len(documented) > 100
    taken = {name.removeprefix("ansible_") for name in clean_facts(documented)}
    assert taken - SETTINGS == set()


def settings_of_ansible() -> Iterator[str]:
    """Return the variables that options of Ansible and its plugins for connections are documented to come from."""
    root = Path(ansible.__file__).parent
    yield from variables_of(yaml.safe_load((root / "config" / "base.yml").read_text(encoding="utf-8")))
    for kind in ("connection", "shell", "become", "doc_fragments"):
        for file in (root / "plugins" / kind).glob("*.py"):
            for _quotes, text in re.findall(
                r"^ *[A-Z_]+ = r?(\"{3}|'{3})(.*?)\1", file.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
            ):
                try:
                    document = yaml.safe_load(text)
                except yaml.YAMLError:
                    # A message to users, which is no document.
                    continue
                yield from variables_of(document.get("options") or {} if isinstance(document, dict) else {})


def variables_of(options: dict[str, t.Any]) -> Iterator[str]:
    for option in options.values():
        yield from (entry["name"] for entry in (option.get("vars") or [] if isinstance(option, dict) else []))


def test_a_host_does_not_choose_the_name_in_the_message() -> None:
    variables = {"inventory_hostname": "somebody-else", "ansible_facts": {"inventory_hostname": "somebody-else"}}
    with pytest.raises(InputError) as refused:
        refuse_facts(variables)
    assert "somebody-else" not in str(refused.value)


def test_long_names_and_many_of_them_are_cut() -> None:
    facts = {f"bareon_{number}{'x' * 10_000}\x1b[2J": None for number in range(1000)}
    with pytest.raises(InputError) as refused:
        refuse_facts({"inventory_hostname": "web1", "ansible_facts": facts})
    assert len(str(refused.value)) < 3000
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("facts", [{}, {"bareon_hardware": {}, "bareon_node": {}}, {"hostname": "web1", "machine": "x86_64", "local": {}}])
def test_all_other_facts_are_taken(facts: dict[str, t.Any]) -> None:
    refuse_facts({"inventory_hostname": "web1", "ansible_facts": facts})


@pytest.mark.parametrize("facts", ["text", ["bareon_hardware"], 7, {"bareon_hardware": {}, "distribution": "Debian"}])
def test_facts_that_a_module_does_not_return_are_refused(facts: t.Any) -> None:
    with pytest.raises(InputError):
        refuse_undocumented("web1", {"ansible_facts": facts}, ("bareon_hardware",))


def test_facts_that_a_module_returns_are_taken() -> None:
    refuse_undocumented("web1", {"ansible_facts": {"bareon_hardware": {}}}, ("bareon_hardware",))
    refuse_undocumented("web1", {"changed": True}, ())
