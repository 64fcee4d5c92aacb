# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""htools' text format (`hbal -t FILE`, `-S FILE`): read and written byte for byte as the tools do.

Five sections, separated by one empty line each: groups, nodes, instances, cluster tags, policies (the last may be
missing). Columns are separated by `|`, members of lists by `,`; late columns have defaults.

The tools write a drained node as offline, `Y`. A drained node is written so here, too, with a column of its own after the
last one that the tools know, which they do not read.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from ....module_utils._data.containers import ListOf, Row, Table, Values, read_each
from ....module_utils._data.errors import Mistakes, Place, suggest
from ....module_utils._data.kinds import Kind, Number, Text, Whole, Word, shown
from ..cluster.check import Places, check_cluster
from ..cluster.model import (
    AllocPolicy,
    Cluster,
    Disk,
    DiskTemplate,
    Group,
    Instance,
    Node,
    NodeState,
    Policy,
    Spec,
    SpecInterval,
    Status,
)

_SECTIONS = ("groups", "nodes", "instances", "cluster tags", "policies")
_REQUIRED_SECTIONS = 4
_INTEGER = re.compile(r"[0-9]{1,18}")
_ENDS = "|,"
"""What stands between others in a line."""


class _Flag(Kind):
    """Y or N."""

    wanted, blank = "Y or N", False

    def read(self, value: t.Any) -> bool:
        return value == "Y" if value in ("Y", "N") else self.refuse(value)


class _Role(Kind):
    """What a node is for the cluster."""

    wanted, blank = "one of Y (offline), N (online), M (master)", "N"

    def read(self, value: t.Any) -> str:
        return value if value in _ROLES or value == _SILENT else self.refuse(value)


class _Drained(Kind):
    """Whether a node that the tools take for offline is only drained."""

    wanted, blank = f"nothing, or {NodeState.DRAINED}", False

    def read(self, value: t.Any) -> bool:
        return value == NodeState.DRAINED if value in ("", NodeState.DRAINED) else self.refuse(value)


class _Members(Kind):
    """Members of a list, with commas between them."""

    blank: t.Any = ()
    nested = True

    def __init__(self, kind: Kind) -> None:
        self._list = ListOf(kind)

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[t.Any, ...]:
        return self._list.read_nested(value.split(","), place, mistakes) if value else ()


class _Spindles(Kind):
    """A number, or - where it is not known."""

    _count = Whole(0, digits=True)
    wanted = f"{_count.wanted}, or -"

    def read(self, value: t.Any) -> int | None:
        return None if value == "-" else self._count.read(value)


class _Spec(Kind):
    """A policy's spec."""

    blank = Spec(0, 0, 0, 0, 0, 0)

    def read(self, value: t.Any) -> Spec:
        values, names = value.split(","), tuple(Spec.__dataclass_fields__)
        if len(values) == len(names) and all(_INTEGER.fullmatch(number) for number in values):
            return Spec(*map(int, values))
        raise ValueError(f"{shown(value)} is not a spec; write {len(names)} whole numbers: {', '.join(names)}")


class _Intervals(Kind):
    """Specs with semicolons between them, in pairs of min and max."""

    blank = Policy().intervals

    def read(self, value: t.Any) -> tuple[SpecInterval, ...]:
        specs = [_Spec().read(text) for text in value.split(";")]
        if len(specs) % 2:
            raise ValueError(f"has {len(specs)} specs; they must come in pairs of min and max")
        return tuple(SpecInterval(low, high) for low, high in zip(specs[::2], specs[1::2]))


_SILENT = "?"
"""The role of a node that does not answer, and is not marked offline; the format has none, so that it stands in what the node reports."""
_ROLES = ("N", "Y", "M")


class _Column(t.NamedTuple):
    """A column: its name, how it is read and written, and the field of the model that has its value."""

    name: str
    field: str
    kind: Kind = Text()
    written: Callable[[t.Any], str] = str


def _joined(members: Iterable[t.Any]) -> str:
    return ",".join(map(str, members))


def _yes(value: bool) -> str:
    return "Y" if value else "N"


def _rounded(number: float) -> str:
    return f"{number:.0f}"


def _fixed(number: float) -> str:
    """Return the shortest digits that read back as `number`, never with an exponent, with at least one decimal."""
    text = format(Decimal(repr(float(number))), "f")
    return text if "." in text else f"{text}.0"


