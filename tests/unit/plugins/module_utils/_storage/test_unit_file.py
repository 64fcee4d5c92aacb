# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.unit_file import unit_text


def test_specifiers_are_none():
    lines = ["[Mount]", "Where=/srv/100% of\\it", "Options=x=%i", "", "[Install]", ""]
    assert unit_text(lines) == "[Mount]\nWhere=/srv/100%% of\\it\nOptions=x=%%i\n\n[Install]\n"


@pytest.mark.parametrize("line", ["Where=/a\nExecStart=/b", "Where=/a\\", "Options=a\rb", "[Mount]\0", "[Mount] x", "Where", "Where=/\x7f"])
def test_what_would_be_more_than_a_line_is_refused(line):
    with pytest.raises(ValueError, match="cannot be a line of a unit"):
        unit_text(["[Mount]", line])
