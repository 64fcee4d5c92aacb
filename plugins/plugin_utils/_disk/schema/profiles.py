# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Profiles, the seed's "way to store best practices": dynamic schemas in files, and a user's own wishes merged into them."""

from __future__ import annotations

import functools
import os
import typing as t
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from ....module_utils._data.containers import Row, Table, read_all
from ....module_utils._data.errors import InputError, Mistake, Mistakes, suggest
from ....module_utils._data.kinds import Text, Word, kind_of, shown
from ..._common.paths import why_no_path

PROFILES = Path(__file__).resolve().parents[1] / "profiles"
"""The folder of the profiles that have a name."""
# libyaml's where PyYAML was built with it, which is ten times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SUFFIXES = (".yml", ".yaml")
_ABSENT, _PRESENT = "absent", "present"
_LARGEST, _DEEPEST = 100_000, 50
"""So much is in no profile: a few aliases of YAML stand for more than a machine can hold."""
_LETTERS = 100
"""Letters of a text that count as a value."""
_IDLE = Text()
_BOUNDS = ("min_size", "max_size")
_WISH = Table("an override", [Row("id", Text(), required=True), Row("state", Word((_PRESENT, _ABSENT)), default=_PRESENT)], others=True)


def find_profile(name: str, folder: Path, bases: Sequence[Path]) -> Path:
    """Return the file of a profile: a bare name is one of `folder`, everything else a path, relative to the first of `bases` that has it.

    Raises InputError that names the profiles there are.
    """
    is_path = "/" in name or name.endswith(_SUFFIXES)
    if says := why_no_path(name if is_path else f"{name}.yml"):
        raise InputError([Mistake("profile", f"is {shown(name)}; {says}")])
    paths = [base / os.path.expanduser(name) for base in bases] if is_path else [folder / f"{name}.yml"]
    for path in paths:
        # Unlike the method of a path, it returns False for an inaccessible path in all releases of Python.
        if os.path.isfile(path):
            return path
    if is_path:
        raise InputError([Mistake("profile", f"there is no file {' or '.join(dict.fromkeys(repr(str(path)) for path in paths))}")])
    known = sorted(file.stem for file in folder.glob("*.yml"))
    raise InputError([Mistake("profile", f"there is no profile {name!r}{suggest(name, known)}; there are {', '.join(known) or 'none'}")])


def load_profile(path: Path) -> list[t.Any]:
    """Return the dynamic schema of a profile's file, as `read_profile` gives it."""
    return t.cast("list[t.Any]", read_profile(path)["schema"])


def read_profile(path: Path) -> Mapping[str, t.Any]:
    """Return what a profile's file says: a mapping with the list of spaces as `schema`, or a file that is such a list by itself.

    `description`, `why`, the reasons by the id of the space, `idle`, a remark on disks that it puts nothing on, and `eligible` are there
    where the file has them.
    All values are read-only: every call returns the same objects. Raises InputError when it cannot be read.
    """
    place = f"profile {path.name}"
    try:
        content = _content(path, path.stat().st_mtime_ns)
    except (OSError, OverflowError, RecursionError, TypeError, ValueError, yaml.YAMLError) as error:
        # A reader of YAML raises more than its own errors: for dates that are none, numbers of thousands of digits, lists as keys.
        raise InputError([Mistake(place, f"cannot be read: {error}")]) from error
    schema = content.get("schema") if isinstance(content, Mapping) else content
    if not isinstance(schema, list):
        raise InputError([Mistake(place, f"has {kind_of(schema)} where the list of spaces should be, under 'schema' or by itself")])
    return content if isinstance(content, Mapping) else {"schema": schema}


def parse_idle(value: t.Any, place: str = "idle") -> str:
    """Return what a profile says of disks that it puts nothing on, nothing where it says nothing. Raises InputError."""
    return " ".join(str(read_all(_IDLE, "" if value is None else value, place)).split())


@functools.lru_cache(maxsize=64)
def _content(path: Path, _modified: int) -> t.Any:
    content = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    size, depth = _extent(content, {})
    if size > _LARGEST or depth > _DEEPEST:
        raise ValueError(f"with its aliases it has {size} values, {depth} deep; a profile may have {_LARGEST}, {_DEEPEST} deep")
    return content


