# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Seed devices of Btrfs: another file system, with another UUID on another disk, has most of its data there."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.bareon.allocator.tests.loop.layout_runs import (
    Mounted,
    apply,
    attempt,
    digest,
    merged,
    new_disk,
    refuse,
    run,
    schema,
)
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

SIZE = 300
NEW = {"name": "new", "size": 290, "fs_type": "ext4", "mount": "none"}
DATA = {"name": "data", "size": 290, "fs_type": "btrfs", "mount": "none"}


@pytest.fixture
def seeded(loops: Loops, tmp_path: pathlib.Path) -> tuple[str, str]:
    """A seed, and a disk of a layout with the partition that was added to it; nothing is mounted."""
    seed, added = new_disk(loops, SIZE), new_disk(loops, SIZE)
    apply({"schema": schema(added, DATA)})
    run("mkfs.btrfs", "-q", "-f", seed)
    with Mounted(seed, tmp_path / "mounted") as mounted:
        (mounted / "file").write_bytes(b"data")
    run("btrfstune", "-S", "1", seed)
    with Mounted(seed, tmp_path / "mounted") as mounted:
        run("btrfs", "device", "add", "-f", f"{added}p1", str(mounted))
        run("mount", "-o", "remount,rw", str(mounted))
    return seed, added


def test_a_seed_goes_only_with_the_file_systems_that_need_it(seeded: tuple[str, str], tmp_path: pathlib.Path) -> None:
    seed, added = seeded
    before = digest(seed), digest(added)
    kept = merged(schema(seed, NEW), schema(added, DATA))
    for check in (True, False):
        assert f"{seed} as its seed is also on {added}p1" in refuse({"schema": kept, "wipe": [seed]}, check=check)
    assert (digest(seed), digest(added)) == before
    with Mounted(f"{added}p1", tmp_path / "mounted") as mounted:
        assert (mounted / "file").read_bytes() == b"data"
    other = merged(schema(seed, NEW), schema(added, NEW))
    assert attempt({"schema": other, "wipe": [seed, added]}, check=True)["changed"]


def test_a_seed_that_nothing_here_needs_goes_where_wipe_names_it(seeded: tuple[str, str]) -> None:
    seed, added = seeded
    run("wipefs", "--all", "--quiet", f"{added}p1")
    assert apply({"schema": schema(seed, NEW), "wipe": [seed]})["changed"]
