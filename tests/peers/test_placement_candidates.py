# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""OpenStack Placement 16.0 and we answer the same, or a named defect of Placement explains the difference.

Run it with the peer's own virtual environment: `$(tests/peers/placement-venv) -m pytest tests/peers/test_placement_candidates.py`.
A defect explains a difference only if repairing it in this process makes the answers equal; one that cannot be repaired from outside
explains it only where its circumstances are given and a brute-force reading of the semantics agrees with us.
"""

from __future__ import annotations

import collections
import os
import pathlib
import re

import pytest

pytest.importorskip("placement", reason="openstack-placement is in the virtual environment that tests/peers/placement-venv makes")

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.query import parse_query
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.provider.oracle import brute_force
from ansible_collections.bareon.allocator.tests.support.provider.placement_peer import REPAIRS, Placement, candidates_of, repaired
from ansible_collections.bareon.allocator.tests.support.provider.random_requests import Maker

WORLDS = int(os.environ.get("BAREON_PEER_WORLDS", "150"))
REQUESTS_OF_EACH = 6
SEED = int(os.environ.get("BAREON_PEER_SEED", "2026"))

RESOURCELESS = (
    "resourceless group with nothing but a forbidden trait, an aggregate or in_tree: it silently finds nothing or ignores in_tree"
)
ASSOCIATED = "repeated member_of of the group without a suffix: a provider in one aggregate with its root in the other is not found"
HIDDEN = "HTTP 500 for a nested sharing provider whose own tree drops out (KeyError)"


@pytest.fixture(scope="session")
def peer(tmp_path_factory):
    return Placement(tmp_path_factory.mktemp("placement"))


def peers_answer(peer, query):
    """(HTTP status, the set of candidates)."""
    status, body = peer.ask(query)
    if status != 200:
        return status, str(body)
    found = body["allocation_requests"]
    return 200, candidates_of(
        ({uuid: held["resources"] for uuid, held in candidate["allocations"].items()}, candidate["mappings"]) for candidate in found
    )


def our_answer(index, query):
    """As peers_answer; 400 for a mistake in the request."""
    try:
        answer = find_candidates(index, parse_query(query, index.known), SearchOptions(distinct="mappings"))
    except InputError as error:
        return 400, str(error)
    found = candidates_of((candidate["allocations"], candidate["mappings"]) for candidate in answer.candidates)
    assert len(found) == len(answer.candidates)
    return 200, found


def explanation(peer, world, pairs, query, ours):
    """The name of the defect that explains why the peer's answer differs from ours, None if none does."""
    for names in ([name] for name in REPAIRS):
        with repaired(names):
            if peers_answer(peer, query) == ours:
                return names[0]
    with repaired(REPAIRS):
        status, answer = peers_answer(peer, query)
    if (status, answer) == ours:
        return " + ".join(REPAIRS)
    if ours != (200, brute_force(world, as_arguments(pairs))):
        return None
    if status == 500 and nested_sharing(world):
        return HIDDEN
    if status == 200 and sum(key == "member_of" and not value.startswith("!") for key, value in pairs) > 1:
        return ASSOCIATED
    return RESOURCELESS if status == 200 and odd_resourceless(pairs) else None


def nested_sharing(world):
    """Whether a sharing provider is not the root of its tree."""
    return any(provider["parent"] and "MISC_SHARES_VIA_AGGREGATE" in provider["traits"] for provider in world["providers"])


def odd_resourceless(pairs):
    """Whether a group asks for no resources and has a limit other than a required trait."""
    asking = {key.removeprefix("resources") for key, _value in pairs if key.startswith("resources")}
    for key, value in pairs:
        match = re.fullmatch(r"(required|member_of|in_tree)(_.*)?", key)
        if match and (match[2] or "") not in asking and (match[1] != "required" or value.startswith("!")):
            return True
    return False


def as_arguments(pairs):
    """The request as the brute-force reading takes it."""
    groups, whole = collections.defaultdict(dict), {}
    for key, value in pairs:
        match = re.fullmatch(r"(resources|required|member_of|in_tree)(_.*)?", key)
        if match is None:
            _add_whole(whole, key, value)
            continue
        group = groups[match[2] or ""]
        if match[1] == "resources":
            group["resources"] = {name: int(amount) for name, amount in (item.split(":") for item in value.split(","))}
        elif match[1] == "in_tree":
            group["in_tree"] = value
        else:
            field, denied = ("any_of", "forbidden") if match[1] == "required" else ("member_of", "not_member_of")
            names = value.removeprefix("!").removeprefix("in:").split(",")
            group.setdefault(denied if value.startswith("!") else field, []).extend(names if value.startswith("!") else [names])
    return {"groups": dict(groups), **whole}


def _add_whole(whole, key, value):
    if key == "same_subtree":
        whole.setdefault("same_subtree", []).append(value.split(","))
    elif key == "root_required":
        whole["root_forbidden" if value.startswith("!") else "root_required"] = [value.removeprefix("!")]
    else:
        whole[key] = value


def test_random_requests_agree_or_the_peers_defect_has_a_name(peer, record_property):
    defects, compared, nonempty = collections.Counter(), 0, 0
    for number in range(WORLDS):
        maker = Maker(f"{SEED}/{number}")
        world = maker.world()
        index = build_index(parse_world(world))
        peer.load(world)
        for _unused in range(REQUESTS_OF_EACH):
            pairs = maker.request(world)
            query = "&".join(f"{key}={value}" for key, value in pairs)
            ours, theirs = our_answer(index, query), peers_answer(peer, query)
            compared += 1
            nonempty += bool(ours[0] == 200 and ours[1])
            if ours[0] == 400 and theirs[0] == 400:
                continue
            if ours != theirs:
                name = explanation(peer, world, pairs, query, ours)
                assert name is not None, f"unexplained (seed {SEED}/{number}): {query}\nours {ours}\ntheirs {theirs}"
                defects[name] += 1
    print(f"\n{compared} requests compared, {nonempty} with candidates; differences by the peer's defect: {dict(defects)}")
    record_property("compared", compared)
    assert compared >= 500
    assert nonempty >= compared // 5
