# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""States that runs keep for later ones: texts under a name, which belong to one run at a time.

    take(connection, name, holder, seconds, is_gone)    # raises Held while another run has the state
    text = stored_text(connection, name, part)
    texts = texts_of(connection, name, "journal ", 100)     # the newest of those whose parts begin so
    write_text(connection, name, part, text, seen=text.generation)      # raises Moved where somebody has written since
    give_back(connection, name, holder)

A run has a state for some seconds by the database's clock, since nobody can see from elsewhere whether it still lives. Its generation
keeps one that had less time than it needed from writing over what a later run has written. A text begins with the generation that its
state has then, which rises with every run, so that a text that was begun later has a higher one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..._common.libraries import sa
from .clock import read_now
from .retry import LostRace
from .tables import state_texts, states


class Held(Exception):
    """Another run has the state: `holder`, until a second since 1970."""

    def __init__(self, holder: str, until: int) -> None:
        super().__init__(holder)
        self.holder, self.until = holder, until


class Moved(Exception):
    """Somebody else has written the text since it was read."""


@dataclass(frozen=True)
class StoredText:
    """A text and its generation; 0 and nothing before it is written for the first time."""

    generation: int = 0
    content: str | None = None


def take(connection: sa.Connection, name: str, holder: str, seconds: int, is_gone: Callable[[str], bool]) -> None:
    """Give a state to a run for some seconds from now on; `is_gone` says whether another run is known to have ended.

    Raises Held, and LostRace.
    """
    now = read_now(connection)
    row = connection.execute(sa.select(states).where(states.c.name == name)).one_or_none()
    wanted = {"holder": holder, "held_until": now + seconds}
    if row is None:
        connection.execute(sa.insert(states).values(name=name, generation=1, **wanted))
        return
    is_held = row.holder is not None and row.holder != holder and row.held_until is not None and row.held_until > now
    if is_held and not is_gone(row.holder):
        raise Held(row.holder, row.held_until)
    _change(connection, name, row.generation, wanted)


def give_back(connection: sa.Connection, name: str, holder: str) -> None:
    """End that a run has a state; one that another run has is left alone. Raises LostRace."""
    row = connection.execute(sa.select(states).where(states.c.name == name)).one_or_none()
    if row is not None and row.holder == holder:
        _change(connection, name, row.generation, {"holder": None, "held_until": None})


def stored_text(connection: sa.Connection, name: str, part: str) -> StoredText:
    """Return a text of a state."""
    row = connection.execute(_text(name, part)).one_or_none()
    return StoredText() if row is None else StoredText(row.generation, row.content)


def texts_of(connection: sa.Connection, name: str, prefix: str, most: int) -> list[tuple[str, str]]:
    """Return the parts of a state that begin with a prefix, with their texts: `most` of them, the one begun last first."""
    columns = sa.select(state_texts.c.part, state_texts.c.content)
    found = columns.where(state_texts.c.state == name, state_texts.c.part.startswith(prefix, autoescape=True))
    newest = found.order_by(state_texts.c.generation.desc(), state_texts.c.part).limit(most)
    return [(row.part, row.content) for row in connection.execute(newest)]


def write_text(connection: sa.Connection, name: str, part: str, content: str, *, seen: int) -> None:
    """Write a text of a state that the run has, if it still has the generation that was seen. Raises Moved, and LostRace."""
    stored = stored_text(connection, name, part)
    if stored.content == content and (not seen or stored.generation == seen + 1):
        # This run has written it: the connection was lost after the commit.
        return
    if stored.generation != seen:
        raise Moved
    if not seen:
        first = sa.select(states.c.generation).where(states.c.name == name).scalar_subquery()
        connection.execute(sa.insert(state_texts).values(state=name, part=part, generation=first, content=content))
        return
    update = sa.update(state_texts).where(state_texts.c.state == name, state_texts.c.part == part, state_texts.c.generation == seen)
    if connection.execute(update.values(generation=seen + 1, content=content)).rowcount != 1:
        raise LostRace


def _text(name: str, part: str) -> sa.Select[tuple[int, str]]:
    columns = sa.select(state_texts.c.generation, state_texts.c.content)
    return columns.where(state_texts.c.state == name, state_texts.c.part == part)


def _change(connection: sa.Connection, name: str, generation: int, values: Mapping[str, object]) -> None:
    update = sa.update(states).where(states.c.name == name, states.c.generation == generation)
    if connection.execute(update.values(generation=generation + 1, **values)).rowcount != 1:
        raise LostRace
