# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the rows say, as a user sees it: what is refused, how long labels are, and which commands run."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS, Measure
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.parse import parse_schema

HARDWARE = {"disks": [{"id": "sda", "size": 9000}]}
LABELS = {"ext2": 16, "ext3": 16, "ext4": 16, "xfs": 12, "btrfs": 255, "f2fs": 512, "vfat": 11, "swap": 16}


def plan(fs_type, label=""):
    entry = {"id": "data", "type": "partition", "size": 400, "fs_type": fs_type, **({"fs_label": label} if label else {})}
    return parse_schema([entry], parse_hardware(HARDWARE)).spaces[0].fs_type


def by_hand(fs_type, label=""):
    schema = {"parteds": [{"name": "/dev/sda", "partitions": [{"begin": 1, "end": 401}]}]}
    filesystem = {"device": "/dev/sda1", "fs_type": fs_type, "fs_label": label}
    return parse_static_schema({**schema, "fss": [filesystem]}).filesystems[0].type


@pytest.mark.parametrize("door", [plan, by_hand])
@pytest.mark.parametrize("kind", FILESYSTEMS)
def test_what_is_planned_can_be_made_with_labels_as_long_as_its_tool_takes(door, kind):
    assert door(kind, "x" * LABELS[kind]) == kind
    with pytest.raises((InputError, SchemaMistakes), match=f"fs_label: 'x*' is too long.* {LABELS[kind]} bytes"):
        door(kind, "x" * (LABELS[kind] + 1))


@pytest.mark.parametrize(
    ("word", "meant"), [("ext5", "ext4"), ("fat", "vfat"), ("FAT32", "vfat"), ("linux-swap", "swap"), ("xfz", "xfs"), ("btrf", "btrfs")]
)
def test_what_cannot_be_made_is_refused_by_the_planner_with_a_suggestion(word, meant):
    with pytest.raises(InputError, match=rf"^schema\[0\].fs_type: '{word}' cannot be made; there are ext2, .*\(did you mean {meant}\?\)$"):
        plan(word)


def test_capitals_are_not_minded_by_the_planner():
    assert plan("EXT4") == "ext4"


def test_zfs_is_like_nothing_that_can_be_made():
    with pytest.raises(InputError, match="'reiserfs' cannot be made; there are .*swap$"):
        plan("reiserfs")


@pytest.mark.parametrize(
    ("text", "size"),
    [("size 4096", 4096), ("none", None), ("size 1\nsize 2", None)],
)
def test_a_size_is_read_where_it_stands_once(text, size):
    assert Measure(("show",), r"^size ([0-9]+)$").read(text) == size


def test_a_size_in_blocks_is_multiplied():
    assert Measure(("show",), r"^([0-9]+) blocks of ([0-9]+)$", unit=2).read("10 blocks of 512") == 10240
