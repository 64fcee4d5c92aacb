# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a space is as large as it is and where it is: what its schema asked for, in sentences."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping

from ....module_utils._data.units import format_mib, parse_mib
from ....module_utils._data.words import listed
from ....module_utils._storage.lvm import EXTENT

Plain = Mapping[str, t.Any]

LONGEST_EXPRESSION = 60
_IN_WORDS = (
    (re.compile(r"\$\.disks\.orderForSystem\(\)\.take\(1\)"), "the best disk for a system"),
    (re.compile(r"\$\.disks\.systemDisks\(\)"), "the best disk for a system and its twin"),
    (re.compile(r"\$\.disks\.systemPair\(\)"), "the two best disks for a system on a mirror"),
    (re.compile(r"\$\.disks\.withTwin\(\)"), "the first disk and its twin"),
    (re.compile(r"\$\.disks\.dataDisks\(\)"), "the disks that a system leaves over"),
    (re.compile(r"\$\.disks\.dataDisks\(\)\.alike\(\)"), "the largest group alike of the disks that a system leaves over"),
    (re.compile(r"\$\.disks\.dataDisks\(\)\.prefer\((\w+)\)"), r"the disks that a system leaves over, \1 if there are any"),
    (re.compile(r"\$\.disks\.dataDisks\(\)\.where\(\$\.type = (\w+)\)"), r"the disks of type \1 that a system leaves over"),
    (re.compile(r"\$\.disks\.arrayDisks\((\w+)\)"), r"the largest group of data disks alike, \1 if there are two"),
    (re.compile(r"\$\.disks\.sameKind\(\)"), "the largest group of disks of one kind"),
    (re.compile(r"\$\.disks\.where\(\$\.type = (\w+)\)"), r"disks of type \1"),
    (re.compile(r"recommendedSwap\(.*\)"), "the swap that is recommended for its memory"),
)
"""What usual expressions mean; see schema/functions.py."""


def reasons_of(wanted: Plain | None, size: int, remark: str | None = None) -> tuple[str, ...]:
    """Return the reasons of one space: the profile's remark, its bounds and whether they bind, weight, disks.

    `wanted` is the space's entry in the dynamic schema as it was written, None when the planner added the space by itself.
    """
    reasons = [str(remark).strip()] if remark else []
    if wanted is None:
        return tuple(reasons)
    reasons += _bounds(wanted, size)
    if "weight" in wanted:
        weight = wanted["weight"]
        reasons.append(
            "never grows beyond its minimum (weight 0)" if weight == 0 else f"takes its share of what is left with weight {_text(weight)}"
        )
    for key, words in (("disks", "must be on"), ("best_with_disks", "prefers"), ("avoid_disks", "stays away from")):
        if wanted.get(key) not in (None, [], ""):
            reasons.append(f"{words} {_disks(wanted[key])}")
    for key, words in (("apart_from", "shares no disk with"), ("together_with", "only on disks of")):
        if wanted.get(key) not in (None, [], ""):
            others = wanted[key] if isinstance(wanted[key], (list, tuple)) else [wanted[key]]
            reasons.append(f"{words} {listed([_text(name) for name in others])}")
    if wanted.get("max_pvs") is not None:
        reasons.append(f"on {_text(wanted['max_pvs'])} disks at most" if wanted["max_pvs"] != 1 else "on one disk")
    if wanted.get("overcommit") is not None:
        reasons.append(f"its volumes may come to {_text(wanted['overcommit'])} times its size")
    if wanted.get("count") is not None:
        reasons.append(f"one of {_expression(wanted['count'], 'several')} alike, on disks of its own")
    if wanted.get("spares"):
        spares = _expression(wanted["spares"], "as many as an expression gives")
        reasons.append("with one spare disk" if spares == "1" else f"spare disks: {spares}")
    if wanted.get("mirror") is not None:
        reasons.append("on a mirror" + (", if possible" if wanted["mirror"] == "when_possible" else ""))
    for key, words in (
        ("boot", "the machine starts from it"),
        ("encrypt", "encrypted with LUKS"),
        ("keep_data", "kept as it is, with its data"),
    ):
        if wanted.get(key) is True:
            reasons.append(words)
    if wanted.get("per_disk") not in (None, False):
        number = wanted["per_disk"] if wanted["per_disk"] is not True else 1
        reasons.append("one on every disk of its set" if number == 1 else f"{_text(number)} on every disk of its set")
    if isinstance(wanted.get("keep"), Mapping):
        reasons += [f"keeps the partition with the {key} {_text(value)}" for key, value in wanted["keep"].items()]
    if isinstance(wanted.get("unlock"), (list, tuple)):
        methods = [str(method.get("method")) for method in wanted["unlock"] if isinstance(method, Mapping)]
        reasons += [f"opened by {listed(methods).replace(' and ', ' or ')}"] if methods else []
    return tuple(reasons)


def _bounds(wanted: Plain, size: int) -> list[str]:
    if wanted.get("size") is not None:
        return [f"asked for exactly {_size(wanted['size'])}"]
    reasons = []
    for key, words, reached in (("min_size", "at least", "no larger than it must be"), ("max_size", "at most", "as large as it may be")):
        if wanted.get(key) is not None:
            bound = _in_mib(wanted[key])
            # A volume is rounded to whole extents.
            binds = bound is not None and abs(size - bound) < EXTENT
            reasons.append(f"{words} {_size(wanted[key])}{f': {reached}' if binds else ''}")
    return reasons


def _in_mib(value: t.Any) -> float | None:
    if isinstance(value, (int, float)):
        return float(value)
    try:
        return float(parse_mib(str(value)))
    except ValueError:
        return None


def _size(value: t.Any) -> str:
    mib = _in_mib(value)
    return format_mib(mib) if mib is not None else _expression(value, "what an expression gives")


def _disks(value: t.Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", else ".join(_disks(item) for item in value)
    return _expression(value, "disks that an expression chooses")


def _expression(value: t.Any, instead: str) -> str:
    """Return an expression in words where it is a usual one, or what to say instead of a long one, which explains nothing at a glance."""
    text = _text(value)
    if not text.startswith("yaql"):
        return text
    source = text.split("=", 1)[-1].strip()
    for pattern, words in _IN_WORDS:
        found = pattern.fullmatch(source)
        if found:
            return found.expand(words)
    return source if len(source) <= LONGEST_EXPRESSION else instead


def _text(value: t.Any) -> str:
    return " ".join(str(value).split())
