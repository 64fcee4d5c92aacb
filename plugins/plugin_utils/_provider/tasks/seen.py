# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a candidate was judged by, for the claim to look at again."""

from __future__ import annotations

from ..candidates.index import Index
from ..candidates.write import Candidate
from ..ledger.claim_plan import Seen


def seen_by(index: Index, root: int, candidate: Candidate) -> list[Seen]:
    """Return the candidate's providers, the roots of their trees, and the root that it is a candidate of, as they are in the index."""
    positions = {root} | {index.positions[uuid] for found in candidate["mappings"].values() for uuid in found}
    positions.update(index.root[sorted(positions)].tolist())
    return [_seen_at(index, position) for position in sorted(positions)]


def _seen_at(index: Index, position: int) -> Seen:
    provider = index.providers[position]
    above = tuple(index.uuids[place] for place in index.ancestors(position))
    return Seen(
        provider.key, provider.uuid, provider.name, provider.generation, above, index.traits_of(position), index.aggregates_of(position)
    )
