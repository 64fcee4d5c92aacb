# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image of the machine that tests start; TEST_MACHINE_SUITE chooses Debian's release."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def image() -> Path:
    suite = os.environ.get("TEST_MACHINE_SUITE", "bookworm")
    folder = _ROOT / ".build" / "vm" / suite
    if not (folder / "root.img").exists():
        pytest.fail(f"there is no machine to start; as root run: tests/vm/build-image {suite}")
    return folder
