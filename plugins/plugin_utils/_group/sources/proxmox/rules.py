# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules of Proxmox VE clusters: where guests may run, and why not elsewhere. Each has a name that says what it is.

    /cluster/ha/rules                     HA rules (9): node affinity, resource affinity
    /cluster/ha/groups, /cluster/ha/resources   HA groups (8), and the guests that HA manages
    /cluster/ha/status/manager_status     nodes in maintenance
    /cluster/options                      whether HA balances its guests itself (ha-auto-rebalance, since release 9.2)
    /nodes/NODE/status                    CPU flags: see processors.py
    guests' tags                          those of ProxLB: plb_affinity_NAME, plb_anti_affinity_NAME, plb_ignore_NAME, plb_pin_NODE
    guests' configurations and locks      devices, ISO images and storages that a node has and another has not

HA moves a guest back to the best nodes of its affinity unless failback is off. A rule that is not strict is a wish for these nodes, so
heavy that balancing moves nobody away whom HA would move back; but guests may go elsewhere where nothing else is left. HA neither moves nor
balances guests in its state `ignored`, and refuses to migrate them; its strict rules are kept for them all the same.
"""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Iterator, Mapping, Sequence

from .....module_utils._data.containers import ListOf, Row, Table, Values
from .....module_utils._data.errors import Mistakes
from .....module_utils._data.kinds import Anything
from ...._common.lenient import NAME, TRUTH
from ...cluster.model import Rule, RuleKind
from .guests import Guests
from .processors import processor_rules
from .requirements import Mapped, read_mappings, requirement_rules

_RULES = ListOf(
    Table(
        "an HA rule",
        [
            Row("rule", NAME, required=True),
            Row("type", NAME, default=""),
            Row("affinity", NAME, default=""),
            Row("nodes", NAME, default=""),
            Row("resources", NAME, default=""),
            Row("strict", TRUTH, default=False),
            Row("disable", TRUTH, default=False),
        ],
        others=True,
    ),
    "HA rules",
)
_GROUPS = ListOf(
    Table(
        "an HA group",
        [
            Row("group", NAME, required=True),
            Row("nodes", NAME, default=""),
            Row("restricted", TRUTH, default=False),
            Row("nofailback", TRUTH, default=False),
        ],
        others=True,
    ),
    "HA groups",
)
_RESOURCES = ListOf(
    Table(
        "an HA resource",
        [
            Row("sid", NAME, required=True),
            Row("state", NAME, default="started"),
            Row("group", NAME),
            Row("failback", TRUTH, default=True),
            Row("auto-rebalance", TRUTH, default=True),
        ],
        others=True,
    ),
    "HA resources",
)
_YES = ("1", "true", "yes", "on")
HA_WISH = 20.0
"""The weight of an affinity to nodes that is not strict: less than a rule that is, more than balancing gains by one guest."""
_DIGITS = 10
"""Digits that no priority of HA has."""
_STATES = Table("states of nodes", [Row("node_status", Anything())], others=True)
_MANAGER = Table("the manager's status", [Row("manager_status", _STATES), Row("quorum", Anything())], others=True)
_CLUSTER = ListOf(
    Table("a part of the cluster", [Row("type", NAME, default=""), Row("quorate", TRUTH, default=True)], others=True), "parts"
)
_OPTIONS = Table("the options", [Row("crs", Anything())], others=True)


def check_quorum(documents: Mapping[str, t.Any], mistakes: Mistakes) -> None:
    """Refuse a cluster without quorum: it carries nothing out, and what its nodes say of each other is old."""
    path = "/cluster/ha/status/manager_status"
    quorum = _MANAGER.read_nested(documents[path], path, mistakes)["quorum"] if documents.get(path) is not None else None
    lost = isinstance(quorum, Mapping) and str(quorum.get("quorate", "1")) == "0"
    for entry in _listed(documents, "/cluster/status", _CLUSTER, mistakes):
        lost = lost or (entry["type"] == "cluster" and not entry["quorate"])
    if lost:
        mistakes.add("/cluster/status", "the cluster has no quorum, so that nothing can be moved; bring nodes back first")


def managed_by_ha(documents: Mapping[str, t.Any], mistakes: Mistakes) -> frozenset[str]:
    """Return the guests under HA, as `vm:101` or `ct:102`; one in the state `ignored` is not, until it gets another."""
    return frozenset(
        resource["sid"] for resource in _listed(documents, "/cluster/ha/resources", _RESOURCES, mistakes) if _is_managed(resource)
    )


def _is_managed(resource: Values) -> bool:
    managed: bool = resource["state"] != "ignored"
    return managed


def in_maintenance(documents: Mapping[str, t.Any], mistakes: Mistakes) -> frozenset[str]:
    """Return the nodes in HA's maintenance mode."""
    path = "/cluster/ha/status/manager_status"
    if documents.get(path) is None:
        return frozenset()
    states = (_MANAGER.read_nested(documents[path], path, mistakes)["manager_status"] or {}).get("node_status")
    return frozenset(name for name, state in states.items() if state == "maintenance") if isinstance(states, Mapping) else frozenset()


