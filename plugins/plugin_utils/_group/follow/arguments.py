# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the arguments of group_follow ask for, read with all mistakes."""

from __future__ import annotations

import typing as t
import zoneinfo
from collections.abc import Mapping, Sequence
from datetime import time, timedelta, tzinfo

from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import HUGE, refuse_less
from .condition import Measure, Resource
from .decide import Rules
from .windows import DAYS, Window, Windows

_LEAST = {"threshold": 0, "target": 0, "confirm": 0, "cooldown": 0, "rest": 0, "urgent_polls": 1}
_SPANS = ("confirm", "cooldown", "rest")
_LONGEST = 10 * 365 * 86400
_USUAL_THRESHOLD = 0.15
_USUAL_POLLS = 2
_MINUTES = 24 * 60
_MOST_PERCENT = 1000
"""Virtual CPUs may be many times the CPUs."""


def read_above(given: Mapping[str, float | None] | None, *, measured: bool, mistakes: Mistakes) -> tuple[tuple[Resource, float], ...]:
    """Return per cents of a node as shares of each resource; CPU is load where it is `measured`, virtual CPUs otherwise."""
    known = {"memory": Resource.MEMORY, "disk": Resource.DISK, "cpu": Resource.CPU_LOAD if measured else Resource.CPUS}
    found = [(known[name], percent) for name, percent in (given or {}).items() if percent is not None]
    for name, percent in (given or {}).items():
        if percent is not None and not 0 < percent <= _MOST_PERCENT:
            mistakes.add(f"above.{name}", f"is {percent:g}; must be per cents of a node, above 0 and at most {_MOST_PERCENT}")
    if given is not None and not found:
        mistakes.add("above", f"is empty; give per cents of a node for one of {', '.join(known)}")
    return tuple((resource, percent / 100) for resource, percent in found)


def read_rules(arguments: Mapping[str, t.Any], mistakes: Mistakes) -> Rules:
    """Return when a group is changed; what is wrong is added to the mistakes."""
    refuse_less(arguments, _LEAST, mistakes)
    spans = {name: _span(arguments.get(name), name, mistakes) for name in _SPANS}
    threshold, target = arguments.get("threshold"), arguments.get("target")
    if arguments.get("above") is not None:
        for name in ("threshold", "target"):
            if arguments.get(name) is not None:
                mistakes.add(name, "has no meaning with above: a group is balanced while a node is above, and until none is")
        threshold = target = 0.0
    if threshold is None:
        threshold = _USUAL_THRESHOLD
        if arguments.get("measure") == Measure.SCORE:
            mistakes.add("threshold", "is missing; with measure: score it must be a score, such as group_info reports on a good day")
    if target is None:
        target = threshold / 2
    if target > threshold:
        mistakes.add("target", f"is {target:g}, which is above the threshold of {threshold:g}; must be at most that")
    return Rules(
        threshold=threshold,
        target=target,
        confirm=spans["confirm"],
        cooldown=spans["cooldown"],
        rest=spans["rest"],
        urgent_polls=_USUAL_POLLS if arguments.get("urgent_polls") is None else arguments["urgent_polls"],
        windows=Windows(_windows(arguments.get("windows") or (), mistakes), _zone(arguments.get("timezone"), mistakes)),
    )


def _span(seconds: float | None, name: str, mistakes: Mistakes) -> timedelta:
    if seconds is None or not 0 <= seconds <= _LONGEST:
        if seconds is not None and _LONGEST < seconds < HUGE:
            mistakes.add(name, f"is {seconds:g}; must be at most {_LONGEST}, which are ten years in seconds")
        return timedelta()
    return timedelta(seconds=seconds)


def _zone(name: str | None, mistakes: Mistakes) -> tzinfo | None:
    if not name:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        mistakes.add("timezone", f"is {name!r}, which this controller does not know; must be one such as UTC or Europe/Berlin")
        return None


def _windows(given: Sequence[Mapping[str, t.Any]], mistakes: Mistakes) -> tuple[Window, ...]:
    found = []
    for position, window in enumerate(given):
        begin, end = (_time(window.get(name), f"windows[{position}].{name}", mistakes) for name in ("from", "to"))
        days = frozenset(DAYS.index(day) for day in window.get("days") or DAYS)
        found.append(Window(days, begin, end))
    return tuple(found)


def _time(given: t.Any, place: str, mistakes: Mistakes) -> time:
    """Return a time of the day; YAML reads 22:00 without quotes as 1320, which is its minutes."""
    text = str(given)
    hours, colon, minutes = text.partition(":") if ":" in text else ("0", "", text)
    total = int(hours) * 60 + int(minutes) if hours.isdecimal() and minutes.isdecimal() and len(text) <= len("00:00") else _MINUTES + 1
    if total > _MINUTES or (colon and int(minutes) >= 60):
        mistakes.add(place, f"is {text!r}; must be a time of the day such as '22:00'")
        return time()
    return time(total // 60 % 24, total % 60)
