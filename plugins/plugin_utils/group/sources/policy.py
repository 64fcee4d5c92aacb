# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Policies as Ganeti writes them in JSON; what is left out is taken from a base policy. `_` may stand for `-` in names.

Ganeti's releases differ in what a policy has; keys that are not known are nobody's mistake unless a person has written them.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..cluster.model import DiskTemplate, Policy, Spec, SpecInterval
from .fields import Fields

_SPEC_KEYS = {
    "memory": "memory-size",
    "cpus": "cpu-count",
    "disk_size": "disk-size",
    "disk_count": "disk-count",
    "nics": "nic-count",
    "spindle_use": "spindle-use",
}
_KEYS = ("minmax", "std", "disk-templates", "vcpu-ratio", "spindle-ratio")
_SIZES = frozenset({"memory", "disk_size"})


def read_policy(owner: Fields, name: str, base: Policy) -> Policy:
    """Return the policy in the field `name` of its owner, completed from `base`; a missing one is `base` itself."""
    if name not in owner:
        return base
    fields = _dashed(owner.child(name))
    return Policy(
        intervals=_read_intervals(fields, base),
        standard=_read_spec(fields, "std", base.standard),
        disk_templates=_read_templates(fields, base),
        vcpu_ratio=fields.number("vcpu-ratio", base.vcpu_ratio),
        spindle_ratio=fields.number("spindle-ratio", base.spindle_ratio),
    )


def refuse_unknown(owner: Fields, name: str) -> None:
    """Add a mistake for every key of a policy that read_policy does not look at; what has another shape is for read_policy to tell."""
    if not isinstance(owner.raw(name), Mapping):
        return
    fields = _dashed(owner.child(name))
    fields.only(_KEYS)
    pairs = fields.raw("minmax")
    mappings = fields.children("minmax") if _all_mappings(pairs) else []
    for parent, key in ((fields, "std"), *((pair, end) for pair in mappings for end in ("min", "max"))):
        if isinstance(parent.raw(key), Mapping):
            _dashed(parent.child(key)).only(_SPEC_KEYS.values())


def _all_mappings(items: t.Any) -> bool:
    return isinstance(items, list) and all(isinstance(item, Mapping) for item in items)


def _read_intervals(fields: Fields, base: Policy) -> tuple[SpecInterval, ...]:
    if "minmax" not in fields:
        return base.intervals
    first = (base.intervals or Policy().intervals)[0]
    low, high = first.minimum, first.maximum
    return tuple(SpecInterval(_read_spec(pair, "min", low), _read_spec(pair, "max", high)) for pair in fields.children("minmax"))


def _read_spec(owner: Fields, name: str, base: Spec) -> Spec:
    fields = _dashed(owner.child(name))
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
