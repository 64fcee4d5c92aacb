# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the links of nodes take, by which the time of a plan is estimated: given, or measured in rounds of earlier plans."""

from __future__ import annotations

import dataclasses
import statistics
import typing as t
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake
from ....module_utils._data.kinds import Size
from ..cluster.model import Cluster
from .journal import moves_to_plain, read_journal
from .times import busiest_link

LONG_ROUND = 60.0
"""The seconds of a round that says something of links; in shorter ones most of the time is what begins and awaits the moves."""


def with_links(cluster: Cluster, arguments: Mapping[str, t.Any], resolve: Callable[[str], str]) -> Cluster:
    """Return a cluster with the rate of links in `link_journals`, else with `link_rate`; `resolve` makes a path absolute.

    Raises InputError.
    """
    rate, journals = _given_rate(arguments.get("link_rate")), arguments.get("link_journals")
    measured = measured_rates(Path(resolve(str(journals)))) if journals is not None else []
    if measured:
        # Of an even number the lower one of the two in the middle: an estimate is rather too long.
        return dataclasses.replace(cluster, link_rate=statistics.median_low(measured), link_rounds=len(measured))
    return dataclasses.replace(cluster, link_rate=rate)


def measured_rates(path: Path) -> list[float]:
    """Return the MiB a second of the busiest link in each long round of a journal, or of all in a folder; none where nothing is there yet.

    Raises InputError for a file that is no journal.
    """
    try:
        files = sorted(path.glob("*.json")) if path.is_dir() else [path] if path.exists() else []
    except (OSError, ValueError) as error:
        raise InputError([Mistake("link_journals", f"cannot read {path}: {error}")]) from None
    return [rate for file in files for rate in _rates_of(file)]


def _rates_of(file: Path) -> Iterator[float]:
    plan, progress = read_journal(file, "link_journals")
    moves = moves_to_plain(plan)
    for taken in progress.rounds:
        steps = [(moves[move], step) for move, step in taken.steps]
        # A disk that goes to another storage may stay on its node, so that it says nothing of links.
        if taken.seconds >= LONG_ROUND and not any("disk" in move["steps"][step] for move, step in steps):
            sent = busiest_link(steps)
            if sent >= 1:
                yield sent / taken.seconds


def _given_rate(rate: t.Any) -> float | None:
    """Return MiB a second from a size. Raises InputError."""
    if rate is None:
        return None
    try:
        per_second = float(Size(float).read(rate))
    except ValueError as error:
        raise InputError([Mistake("link_rate", str(error))]) from None
    if per_second <= 0:
        raise InputError([Mistake("link_rate", f"is {rate}; must be more than 0, such as 110 MiB for 1 Gbit/s")])
    return per_second
