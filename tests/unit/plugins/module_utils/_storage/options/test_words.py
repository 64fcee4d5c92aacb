# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a line stay, those that are wanted come to it, and a dash takes one away."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options.words import (
    merged,
    of_every_filesystem,
    says_where_from,
    wanted_words,
    words_of,
)


@pytest.mark.parametrize(
    ("present", "wanted", "expected"),
    [
        ("noatime,nofail", "", "noatime,nofail"),
        ("noatime,nofail", "defaults", "noatime,nofail"),
        ("noatime,nofail", "nodev", "noatime,nofail,nodev"),
        ("noatime,nofail", "nofail,noatime", "noatime,nofail"),
        ("", "defaults,nofail", "defaults,nofail"),
        ("defaults", "nofail", "defaults,nofail"),
        ("ro,noatime", "rw,relatime", "rw,relatime"),
        ("noatime,exec", "atime,noexec", "atime,noexec"),
        ("umask=0022,x-systemd.device-timeout=30", "umask=0077", "umask=0077,x-systemd.device-timeout=30"),
        ("x-systemd.requires=a.service", "x-systemd.requires=b.service", "x-systemd.requires=a.service,x-systemd.requires=b.service"),
        ("noatime,nofail", "-nofail", "noatime"),
        ("nofail", "nofail,-nofail", ""),
        ("umask=0022,quiet", "-umask", "quiet"),
        ("umask=0022,quiet", "-umask=0077", "umask=0022,quiet"),
        ("a,a,b", "b", "a,a,b"),
        ('context="system_u:object_r:t:s0:c1,c2",nofail', "nodev", 'context="system_u:object_r:t:s0:c1,c2",nofail,nodev'),
    ],
)
def test_what_a_line_has_stays_and_what_is_wanted_comes_to_it(present, wanted, expected):
    found = merged(words_of(present), words_of(wanted))
    assert ",".join(found) == expected
    assert merged(found, words_of(wanted)) == found


def test_words_that_take_away_are_for_lines_only():
    assert wanted_words("noatime,-nofail") == "noatime"
    assert wanted_words("-nofail") == "defaults"


def test_what_holds_for_every_file_system():
    assert of_every_filesystem(["nofail", "data=journal", "x-systemd.automount", "comment=mine", "subvol=@"]) == [
        *("nofail", "x-systemd.automount", "comment=mine"),
    ]


def test_where_options_come_from_is_told_by_mount():
    assert says_where_from([("/srv", {"noatime": "fstab", "nodev": "fstab", "nofail": "nofail"}), ("/a", {})]) == (
        "/srv: noatime, nodev from fstab; nofail from nofail\n"
    )