_COUNT, _NUMBER, _TEXT = Whole(0, digits=True), Number(0, digits=True), Text()
_TAGS = _Column("tags", "tags", _Members(_TEXT), _joined)
_GROUP_COLUMNS = (
    _Column("name", "name"),
    _Column("uuid", "uuid"),
    _Column("alloc_policy", "alloc_policy", Word(AllocPolicy)),
    _TAGS,
    _Column("networks", "networks", _Members(_TEXT), _joined),
)
_NODE_COLUMNS = (
    _Column("name", "name"),
    _Column("t_mem", "total_memory", _NUMBER, _rounded),
    _Column("n_mem", "node_memory", _COUNT),
    _Column("f_mem", "free_memory", _COUNT),
    _Column("t_dsk", "total_disk", _NUMBER, _rounded),
    _Column("f_dsk", "free_disk", _COUNT),
    _Column("t_cpu", "total_cpus", _NUMBER, _rounded),
    _Column("role", "role", _Role()),
    _Column("group uuid", "group"),
    _Column("spindles", "spindles", _COUNT),
    _TAGS,
    _Column("exclusive_storage", "exclusive_storage", _Flag(), _yes),
    _Column("free_spindles", "free_spindles", _COUNT),
    _Column("n_cpu", "node_cpus", _COUNT),
    _Column("cpu_speed", "cpu_speed", _NUMBER, _fixed),
    _Column("drained", "drained", _Drained()),
)
"""Two have no field of a Node: its role, and in `group` the UUID of its group."""
_INSTANCE_COLUMNS = (
    _Column("name", "name"),
    _Column("mem", "memory", _COUNT),
    _Column("disk", "disk", _COUNT),
    _Column("vcpus", "vcpus", _COUNT),
    _Column("status", "status", Word(Status)),
    _Column("auto_balance", "auto_balance", _Flag(), _yes),
    _Column("pnode", "primary"),
    _Column("snode", "secondary"),
    _Column("disk_template", "disk_template", Word(DiskTemplate)),
    _TAGS,
    _Column("spindle_use", "spindle_use", _COUNT),
    _Column("spindles", "spindles", _Spindles(), lambda count: "-" if count is None else str(count)),
    _Column("forthcoming", "forthcoming", _Flag(), _yes),
)


def _table(name: str, columns: Sequence[_Column]) -> Table:
    """Return the table of some columns, which makes of a line the values by their fields."""
    fields = tuple(column.field for column in columns)
    rows = [Row(column.name, column.kind, required=True) for column in columns]
    return Table(name, rows, separator=", ", make=lambda *values: dict(zip(fields, values)))


def _line(columns: Iterable[_Column], of: Group | Node | Instance, **others: str) -> str:
    return "|".join(others[column.field] if column.field in others else column.written(getattr(of, column.field)) for column in columns)


_GROUP = _table("a group", _GROUP_COLUMNS)
_NODE = _table("a node", _NODE_COLUMNS)
_NODE_DEFAULTS = ("1", "", "N", "0", "1", "1.0", "")
_REPORTED = ("t_mem", "n_mem", "f_mem", "t_dsk", "f_dsk", "t_cpu")
_INSTANCE = _table("an instance", _INSTANCE_COLUMNS)
_INSTANCE_DEFAULTS = ("1", "-", "N")
_POLICY = Table(
    "a policy",
    [
        Row("owner", _TEXT, required=True),
        Row("standard spec", _Spec(), required=True),
        Row("min and max specs", _Intervals(), required=True),
        Row("disk templates", _Members(Word(DiskTemplate)), required=True),
        Row("vcpu_ratio", _NUMBER, required=True),
        Row("spindle_ratio", _NUMBER, required=True),
    ],
    separator=", ",
)
_Lines = list[tuple[int, str]]


def parse_text(text: str) -> Cluster:
    """Return the cluster that `text` describes; raise InputError with all mistakes, each with its line."""
    mistakes = Mistakes()
    sections = _split(text, mistakes)
    groups = {number: Group(**values) for number, values in _rows(sections[0], _GROUP, (None,), mistakes)}
    names = {group.uuid: group.name for group in groups.values()}
    node_rows = _rows(sections[1], _NODE, _NODE_DEFAULTS, mistakes, _complete_node)
    nodes = {number: _node(values, number, names, mistakes) for number, values in node_rows}
    instances = {number: _instance(values) for number, values in _rows(sections[2], _INSTANCE, _INSTANCE_DEFAULTS, mistakes)}
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
        says = f"the file ends after {len(sections)} of {_REQUIRED_SECTIONS} sections; missing: {missing} (an empty line ends a section)"
        mistakes.add(f"line {max(1, len(lines))}", says)
    return (sections + [[] for _section in _SECTIONS])[: len(_SECTIONS)]


def _rows(
    lines: _Lines,
    table: Table,
    defaults: Sequence[str | None],
    mistakes: Mistakes,
    complete: Callable[[dict[str, str]], dict[str, str]] = dict,
) -> Iterator[tuple[int, Values]]:
    """Yield what each line says with its number; `defaults` fill the last columns where they are missing, `complete` does the rest."""
    least = len(table.keys) - len(defaults)
    given = [(number, line.split("|")) for number, line in lines]
    whole = [(number, values) for number, values in given if len(values) >= least]
    filled = [complete(dict(zip(table.keys, values + _left_out(values, table, defaults)))) for _number, values in whole]
    read = read_each(table, filled, [f"line {number}" for number, _values in whole], mistakes)
    for number, values in given:
        if len(values) >= least:
            yield from zip([number], read)
        else:
            says = f"has {len(values)} columns instead of {least} to {len(table.keys)}: {', '.join(table.keys[:least])} ..."
            mistakes.add(f"line {number}", says)


