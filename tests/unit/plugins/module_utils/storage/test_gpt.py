# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils.storage import gpt


@pytest.mark.parametrize(
    ("disk", "node"),
    [
        ("/dev/sda", "/dev/sda3"),
        ("/dev/nvme0n1", "/dev/nvme0n1p3"),
        ("/dev/mapper/mpatha", "/dev/mapper/mpatha-part3"),
        ("/dev/disk/by-id/wwn-0x50", "/dev/disk/by-id/wwn-0x50-part3"),
    ],
)
def test_nodes_of_partitions(disk, node):
    assert gpt.partition_node(disk, 3) == node


def test_a_type_has_one_flag_and_back():
    assert {gpt.TYPES_BY_FLAG[flag]: flag for flag in gpt.TYPES_BY_FLAG} == gpt.FLAGS_BY_TYPE
