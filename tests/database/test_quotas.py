# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many processes claim for one project at once, each from a provider of its own: they get exactly its quota, on every database."""

from __future__ import annotations

import itertools
import subprocess
import sys
import uuid
from functools import partial
from pathlib import Path

from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.clock import read_now
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.quotas import put_quota, read_used

QUOTA = 100
WRITERS = 6
CLAIMER = Path(__file__).with_name("claimer.py")


def test_exactly_the_quota_is_given(nodes):
    run = str(uuid.uuid4())
    hosts = [f"{run} {number}" for number in range(WRITERS)]
    with open_ledger(nodes[0]) as ledger:
        changes = parse_changes([{"name": host, "inventories": {"VCPU": QUOTA}} for host in hosts], "providers[{}]")
        ledger.write(partial(put_providers, changes=changes))
        ledger.write(partial(put_quota, project=run, limits={"VCPU": QUOTA}))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": {"PYTHONPATH": ":".join(sys.path)}}
        started = [
            subprocess.Popen([sys.executable, str(CLAIMER), url, host, run], **pipes) for host, url in zip(hosts, itertools.cycle(nodes))
        ]
        told = [process.communicate(timeout=300) for process in started]
        assert [errors for _output, errors in told if errors] == []
        given = [line for output, _errors in told for line in output.splitlines() if line != "full"]
        assert len(given) == QUOTA
        assert ledger.read(lambda connection: read_used(connection, run, read_now(connection))) == {"VCPU": QUOTA}
        assert [finding for finding in ledger.read(audit) if run in finding.says] == []
