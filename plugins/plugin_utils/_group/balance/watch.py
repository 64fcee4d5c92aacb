# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The progress of the search for one group. No plan depends on it.

watch = Watch("group-01", show)        # `show` takes a SearchProgress, about once a second
watch.look(lambda: (moves, score))     # as often as you like
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_EVERY = 1.0
"""Seconds between two looks."""


@dataclass(frozen=True)
class SearchProgress:
    """How many instances the search has moved so far, and the score of the group with them."""

    group: str
    moves: int
    score: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.group}: {self.moves} move{'' if self.moves == 1 else 's'} so far, score {self.score:.4f}, {self.seconds:.0f} s"


class Watch:
    """Reports the progress of a search, once in a while."""

    def __init__(self, group: str, show: Callable[[SearchProgress], None]) -> None:
        self._group, self._show = group, show
        self._begun = self._last = time.monotonic()

    def look(self, where: Callable[[], tuple[int, float]]) -> None:
        """Report where the search is (moves and score), which is only computed if it is time."""
        now = time.monotonic()
        if now - self._last >= _EVERY:
            self._last = now
            self._show(SearchProgress(self._group, *where(), now - self._begun))
