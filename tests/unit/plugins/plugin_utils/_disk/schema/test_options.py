# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.tests.support.host.hostile_options import hostile_options
from ansible_collections.bareon.allocator.tests.support.host.hostile_values import TEXTS
from ansible_collections.bareon.allocator.tests.support.host.usual_options import MAKE, MOUNT

Plain = dict[str, t.Any]
OTHER = "/dev/sdz"
HARDWARE = {
    "ram": 8192,
    "firmware": "uefi",
    "disks": [{"id": f"/dev/disk/by-id/wwn-{name}", "dev": f"/dev/sd{name}", "size": 20000, "type": "hdd"} for name in "ab"],
}


def space(fs_type: str, at: int = 0, **more: t.Any) -> Plain:
    mount = "swap" if fs_type == "swap" else f"/m{at}"
    return {"id": f"s{at}", "type": "partition", "size": 400, "fs_type": fs_type, "mount": mount, **more}


def mistakes_of(*schema: Plain) -> list[str]:
    try:
        Planner(list(schema)).plan(HARDWARE)
    except InputError as error:
        return [mistake.place for mistake in error.mistakes]
    return []


def test_all_mistakes_are_told_at_once_with_their_places() -> None:
    schema = [
        space("btrfs", 0, fs_options="-f /dev/sdb", mount_options="device=/dev/sdb,a b"),
        space("ext4", 1, fs_options="-J device=/dev/sdb -L x", fs_label="a\nb"),
        space("btrfs", 2, subvolumes=[{"name": "@", "mount": "/x", "mount_options": "loop"}]),
    ]
    assert sorted(mistakes_of(*schema)) == [
        *["schema[0].fs_options"] * 2,
        *["schema[0].mount_options"] * 2,
        *["schema[1].fs_label"],
        *["schema[1].fs_options"] * 2,
        "schema[2].subvolumes[0].mount_options",
    ]


def test_no_other_disk_can_be_named() -> None:
    """A sample, for each is a whole plan: the tables themselves are tried with all of it."""
    for fs_type, key, text in list(hostile_options(OTHER))[::97]:
        if text.strip() == text and OTHER in text:
            assert mistakes_of(space(fs_type, **{key: text})), (fs_type, key, text)


@pytest.mark.parametrize("key", ["mount", "fs_label", "fs_options", "mount_options", "partition_label"])
def test_texts_that_would_be_another_word_or_line_are_mistakes(key: str) -> None:
    for text in TEXTS:
        # Blanks around a text are left out.
        if text == text.strip():
            assert f"schema[0].{key}" in mistakes_of({**space("ext4"), key: text}), repr(text)


@pytest.mark.parametrize(
    ("fs_type", "key", "text"),
    [
        (fs_type, key, text)
        for table, key in ((MAKE, "fs_options"), (MOUNT, "mount_options"))
        for fs_type, texts in table.items()
        for text in texts
        if text
    ],
)
def test_host_and_controller_take_the_same(fs_type: str, key: str, text: str) -> None:
    plan = Planner([space(fs_type, **{key: text})]).plan(HARDWARE)
    (filesystem,) = parse_static_schema(plan["schema"]).filesystems
    assert filesystem.type == fs_type
    static = {"fs_options": "fs_options", "mount_options": "fstab_options"}[key]
    plan["schema"]["fss"][0][static] += " /dev/sdz" if key == "fs_options" else ",device=/dev/sdz"
    with pytest.raises(SchemaMistakes, match=rf"^fss\[0\]\.{static}: "):
        parse_static_schema(plan["schema"])
