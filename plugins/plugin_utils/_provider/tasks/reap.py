# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_reap`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ....module_utils._data.containers import read_all
from ..._common.libraries import sa
from ..ledger.clock import read_now
from ..ledger.history import prune_history
from ..ledger.open import Ledger
from ..ledger.plain import Plain, plain_ended, shown_ended
from ..ledger.reap import reap
from ..ledger.stored import ConsumerState
from ..world.times import Time, TimeKind
from .provider import kept_ledger
from .recovery import run_recoverably


def run_provider_reap(arguments: Mapping[str, t.Any], *, dry_run: bool, rehearsal: Path | None = None) -> Plain:
    """Release the consumers whose lease has ended. Raises InputError, NoSolution and Unavailable."""
    keep = None if arguments.get("keep_history") is None else read_all(TimeKind(), arguments["keep_history"], "keep_history")
    with kept_ledger(arguments, dry_run=dry_run, rehearsal=rehearsal) as ledger:
        return run_recoverably(ledger, arguments, partial(_reap, keep=keep))


def _reap(ledger: Ledger, keep: Time | None) -> Plain:
    def work(connection: sa.Connection) -> tuple[list[ConsumerState], int]:
        found = reap(connection)
        before = None if keep is None else keep.before(read_now(connection))
        return found, 0 if before is None else prune_history(connection, before)

    states, pruned = ledger.write(work)
    ended = plain_ended(states)
    return {"changed": bool(ended or pruned), "ended": ended, "pruned": pruned, "diff": {"before": shown_ended(states), "after": {}}}
