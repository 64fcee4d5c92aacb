# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Release what consumers have whose lease has ended, and nobody has needed since."""

from __future__ import annotations

from collections.abc import Collection

from ..._common.libraries import sa
from .claim_plan import released
from .claims import guard_consumers, write_changes
from .clock import read_now
from .expired import read_expired
from .guards import guard_providers
from .stored import ConsumerState, Holding


def reap(connection: sa.Connection) -> list[ConsumerState]:
    """Release all consumers whose lease has ended; return what they had. Raises LostRace."""
    now = read_now(connection)
    return release_expired(connection, read_expired(connection, now), now)


def release_expired(connection: sa.Connection, expired: Collection[Holding], now: int) -> list[ConsumerState]:
    """Release consumers that have expired `now`; return what they had. Raises LostRace."""
    ended = sorted(map(released, expired), key=lambda change: change.wanted.uuid)
    consumers = guard_consumers(connection, ended, now)
    guard_providers(connection, dict.fromkeys(number for change in ended for number, _name in change.touched))
    write_changes(connection, ended, consumers, now)
    return [ConsumerState(holding.consumer, holding.by_provider) for holding in expired]
