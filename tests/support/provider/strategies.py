# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small random worlds, and random requests with every feature, for hypothesis."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import provider_uuid
from ansible_collections.bareon.allocator.tests.support.provider.oracle import SHARES
from hypothesis import strategies as st

CLASSES = ["VCPU", "DISK_GB"]
TRAITS = ["CUSTOM_A", "CUSTOM_B"]
AGGREGATES = [provider_uuid(f"aggregate {number}") for number in range(3)]
CONSUMER = provider_uuid("consumer")


def subset(values, most):
    return st.lists(st.sampled_from(values), max_size=most, unique=True)


@st.composite
def inventories(draw):
    found = {}
    for name in draw(st.lists(st.sampled_from(CLASSES), min_size=1, max_size=2, unique=True)):
        found[name] = {
            "total": draw(st.integers(2, 8)),
            "reserved": 0,
            "min_unit": draw(st.sampled_from([1, 1, 1, 2])),
            "max_unit": draw(st.sampled_from([100, 100, 3])),
            "step_size": draw(st.sampled_from([1, 1, 2, 3])),
            "allocation_ratio": draw(st.sampled_from([1.0, 1.0, 1.5])),
        }
    return found


@st.composite
def worlds(draw):
    count = draw(st.integers(2, 6))
    uuids = [provider_uuid(f"provider {number}") for number in range(count)]
    providers = []
    for number, uuid in enumerate(uuids):
        parent = draw(st.sampled_from([*uuids[:number], None])) if number else None
        sharing = [SHARES] if draw(st.integers(0, 4)) == 4 else []
        providers.append(
            {
                "uuid": uuid,
                "name": f"{draw(st.sampled_from('abc'))}{number}",
                "parent": parent,
                "inventories": {} if draw(st.integers(0, 5)) == 5 else draw(inventories()),
                "traits": draw(subset(TRAITS, 2)) + sharing,
                "aggregates": draw(subset(AGGREGATES, 2)),
            }
        )
    held = {}
    for provider in providers:
        amounts = {name: draw(st.integers(1, 3)) for name in provider["inventories"] if draw(st.integers(0, 3)) == 3}
        if amounts:
            held[provider["uuid"]] = amounts
    return {"providers": providers, "allocations": {CONSUMER: held} if held else {}, "custom_traits": TRAITS, "custom_classes": []}


@st.composite
def groups(draw, uuids, resourceless):
    group = {}
    if not resourceless:
        classes = draw(st.lists(st.sampled_from(CLASSES), min_size=1, max_size=2, unique=True))
        group["resources"] = {name: draw(st.sampled_from([1, 2, 3, 4])) for name in classes}
    kind = draw(st.integers(0, 11))
    if kind == 1:
        group["required"] = draw(st.lists(st.sampled_from(TRAITS), min_size=1, max_size=2, unique=True))
    elif kind == 2:
        group["any_of"] = [TRAITS]
    elif kind == 3:
        group["forbidden"] = draw(subset(TRAITS, 1))
    elif kind == 4:
        choices = st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=2, unique=True)
        group["member_of"] = draw(st.lists(choices, min_size=1, max_size=2))
    elif kind == 5:
        group["not_member_of"] = draw(subset(AGGREGATES, 1))
    elif kind == 6:
        group["in_tree"] = draw(st.sampled_from([*uuids, AGGREGATES[0]]))
    return group


