# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many jobs keep one state at once: one after the other has it, and what each writes is in it, on every database."""

from __future__ import annotations

import itertools
import subprocess
import sys
import uuid
from functools import partial
from pathlib import Path

from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import states
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger

JOBS, TIMES = 4, 10
KEEPER = Path(__file__).with_name("keeper.py")


def test_what_each_job_writes_is_kept(nodes):
    name = str(uuid.uuid4())
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": {"PYTHONPATH": ":".join(sys.path)}}
    started = [
        subprocess.Popen([sys.executable, str(KEEPER), url, name, str(job), str(TIMES)], **pipes)
        for job, url in zip(range(JOBS), itertools.cycle(nodes))
    ]
    outputs = [process.communicate(timeout=300) for process in started]
    assert [errors for _output, errors in outputs if errors] == []
    with open_ledger(nodes[0]) as ledger:
        kept = ledger.read(partial(states.stored_text, name=name, part="follow"))
    assert sorted(kept.content.split()) == sorted(f"{job}.{time}" for job in range(JOBS) for time in range(TIMES))
    assert kept.generation == JOBS * TIMES


def test_a_text_that_is_longer_than_a_text_of_mariadb(nodes):
    name, large = str(uuid.uuid4()), "ü" * 200_000
    with open_ledger(nodes[0]) as ledger:
        ledger.write(partial(states.take, name=name, holder="a", seconds=60, is_gone=lambda _holder: False))
        ledger.write(partial(states.write_text, name=name, part="follow", content=large, seen=0))
        assert ledger.read(partial(states.stored_text, name=name, part="follow")).content == large