def read_rules(documents: Mapping[str, t.Any], guests: Guests, nodes: Sequence[str], mistakes: Mistakes) -> tuple[Rule, ...]:
    """Return every rule, of HA first."""
    found = [
        *_ha_rules(documents, guests, mistakes),
        *_ha_groups(documents, guests, mistakes),
        *_scheduled(documents, guests, mistakes),
        *_tagged(guests, nodes),
        *_tied(guests, mappings := read_mappings(documents, mistakes)),
        *requirement_rules(documents, guests, nodes, mappings, mistakes),
        *_storages(guests, nodes),
        *processor_rules(documents, guests, nodes, mistakes),
    ]
    return tuple(rule for rule in found if rule.instances)


def _listed(documents: Mapping[str, t.Any], path: str, kind: ListOf, mistakes: Mistakes) -> tuple[Values, ...]:
    return () if documents.get(path) is None else kind.read_nested(documents[path], path, mistakes)


def _preferred(nodes: str, online: Sequence[str]) -> tuple[str, ...]:
    """Return those of `node1:2,node2:1` that are online and of the highest priority among them."""
    priorities = {}
    for part in nodes.split(","):
        name, _colon, priority = part.strip().partition(":")
        if name in online:
            priorities[name] = int(priority) if priority.isdecimal() and len(priority) < _DIGITS else 0
    best = max(priorities.values(), default=0)
    return tuple(name for name, priority in priorities.items() if priority == best)


def _node_names(nodes: str) -> tuple[str, ...]:
    return tuple(part.strip().partition(":")[0] for part in nodes.split(",") if part.strip())


def _affine(name: str, members: tuple[str, ...], nodes: str, strict: bool, returns: bool, online: Sequence[str]) -> Iterator[Rule]:
    """Yield the pin that an affinity to nodes is."""
    chosen = _preferred(nodes, online) if returns else ()
    if chosen or strict:
        weight = Rule.weight if strict else HA_WISH
        yield Rule(name, RuleKind.PIN, members, chosen or _node_names(nodes), strict=strict, weight=weight)


def _ha_rules(documents: Mapping[str, t.Any], guests: Guests, mistakes: Mistakes) -> Iterator[Rule]:
    resources = _listed(documents, "/cluster/ha/resources", _RESOURCES, mistakes)
    staying = {name for one in resources if not (one["failback"] and _is_managed(one)) for name in guests.of(one["sid"])}
    for values in _listed(documents, "/cluster/ha/rules", _RULES, mistakes):
        name, members = f"HA rule {values['rule']}", guests.of(values["resources"])
        if values["disable"]:
            continue
        if values["type"] == "resource-affinity":
            together = values["affinity"] == "positive"
            yield Rule(name, RuleKind.AFFINITY if together else RuleKind.ANTI_AFFINITY, members)
        elif values["type"] == "node-affinity":
            for returns in (True, False):
                part = tuple(member for member in members if (member not in staying) == returns)
                yield from _affine(name, part, values["nodes"], values["strict"], returns, guests.online)


def _ha_groups(documents: Mapping[str, t.Any], guests: Guests, mistakes: Mistakes) -> Iterator[Rule]:
    members: dict[str, list[str]] = collections.defaultdict(list)
    for resource in _listed(documents, "/cluster/ha/resources", _RESOURCES, mistakes):
        members[resource["group"] or ""] += guests.of(resource["sid"])
    for values in _listed(documents, "/cluster/ha/groups", _GROUPS, mistakes):
        of_group = tuple(members[values["group"]])
        name, returns = f"HA group {values['group']}", not values["nofailback"]
        yield from _affine(name, of_group, values["nodes"], values["restricted"], returns, guests.online)


