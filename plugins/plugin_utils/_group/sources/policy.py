# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Policies as Ganeti writes them in JSON; what is left out is taken from a base policy. `_` may stand for `-` in names.

Ganeti's releases differ in what a policy has; keys that are not known are nobody's mistake unless a person has written them.
"""

from __future__ import annotations

from ....module_utils._data.containers import ListOf, Row, Table, Values
from ....module_utils._data.kinds import Number, Size, Whole, Word
from ..cluster.model import DiskTemplate, Policy, Spec, SpecInterval

_SPEC = {
    "memory": Row("memory-size", Size(), "MiB of memory."),
    "cpus": Row("cpu-count", Whole(digits=True), "Virtual CPUs."),
    "disk_size": Row("disk-size", Size(), "MiB of each disk."),
    "disk_count": Row("disk-count", Whole(digits=True), "Number of disks."),
    "nics": Row("nic-count", Whole(digits=True), "Number of network interfaces."),
    "spindle_use": Row("spindle-use", Whole(digits=True), "Weight of the instance's use of spindles."),
}


def _policy_table(others: bool) -> Table:
    spec = Table("a spec", _SPEC.values(), others=others, dashes=True)
    pair = Table("a pair of min and max", [Row("min", spec, "The least."), Row("max", spec, "The most.")], others=others)
    rows = [
        Row("minmax", ListOf(pair, "pairs of min and max"), "What sizes instances may have: those between the ends of any pair."),
        Row("std", spec, "The usual instance."),
        Row("disk-templates", ListOf(Word(DiskTemplate)), "The disk templates that instances may have."),
        Row("vcpu-ratio", Number(digits=True), "Virtual CPUs for each physical one."),
        Row("spindle-ratio", Number(digits=True), "Weight of uses for each spindle."),
    ]
    return Table("a policy", rows, others=others, dashes=True)


POLICY = _policy_table(others=False)
"""A policy that a person has written."""
GANETI_POLICY = _policy_table(others=True)


def make_policy(values: Values | None, base: Policy) -> Policy:
    """Return the policy of what a table has read, completed from `base`; None is `base` itself."""
    if values is None:
        return base
    templates, vcpus, spindles = (values[name] for name in ("disk-templates", "vcpu-ratio", "spindle-ratio"))
    return Policy(
        intervals=_intervals(values["minmax"], base),
        standard=_spec(values["std"], base.standard),
        disk_templates=base.disk_templates if templates is None else templates,
        vcpu_ratio=base.vcpu_ratio if vcpus is None else vcpus,
        spindle_ratio=base.spindle_ratio if spindles is None else spindles,
    )


def _intervals(pairs: tuple[Values, ...] | None, base: Policy) -> tuple[SpecInterval, ...]:
    if pairs is None:
        return base.intervals
    first = (base.intervals or Policy().intervals)[0]
    return tuple(SpecInterval(_spec(pair["min"], first.minimum), _spec(pair["max"], first.maximum)) for pair in pairs)


def _spec(values: Values | None, base: Spec) -> Spec:
    if values is None:
        return base
    return Spec(**{field: getattr(base, field) if values[row.name] is None else values[row.name] for field, row in _SPEC.items()})
