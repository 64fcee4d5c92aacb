# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The comparison with htools names the reasons that its tests let pass, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.bareon.allocator.tests.support.group.htools_differences import PAGE, Difference, written

PEERS = Path(__file__).resolve().parents[1] / "peers"


def test_the_page_has_the_reasons_of_the_tests() -> None:
    assert written() == PAGE.read_text(encoding="utf-8"), "run make guide"


def test_each_reason_is_one_that_a_test_lets_pass() -> None:
    used = {name for path in PEERS.glob("test_ganeti_*.py") for name in re.findall(r"Difference\.([A-Z0-9_]+)", path.read_text("utf-8"))}
    assert used == set(Difference.__members__)
