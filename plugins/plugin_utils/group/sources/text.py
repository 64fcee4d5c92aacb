# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""htools' text format (`hbal -t FILE`, `-S FILE`): read and written byte for byte as the tools do.

Five sections, separated by one empty line each: groups, nodes, instances, cluster tags, policies (the last may be
missing). Columns are separated by `|`, members of lists by `,`; late columns have defaults.
"""

from __future__ import annotations

import dataclasses
import math
import re
import typing as t
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from enum import StrEnum

from ...common.errors import Mistakes, suggest
from ..cluster.check import Places, check_cluster
from ..cluster.model import (
    AllocPolicy,
    Cluster,
    Disk,
    DiskTemplate,
    Group,
    Instance,
    Node,
    Policy,
    Spec,
    SpecInterval,
    Status,
)

_SECTIONS = ("groups", "nodes", "instances", "cluster tags", "policies")
_REQUIRED_SECTIONS = 4
_GROUP_COLUMNS = ("name", "uuid", "alloc_policy", "tags", "networks")
_NODE_COLUMNS = (
    "name",
    "t_mem",
    "n_mem",
    "f_mem",
    "t_dsk",
    "f_dsk",
    "t_cpu",
    "role",
    "group uuid",
    "spindles",
    "tags",
    "exclusive_storage",
    "free_spindles",
    "n_cpu",
    "cpu_speed",
)
_NODE_DEFAULTS = ("1", "", "N", "0", "1", "1.0")
_INSTANCE_COLUMNS = (
    "name",
    "mem",
    "disk",
    "vcpus",
    "status",
    "auto_balance",
    "pnode",
    "snode",
    "disk_template",
    "tags",
    "spindle_use",
    "spindles",
    "forthcoming",
)
_INSTANCE_DEFAULTS = ("1", "-", "N")
_POLICY_COLUMNS = ("owner", "standard spec", "min and max specs", "disk templates", "vcpu_ratio", "spindle_ratio")
_INTEGER = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]{1,300}(\.[0-9]{1,300})?([eE][-+]?[0-9]{1,3})?")
_Word = t.TypeVar("_Word", bound=StrEnum)
_Lines = list[tuple[int, str]]


def parse_text(text: str) -> Cluster:
    """Return the cluster that `text` describes; raise InputError with all mistakes, each with its line."""
    mistakes = Mistakes()
    sections = _split(text, mistakes)
    groups = _rows(sections[0], _GROUP_COLUMNS, (None,), _group, mistakes)
    names = {group.uuid: group.name for group in groups.values()}
    nodes = _rows(sections[1], _NODE_COLUMNS, _NODE_DEFAULTS, lambda row: _node(row, names), mistakes)
    instances = _rows(sections[2], _INSTANCE_COLUMNS, _INSTANCE_DEFAULTS, _instance, mistakes)
    tags = tuple(line for _number, line in sections[3])
    policies = _policies(sections[4], {group.name for group in groups.values()}, mistakes)
    cluster = Cluster(
        groups=tuple(dataclasses.replace(group, policy=policies.get(group.name, Policy())) for group in groups.values()),
        nodes=tuple(nodes.values()),
        instances=tuple(instances.values()),
        tags=tags,
        policy=policies.get("", Policy()),
    )
    whole = [len(groups), len(nodes), len(instances)] == [len(section) for section in sections[:3]]
    places = Places(_lines(groups), _lines(nodes), _lines(instances), whole=whole, separator=", ")
    check_cluster(cluster, places, mistakes)
    mistakes.check()
    return cluster


def _lines(numbers: Iterable[int]) -> list[str]:
    return [f"line {number}" for number in numbers]


class _Row:
    """The columns of one line, read by name; what is wrong with them is collected."""

    def __init__(self, number: int, columns: Sequence[str], values: Sequence[str], mistakes: Mistakes) -> None:
        self._number = number
        self._values = dict(zip(columns, values))
        self._mistakes = mistakes
        self.is_wrong = False

    def wrong(self, column: str, says: str) -> None:
        """Remember a mistake of a column."""
        self.is_wrong = True
        self._mistakes.add(f"line {self._number}, {column}", says)

    def text(self, column: str) -> str:
        """Return a column as it is."""
        return self._values[column]

    def words(self, column: str) -> tuple[str, ...]:
        """Return the members of a list."""
        value = self._values.get(column, "")
        return tuple(value.split(",")) if value else ()

    def integer(self, column: str) -> int:
        """Return a whole number, 0 or more."""
        value = self._values[column].strip()
        if _INTEGER.fullmatch(value):
            return int(value)
        self.wrong(column, f"{value!r} is no whole number of 0 or more")
        return 0

    def number(self, column: str) -> float:
        """Return a number, 0 or more."""
        value = self._values[column].strip()
        if _NUMBER.fullmatch(value) and math.isfinite(float(value)):
            return float(value)
        self.wrong(column, f"{value!r} is no number of 0 or more")
        return 0.0

    def word(self, column: str, words: type[_Word]) -> _Word:
        """Return one of the fixed words."""
        return self.member(column, self._values[column], words)

    def member(self, column: str, value: str, words: type[_Word]) -> _Word:
        """Return `value` as one of the fixed words."""
        known = [str(word) for word in words]
        if value in known:
            return words(value)
        self.wrong(column, f"{value!r} is none of {', '.join(known)}{suggest(value, known)}")
        return next(iter(words))

    def yes(self, column: str) -> bool:
        """Return whether a column says Y; N is the only other value."""
        value = self._values[column]
        if value not in ("Y", "N"):
            self.wrong(column, f"{value!r} is neither Y nor N")
        return value == "Y"


_Thing = t.TypeVar("_Thing")


def _split(text: str, mistakes: Mistakes) -> list[_Lines]:
    """Return the lines of the five sections with their numbers; later sections are ignored, as htools does."""
    sections: list[_Lines] = [[]]
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, start=1):
        if line:
            sections[-1].append((number, line))
        else:
            sections.append([])
    if len(sections) < _REQUIRED_SECTIONS:
        missing = ", ".join(_SECTIONS[len(sections) : _REQUIRED_SECTIONS])
        says = f"the file ends after {len(sections)} of {_REQUIRED_SECTIONS} sections; missing: {missing} (one empty line parts sections)"
        mistakes.add(f"line {max(1, len(lines))}", says)
    return (sections + [[] for _section in _SECTIONS])[: len(_SECTIONS)]


def _rows(
    lines: _Lines,
    columns: Sequence[str],
    defaults: Sequence[str | None],
    make: Callable[[_Row], _Thing],
    mistakes: Mistakes,
) -> dict[int, _Thing]:
    """Return what each line describes by line number; `defaults` fill the last columns where they are missing."""
    things: dict[int, _Thing] = {}
    least = len(columns) - len(defaults)
    for number, line in lines:
        values: list[str] = line.split("|")
        if len(values) < least:
            says = f"has {len(values)} columns instead of {least} to {len(columns)}: {', '.join(columns[:least])} ..."
            mistakes.add(f"line {number}", says)
            continue
        missing = len(columns) - len(values)
        filled = [value or "" for value in defaults[len(defaults) - missing :]] if missing > 0 else []
        things[number] = make(_Row(number, columns, values + filled, mistakes))
    return things


def _group(row: _Row) -> Group:
    return Group(
        name=row.text("name"),
        uuid=row.text("uuid"),
        alloc_policy=row.word("alloc_policy", AllocPolicy),
        tags=row.words("tags"),
        networks=row.words("networks"),
    )


def _node(row: _Row, group_names: dict[str, str]) -> Node:
    uuid = row.text("group uuid")
    if uuid not in group_names:
        row.wrong("group", f"unknown group {uuid!r}{suggest(uuid, group_names)}")
    role = row.text("role")
    if role not in ("Y", "N", "M"):
        row.wrong("role", f"{role!r} is none of Y (offline), N (online), M (master)")
    name, group = row.text("name"), group_names.get(uuid, "")
    if any(row.text(column) == "?" for column in _NODE_COLUMNS[1:7]):
        return _unknown_node(name, group)
    return Node(
        name=name,
        group=group,
        total_memory=row.number("t_mem"),
        node_memory=row.integer("n_mem"),
        free_memory=row.integer("f_mem"),
        total_disk=row.number("t_dsk"),
        free_disk=row.integer("f_dsk"),
        total_cpus=row.number("t_cpu"),
        node_cpus=row.integer("n_cpu"),
        cpu_speed=row.number("cpu_speed"),
        offline=role == "Y",
        master=role == "M",
        tags=row.words("tags"),
        exclusive_storage=row.yes("exclusive_storage"),
        spindles=row.integer("spindles"),
        free_spindles=row.integer("free_spindles"),
    )


def _unknown_node(name: str, group: str) -> Node:
    return Node(
        name=name,
        group=group,
        total_memory=0.0,
        node_memory=0,
        free_memory=0,
        total_disk=0.0,
        free_disk=0,
        total_cpus=0.0,
        node_cpus=0,
        offline=True,
        spindles=0,
    )


def _instance(row: _Row) -> Instance:
    disk = row.integer("disk")
    spindles = None if row.text("spindles") == "-" else row.integer("spindles")
    return Instance(
        name=row.text("name"),
        memory=row.integer("mem"),
        disk=disk,
        vcpus=row.integer("vcpus"),
        primary=row.text("pnode"),
        secondary=row.text("snode"),
        status=row.word("status", Status),
        auto_balance=row.yes("auto_balance"),
        disk_template=row.word("disk_template", DiskTemplate),
        disks=(Disk(disk, spindles),),
        tags=row.words("tags"),
        spindle_use=row.integer("spindle_use"),
        forthcoming=row.yes("forthcoming"),
    )


def _policies(lines: _Lines, groups: set[str], mistakes: Mistakes) -> dict[str, Policy]:
    """Return the policies by owner; the cluster's owner is empty. A later line of the same owner wins, as in htools."""
    owned = _rows(lines, _POLICY_COLUMNS, (), lambda row: _owned_policy(row, groups), mistakes)
    return dict(owned.values())


