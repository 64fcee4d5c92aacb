# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs that make file systems take what the tables of allowed words take."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS, read_make_options
from ansible_collections.bareon.allocator.tests.support.host.usual_options import MAKE

UUIDS = {"vfat": "1A2B-3C4D"}
UUID = "11111111-2222-4333-8444-555555555555"
SIZE = 1200 * 1024**2


@pytest.mark.parametrize(("fs_type", "text"), [(fs_type, text) for fs_type, texts in MAKE.items() for text in texts])
def test_a_program_takes_what_is_allowed(fs_type: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "device"
    with file.open("wb") as image:
        image.truncate(SIZE)
    words, mistakes = read_make_options(fs_type, text)
    assert mistakes == ()
    command = FILESYSTEMS[fs_type].make_command(str(file), UUIDS.get(fs_type, UUID), "label", words)
    made = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert made.returncode == 0, made.stdout + made.stderr
    shown = subprocess.run(["blkid", "--probe", "--output", "export", str(file)], capture_output=True, text=True, check=True).stdout
    assert f"TYPE={fs_type}" in shown
