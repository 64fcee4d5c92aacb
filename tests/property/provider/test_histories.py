# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random histories of several controllers on one file: every task ends as the model says, and no generation goes back.

TEST_HISTORIES says how many tasks there are; `make test-histories` runs many, tests/database some on servers.
"""

from __future__ import annotations

import os

import pytest
from ansible_collections.bareon.allocator.tests.support.provider.histories import History

TASKS = int(os.environ.get("TEST_HISTORIES", "1500"))
SEEDS = 3


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_task_ends_as_the_model_says(tmp_path, seed):
    history = History([f"sqlite:///{tmp_path}/ledger.sqlite"] * 3, seed)
    history.run(TASKS // SEEDS)
    print(f"seed {seed}: {dict(history.ended)}")
    assert min(history.ended[how] for how in ("refused", "changed", "same")) > TASKS // SEEDS // 50
