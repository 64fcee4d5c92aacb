# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Ganeti says of groups, nodes and instances in JSON: the rows that RAPI and IAllocator share, and what is made of them.

What a node that is offline, or does not answer, would report is 0. Only Ganeti's own flag makes a node offline; one that does not answer
without it is unreachable, and one that is not to run instances is drained.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ....module_utils._data.containers import Row, Table, Values
from ....module_utils._data.kinds import Word
from ..._common.lenient import STRINGS, TRUTH, WHOLE
from ..cluster.model import AllocPolicy, DiskTemplate, Group, Node, Policy
from .policy import make_policy

KVM_NODE_MEMORY = 4096
"""MiB that a KVM node is taken to need for itself; htools' default of --static-kvm-node-memory."""

ALLOC_POLICY, TAGS = Row("alloc_policy", Word(AllocPolicy), required=True), Row("tags", STRINGS, default=())
DISK_TEMPLATE, FORTHCOMING = Row("disk_template", Word(DiskTemplate), required=True), Row("forthcoming", TRUTH, default=False)
SPINDLE_USE = Row("spindle_use", WHOLE, default=1)
_PARAMETERS = Table(
    "a node's parameters",
    [Row("exclusive_storage", TRUTH, default=False), Row("spindle_count", WHOLE, default=1)],
    others=True,
)
NODE_ROWS = (
    Row("offline", TRUTH, required=True),
    Row("drained", TRUTH, required=True),
    Row("vm_capable", TRUTH, default=True),
    TAGS,
    Row("ndparams", _PARAMETERS, default=_PARAMETERS.blank),
)


class Report:
    """What a node reports while it answers: for each field of a Node the row that has it."""

    def __init__(self, **rows: Row) -> None:
        self._fields = tuple((field, row.name) for field, row in rows.items())
        self.table = Table("a node", rows.values(), others=True)

    def fields(self, values: Values | None) -> dict[str, t.Any]:
        """Return the fields of what the table has read; None is what a node that reports nothing has."""
        known = self.table.blank if values is None else values
        return {field: known[name] for field, name in self._fields}


def node_memory(hypervisor: str) -> int | None:
    """Return the MiB that a node itself uses, whatever it reports; None where what it reports is right."""
    return KVM_NODE_MEMORY if hypervisor == "kvm" else None


def may_run(values: Values) -> bool:
    """Whether a node, as NODE_ROWS have it, is to run instances."""
    return not values["offline"] and values["vm_capable"]


def make_node(name: str, group: str, values: Values, report: Mapping[str, t.Any], *, unreachable: bool, master: bool = False) -> Node:
    """Return the node of what NODE_ROWS have read, and of the fields that it reports."""
    # Without exclusive storage Ganeti counts no spindles; they are a parameter.
    parameters = values["ndparams"]
    exclusive = parameters["exclusive_storage"]
    own = report if exclusive else {**report, "spindles": parameters["spindle_count"]}
    return Node(
        name=name,
        group=group,
        **own,
        offline=values["offline"],
        drained=values["drained"] or not values["vm_capable"],
        unreachable=unreachable,
        master=master,
        tags=values["tags"],
        exclusive_storage=exclusive,
    )


def make_group(uuid: str, values: Values, policy: Policy) -> Group:
    """Return the group of what a table has read; `policy` is the cluster's."""
    return Group(
        name=values["name"],
        uuid=uuid,
        alloc_policy=values["alloc_policy"],
        tags=values["tags"],
        networks=values.get("networks", ()),
        policy=make_policy(values["ipolicy"], policy),
    )
