# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One process that registers the same hosts as others do at the same time, one task after the other.

Usage: registrar.py DATABASE RUN TASKS. Prints `ready`, waits for a line, and then prints for each task whether it has changed something;
anything that goes wrong ends it with an error.
"""

from __future__ import annotations

import sys
from functools import partial

from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers


def tree(run, number):
    """Return a rack that all hosts are below, and a host with what belongs to it, of names that are new in this run."""
    names = {"traits": [f"CUSTOM_{run}_{number}"], "aggregates": [f"{run} {number}"]}
    return [
        {"name": f"{run}-rack"},
        {"name": f"{run}-{number}", "parent": f"{run}-rack", "inventories": {"VCPU": 4, f"CUSTOM_{run}_{number}": 2}, **names},
        {"name": f"{run}-{number}-numa", "parent": f"{run}-{number}", "inventories": {"MEMORY_MB": 1024}},
    ]


def main(database, run, tasks):
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(tasks)):
        changes = parse_changes(tree(run, number), "providers[{}]")
        with open_ledger(database) as ledger:
            print(ledger.write(partial(put_providers, changes=changes)).changed, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
