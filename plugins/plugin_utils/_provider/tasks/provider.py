# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ..._common.libraries import sa
from ..ledger.changes import ProviderChange, ProvidersChanged
from ..ledger.deadline import LONGEST_TIMEOUT
from ..ledger.open import Ledger, ledger_of, open_ledger
from ..ledger.own_names import Names, plain_names, put_names, remove_names
from ..ledger.parse import parse_changes, parse_names
from ..ledger.plain import Plain, plain_states, plain_stored, plain_world, shown_provider, shown_states
from ..ledger.providers import put_providers, remove_providers
from ..ledger.rehearsal import rehearse
from ..ledger.retry import PATIENT, RetryPolicy
from ..ledger.worlds import read_aggregate_names, read_world
from ..world.parse import parse_world
from .recovery import run_recoverably

_OWN = ("uuid", "name", "parent", "inventories", "traits", "aggregates", "generation", "add", "remove", "drained", "replaces")


def run_provider(arguments: Mapping[str, t.Any], *, dry_run: bool, rehearsal: Path | None = None) -> Plain:
    """Make one provider or a list of them what they are declared to be, or remove them.

    Raises InputError, NoSolution, Unavailable.
    """
    several = arguments["providers"] is not None
    own = {key: arguments[key] for key in _OWN if arguments.get(key) is not None}
    entries = arguments["providers"] if several else [own] if own else []
    mistakes = Mistakes()
    names = parse_names(arguments, mistakes)
    changes = parse_changes(entries, "providers[{}]" if several else "", mistakes)
    present = arguments["state"] == "present"
    if present and arguments.get("tree"):
        raise InputError([Mistake("tree", "only applies to state absent")])
    if not present and any(change.replaces for change in changes):
        places = [change.place_of("replaces") for change in changes if change.replaces]
        raise InputError(Mistake(place, "only applies to state present") for place in places)
    wanted = partial(_change, changes=changes, names=names, present=present, trees=bool(arguments.get("tree")))
    with task_ledger(arguments, dry_run=dry_run, rehearsal=rehearsal) as ledger:
        return {**run_recoverably(ledger, arguments, wanted), **inline_world(arguments, ledger)}


def _change(ledger: Ledger, changes: Sequence[ProviderChange], names: Names, *, present: bool, trees: bool) -> Plain:
    def work(connection: sa.Connection) -> tuple[ProvidersChanged, Names, Mapping[str, str]]:
        # Names go after the providers that use them, and come before.
        added = put_names(connection, names) if present else Names()
        done = put_providers(connection, changes) if present else remove_providers(connection, changes, trees=trees)
        changed = added if present else remove_names(connection, names)
        return done, changed, read_aggregate_names(connection)

    done, changed, called = ledger.write(work)
    diff: dict[str, Plain] = {
        side: {provider.name: shown_provider(provider, called) for provider in found.values()}
        for side, found in (("before", done.before), ("after", done.after))
    }
    if done.moved.before:
        diff["before"]["consumers"] = shown_states(done.moved.before, done.moved.names_before)
        diff["after"]["consumers"] = shown_states(done.moved.after, done.moved.names_after)
    if changed:
        diff["after" if present else "before"].update(plain_names(changed))
    return {
        "changed": done.changed or bool(changed),
        "providers": [plain_stored(provider, called) for provider in done.after.values()],
        "moved": plain_states(done.moved.after),
        "diff": diff,
        "warnings": list(done.warnings),
    }


@contextmanager
def task_ledger(
    arguments: Mapping[str, t.Any], *, dry_run: bool, policy: RetryPolicy = PATIENT, rehearsal: Path | None = None
) -> Iterator[Ledger]:
    """Open the ledger that a task names: a database, or one in memory that holds the world it gives inline.

    With a folder as `rehearsal` a dry run is made in a copy of the database there, for later ones to see.
    """
    opened: AbstractContextManager[Ledger]
    if arguments["world"] is not None:
        opened = ledger_of(parse_world(arguments["world"]), policy)
    else:
        opened = kept_ledger(arguments, dry_run=dry_run, policy=policy, rehearsal=rehearsal)
    with opened as ledger:
        yield ledger


@contextmanager
def kept_ledger(
    arguments: Mapping[str, t.Any], *, dry_run: bool, policy: RetryPolicy = PATIENT, rehearsal: Path | None = None
) -> Iterator[Ledger]:
    """Open the database that a task names."""
    if dry_run and rehearsal is not None:
        with open_ledger(rehearse(arguments["database"], rehearsal, timeout_of(arguments)), policy) as ledger:
            yield ledger
    else:
        with open_ledger(arguments["database"], policy, dry_run=dry_run, timeout=timeout_of(arguments)) as ledger:
            yield ledger


def timeout_of(arguments: Mapping[str, t.Any]) -> float:
    """Return for how many seconds a task may wait for its database. Raises InputError."""
    seconds = arguments["timeout"]
    if not (isinstance(seconds, (int, float)) and 0 < seconds <= LONGEST_TIMEOUT):
        raise InputError([Mistake("timeout", f"must be a number of seconds above 0, at most {LONGEST_TIMEOUT}, not {seconds!r}")])
    return float(seconds)


def inline_world(arguments: Mapping[str, t.Any], ledger: Ledger) -> Plain:
    """Return what has become of a world given inline, as `world`; nothing for a database."""
    return {} if arguments["world"] is None else {"world": plain_world(ledger.read(read_world))}
