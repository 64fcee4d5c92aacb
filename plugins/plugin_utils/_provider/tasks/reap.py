# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_reap`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from pathlib import Path

from ..ledger.open import Ledger
from ..ledger.plain import Plain, plain_ended
from ..ledger.reap import reap
from .provider import kept_ledger
from .recovery import run_recoverably


def run_provider_reap(arguments: Mapping[str, t.Any], *, dry_run: bool, rehearsal: Path | None = None) -> Plain:
    """Release the consumers whose lease has ended. Raises InputError, NoSolution and Unavailable."""
    with kept_ledger(arguments, dry_run=dry_run, rehearsal=rehearsal) as ledger:
        return run_recoverably(ledger, arguments, _reap)


def _reap(ledger: Ledger) -> Plain:
    ended = plain_ended(ledger.write(reap))
    shown = {each["name"]: {key: value for key, value in each.items() if key != "name"} for each in ended}
    return {"changed": bool(ended), "ended": ended, "diff": {"before": shown, "after": {}}}
