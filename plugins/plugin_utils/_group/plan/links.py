# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the links of nodes take, by which the time of a plan is estimated: given, or measured in rounds of earlier plans."""

from __future__ import annotations

import dataclasses
import statistics
import typing as t
from collections.abc import Iterable
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake
from ....module_utils._data.kinds import Size
from ..cluster.model import Cluster
from .journal import moves_to_plain, read_journal
from .kept import KeptFile, ReadableText
from .times import busiest_link

LONG_ROUND = 60.0
"""The seconds of a round that says something of links; in shorter ones most of the time is what begins and awaits the moves."""

MOST_JOURNALS = 100
"""Of how many journals, the newest ones, the rounds are read: the links of years ago are not those of today."""


def with_links(cluster: Cluster, link_rate: t.Any, journals: Iterable[ReadableText]) -> Cluster:
    """Return a cluster with the rate that its links had in rounds of `journals`, else with `link_rate`, a size as text or in MiB a second.

    A journal that cannot be read gives no rate but a note. Raises InputError for what is no rate.
    """
    rate = _given_rate(link_rate)
    measured, notes = list[float](), list[str]()
    for journal in journals:
        try:
            measured += measured_rates(journal)
        except InputError as error:
            notes += [f"the time of plans is estimated without a journal: {mistake.says}" for mistake in error.mistakes]
    # Of an even number the lower one of the two in the middle: an estimate is rather too long.
    found = {"link_rate": statistics.median_low(measured), "link_rounds": len(measured)} if measured else {"link_rate": rate}
    return dataclasses.replace(cluster, link_notes=tuple(notes), **found)


def journals_in(path: Path) -> list[KeptFile]:
    """Return a journal, or of those in a folder the ones that were written last; none where nothing is there yet. Raises InputError."""
    try:
        files = list(path.glob("*.json")) if path.is_dir() else [path] if path.exists() else []
        files = sorted(files, key=lambda file: (-file.lstat().st_mtime_ns, file.name))[:MOST_JOURNALS]
    except (OSError, ValueError) as error:
        raise InputError([Mistake("link_journals", f"cannot read {path}: {error}")]) from None
    return [KeptFile(file, "link_journals") for file in files]


def measured_rates(journal: ReadableText) -> list[float]:
    """Return the MiB a second of the busiest link in each long round of a journal. Raises InputError for what is no journal."""
    plan, progress = read_journal(journal)
    moves = moves_to_plain(plan)
    rates = []
    for taken in progress.rounds:
        steps = [(moves[move], step) for move, step in taken.steps]
        # A disk that goes to another storage may stay on its node, so that it says nothing of links.
        if taken.seconds >= LONG_ROUND and not any("disk" in move["steps"][step] for move, step in steps):
            sent = busiest_link(steps)
            if sent >= 1:
                rates.append(sent / taken.seconds)
    return rates


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
