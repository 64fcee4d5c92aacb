# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import stat

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.unlock import why_no_key_file

OTHER = 4242


@pytest.mark.parametrize(
    ("kind", "mode", "size", "owner", "says"),
    [
        (stat.S_IFREG, 0o400, 64, 0, None),
        (stat.S_IFREG, 0o600, 16, os.geteuid(), None),
        (stat.S_IFREG, 0o400, 15, 0, "has 15 bytes"),
        (stat.S_IFREG, 0o440, 64, 0, "has the mode 0440"),
        (stat.S_IFREG, 0o604, 64, 0, "has the mode 0604"),
        (stat.S_IFREG, 0o400, 64, OTHER, "belongs to the user 4242"),
        (stat.S_IFIFO, 0o400, 64, 0, "is not a file"),
        (stat.S_IFCHR, 0o400, 64, 0, "is not a file"),
    ],
)
def test_a_key_file_is_a_file_of_root_that_nobody_else_can_use(kind, mode, size, owner, says):
    found = why_no_key_file(os.stat_result((kind | mode, 1, 1, 1, owner, 0, size, 0, 0, 0)))
    assert found is None if says is None else found is not None and found.startswith(says)
