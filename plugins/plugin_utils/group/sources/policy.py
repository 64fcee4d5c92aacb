# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Policies as Ganeti writes them in JSON; what is left out is taken from a base policy. `_` may stand for `-` in names."""

from __future__ import annotations

from ..model import DiskTemplate, Policy, Spec, SpecInterval
from .fields import Fields

_SPEC_KEYS = {
    "memory": "memory-size",
    "cpus": "cpu-count",
    "disk_size": "disk-size",
    "disk_count": "disk-count",
    "nics": "nic-count",
    "spindle_use": "spindle-use",
}
_SIZES = frozenset({"memory", "disk_size"})


def read_policy(owner: Fields, name: str, base: Policy) -> Policy:
    """Return the policy in the field `name` of its owner, completed from `base`; a missing one is `base` itself."""
    if name not in owner:
        return base
    fields = _dashed(owner.child(name))
    fields.only(("minmax", "std", "disk-templates", "vcpu-ratio", "spindle-ratio"))
    return Policy(
        intervals=_read_intervals(fields, base),
        standard=_read_spec(fields, "std", base.standard),
        disk_templates=_read_templates(fields, base),
        vcpu_ratio=fields.number("vcpu-ratio", base.vcpu_ratio),
        spindle_ratio=fields.number("spindle-ratio", base.spindle_ratio),
    )


def _read_intervals(fields: Fields, base: Policy) -> tuple[SpecInterval, ...]:
    if "minmax" not in fields:
        return base.intervals
    first = (base.intervals or Policy().intervals)[0]
    low, high = first.minimum, first.maximum
    return tuple(SpecInterval(_read_spec(pair, "min", low), _read_spec(pair, "max", high)) for pair in fields.children("minmax"))


def _read_spec(owner: Fields, name: str, base: Spec) -> Spec:
    fields = _dashed(owner.child(name))
    fields.only(_SPEC_KEYS.values())
    values = {field: (fields.size if field in _SIZES else fields.integer)(key, getattr(base, field)) for field, key in _SPEC_KEYS.items()}
    return Spec(**values)


def _read_templates(fields: Fields, base: Policy) -> tuple[DiskTemplate, ...]:
    known = {str(template): template for template in DiskTemplate}
    names = fields.strings("disk-templates", base.disk_templates)
    for name in names:
        if name not in known:
            fields.wrong("disk-templates", f"{name!r} is none of {', '.join(known)}")
    return tuple(known[name] for name in names if name in known)


def _dashed(fields: Fields) -> Fields:
    return Fields({str(name).replace("_", "-"): fields.raw(name) for name in fields.names()}, fields.place, fields.mistakes)