def _left_out(values: Sequence[str], table: Table, defaults: Sequence[str | None]) -> list[str]:
    """Return what stands for the last columns of a line that leaves them out."""
    missing = len(table.keys) - len(values)
    return [value or "" for value in defaults[len(defaults) - missing :]] if missing > 0 else []


def _complete_node(columns: dict[str, str]) -> dict[str, str]:
    """Return the columns of a node; one that does not answer has ? for some of what it would report, and a role of its own."""
    if all(columns[name] != "?" for name in _REPORTED):
        return columns
    role = _SILENT if columns["role"] in ("N", "M") else columns["role"]
    return columns | dict.fromkeys((*_REPORTED, "n_cpu", "spindles", "free_spindles"), "0") | {"role": role, "tags": "", "cpu_speed": "1.0"}


def _node(values: Values, line: int, group_names: Mapping[str, str], mistakes: Mistakes) -> Node:
    fields = dict(values)
    uuid, role = fields["group"], fields.pop("role")
    if uuid not in group_names:
        mistakes.add(f"line {line}, group", f"unknown group {uuid!r}{suggest(uuid, group_names)}")
    states = {"offline": role == "Y" and not fields["drained"], "unreachable": role == _SILENT, "master": role == "M"}
    return Node(**fields | states | {"group": group_names.get(uuid, "")})


def _instance(values: Values) -> Instance:
    fields = dict(values)
    disk = Disk(fields["disk"], fields.pop("spindles"))
    return Instance(**fields, disks=(disk,))


def _policies(lines: _Lines, groups: set[str], mistakes: Mistakes) -> dict[str, Policy]:
    """Return the policies by owner; the cluster's owner is empty. A later line of the same owner wins, as in htools."""
    found = {}
    for number, values in _rows(lines, _POLICY, (), mistakes):
        owner, place = values["owner"], f"line {number}"
        if owner and owner not in groups:
            mistakes.add(f"{place}, owner", f"unknown group {owner!r}{suggest(owner, groups)}")
        found[owner] = Policy(
            intervals=values["min and max specs"],
            standard=values["standard spec"],
            disk_templates=values["disk templates"],
            vcpu_ratio=values["vcpu_ratio"],
            spindle_ratio=values["spindle_ratio"],
        )
    return found


_SHOWN_AS_FIXED = (0.1, 1e7)
"""Haskell's `show` writes numbers outside this range with an exponent."""


def write_text(cluster: Cluster) -> str:
    """Return the cluster in htools' text format; what the format cannot say (pools, loads, several disks) is left out.

    Raises InputError for tags that would be read as other tags, columns or lines.
    """
    # Raise InputError for tags that end a tag, a column or a line; all other texts of a cluster are names.
    owners: dict[str, Sequence[Group | Node | Instance]] = {
        "groups": cluster.groups,
        "nodes": cluster.nodes,
        "instances": cluster.instances,
    }
    tags = {"": cluster.tags} | {f"{kind}[{number}].": one.tags for kind, ones in owners.items() for number, one in enumerate(ones)}
    mistakes = Mistakes()
    for place, own in tags.items():
        for number, tag in enumerate(own):
            if not tag or not tag.isprintable() or any(end in tag for end in _ENDS):
                mistakes.add(
                    f"{place}tags[{number}]", f"is {shown(tag)}; the text of Ganeti has only tags without {' '.join(_ENDS)} and controls"
                )
    mistakes.check()
    uuids = {group.name: group.uuid for group in cluster.groups}
    sections = (
        [_line(_GROUP_COLUMNS, group) for group in cluster.groups],
        [_node_line(node, uuids[node.group]) for node in cluster.nodes],
        [_line(_INSTANCE_COLUMNS, instance) for instance in cluster.instances],
        list(cluster.tags),
        [_policy_line("", cluster.policy), *(_policy_line(group.name, group.policy) for group in cluster.groups)],
    )
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in sections)


def _node_line(node: Node, group_uuid: str) -> str:
    drained = node.state == NodeState.DRAINED
    role = "Y" if node.offline or drained else "M" if node.master else "N"
    columns = _NODE_COLUMNS if drained else _NODE_COLUMNS[:-1]
    line = _line(columns, node, role=role, group=group_uuid, drained=NodeState.DRAINED)
    if node.state != NodeState.UNREACHABLE:
        return line
    name, *reported = line.split("|")
    return "|".join((name, *(_SILENT,) * 3, *reported[3:]))


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


def _shown(number: float) -> str:
    """Return `number` as Haskell's `show` writes it."""
    low, high = _SHOWN_AS_FIXED
    if number == 0 or low <= abs(number) < high:
        return _fixed(number)
    _sign, digits, exponent = Decimal(repr(float(number))).normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if number < 0 else ''}{digits[0]}.{rest}e{int(exponent) + len(digits) - 1}"
