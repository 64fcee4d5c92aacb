# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils.mounting import Entry, has_entry, with_entries

ROOT = "UUID=1 / ext4 defaults 0 1"
FSTAB = f"# what is mounted\n\n{ROOT}\nUUID=2\t/srv\txfs\nbroken\nUUID=9 none swap sw 0 0\n"


def test_lines_are_added_behind_all_others():
    entries = [Entry("UUID=3", "/a", "ext4", "noatime", "0", "2"), Entry("UUID=4", "/a/b", "vfat")]
    assert with_entries(FSTAB, entries) == f"{FSTAB}UUID=3 /a ext4 noatime 0 2\nUUID=4 /a/b vfat defaults 0 0\n"
    assert with_entries("", entries[:1]) == "UUID=3 /a ext4 noatime 0 2\n"
    assert with_entries(ROOT, entries[:1]) == f"{ROOT}\nUUID=3 /a ext4 noatime 0 2\n"


def test_a_line_that_says_otherwise_is_replaced_where_it_is():
    entry = Entry("UUID=2", "/srv", "xfs", "noatime")
    after = with_entries(FSTAB, [entry])
    assert after == FSTAB.replace("UUID=2\t/srv\txfs", "UUID=2 /srv xfs noatime 0 0")
    assert with_entries(after, [entry]) == after


@pytest.mark.parametrize("line", ["UUID=2 /srv xfs", "UUID=2  /srv\txfs defaults", "UUID=2 /srv xfs defaults 0 0 # mine"])
def test_a_line_that_says_so_stays_as_it_is(line):
    entry = Entry("UUID=2", "/srv", "xfs")
    assert has_entry(line, entry)
    assert with_entries(f"UUID=1 /srv ext4\n{line}\n", [entry]) == f"UUID=1 /srv ext4\n{line}\n"


def test_comments_say_nothing():
    entry = Entry("UUID=2", "/srv", "xfs")
    assert not has_entry("#UUID=2 /srv xfs\n # UUID=2 /srv xfs", entry)


def test_what_would_part_fields_is_escaped_and_found_again():
    entry = Entry("LABEL=a#b", "/srv/with blank\\and\ttab", "ext4")
    text = with_entries("", [entry])
    assert text == "LABEL=a\\043b /srv/with\\040blank\\134and\\011tab ext4 defaults 0 0\n"
    assert has_entry(text, entry)
