# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which names facts may have."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.facts import refuse_facts, refuse_undocumented

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
