# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What C code prints gets nowhere."""

from __future__ import annotations

import os

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.common import highs as module
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.highs import silence


def test_nothing_that_c_prints_gets_out(capfd: pytest.CaptureFixture[str]) -> None:
    with silence():
        with silence():
            os.write(1, b"inner\n")
        os.write(1, b"outer\n")
    os.write(1, b"after\n")
    assert capfd.readouterr().out == "after\n"


def test_a_closed_standard_output_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_descriptor: int) -> int:
        raise OSError("closed")

    monkeypatch.setattr(module.os, "dup", closed)
    reached = False
    with silence():
        reached = True
    assert reached
