# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a page shows of a ledger: hosts by rack, claims with owner and end, room by resource class.

    shown = overview(result_of_provider_info, ("rack*",))

A host is the root of a tree. Amounts are as the ledger has them, in the unit of their class. Room of drained providers is not free.
"""

from __future__ import annotations

import typing as t
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import groupby

from ....module_utils._storage.identity import natural_key

Plain = Mapping[str, t.Any]
STEPS = (0.0, 0.5, 0.9)
"""Where one shade of use ends and the next begins; the last but one ends below 1, the last is full."""


@dataclass(frozen=True)
class Room:
    """How much of a class there is, is used, is free, and is unused on drained providers; `largest` is the most that one host has free."""

    name: str
    capacity: int
    used: int
    free: int
    closed: int
    largest: int

    @property
    def parts(self) -> tuple[float, float, float]:
        """What is used, unused on drained providers, and free, as percent; of use beyond the capacity that which fits."""
        whole = max(self.capacity, self.used, 1)
        return (100 * self.used / whole, 100 * self.closed / whole, 100 * self.free / whole)


@dataclass(frozen=True)
class Claim:
    """A consumer: `owners` are project and user by their numbers on the page, `amounts` those of all hosts together."""

    name: str
    project: str
    user: str
    kind: str
    since: str
    until: str
    amounts: tuple[tuple[str, int], ...]
    hosts: tuple[tuple[int, str], ...]
    owners: tuple[int, int]


@dataclass(frozen=True)
class Part:
    """One inventory of a host, with its provider and its consumers, each with its amount where they are several."""

    provider: str
    name: str
    used: int
    capacity: int
    holders: tuple[str, ...]


@dataclass(frozen=True)
class Host:
    """A tree of providers. `shade` is 0 to len(STEPS) by the scarcest class, `drains` say why nothing more is given, and until when."""

    number: int
    name: str
    rack: int
    shade: int
    rooms: tuple[Room, ...]
    claims: tuple[tuple[Claim, tuple[tuple[str, int], ...]], ...]
    parts: tuple[Part, ...]
    drains: tuple[str, ...]
    is_closed: bool

    @property
    def is_unused(self) -> bool:
        """Whether no consumer has a claim on the host, consumers that the page does not show included."""
        return not any(room.used for room in self.rooms)


@dataclass(frozen=True)
class Rack:
    """Hosts of one aggregate; those of none have an empty name."""

    number: int
    name: str
    hosts: tuple[Host, ...]
    rooms: tuple[Room, ...]


@dataclass(frozen=True)
class Quota:
    """What a project may have of a class, and has."""

    project: str
    name: str
    limit: int
    used: int


@dataclass(frozen=True)
class Overview:
    """All that the page shows. Projects and users are in the order of their numbers; an empty name stands for none."""

    racks: tuple[Rack, ...]
    claims: tuple[Claim, ...]
    rooms: tuple[Room, ...]
    quotas: tuple[Quota, ...]
    projects: tuple[str, ...]
    users: tuple[str, ...]
    findings: tuple[str, ...]
    read_at: str

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts, rack after rack."""
        return tuple(host for rack in self.racks for host in rack.hosts)


@dataclass
class _Tree:
    """The providers of a host as they are found, with the drain that each is under."""

    root: Plain
    members: list[Plain] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)


def overview(result: Plain, racks: Sequence[str] = ()) -> Overview:
    """Return what provider_info returned in the order of the page; raises KeyError, TypeError or the like for other data.

    `racks` are patterns of the names of aggregates that hosts are shown by; without them, all. A host of several is shown in the smallest.
    """
    trees = _trees(result["providers"])
    rack_of = _racks([tree.root for tree in trees], racks)
    names = sorted({rack_of[tree.root["uuid"]] for tree in trees}, key=lambda name: (not name, natural_key(name)))
    consumers, held = result["consumers"], result["allocations"]
    projects, users = (sorted({one[key] or "" for one in consumers.values()}) for key in ("project", "user"))
    rack_numbers, project_numbers, user_numbers = ({name: number for number, name in enumerate(some)} for some in (names, projects, users))
    trees.sort(key=lambda tree: (rack_numbers[rack_of[tree.root["uuid"]]], natural_key(tree.root["name"])))
    places = {member["uuid"]: (number, tree.root["name"]) for number, tree in enumerate(trees) for member in tree.members}
    claims = {
        uuid: _claim(one, held[uuid], places, (project_numbers[one["project"] or ""], user_numbers[one["user"] or ""]))
        for uuid, one in consumers.items()
    }
    hosts = [_host(number, tree, rack_numbers[rack_of[tree.root["uuid"]]], result, claims) for number, tree in enumerate(trees)]
    members = [tuple(among) for _rack, among in groupby(hosts, key=lambda host: host.rack)]
    return Overview(
        racks=tuple(Rack(number, name, among, _summed(among)) for number, (name, among) in enumerate(zip(names, members))),
        claims=tuple(sorted(claims.values(), key=lambda claim: (natural_key(claim.name), claim.project))),
        rooms=_summed(hosts),
        quotas=tuple(
            Quota(project, name, one["limit"], one["used"])
            for project, limits in (result.get("quotas") or {}).items()
            for name, one in limits.items()
        ),
        projects=tuple(projects),
        users=tuple(users),
        findings=tuple(f"{one['name']}: {one['says']}" for one in result.get("audit") or ()),
        read_at=_when(result.get("read_at")),
    )


