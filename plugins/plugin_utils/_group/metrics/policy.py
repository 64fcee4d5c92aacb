# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether an instance lies within a group's policy, and if not, which of its fields lie outside and by how much."""

from __future__ import annotations

from dataclasses import dataclass

from ..cluster.model import DiskTemplate, Instance, Policy, Spec
from .limits import Limit


@dataclass(frozen=True)
class PolicyFailure:
    """A field of an instance that lies outside the policy; `short` is by how much, negative when it is too small."""

    limit: Limit
    says: str
    short: int


def policy_failures(instance: Instance, policy: Policy, exclusive: bool) -> tuple[PolicyFailure, ...]:
    """Return what keeps an instance out of a policy: nothing, or the failures of the interval it comes closest to.

    Raises nothing; an interval is close when few of its fields fail. On nodes with `exclusive` storage the physical
    spindles are compared, elsewhere the spindle use.
    """
    closest = min((_outside(instance, interval.minimum, interval.maximum, exclusive) for interval in policy.intervals), key=len)
    if instance.disk_template in policy.disk_templates:
        return closest
    allowed = ", ".join(policy.disk_templates)
    return (*closest, PolicyFailure(Limit.TEMPLATE, f"disk template {instance.disk_template} is not one of {allowed}", 0))


def _outside(instance: Instance, low: Spec, high: Spec, exclusive: bool) -> tuple[PolicyFailure, ...]:
    diskless = instance.disk_template == DiskTemplate.DISKLESS
    sizes = [disk.size for disk in instance.disks] or ([] if diskless else [instance.disk])
    checks = [(Limit.MEMORY, "memory", instance.memory, low.memory, high.memory)]
    checks += [(Limit.DISK, f"disk {number}", size, low.disk_size, high.disk_size) for number, size in enumerate(sizes)]
    checks += [(Limit.CPUS, "vcpus", instance.vcpus, low.cpus, high.cpus)]
    failures = [_bounded(*check) for check in checks]
    if not exclusive:
        failures.append(_bounded(Limit.SPINDLE_USE, "spindle use", instance.spindle_use, low.spindle_use, high.spindle_use))
    elif instance.spindles is None:
        failures.append(PolicyFailure(Limit.SPINDLES, "spindles are unknown, but the node has exclusive storage", 0))
    else:
        failures.append(_bounded(Limit.SPINDLES, "spindles", instance.spindles, low.spindle_use, high.spindle_use))
    if not diskless:
        failures.append(_bounded(Limit.DISK_COUNT, "number of disks", len(sizes), low.disk_count, high.disk_count))
    return tuple(failure for failure in failures if failure is not None)


def _bounded(limit: Limit, name: str, value: int, low: int, high: int) -> PolicyFailure | None:
    if low <= value <= high:
        return None
    return PolicyFailure(limit, f"{name} {value} is not within {low} and {high}", value - high if value > high else value - low)
