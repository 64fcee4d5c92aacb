# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_reconcile`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from ....module_utils._data.containers import Also, ListOf, Row, Table
from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.kinds import Anything
from ..ledger.open import Ledger
from ..ledger.parse import OWNER, TYPE
from ..ledger.plain import Plain, plain_ended, shown_ended
from ..ledger.reconcile import Existing, Scope, reconcile
from ..world.parse import CONSUMER, REFERENCE
from ..world.times import TimeKind
from .provider import kept_ledger
from .recovery import run_recoverably

_EXISTING = Table("a consumer", [Row("consumer", CONSUMER, required=True), Row("project", OWNER)], others=True, make=Existing)
_ASKED = Table(
    "what is compared",
    [
        Row("existing", ListOf(Also(_EXISTING, lambda value: {"consumer": value} if isinstance(value, str) else value, Anything({})))),
        Row("project", OWNER),
        Row("user", OWNER),
        Row("consumer_type", TYPE),
        Row("providers", ListOf(REFERENCE, "UUIDs or names of providers")),
        Row("older_than", TimeKind()),
    ],
    others=True,
)


def run_provider_reconcile(arguments: Mapping[str, t.Any], *, dry_run: bool, rehearsal: Path | None = None) -> Plain:
    """Compare what consumers have with what exists, and release what nothing stands for any more if that is wanted.

    Raises InputError, NoSolution and Unavailable.
    """
    mistakes = Mistakes()
    asked = _ASKED.read_nested(arguments, "", mistakes)
    if arguments["release"] and not asked["existing"]:
        says = "is empty, so that everything would be released; state: absent of provider_allocation releases what it names"
        mistakes.add("existing", says)
    mistakes.check()
    scope = Scope(asked["project"], asked["user"], asked["consumer_type"], asked["providers"], asked["older_than"])
    work = partial(_compare, existing=asked["existing"], scope=scope, release=arguments["release"])
    with kept_ledger(arguments, dry_run=dry_run, rehearsal=rehearsal) as ledger:
        return run_recoverably(ledger, arguments, work)


def _compare(ledger: Ledger, existing: Sequence[Existing], scope: Scope, *, release: bool) -> Plain:
    work = partial(reconcile, existing=existing, scope=scope, release=release)
    found = ledger.write(work) if release else ledger.read(work)
    if found.unknown:
        raise InputError(Mistake("providers", f"there is no provider {name}") for name in found.unknown)
    stale = plain_ended(found.stale)
    unclaimed = [{"consumer": one.consumer, "project": one.project} for one in found.unclaimed]
    diff = {"before": shown_ended(found.stale), "after": {}} if release else {"before": {}, "after": {}}
    return {"changed": release and bool(stale), "stale": stale, "unclaimed": unclaimed, "diff": diff}
