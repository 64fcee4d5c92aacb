# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of mdadm.conf that go on in the next one."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.mdadm_conf import ArrayLine, read_arrays, with_arrays

OURS, OTHER = "92222c45:11f057c2:ade7f0ab:340320e3", "11111111:22222222:33333333:44444444"
WANTED = ArrayLine("/dev/md/boot", OURS)


@pytest.mark.parametrize(
    "text",
    [
        f"ARRAY /dev/md/boot level=raid1 metadata=1.2 UUID={OURS}\n   devices=/dev/sda1,/dev/sdb1\n",
        f"ARRAY /dev/md/boot # the first one\n\tmetadata=1.2\r\n  uuid={OURS.upper()} # UUID={OTHER}\n",
        f'array "/dev/md/boot"\n "UUID={OURS}"',
    ],
)
def test_an_array_is_read_with_the_lines_that_go_on_with_it(text: str) -> None:
    assert [(array.name, array.uuid) for array in read_arrays(text)] == [("/dev/md/boot", OURS)]
    assert with_arrays(text, [WANTED]).rstrip("\n") == text.rstrip("\n")


def test_a_line_is_replaced_with_those_that_go_on_with_it_and_with_no_others() -> None:
    text = f"DEVICE partitions\n  containers\nARRAY /dev/md/boot\n  UUID={OTHER}\n\n# x\nMAILADDR root\n"
    after = with_arrays(text, [WANTED])
    assert after == f"DEVICE partitions\n  containers\n{WANTED.line}\n\n# x\nMAILADDR root\n"
    assert with_arrays(after, [WANTED]) == after
