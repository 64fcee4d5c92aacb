# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several jobs make or update the tables of one database at once, on Galera through different nodes, where no lock holds for all."""

from __future__ import annotations

import itertools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.tests.support.provider.old_ledgers import check_migrated, fill_named, make_ledger

JOBS = 6


def findings(url):
    with open_ledger(url) as ledger:
        return ledger.read(audit)


def open_at_once(urls):
    """Open a ledger in several processes, for Alembic has one migration in each, and return what an audit of each finds."""
    with ProcessPoolExecutor(JOBS, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(findings, itertools.islice(itertools.cycle(urls), JOBS)))


@pytest.mark.parametrize("time", range(3))
def test_jobs_that_make_the_tables_at_once(empty, time):
    assert open_at_once(empty) == [[]] * JOBS


def test_jobs_that_update_the_tables_of_an_earlier_release_at_once(empty, tmp_path):
    engine = make_ledger(empty[0], "named", tmp_path / "migrations")
    fill_named(engine)
    engine.dispose()
    assert open_at_once(empty) == [[]] * JOBS

    check_migrated(empty[0])
