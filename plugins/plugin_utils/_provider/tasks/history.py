# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_history_info`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from pathlib import Path

from ....module_utils._data.containers import Row, Table
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Text, Whole
from ..._common.libraries import sa
from ..ledger.clock import read_now
from ..ledger.history import Asked, Span, limited, read_history
from ..ledger.open import open_ledger
from ..ledger.plain import Plain
from ..ledger.rehearsal import rehearsed
from ..world.names import canonical_reference
from ..world.times import TimeKind, shown_time
from .provider import timeout_of

_MOST = 1_000_000
_HISTORY = Table(
    "what is asked of the history",
    [
        Row("since", TimeKind()),
        Row("until", TimeKind()),
        Row("project", Text()),
        Row("provider", Text(filled=True)),
        Row("limit", Whole(1, _MOST), required=True),
    ],
    others=True,
)


def run_provider_history_info(arguments: Mapping[str, t.Any], *, rehearsal: Path | None = None) -> Plain:
    """Return past allocations with their begin and end. Raises InputError and Unavailable."""
    mistakes = Mistakes()
    values = _HISTORY.read_nested(arguments, "", mistakes)
    mistakes.check()
    most = values["limit"]

    def read(connection: sa.Connection) -> list[Span]:
        now = read_now(connection)
        since, until = (None if values[key] is None else values[key].before(now) for key in ("since", "until"))
        provider = None if values["provider"] is None else canonical_reference(values["provider"])
        return read_history(connection, Asked(since, until, values["project"], provider), now, most + 1)

    with open_ledger(rehearsed(arguments["database"], rehearsal), dry_run=True, timeout=timeout_of(arguments)) as ledger:
        spans, truncated = limited(ledger.read(read), most)
        return {"changed": False, "history": [_plain(span) for span in spans], "truncated": truncated}


def _plain(span: Span) -> Plain:
    return {
        "consumer": span.consumer,
        "name": span.name or span.consumer,
        "project": span.project,
        "user": span.user,
        "provider": span.provider,
        "provider_name": span.provider_name,
        "resource_class": span.resource_class,
        "amount": span.used,
        "from": shown_time(span.began),
        "until": shown_time(span.ended),
    }
