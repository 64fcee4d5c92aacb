# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the user wrote down and what was gathered, each where it goes first."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.known_hardware import known_hardware, present_hardware

WRITTEN, GATHERED, VARIABLE = {"ram": 1}, {"ram": 2}, {"ram": 3}


def templated(value: object) -> object:
    return ["templated", value]


@pytest.mark.parametrize(
    ("variables", "known", "present"),
    [
        ({}, None, None),
        ({"ansible_facts": {}}, None, None),
        ({"bareon_hardware": VARIABLE}, VARIABLE, VARIABLE),
        ({"bareon_hardware": VARIABLE, "ansible_facts": {"bareon_hardware": GATHERED}}, GATHERED, GATHERED),
        ({"bareon_known_hardware": WRITTEN, "ansible_facts": {"bareon_hardware": GATHERED}}, WRITTEN, GATHERED),
        ({"bareon_known_hardware": WRITTEN, "bareon_hardware": VARIABLE}, WRITTEN, WRITTEN),
    ],
)
def test_which_goes_first(variables: dict, known: object, present: object) -> None:
    assert known_hardware(variables, templated) == known
    assert present_hardware(variables, templated) == present


def test_templates_are_resolved() -> None:
    assert known_hardware({"bareon_known_hardware": "{{ mine }}"}, templated) == ["templated", "{{ mine }}"]
