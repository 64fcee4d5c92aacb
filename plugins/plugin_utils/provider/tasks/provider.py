# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from ..ledger.open import Ledger, ledger_of, open_ledger
from ..ledger.parse import parse_changes
from ..ledger.plain import Plain, plain_stored, plain_world
from ..ledger.providers import put_providers, remove_providers
from ..ledger.read import read_world
from ..ledger.retry import PATIENT, RetryPolicy
from ..world.parse import parse_world

_OWN = ("uuid", "name", "parent", "inventories", "traits", "aggregates", "generation")


def run_provider(arguments: Mapping[str, t.Any], *, dry_run: bool) -> Plain:
    """Make one provider or a list of them what they are declared to be, or remove them.

    Raises InputError, NoSolution, Unavailable.
    """
    several = arguments["providers"] is not None
    entries = arguments["providers"] if several else [{key: arguments[key] for key in _OWN if arguments[key] is not None}]
    changes = parse_changes(entries, "providers[{}]" if several else "")
    work = put_providers if arguments["state"] == "present" else remove_providers
    with task_ledger(arguments, dry_run=dry_run) as ledger:
        done = ledger.write(partial(work, changes=changes))
        result: Plain = {
            "changed": done.changed,
            "providers": [plain_stored(provider) for provider in done.after.values()],
            "diff": {
                side: {p.name: plain_stored(p) for p in found.values()} for side, found in (("before", done.before), ("after", done.after))
            },
            "warnings": list(done.warnings),
        }
        return {**result, **inline_world(arguments, ledger)}


@contextmanager
def task_ledger(arguments: Mapping[str, t.Any], *, dry_run: bool, policy: RetryPolicy = PATIENT) -> Iterator[Ledger]:
    """Open the ledger that a task names: a database, or one in memory that holds the world it gives inline."""
    if arguments["world"] is not None:
        with ledger_of(parse_world(arguments["world"]), policy) as ledger:
            yield ledger
    else:
        with open_ledger(arguments["database"], policy, dry_run=dry_run) as ledger:
            yield ledger


def inline_world(arguments: Mapping[str, t.Any], ledger: Ledger) -> Plain:
    """Return what has become of a world given inline, as `world`; nothing for a database."""
    return {} if arguments["world"] is None else {"world": plain_world(ledger.read(read_world))}
