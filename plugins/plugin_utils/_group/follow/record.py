# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is kept between runs: since when groups are uneven, when something was last moved, and moves that may be under way.

    record = read_record(kept)          # empty if nothing is kept; one message for all that is wrong with it
    write_record(kept, record)          # the old one stays until the new one is complete

Times are those of the caller's clock, with a time zone; what is kept has them in UTC, to the second.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import StrEnum

from ....module_utils._data.containers import ListOf, MappingOf, Row, Table
from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.kinds import Anything, Kind, Number, Text, Truth, Whole, Word
from ..plan.kept import Kept
from ..plan.read import read_plan
from ..plan.steps import MovePlan

VERSION = 1
_FIRST_YEAR, _LAST_YEAR = 1970, 9000


class Purpose(StrEnum):
    """What moves are for."""

    REPAIR = "repair"
    BALANCE = "balance"


@dataclass(frozen=True)
class GroupRecord:
    """A group: since when it has been over the threshold, whether it is on the way to the target, when it was last changed.

    `fruitless` are the marks of what was searched for each purpose without finding a move, as `searched.mark` makes them; `urgent` is in
    how many runs in a row each kind of what must not wait has been wrong.
    """

    over_since: datetime | None = None
    balancing: bool = False
    acted: datetime | None = None
    fruitless: Mapping[str, str] = field(default_factory=dict)
    urgent: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Pending:
    """Moves that were decided on; `plan` as plan_to_plain makes it, with `moves` and `stages`."""

    made: datetime
    purpose: Purpose
    groups: tuple[str, ...]
    plan: Mapping[str, t.Any]

    def moves(self) -> MovePlan:
        """Return the plan as it is carried out."""
        return read_plan(self.plan)


@dataclass(frozen=True)
class Record:
    """What all runs so far have left; `moved` is when instances were last moved."""

    groups: Mapping[str, GroupRecord] = field(default_factory=dict)
    moved: Mapping[str, datetime] = field(default_factory=dict)
    pending: Pending | None = None

    def group(self, name: str) -> GroupRecord:
        """Return what is known of a group."""
        return self.groups.get(name, GroupRecord())

    def with_group(self, name: str, known: GroupRecord) -> Record:
        """Return the record with what is known of a group now; nothing is kept of what is as it is usually."""
        others = {other: one for other, one in self.groups.items() if other != name}
        return dataclasses.replace(self, groups=others if known == GroupRecord() else {**others, name: known})

    def not_after(self, now: datetime) -> Record:
        """Return the record without times that are still to come, as after a clock that went wrong: they count as now."""

        def bounded(moment: datetime | None) -> datetime | None:
            return None if moment is None else min(moment, now)

        groups = {
            name: dataclasses.replace(one, over_since=bounded(one.over_since), acted=bounded(one.acted))
            for name, one in self.groups.items()
        }
        return dataclasses.replace(self, groups=groups, moved={name: min(moment, now) for name, moment in self.moved.items()})


class Moment(Kind):
    """A time in ISO 8601, with a time zone."""

    wanted = "a time with its zone, such as 2026-03-01T04:00:00Z"
    blank = datetime(1970, 1, 1, tzinfo=timezone.utc)

    def read(self, value: t.Any) -> datetime:
        """Return the time, in UTC."""
        try:
            moment = datetime.fromisoformat(value) if isinstance(value, str) else self.refuse(value)
        except ValueError:
            self.refuse(value)
        # Far from these years, sums of times and spans would leave what can be reckoned with.
        if moment.tzinfo is None or not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
            self.refuse(value)
        return moment.astimezone(timezone.utc)

    def json_schema(self) -> dict[str, t.Any]:
        """Return the JSON Schema."""
        return {"type": "string", "format": "date-time"}


