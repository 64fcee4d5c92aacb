# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fair planner against the corpus of cases with known properties."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.placement import allocate_fair
from ansible_collections.bareon.allocator.tests.unit.data.disk.build import CASES, case_models
from ansible_collections.bareon.allocator.tests.unit.data.disk.expectations import missed
from ansible_collections.bareon.allocator.tests.unit.data.disk.rules import broken

FEASIBLE = [case for case in CASES if case["expect"]["feasible"]]
INFEASIBLE = [case for case in CASES if not case["expect"]["feasible"]]


@pytest.mark.parametrize("case", FEASIBLE, ids=lambda case: case["id"])
def test_feasible_cases_pass_the_check(case: dict) -> None:
    hardware, schema = case_models(case)
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert missed(case, hardware, schema, allocation) == []


@pytest.mark.parametrize("case", INFEASIBLE, ids=lambda case: case["id"])
def test_infeasible_cases_give_their_unique_minimal_conflict(case: dict) -> None:
    with pytest.raises(NoSolution) as caught:
        allocate_fair(*case_models(case))
    reference = case["expect"]["reference"]
    conflict = caught.value.conflict
    assert sorted(item["name"] for item in conflict["constraints"]) == sorted(reference["iis"])
    assert conflict["short"] == reference["short_MiB"]
    assert conflict["remedies"]
