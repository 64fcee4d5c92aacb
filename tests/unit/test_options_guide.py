# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guide to options has the tables of the code, and its sizes and messages are those of the code."""

from __future__ import annotations

import re

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import MakeFilesystem
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS, least_size, read_make_options
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options.mounts import mistakes_in
from ansible_collections.bareon.allocator.tests.support.host import options_guide

TEXT = options_guide.PAGE.read_text(encoding="utf-8")
SIZES = dict(re.findall(r"^\| ([a-z0-9, ]+?)(?:, each device)? \| ([0-9]+ \| [0-9]+) \|", TEXT, re.MULTILINE))


def test_the_tables_are_those_of_the_code() -> None:
    assert options_guide.written() == TEXT, "run make guide"


@pytest.mark.parametrize("fs_type", FILESYSTEMS)
def test_the_least_sizes_are_those_of_the_code(fs_type: str) -> None:
    (said,) = (sizes for names, sizes in SIZES.items() if fs_type in names.split(", "))
    assert said == f"{least_size(fs_type)} | {least_size(fs_type, (), 4096)}"


def test_the_messages_are_those_of_the_code() -> None:
    _words, (journal, label) = read_make_options("ext4", "-J device=/dev/sdb -L x")
    (mount,) = mistakes_in("ext4", "noatimes")
    shown = re.findall(r"^schema\[[0-9]\]\.[a-z_]+: (.*?)(?: \.\.\.)?$", TEXT, re.MULTILINE)
    assert [found.startswith(said) for found, said in zip((journal, label, mount), shown, strict=True)] == [True] * 3
    step = MakeFilesystem("/dev/sda2", "ext4", "", "data", ("-m", "1", "-E", "lazy_itable_init=0"))
    assert f"\n{step.says}\n" in TEXT