def _owned_policy(row: _Row, groups: set[str]) -> tuple[str, Policy]:
    owner = row.text("owner")
    if owner and owner not in groups:
        row.wrong("owner", f"unknown group {owner!r}{suggest(owner, groups)}")
    specs = [_spec(row, "min and max specs", text) for text in row.text("min and max specs").split(";")]
    if len(specs) % 2:
        row.wrong("min and max specs", f"has {len(specs)} specs; they must come in pairs of min and max")
    policy = Policy(
        intervals=tuple(SpecInterval(low, high) for low, high in zip(specs[::2], specs[1::2])),
        standard=_spec(row, "standard spec", row.text("standard spec")),
        disk_templates=tuple(row.member("disk templates", word, DiskTemplate) for word in row.words("disk templates")),
        vcpu_ratio=row.number("vcpu_ratio"),
        spindle_ratio=row.number("spindle_ratio"),
    )
    return owner, Policy() if row.is_wrong else policy


def _spec(row: _Row, column: str, text: str) -> Spec:
    values = text.split(",")
    names = tuple(Spec.__dataclass_fields__)
    if len(values) == len(names) and all(_INTEGER.fullmatch(value) for value in values):
        return Spec(*map(int, values))
    row.wrong(column, f"{text!r} is no spec; write {len(names)} whole numbers: {', '.join(names)}")
    return Spec(0, 0, 0, 0, 0, 0)


