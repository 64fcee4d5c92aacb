# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.table import table


def test_names_begin_and_numbers_end_below_each_other():
    assert table(("name", "size"), [("a", "10"), ("longer", "9")], right=("size",)).splitlines() == [
        "name    size",
        "a         10",
        "longer     9",
    ]


def test_a_name_of_digits_stays_a_name():
    assert table(("host", "disks"), [("7", "1"), ("10.0.0.1", "12")], right=("disks",)).splitlines()[1] == "7             1"


def test_no_line_ends_in_blanks():
    assert table(("name", "what"), [("a", "")]).splitlines() == ["name  what", "a"]
    assert table(("name", "what"), []) == "name  what"