def _trees(providers: Iterable[Plain]) -> list[_Tree]:
    """Return the trees; a provider whose parent is not among those before it begins one of its own."""
    tree_of: dict[str, _Tree] = {}
    for provider in providers:
        parent = provider["parent"]
        tree = tree_of.get(parent) or _Tree(provider)
        tree_of[provider["uuid"]] = tree
        tree.members.append(provider)
        if provider.get("drained") or parent in tree.closed:
            tree.closed.add(provider["uuid"])
    return list({id(tree): tree for tree in tree_of.values()}.values())


def _racks(roots: Sequence[Plain], patterns: Sequence[str]) -> dict[str, str]:
    """Return the rack of each root by its UUID, an empty name for those of none."""
    chosen = {
        root["uuid"]: [name for name in root["aggregates"] if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]
        for root in roots
    }
    sizes = Counter(name for names in chosen.values() for name in names)
    return {uuid: min(names, key=lambda name: (sizes[name], natural_key(name)), default="") for uuid, names in chosen.items()}


def _claim(consumer: Plain, held: Plain, places: Mapping[str, tuple[int, str]], owners: tuple[int, int]) -> Claim:
    amounts: Counter[str] = Counter()
    for classes in held.values():
        amounts.update(classes)
    return Claim(
        name=consumer["name"],
        project=consumer["project"] or "",
        user=consumer["user"] or "",
        kind=consumer.get("consumer_type") or "",
        since=_when(consumer.get("claimed_at")),
        until=_when(consumer.get("expires_at")),
        amounts=tuple(sorted(amounts.items())),
        hosts=tuple(sorted({places[provider] for provider in held if provider in places})),
        owners=owners,
    )


def _host(number: int, tree: _Tree, rack: int, result: Plain, claims: Mapping[str, Claim]) -> Host:
    usages, held_of = result["usages"], result["allocations_by_provider"]
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    by_consumer: dict[str, Counter[str]] = defaultdict(Counter)
    parts = []
    for member in tree.members:
        held = held_of.get(member["uuid"], {})
        for name, usage in usages[member["uuid"]].items():
            closed = member["uuid"] in tree.closed
            added = (usage["capacity"], usage["used"], 0 if closed else usage["free"], usage["free"] if closed else 0)
            sums[name] = [one + more for one, more in zip(sums[name], added)]
            users = [(claims[uuid].name, amounts[name]) for uuid, amounts in held.items() if name in amounts]
            holders = tuple(f"{called} {amount}" if len(users) > 1 else called for called, amount in sorted(users))
            parts.append(Part(member["name"], name, usage["used"], usage["capacity"], holders))
        for uuid, amounts in held.items():
            by_consumer[uuid].update(amounts)
    rooms = tuple(Room(name, capacity, used, free, closed, free) for name, (capacity, used, free, closed) in sorted(sums.items()))
    use = max((room.used / room.capacity if room.capacity else 1.0 for room in rooms if room.capacity or room.used), default=0.0)
    return Host(
        number=number,
        name=tree.root["name"],
        rack=rack,
        shade=len(STEPS) + 1 if use >= 1 else sum(use > step for step in STEPS),
        rooms=rooms,
        claims=tuple(sorted(((claims[uuid], tuple(sorted(amounts.items()))) for uuid, amounts in by_consumer.items()), key=_by_name)),
        parts=tuple(parts),
        drains=tuple(_drain(member, tree.root) for member in tree.members if member.get("drained")),
        is_closed=tree.root["uuid"] in tree.closed,
    )


def _by_name(held: tuple[Claim, t.Any]) -> t.Any:
    return natural_key(held[0].name), held[0].project


def _drain(provider: Plain, root: Plain) -> str:
    """Return in words that a host, or a part of it, is drained, why and until when."""
    drain = provider["drained"] if isinstance(provider["drained"], Mapping) else {}
    of = "" if provider is root else f"{provider['name']} "
    until = f"until {_when(drain['until'])}" if drain.get("until") else ""
    return f"{of}drained" + "".join(f", {part}" for part in (drain.get("reason"), until) if part)


def _summed(hosts: Sequence[Host]) -> tuple[Room, ...]:
    """Return the room of hosts together, by class."""
    found: dict[str, list[Room]] = defaultdict(list)
    for host in hosts:
        for room in host.rooms:
            found[room.name].append(room)
    return tuple(
        Room(
            name,
            sum(room.capacity for room in rooms),
            sum(room.used for room in rooms),
            sum(room.free for room in rooms),
            sum(room.closed for room in rooms),
            max(room.largest for room in rooms),
        )
        for name, rooms in sorted(found.items())
    )


def _when(moment: str | None) -> str:
    """Return a moment as results show it without what no reader needs, or an empty string."""
    return moment.removesuffix("Z").replace("T", " ").removesuffix(":00") if moment else ""
