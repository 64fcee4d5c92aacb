# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a large ledger has no candidate: what its indexes can prove, without loading it.

A small ledger is loaded, and candidates/why.py explains everything. Here providers are counted for each group and constraint, up to
COUNTED, the largest free pieces are looked up, and groups that exclude each other are found by asking for fewer of them. What else would
help is not tried out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..._common.libraries import sa
from ..candidates.exclusion import find_exclusion
from ..candidates.find import SearchOptions
from ..candidates.reasons import Counted, Plain, describe
from ..candidates.requirements import Sql
from ..candidates.why import TRIAL_BUDGET
from ..request.model import Request
from .criteria import Criterion, criteria_of_groups, make_criteria, rows
from .parts import Asker
from .roots import Finder

COUNTED = 100_000
"""Counts end here: more is as good as enough."""


def explain_from_indexes(asker: Asker, request: Request, have: int, *, truncated: bool) -> Plain:
    """Return what candidates.why.explain returns, `relax` and `combination` empty.

    `truncated` says that the search which found `have` candidates did not come to its end.
    """
    connection = asker.connection
    finder = Finder(connection, make_criteria(request, {}, {}, ()), asker.counts)
    groups: dict[str, list[Plain]] = {}
    for suffix, criterion in criteria_of_groups(request):
        groups.setdefault(suffix, []).append({"constraints": list(_counted(finder, criterion))})
    size = int(rows(connection, Sql(f"SELECT COUNT(*) FROM (SELECT 1 FROM resource_providers LIMIT {COUNTED}) counted"))[0][0])

    def impossible(smaller: Request) -> bool:
        if smaller is request and not truncated:
            return True
        answer = asker.find(replace(smaller, limit=1), SearchOptions(order="none", budget=TRIAL_BUDGET))
        return not answer.candidates and not answer.truncated

    return describe(
        Counted(size, groups, list(_largest(connection, request))),
        have,
        excluding=lambda: find_exclusion(request, impossible),
        ending="The ledger is too large to try out what would help.",
    )


def _counted(finder: Finder, criterion: Criterion) -> Iterator[Plain]:
    # Room last: what nobody has is another reason than what others use.
    atoms = sorted(criterion.atoms, key=lambda atom: atom.kind == "room")
    for number, atom in enumerate(atoms):
        left = finder.count_together(atoms[: number + 1], COUNTED)
        yield {"kind": atom.kind, "says": atom.label, "left": left}


def _largest(connection: sa.Connection, request: Request) -> Iterator[Plain]:
    for group in request.groups:
        for name, amount in group.resources:
            found = [row for shares in (0, 1) for row in _most_of(connection, name, shares)]
            if found:
                most, uuid, called = max(found, key=lambda row: row[0])
                free = max(0, most)
                yield {"group": group.suffix, "resource_class": name, "asked": amount, "free": free, "provider": uuid, "name": called}


def _most_of(connection: sa.Connection, name: str, shares: int) -> list[tuple[int, str, str]]:
    """Return the largest amount that one provider, sharing or not, could give; there may be none."""
    text = (
        "SELECT d.most, p.uuid, p.name FROM inventories d JOIN resource_providers p ON p.id = d.provider_id "
        "WHERE d.resource_class = ? AND d.sharing = ? ORDER BY d.resource_class DESC, d.sharing DESC, d.most DESC LIMIT 1"
    )
    return list(rows(connection, Sql(text, (name, shares))))
