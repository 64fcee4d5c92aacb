# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.fstab import (
    Entry,
    has_entry,
    plain_source,
    read_entries,
    with_entries,
)

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
    entry = Entry("LABEL=a#b", "/srv/with blank\\and\ttab\u00a0\u2003#x", "ext4", "x-mine=a b")
    text = with_entries("", [entry])
    assert text == "LABEL=a#b /srv/with\\040blank\\134and\\011tab\u00a0\u2003#x ext4 x-mine=a\\040b 0 0\n"
    assert has_entry(text, entry)
    assert read_entries("LABEL=a\\043b /\\303\\274\\012b xfs")[0] == Entry("LABEL=a#b", "/\u00fc\nb", "xfs")


@pytest.mark.parametrize(
    "entry", [Entry("#a", "/b", "xfs"), Entry("a", "/b\nc", "xfs"), Entry("a", "/b", "xfs", "x\0"), Entry("", "/b", "xfs")]
)
def test_what_has_no_form_is_refused(entry):
    with pytest.raises(ValueError, match="of a line of fstab"):
        with_entries("", [entry])


@pytest.mark.parametrize("comment", ["# a", "### /etc/crypttab", "\t#a b c", "\x0c# UUID=2 /srv xfs"])
def test_lines_end_where_lines_end(comment):
    text = f"{comment}\nUUID=2 /srv\x0c xfs\n"
    assert [entry.path for entry in read_entries(text) if entry.src == "UUID=2"] == ["/srv\x0c"]
    assert with_entries(text, []) == text


def test_swap_spaces_are_told_apart_by_their_source():
    text = "UUID=1 none swap sw,pri=5 0 0\nUUID=2 swap swap sw 0 0\n"
    after = with_entries(text, [Entry("UUID=2", "none", "swap", "sw,nofail"), Entry("UUID=3", "none", "swap")])
    assert after == "UUID=1 none swap sw,pri=5 0 0\nUUID=2 none swap sw,nofail 0 0\nUUID=3 none swap defaults 0 0\n"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('LABEL="a b"', "LABEL=a b"),
        ("uuid='AB-12'", "UUID=ab-12"),
        ("PARTUUID=AB", "PARTUUID=ab"),
        ("LABEL=Ab", "LABEL=Ab"),
        ("/dev/X", "/dev/X"),
    ],
)
def test_sources_are_compared_as_they_are_meant(written, meant):
    assert plain_source(written) == meant
