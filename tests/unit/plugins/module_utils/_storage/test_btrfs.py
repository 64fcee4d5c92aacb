# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What subvolumes may be called, and what btrfs says of them."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.btrfs import (
    misplaced_option,
    mount_options,
    outer_first,
    read_subvolumes,
    subvolume_name,
)

LISTED = """ID 256 gen 7 top level 5 path @
ID 257 gen 7 top level 5 path @home
ID 259 gen 7 top level 256 path @/usr/lo cal
"""
LIMITS_OF_6_2 = """Qgroupid    Referenced    Exclusive  Max referenced   Path
--------    ----------    ---------  --------------   ----
0/5              16384        16384            none   <toplevel>
0/256            16384        16384            none   @
0/257            16384        16384      1073741824   @home
1/0              16384        16384            4096   <0 member qgroups>
"""
LIMITS_OF_4_5 = """qgroupid         rfer         excl     max_rfer
--------         ----         ----     --------
0/256           16384        16384         none
0/257           16384        16384   1073741824
"""


@pytest.mark.parametrize("limits", [LIMITS_OF_6_2, LIMITS_OF_4_5])
def test_subvolumes_are_read_with_their_limits(limits: str) -> None:
    assert read_subvolumes(LISTED + limits) == {"@": None, "@home": 1073741824, "@/usr/lo cal": None}


def test_without_quotas_nothing_is_limited() -> None:
    assert read_subvolumes(LISTED) == {"@": None, "@home": None, "@/usr/lo cal": None}
    assert read_subvolumes("") == {}


@pytest.mark.parametrize(("text", "name"), [("@", "@"), ("/@/.snapshots", "@/.snapshots"), ("var+log_1", "var+log_1")])
def test_names_are_paths(text: str, name: str) -> None:
    assert subvolume_name(text) == name


@pytest.mark.parametrize("text", ["", "/", "a//b", "a/", "..", "a/../b", "a,b", "a b", "a:b", "x" * 256, "@\n"])
def test_what_is_no_name(text: str) -> None:
    assert subvolume_name(text) is None


def test_options_come_together() -> None:
    assert mount_options("defaults", "", "@") == "subvol=@"
    assert mount_options("noatime,compress=zstd", "nodev,noatime", "@x") == "noatime,compress=zstd,nodev,subvol=@x"
    assert misplaced_option("nodev,compress-force=lzo") == "compress-force"
    assert misplaced_option("subvolid=7") == "subvolid"
    assert misplaced_option("") is None


def test_outer_ones_come_first() -> None:
    assert outer_first(["a/b/c", "b", "a/b", "a"]) == ["a", "b", "a/b", "a/b/c"]
