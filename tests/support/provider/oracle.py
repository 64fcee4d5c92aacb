# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A second, slow reading of the semantics of allocation candidates, which shares no code with the collection.

It takes the world and the arguments as plain data, tries every assignment of providers, and keeps those that break no rule.
"""

from __future__ import annotations

from itertools import combinations, product

SHARES = "MISC_SHARES_VIA_AGGREGATE"


class World:
    """The plain world with what the rules ask of it."""

    def __init__(self, data):
        self.by_uuid = {provider["uuid"]: provider for provider in data["providers"]}
        self.allocations = data["allocations"]
        self.used = {}
        for allocations in data["allocations"].values():
            for uuid, amounts in allocations.items():
                for name, amount in amounts.items():
                    self.used[uuid, name] = self.used.get((uuid, name), 0) + amount
        self.order = {uuid: place for place, uuid in enumerate(self._walk(None))}

    def _walk(self, parent):
        for provider in sorted((p for p in self.by_uuid.values() if p["parent"] == parent), key=lambda p: (p["name"], p["uuid"])):
            yield provider["uuid"]
            yield from self._walk(provider["uuid"])

    def ancestors_or_self(self, uuid):
        found = []
        while uuid is not None:
            found.append(uuid)
            uuid = self.by_uuid[uuid]["parent"]
        return found

    def root(self, uuid):
        return self.ancestors_or_self(uuid)[-1]

    def roots_of(self, consumer):
        """Where a consumer is: of shared providers it says nothing, unless it has nothing else."""
        held = self.allocations.get(consumer, {})
        own = {uuid for uuid in held if SHARES not in self.traits(uuid)} or set(held)
        return {self.root(uuid) for uuid in own}

    def traits(self, uuid):
        return set(self.by_uuid[uuid]["traits"])

    def aggregates(self, uuid):
        return set(self.by_uuid[uuid]["aggregates"])

    def usable(self, anchor):
        """The tree's members in order, then the sharing providers of other trees that it may use."""
        own = [uuid for uuid in self.order if self.root(uuid) == anchor]
        foreign = [
            uuid
            for uuid in self.order
            if SHARES in self.traits(uuid)
            and self.root(uuid) != anchor
            and any(self.aggregates(uuid) & self.aggregates(member) for member in own)
        ]
        return own + foreign

    def inventory(self, uuid, name):
        return self.by_uuid[uuid]["inventories"].get(name)

    def free(self, uuid, name):
        inventory = self.inventory(uuid, name)
        return int((inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"]) - self.used.get((uuid, name), 0)

    def allows(self, uuid, name, amount):
        """Whether one consumer may be given this amount now."""
        inventory = self.inventory(uuid, name)
        if inventory is None or not inventory["min_unit"] <= amount <= min(inventory["max_unit"], self.free(uuid, name)):
            return False
        return amount == inventory["min_unit"] or amount % inventory["step_size"] == 0

    def one_subtree(self, uuids):
        return any(all(top in self.ancestors_or_self(uuid) for uuid in uuids) for top in uuids)


def brute_force(data, ask):
    """Return the set of (allocations, mappings), each a frozenset of tuples."""
    world = World(data)
    found = set()
    for anchor in [uuid for uuid in world.order if world.by_uuid[uuid]["parent"] is None]:
        if _root_fits(world, anchor, ask):
            found.update(_at_anchor(world, anchor, ask))
    return found


def weights(data, ask):
    """Return the most that candidates with the same (allocations, mappings) weigh by what they meet of `prefer`."""
    world = World(data)
    found = {}
    for anchor in [uuid for uuid in world.order if world.by_uuid[uuid]["parent"] is None]:
        for allocations, mappings in _at_anchor(world, anchor, ask) if _root_fits(world, anchor, ask) else ():
            chosen = {anchor, *(uuid for _suffix, uuid in mappings)}
            weight = sum(entry["weight"] for entry in ask["prefer"] if any(_meets(world, uuid, entry) for uuid in chosen))
            found[allocations, mappings] = max(weight, found.get((allocations, mappings), 0))
    return found


def _meets(world, uuid, entry):
    return entry.get("trait") in world.traits(uuid) or entry.get("aggregate") in world.aggregates(uuid)


def _root_fits(world, anchor, ask):
    traits, aggregates = world.traits(anchor), world.aggregates(anchor)
    if not set(ask.get("root_required", ())) <= traits or set(ask.get("root_forbidden", ())) & traits:
        return False
    if any(anchor not in world.roots_of(consumer) for consumer in ask.get("with", ())):
        return False
    if any(anchor in world.roots_of(consumer) for consumer in ask.get("not_with", ())):
        return False
    for entry in ask.get("root_member_of", ()):
        if isinstance(entry, str) and entry.startswith("!"):
            if entry[1:] in aggregates:
                return False
        elif not aggregates & set(_as_list(entry)):
            return False
    return True


def _at_anchor(world, anchor, ask):
    usable = world.usable(anchor)
    splits = set(ask.get("can_split", ()))
    slots = []
    for suffix, group in ask["groups"].items():
        resources = group.get("resources", {})
        if suffix:
            suiting = [uuid for uuid in usable if _suits(world, group, uuid, resources)]
            slots.append([(suffix, tuple((uuid, name, amount) for name, amount in resources.items()), uuid) for uuid in suiting])
            continue
        for name, amount in resources.items():
            eligible = [uuid for uuid in usable if _suits_unsuffixed(world, group, uuid, anchor) and world.inventory(uuid, name)]
            if name in splits:
                subsets = (
                    subset for size in range(1, len(eligible) + 1) for subset in combinations(sorted(eligible, key=world.order.get), size)
                )
                slots.append([(suffix, (name, amount, subset), None) for subset in subsets])
            else:
                slots.append([(suffix, ((uuid, name, amount),), None) for uuid in eligible if world.allows(uuid, name, amount)])
    for choice in product(*slots):
        candidate = _complete(world, ask, choice)
        if candidate is not None:
            yield candidate


def _complete(world, ask, choice):
    whole = [entry for entry in choice if not _is_split(entry)]
    loads = {}
    for _suffix, parts, _uuid in whole:
        for uuid, name, amount in parts:
            loads[uuid, name] = loads.get((uuid, name), 0) + amount
    providers = {}
    for suffix, parts, uuid in whole:
        providers.setdefault(suffix, set()).update([uuid] if uuid else [part[0] for part in parts])
    for suffix, (name, amount, subset), _uuid in (entry for entry in choice if _is_split(entry)):
        parts = _canonical(world, name, amount, subset, loads)
        if parts is None:
            return None
        for uuid, part in zip(subset, parts, strict=True):
            loads[uuid, name] = loads.get((uuid, name), 0) + part
        providers.setdefault(suffix, set()).update(subset)
    if not all(world.allows(uuid, name, amount) for (uuid, name), amount in loads.items()):
        return None
    if not _between(world, ask, providers):
        return None
    mappings = frozenset((suffix, uuid) for suffix, uuids in providers.items() for uuid in uuids)
    return frozenset((uuid, name, amount) for (uuid, name), amount in loads.items()), mappings


def _is_split(entry):
    """A split slot holds (class, amount, subset) where the others hold tuples of (provider, class, amount)."""
    return bool(entry[1]) and isinstance(entry[1][0], str)


def _canonical(world, name, amount, subset, loads):
    """The lexicographically greatest division of the amount over the subset that every provider of it allows."""
    fitting = [
        parts
        for parts in product(*(range(1, amount + 1) for _uuid in subset))
        if sum(parts) == amount
        and all(
            world.allows(uuid, name, part) and world.allows(uuid, name, part + loads.get((uuid, name), 0))
            for uuid, part in zip(subset, parts, strict=True)
        )
    ]
    return max(fitting, default=None)


def _between(world, ask, providers):
    """The rules between the providers of one candidate."""
    one = {suffix: next(iter(uuids)) for suffix, uuids in providers.items() if suffix}
    isolated = (
        set(one) if ask.get("group_policy") == "isolate" else {suffix for entry in ask.get("isolate", ()) for suffix in _as_list(entry)}
    )
    for first, second in combinations(one, 2):
        if one[first] == one[second] and {first, second} & isolated:
            return False
    for entry in ask.get("same_subtree", ()):
        positive = [one[suffix] for suffix in entry if not suffix.startswith("!")]
        if not world.one_subtree(positive):
            return False
        if any(suffix.startswith("!") and world.one_subtree([*positive, one[suffix[1:]]]) for suffix in entry):
            return False
    unsuffixed = ask["groups"].get("", {})
    union = set().union(*(world.traits(uuid) for uuid in providers.get("", ())))
    return _has_required(unsuffixed, union) if "" in providers else True


def _has_required(group, traits):
    return set(group.get("required", ())) <= traits and all(traits & set(choice) for choice in group.get("any_of", ()))


def _suits(world, group, uuid, resources):
    traits, aggregates = world.traits(uuid), world.aggregates(uuid)
    return (
        all(world.allows(uuid, name, amount) for name, amount in resources.items())
        and _has_required(group, traits)
        and not traits & set(group.get("forbidden", ()))
        and all(aggregates & set(_as_list(choice)) for choice in group.get("member_of", ()))
        and not aggregates & set(group.get("not_member_of", ()))
        and (group.get("in_tree") is None or _same_tree(world, uuid, group["in_tree"]))
    )


def _suits_unsuffixed(world, group, uuid, anchor):
    """Each entry of member_of holds of the provider or of its root: they are "directly or via the root provider associated" with it.

    So the provider may be in one aggregate and its root in another. (Placement wants all of them of the one or all of the other.)
    """
    own = world.root(uuid) == anchor
    inside = world.aggregates(uuid) | (world.aggregates(anchor) if own else set())
    excluded = world.aggregates(uuid) | world.aggregates(anchor)
    return (
        not world.traits(uuid) & set(group.get("forbidden", ()))
        and all(inside & set(_as_list(choice)) for choice in group.get("member_of", ()))
        and not excluded & set(group.get("not_member_of", ()))
        and (group.get("in_tree") is None or (own and _same_tree(world, uuid, group["in_tree"])))
    )


def _same_tree(world, uuid, other):
    return other in world.by_uuid and world.root(uuid) == world.root(other)


def _as_list(entry):
    return [entry] if isinstance(entry, str) else list(entry)
