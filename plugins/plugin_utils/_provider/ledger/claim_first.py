# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claim the first of several candidates that can be had: another claim may have been quicker since they were found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ....module_utils._data.errors import NoSolution
from .at_once import make_claims
from .claim_plan import Claim, Claimed, ClaimRefused, Outdated
from .claims import read_own_holding
from .open import Ledger
from .read import read_numbers


@dataclass(frozen=True)
class Chosen:
    """Which of the candidates was claimed, by its place in the list, and what that changed; what refused the ones before."""

    index: int
    claimed: Claimed
    refused: Sequence[str]


class NoneLeft(NoSolution):
    """None of the candidates can be claimed now; looking for candidates again may find others."""


def claim_first(ledger: Ledger, candidates: Iterable[Claim]) -> Chosen:
    """Claim the best of several ways to give one consumer what it asks for; each is tried in a transaction of its own, and only then made.

    Raises NoneLeft with every refusal when none can be had, GenerationMoved when the consumer is not as the caller saw it.
    """
    refused: list[str] = []
    conflicts = []
    for index, claim in enumerate(candidates):
        try:
            claimed = make_claims(ledger, [claim])
        except (ClaimRefused, Outdated) as error:
            refused.append(str(error))
            conflicts.append({"candidate": index, **error.conflict})
        else:
            return Chosen(index, claimed, refused)
    reasons = "; ".join(f"candidate {index}: {says}" for index, says in enumerate(refused[:3]))
    more = f" (and {len(refused) - 3} more)" if len(refused) > 3 else ""
    raise NoneLeft(f"none of {len(refused)} candidates can be claimed now: {reasons}{more}", {"candidates": conflicts})


def claim_held_or_first(ledger: Ledger, candidates: Sequence[Claim]) -> Chosen:
    """Do the same, but a consumer that has one of the candidates already keeps it."""
    held = _held_already(ledger, candidates)
    if held is None:
        return claim_first(ledger, candidates)
    return replace(claim_first(ledger, [candidates[held]]), index=held)


def _held_already(ledger: Ledger, candidates: Sequence[Claim]) -> int | None:
    holding = ledger.read(lambda connection: read_own_holding(connection, candidates[0]))
    if holding is None:
        return None
    references = {reference for claim in candidates for reference in claim.amounts}
    numbers = ledger.read(lambda connection: read_numbers(connection, references))
    for index, claim in enumerate(candidates):
        if claim.amounts.keys() <= numbers.keys():
            wanted = {(numbers[reference][0], name): amount for reference, parts in claim.amounts.items() for name, amount in parts.items()}
            if wanted == holding.amounts:
                return index
    return None
