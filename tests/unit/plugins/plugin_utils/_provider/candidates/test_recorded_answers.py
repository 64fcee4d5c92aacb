# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every recorded answer of OpenStack Placement 16.0 (its defects repaired) must be ours, too.

A recorded query has `query`, `status` and `candidates`, or `sha256` of the sorted list. `clean` replaces the answer where the peer has a
quirk, `spec002_step` where seed 002 words step_size otherwise.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.query import parse_query
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world

DATA = Path(__file__).parents[4] / "data" / "provider"
WORLDS = [world for name in ("spec", "dbtests", "gabbi") for world in json.loads((DATA / f"{name}.json").read_text())]
WORLD_KEYS = ("providers", "allocations", "custom_traits", "custom_classes")

SAYS = {
    "no-resources": "at least one group must ask for resources",
    "resourceless-not-in-same-subtree": "must be named in same_subtree",
    "unknown-trait": "there is no trait",
    "unknown-resource-class": "there is no resource class",
    "member-of-uuid": "is not a UUID",
    "member-of-list-without-in": "write in: before it",
    "in-tree-uuid": "in_tree: 'life-is-beautiful' is not a UUID",
    "trait-empty": "has an empty item",
    "limit": "must be a whole number from 1",
    "root-required-conflict": "requires and forbids",
    "root-required-repeated": "may be given only once",
    "unknown-parameter": "is not a parameter of a request",
    "in-not-allowed": "does not support in:",
    "group_policy": "must be none or isolate",
    "same-subtree-unknown-suffix": "but no group has that suffix",
    "same-subtree-empty-suffix": "has an empty item",
    "resources-empty": "is not CLASS:AMOUNT",
}


def test_the_recorded_answers_are_all_here():
    assert sum(len(world["queries"]) for world in WORLDS) == 333


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world["id"])
def test_recorded_answers(world):
    index = build_index(parse_world({key: world[key] for key in WORLD_KEYS}))
    for query in world["queries"]:
        recorded = query.get("spec002_step") or query.get("clean") or query
        if recorded.get("error_kind") == "group-policy-required":
            assert find_candidates(index, parse_query(query["query"], index.known)).candidates
        elif recorded["status"] == 400:
            with pytest.raises(InputError, match=SAYS[recorded["error_kind"]]):
                parse_query(query["query"], index.known)
        else:
            _compare(_answer(index, query["query"]), recorded, query)


def _answer(index, query):
    answer = find_candidates(index, parse_query(query, index.known), SearchOptions(distinct="mappings"))
    assert not answer.truncated
    found = [{key: candidate[key] for key in ("allocations", "mappings")} for candidate in answer.candidates]
    return sorted(found, key=lambda candidate: json.dumps(candidate, sort_keys=True))


def _compare(found, recorded, query):
    if "limit" in query:
        assert len(found) == min(query["limit"], recorded["count"]), query["query"]
        assert all(candidate in recorded["candidates"] for candidate in found), query["query"]
    elif "candidates" in recorded:
        assert found == recorded["candidates"], query["query"]
    else:
        text = json.dumps(found, sort_keys=True, separators=(",", ":"))
        assert len(found) == recorded["count"], query["query"]
        assert hashlib.sha256(text.encode()).hexdigest() == recorded["sha256"], query["query"]
