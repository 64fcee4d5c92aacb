# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Warnings of many hosts are told once, and failures with their reasons."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistake, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fleet import describe_failures, failures, fleet_warnings
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Fleet

CONFLICT = {"short": 7, "constraints": [], "remedies": []}


def test_a_warning_names_five_hosts_and_counts_the_rest() -> None:
    plans = {f"web{number}": {"warnings": ["no disk matches"]} for number in range(8)}
    plans["db"] = {"warnings": ["the disk is slow"]}
    assert fleet_warnings(plans, []) == ["web0, web1, web2, web3, web4 and 3 more: no disk matches", "db: the disk is slow"]


def test_hosts_that_are_left_out_come_first() -> None:
    assert fleet_warnings({"db": {"warnings": ["slow"]}}, ["dead", "gone"])[0].startswith("dead and gone: without bareon_hardware")


def test_failures_are_told_with_their_reasons() -> None:
    fleet = Fleet({"a": {}}, {"b": NoSolution("7 MiB are missing", CONFLICT), "c": InputError([Mistake("hardware.disks", "is empty")])})
    assert describe_failures(fleet).splitlines() == [
        "2 of 3 hosts have no plan: b, c",
        "- b: 7 MiB are missing",
        "- c: hardware.disks: is empty",
    ]
    assert failures(fleet) == {"b": {"msg": "7 MiB are missing", "conflict": CONFLICT}, "c": {"msg": "hardware.disks: is empty"}}
