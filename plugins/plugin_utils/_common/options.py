# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mistakes, with places, in options that would crash Ansible's own validation of a task."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ...module_utils._data.errors import Mistakes, Place
from ...module_utils._data.kinds import is_number, shown
from .paths import why_no_path

Spec = Mapping[str, t.Any]
"""An argument spec, as AnsibleModule takes it."""


def refuse_unreadable(options: Mapping[str, t.Any], spec: Spec) -> None:
    """Raise InputError for numbers that cannot be converted, paths that no file can have, and what must be a mapping and is none."""
    mistakes = Mistakes()
    _look_into(options, spec, "", mistakes)
    mistakes.check()


def _look_into(options: Mapping[str, t.Any], spec: Spec, place: Place, mistakes: Mistakes) -> None:
    for name, value in options.items():
        rule = spec.get(name)
        if rule is None or value is None:
            continue
        where = (place, ".", name)
        if rule.get("type") in ("int", "float") and not _is_usable(value):
            mistakes.add(where, f"is {shown(value)}; must be a number")
        elif rule.get("type") == "path" and (says := why_no_path(value) if isinstance(value, str) else "must be the path of a file"):
            mistakes.add(where, f"is {shown(value)}; {says}")
        elif "options" in rule:
            _look_into_each(value, rule, where, mistakes)


def _is_usable(value: t.Any) -> bool:
    """Return whether a number can be computed with, also as text; Ansible reports values that are no numbers at all."""
    try:
        return is_number(float(value)) if isinstance(value, str) else not isinstance(value, (int, float)) or is_number(value)
    except ValueError:
        return True


def _look_into_each(value: t.Any, rule: Spec, place: Place, mistakes: Mistakes) -> None:
    """Look into the mapping, or each mapping of the list, that an option with options of its own is."""
    if rule.get("type") == "list" and isinstance(value, (list, tuple)):
        parts: list[tuple[Place, t.Any]] = [((place, "[", number), part) for number, part in enumerate(value)]
    else:
        parts = [(place, value)]
    for where, part in parts:
        if isinstance(part, Mapping):
            unknown = [key for key in part if not isinstance(key, str)]
            for key in unknown:
                mistakes.add((where, ".", str(key)), f"is not an option; there are {', '.join(rule['options'])}")
            _look_into(part, rule["options"], where, mistakes)
        elif not isinstance(part, str):
            # Ansible reads text as `key=value` or JSON, and says what is wrong with it.
            mistakes.add(where, f"is {shown(part)}; must be a mapping")