_GROUP = Table(
    "a group",
    [
        Row("over_since", Moment()),
        Row("balancing", Truth(), default=False),
        Row("acted", Moment()),
        Row("fruitless", MappingOf(Text()), default={}),
        Row("urgent", MappingOf(Whole(1)), default={}),
    ],
)
_PENDING = Table(
    "the pending plan",
    [
        Row("made", Moment(), required=True),
        Row("purpose", Word(Purpose), required=True),
        Row("groups", ListOf(Text()), required=True),
        Row("plan", Anything(), required=True),
    ],
)
_MOVE = Table(
    "a move",
    [
        Row("instance", Text(), required=True),
        Row("kind", Text(), required=True),
        Row("from", ListOf(Text(), least=1), required=True),
        Row("to", ListOf(Text(), least=1), required=True),
        Row("group", Text(), required=True),
        Row("data", Number(0), required=True),
    ],
    others=True,
)
"""What a record keeps of a move; its steps are read where they are carried out."""
_RECORD = Table(
    "the record",
    [
        Row("version", Whole(), required=True),
        Row("groups", MappingOf(_GROUP), default={}),
        Row("moved", MappingOf(Moment()), default={}),
        Row("pending", _PENDING),
    ],
)


def read_record(kept: Kept) -> Record:
    """Return the record that is kept, an empty one if there is none; raise InputError with one message for what is no record."""
    text = kept.read()
    if text is None:
        return Record()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_a_record(kept, f"it is no JSON: {error}") from error
    try:
        return record_from_plain(document)
    except InputError as error:
        raise _not_a_record(kept, "; ".join(map(str, error.mistakes))) from error


def _not_a_record(kept: Kept, why: str) -> InputError:
    return InputError([Mistake(kept.option, f"{kept} cannot be used ({why}); move it away to start without history")])


def record_from_plain(document: t.Any) -> Record:
    """Return a record from plain data; raise InputError with all that is wrong with it."""
    mistakes = Mistakes()
    if isinstance(document, Mapping) and document.get("version") != VERSION and isinstance(document.get("version"), int):
        mistakes.add("version", f"is {document['version']}; only version {VERSION} is known")
        mistakes.check()
    values = _RECORD.read_nested(document, "", mistakes)
    mistakes.check()
    pending = None if values["pending"] is None else Pending(**values["pending"])
    if pending is not None:
        if not isinstance(pending.plan, Mapping):
            raise InputError([Mistake("pending.plan", "must be a plan with moves and stages")])
        pending.moves()
        for position, move in enumerate(pending.plan["moves"]):
            _MOVE.read_nested(move, f"pending.plan.moves[{position}]", mistakes)
        mistakes.check()
    groups = {name: GroupRecord(**known) for name, known in values["groups"].items()}
    return Record(groups, values["moved"], pending)


def record_to_plain(record: Record) -> dict[str, t.Any]:
    """Return a record as plain data."""
    groups = {name: _group_to_plain(one) for name, one in sorted(record.groups.items())}
    moved = {name: moment_to_plain(moment) for name, moment in sorted(record.moved.items())}
    document: dict[str, t.Any] = {"version": VERSION, "groups": groups, "moved": moved, "pending": None}
    if record.pending is not None:
        pending = record.pending
        document["pending"] = {
            "made": moment_to_plain(pending.made),
            "purpose": str(pending.purpose),
            "groups": list(pending.groups),
            "plan": dict(pending.plan),
        }
    return document


def _group_to_plain(known: GroupRecord) -> dict[str, t.Any]:
    document = {"over_since": moment_to_plain(known.over_since), "balancing": known.balancing, "acted": moment_to_plain(known.acted)}
    seen = {"fruitless": known.fruitless, "urgent": known.urgent}
    return document | {name: dict(sorted(kept.items())) for name, kept in seen.items() if kept}


def moment_to_plain(moment: datetime | None) -> str | None:
    """Return a time as text, in UTC."""
    return None if moment is None else moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_record(kept: Kept, record: Record) -> None:
    """Keep a record; what was there before stays until the new one is complete. Raises InputError."""
    kept.write(json.dumps(record_to_plain(record), indent=1))
