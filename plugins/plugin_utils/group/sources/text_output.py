# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writing htools' text format, byte for byte as `hbal -S FILE` writes it; reading is in text.py."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from ..cluster.model import Cluster, Group, Instance, Node, Policy, Spec

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
            _spec(policy.standard),
            ";".join(_spec(corner) for corner in corners),
            ",".join(policy.disk_templates),
            _shown(policy.vcpu_ratio),
            _shown(policy.spindle_ratio),
        ),
    )


def _spec(spec: Spec) -> str:
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