def _extent(value: t.Any, known: dict[int, tuple[int, int]], above: int = 0) -> tuple[int, int]:
    """Return how many values there are when all aliases are written out, long texts as several, and how deep. Raises ValueError."""
    if above > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} deep, or holds itself")
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, set)) else ()
        found = [_extent(one, known, above + 1) for one in inner]
        own = 1 + (len(value) // _LETTERS if isinstance(value, str) else 0)
        known[id(value)] = (own + sum(size for size, _depth in found), 1 + max((depth for _size, depth in found), default=0))
    return known[id(value)]


def merge(schema: t.Any, overrides: t.Any) -> list[t.Any]:
    """Return the schema with overrides merged into it by `id`; neither is changed.

    An entry whose id the schema has changes the keys that it has; `size` replaces the bounds and the other way round.
    `state: absent` takes the space out, of its vg as well. All others are added at the end.
    Raises InputError.
    """
    mistakes = Mistakes()
    if not isinstance(schema, (list, tuple)):
        mistakes.add("schema", f"is {kind_of(schema)}; must be a list of spaces, each with 'id' and 'type'")
    if not isinstance(overrides, (list, tuple)):
        mistakes.add("overrides", f"is {kind_of(overrides)}; must be a list of spaces, each with 'id'")
    mistakes.check()
    known = [entry.get("id") for entry in schema if isinstance(entry, Mapping)]
    wishes = _wishes(overrides, known, mistakes)
    mistakes.check()
    merged = [_merged(entry, wishes) for entry in schema if _state(entry, wishes) != _ABSENT]
    added = [_without_state(wish) for space_id, wish in wishes.items() if space_id not in known]
    absent = {space_id for space_id, wish in wishes.items() if wish.get("state") == _ABSENT}
    return [_without_members(entry, absent) for entry in [*merged, *added]]


def _wishes(overrides: Sequence[t.Any], known: Sequence[t.Any], mistakes: Mistakes) -> dict[str, Mapping[str, t.Any]]:
    wishes: dict[str, Mapping[str, t.Any]] = {}
    for position, wish in enumerate(overrides):
        place = f"overrides[{position}]"
        values = _WISH.read_nested(wish, place, mistakes)
        if any(mistakes.has(f"{place}.{key}") for key in ("id", "state")):
            continue
        name = values["id"]
        if name in wishes:
            mistakes.add(f"{place}.id", f"{name!r} occurs twice; write one entry with all its keys")
        elif name not in known and (values["state"] == _ABSENT or "type" not in wish):
            hint = suggest(name, [str(one) for one in known])
            mistakes.add(f"{place}.id", f"there is no space {name!r}{hint}; a new one needs a 'type'")
        else:
            wishes[name] = wish
    return wishes


def _state(entry: t.Any, wishes: Mapping[str, Mapping[str, t.Any]]) -> str:
    wish = wishes.get(str(entry.get("id")), {}) if isinstance(entry, Mapping) else {}
    return str(wish.get("state", _PRESENT))


def _merged(entry: t.Any, wishes: Mapping[str, Mapping[str, t.Any]]) -> t.Any:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str) or entry["id"] not in wishes:
        return entry
    wish = wishes[entry["id"]]
    replaced = _BOUNDS if "size" in wish else ("size",) if any(bound in wish for bound in _BOUNDS) else ()
    return {key: value for key, value in entry.items() if key not in replaced} | _without_state(wish)


def _without_state(wish: Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {key: value for key, value in wish.items() if key != "state"}


def _without_members(entry: t.Any, absent: set[str]) -> t.Any:
    if not absent or not isinstance(entry, Mapping) or not isinstance(entry.get("contains"), (list, tuple)):
        return entry
    return {**entry, "contains": [member for member in entry["contains"] if _member_id(member) not in absent]}


def _member_id(member: t.Any) -> str | None:
    """Return the id of a member, none for a value that can be no id, which the schema's reader reports."""
    found = member.get("id") if isinstance(member, Mapping) else member
    return found if isinstance(found, str) else None