@st.composite
def requests(draw, world):
    uuids = [provider["uuid"] for provider in world["providers"]]
    suffixes = ["A", "B", "C"][: draw(st.sampled_from([2, 3, 1, 0]))]
    resourceless = [suffix for suffix in suffixes[1:] if draw(st.integers(0, 4)) == 4]
    asked = {suffix: draw(groups(uuids, suffix in resourceless)) for suffix in suffixes}
    if not suffixes or draw(st.booleans()):
        asked[""] = draw(groups(uuids, False))
    if len(suffixes) > 1 and draw(st.integers(0, 3)) == 3:
        asked[suffixes[1]] = {**asked[suffixes[0]]}
    ask = {"groups": asked}
    subtrees = draw(st.lists(st.lists(st.sampled_from(suffixes), min_size=1, max_size=3, unique=True), max_size=2)) if suffixes else []
    lonely = [suffix for suffix in resourceless if not asked[suffix].get("resources") and all(suffix not in entry for entry in subtrees)]
    if lonely:
        subtrees.append([suffixes[0], *lonely])
    if subtrees:
        ask["same_subtree"] = [_deny_some(draw, entry) for entry in subtrees]
    kind = draw(st.integers(0, 4))
    if kind == 1:
        ask["group_policy"] = "isolate"
    elif kind == 2 and suffixes:
        ask["isolate"] = [draw(st.lists(st.sampled_from(suffixes), min_size=1, max_size=2, unique=True))]
    kind = draw(st.integers(0, 12))
    if kind == 1:
        ask["root_required"] = draw(subset(TRAITS, 1))
    elif kind == 2:
        ask["root_forbidden"] = draw(subset(TRAITS, 1))
    elif kind == 3:
        ask["root_member_of"] = [draw(st.sampled_from([AGGREGATES[:1], AGGREGATES[0], f"!{AGGREGATES[0]}"]))]
    if "" in asked and draw(st.integers(0, 3)) == 0:
        ask["can_split"] = draw(st.lists(st.sampled_from(sorted(asked[""]["resources"])), min_size=1, max_size=2, unique=True))
    return ask


def _deny_some(draw, suffixes):
    return [suffixes[0], *(f"!{suffix}" if draw(st.integers(0, 3)) == 0 else suffix for suffix in suffixes[1:])]


@st.composite
def cases(draw):
    world = draw(worlds())
    return world, draw(requests(world))


@st.composite
def wishing(draw):
    """Any of the other cases, and with whom, without whom, and what is preferred."""
    world, ask = draw(st.one_of(cases(), crowded()))
    kind = draw(st.sampled_from(["with", "not_with", None, None]))
    if kind is not None:
        ask = {**ask, kind: [draw(st.sampled_from([CONSUMER, CONSUMER, provider_uuid("stranger")]))]}
    named = [*({"trait": name} for name in TRAITS), *({"aggregate": name} for name in AGGREGATES[:2])]
    preferred = draw(st.lists(st.sampled_from(named), max_size=3, unique_by=str))
    return world, {**ask, "prefer": [{**entry, "weight": draw(st.integers(1, 3))} for entry in preferred]}


@st.composite
def crowded(draw):
    """One host with devices, and more groups that want them than comfortable."""
    host = provider_uuid("host")
    providers = [{"uuid": host, "name": "host", "parent": None, "inventories": {}, "traits": [], "aggregates": []}]
    fields = {"reserved": 0, "min_unit": 1, "max_unit": 100, "allocation_ratio": 1.0}
    for number in range(draw(st.integers(1, 4))):
        inventory = {**fields, "total": draw(st.integers(1, 5)), "step_size": draw(st.sampled_from([1, 1, 1, 2]))}
        device = {"uuid": provider_uuid(f"device{number}"), "name": f"device{number}", "parent": host, "traits": draw(subset(TRAITS, 1))}
        providers.append({**device, "inventories": {"VCPU": inventory}, "aggregates": []})
    used = {providers[1]["uuid"]: {"VCPU": draw(st.integers(1, 6))}} if draw(st.booleans()) else {}
    world = {"providers": providers, "allocations": {CONSUMER: used} if used else {}, "custom_traits": TRAITS, "custom_classes": []}
    asked = {}
    for suffix in "ABCDE"[: draw(st.integers(3, 5))]:
        asked[suffix] = {"resources": {"VCPU": draw(st.sampled_from([1, 1, 2, 3]))}}
        if draw(st.integers(0, 4)) == 4:
            asked[suffix]["required"] = TRAITS[:1]
    ask = {"groups": asked}
    kind = draw(st.integers(0, 3))
    if kind == 1:
        ask["group_policy"] = "isolate"
    elif kind == 2:
        ask["isolate"] = [draw(st.lists(st.sampled_from(sorted(asked)), min_size=1, max_size=2, unique=True))]
    return world, ask