_SHOWN_AS_FIXED = (0.1, 1e7)
"""Haskell's `show` writes numbers outside this range with an exponent."""


def write_text(cluster: Cluster) -> str:
    """Return the cluster in htools' text format; what the format cannot say (pools, loads, several disks) is left out."""
    uuids = {group.name: group.uuid for group in cluster.groups}
    sections = (
        [_group_line(group) for group in cluster.groups],
        [_node_line(node, uuids[node.group]) for node in cluster.nodes],
        [_instance_line(instance) for instance in cluster.instances],
        list(cluster.tags),
        [_policy_line("", cluster.policy), *(_policy_line(group.name, group.policy) for group in cluster.groups)],
    )
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in sections)


def _group_line(group: Group) -> str:
    return "|".join((group.name, group.uuid, group.alloc_policy, ",".join(group.tags), ",".join(group.networks)))


def _node_line(node: Node, group_uuid: str) -> str:
    return "|".join(
        (
            node.name,
            f"{node.total_memory:.0f}",
            str(node.node_memory),
            str(node.free_memory),
            f"{node.total_disk:.0f}",
            str(node.free_disk),
            f"{node.total_cpus:.0f}",
            "Y" if node.offline else "M" if node.master else "N",
            group_uuid,
            str(node.spindles),
            ",".join(node.tags),
            _yes(node.exclusive_storage),
            str(node.free_spindles),
            str(node.node_cpus),
            _fixed(node.cpu_speed),
        ),
    )


def _instance_line(instance: Instance) -> str:
    return "|".join(
        (
            instance.name,
            str(instance.memory),
            str(instance.disk),
            str(instance.vcpus),
            instance.status,
            _yes(instance.auto_balance),
            instance.primary,
            instance.secondary,
            instance.disk_template,
            ",".join(instance.tags),
            str(instance.spindle_use),
            "-" if instance.spindles is None else str(instance.spindles),
            _yes(instance.forthcoming),
        ),
    )


def _policy_line(owner: str, policy: Policy) -> str:
    corners = (corner for interval in policy.intervals for corner in (interval.minimum, interval.maximum))
    return "|".join(
        (
            owner,
            _spec_text(policy.standard),
            ";".join(_spec_text(corner) for corner in corners),
            ",".join(policy.disk_templates),
            _shown(policy.vcpu_ratio),
            _shown(policy.spindle_ratio),
        ),
    )


def _spec_text(spec: Spec) -> str:
    return _joined((spec.memory, spec.cpus, spec.disk_size, spec.disk_count, spec.nics, spec.spindle_use))


def _joined(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _yes(value: bool) -> str:
    return "Y" if value else "N"


def _fixed(number: float) -> str:
    """Return the shortest digits that read back as `number`, never with an exponent, with at least one decimal."""
    text = format(Decimal(repr(float(number))), "f")
    return text if "." in text else f"{text}.0"


def _shown(number: float) -> str:
    """Return `number` as Haskell's `show` writes it."""
    low, high = _SHOWN_AS_FIXED
    if number == 0 or low <= abs(number) < high:
        return _fixed(number)
    _sign, digits, exponent = Decimal(repr(float(number))).normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if number < 0 else ''}{digits[0]}.{rest}e{int(exponent) + len(digits) - 1}"