def _scheduled(documents: Mapping[str, t.Any], guests: Guests, mistakes: Mistakes) -> Iterator[Rule]:
    """Yield the rule that leaves guests to HA where it balances them by itself, but for those that it is not to balance."""
    path = "/cluster/options"
    if documents.get(path) is None:
        return
    crs = _OPTIONS.read_nested(documents[path], path, mistakes)["crs"]
    said = dict(part.strip().partition("=")[::2] for part in crs.split(",")) if isinstance(crs, str) else crs
    if isinstance(said, Mapping) and said.get("ha") in ("static", "dynamic") and str(said.get("ha-auto-rebalance")).lower() in _YES:
        resources = _listed(documents, "/cluster/ha/resources", _RESOURCES, mistakes)
        managed = [name for one in resources if one["auto-rebalance"] and _is_managed(one) for name in guests.of(one["sid"])]
        yield Rule("HA, which balances it itself (crs: ha-auto-rebalance),", RuleKind.IGNORE, tuple(managed), reason="ha")


def _tagged(guests: Guests, nodes: Sequence[str]) -> Iterator[Rule]:
    """Yield the rules of ProxLB's tags."""
    sets: dict[tuple[RuleKind, str], list[str]] = collections.defaultdict(list)
    kinds = {"plb_affinity_": RuleKind.AFFINITY, "plb_anti_affinity_": RuleKind.ANTI_AFFINITY, "plb_ignore": RuleKind.IGNORE}
    # Tags are in small letters, names of nodes need not be.
    by_letters = {node.lower(): node for node in nodes}
    for number, values in guests.values.items():
        pins = {}
        for tag in values["tags"].replace(",", ";").split(";"):
            kind = next((kind for start, kind in kinds.items() if tag.startswith(start)), None)
            if kind is not None:
                sets[kind, tag].append(guests.names[number])
            elif tag.startswith("plb_pin_") and tag.removeprefix("plb_pin_").lower() in by_letters:
                pins[tag] = by_letters[tag.removeprefix("plb_pin_").lower()]
        if pins:
            yield Rule(f"tag {', '.join(pins)} of {guests.names[number]}", RuleKind.PIN, (guests.names[number],), tuple(pins.values()))
    for (kind, tag), members in sets.items():
        yield Rule(f"tag {tag}", kind, tuple(members), tags=(tag,))


def _tied(guests: Guests, mappings: Mapping[tuple[str, str], Mapped]) -> Iterator[Rule]:
    """Yield a rule for each guest that cannot be moved for what it has of its machine, or for what is done to it.

    Mapped devices tie it while it runs, unless they can be taken along; a stopped one starts wherever they are.
    """
    for number, values in guests.values.items():
        name, config = guests.names[number], guests.configs[number]
        whys = [f"is locked ({values['lock']})"] if values["lock"] else []
        if config is not None:
            whys += list(config.devices)
            known = {mapped: mappings.get(mapped) for mapped in config.mappings}
            tying = [name for (_kind, name), one in known.items() if one is None or (values["status"] != "stopped" and not one.live)]
            whys += [f"it has the mapped device {device}" for device in tying]
            here = guests.reached.get(values["node"], frozenset())
            # A node that lists nothing does not answer.
            gone = [disk for disk in config.disks if here and disk.storage not in here]
            whys += [f"{disk.name} lies on {disk.storage}, which its node does not offer" for disk in gone]
            whys += [f"an ISO image on {storage} is in its drive" for storage in config.images if storage not in guests.shared]
        if whys:
            yield Rule(f"{name}: {', '.join(whys)}", RuleKind.IGNORE, (name,), reason=_reason(values, whys))


def _reason(values: Values, whys: Sequence[str]) -> str:
    """Return the word by which a guest that is tied is counted: its lock, or its devices."""
    return "locked" if values["lock"] and len(whys) == 1 else "devices"


def _storages(guests: Guests, nodes: Sequence[str]) -> Iterator[Rule]:
    """Yield a pin for each guest that needs storages which not every node has; a single one of disks is a limit by itself."""
    for number, config in guests.configs.items():
        if config is None:
            continue
        disks = frozenset(config.storages)
        drives = frozenset(config.made) | (frozenset(config.images) & guests.shared)
        home = guests.values[number]["node"]
        # A node that lists nothing does not answer, and takes nobody anyway.
        lacks_drives = {node for node in nodes if guests.offered[node] and not drives <= guests.offered[node]}
        lacks_disks = {node for node in nodes if len(disks) > 1 and not disks <= guests.reached[node]}
        allowed = tuple(node for node in nodes if node == home or node not in lacks_drives | lacks_disks)
        if len(allowed) < len(nodes):
            name = guests.names[number]
            lie = [f"its disks lie on {', '.join(sorted(disks))}"] if lacks_disks else []
            lie += [f"its drives lie on {', '.join(sorted(drives))}"] if lacks_drives else []
            yield Rule(f"{name}: {', '.join(lie)}", RuleKind.PIN, (name,), allowed)
