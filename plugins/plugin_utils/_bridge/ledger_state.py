# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A text that runs keep in the database of a ledger, in a state that belongs to one run at a time; states.py opens it."""

from __future__ import annotations

import math
import typing as t

from ...module_utils._data.containers import read_all
from ...module_utils._data.errors import InputError, Mistake
from .._group.follow.lock import is_gone, owner_from_text, owner_to_text, this_run
from .._group.plan.kept import TextAsRead
from .._provider.ledger import states
from .._provider.ledger.open import Ledger, open_ledger
from .._provider.ledger.parse import OWNER
from .._provider.ledger.url import describe, parse_database
from .._provider.world.times import shown_time

if t.TYPE_CHECKING:
    from .._common.libraries import sa

_TASK_SECONDS = 3600
"""For how long a task has a state at most while it searches; the generation of its text keeps a longer one from doing harm."""


class LedgerText:
    """One text of a state; `hold` is for how many seconds this run has the state after the block, `warnings` are for its user."""

    option = "state"

    def __init__(self, database: str | None, name: str, part: str) -> None:
        """Raises InputError for what is no name of a state."""
        self.hold, self.warnings = 0.0, list[str]()
        self._database, self._name, self._part = database, read_all(OWNER, name, "state_name"), part
        self._run = owner_to_text(this_run())
        self._seen = states.StoredText()
        self._wanted: str | None = None

    def __str__(self) -> str:
        return _title(self._part, self._name, self._database)

    def read(self) -> str | None:
        """Return the text as it was at the beginning."""
        return self._seen.content

    def write(self, content: str) -> None:
        """Have a text written at the end."""
        self._wanted = content

    def look(self) -> None:
        """Read the text alone."""
        with open_ledger(self._database, dry_run=True) as ledger:
            self._seen = ledger.read(self._read)

    def begin(self) -> None:
        """Take the state, and read the text. Raises InputError while another run has it."""

        def work(connection: sa.Connection) -> states.StoredText:
            states.take(connection, self._name, self._run, _TASK_SECONDS, _is_gone)
            return self._read(connection)

        self._seen = self._opened(work)

    def end(self) -> None:
        """Write what is wanted, and have the state for a while longer or give it back. Raises InputError."""

        def work(connection: sa.Connection) -> None:
            # Raises Held where the time was over, and another run has begun.
            states.take(connection, self._name, self._run, math.ceil(self.hold), _is_gone)
            if self._wanted is not None:
                states.write_text(connection, self._name, self._part, self._wanted, seen=self._seen.generation)
            if not self.hold:
                states.give_back(connection, self._name, self._run)

        self._opened(work)

    def give_back(self) -> None:
        """End that this run has the state."""
        self._opened(lambda connection: states.give_back(connection, self._name, self._run))

    def _read(self, connection: sa.Connection) -> states.StoredText:
        return states.stored_text(connection, self._name, self._part)

    def _opened(self, work: t.Callable[[sa.Connection], t.Any]) -> t.Any:
        try:
            with open_ledger(self._database) as ledger:
                self._warn(ledger)
                return ledger.write(work)
        except states.Held as held:
            raise self._refusal(self._told(held)) from None
        except states.Moved:
            says = "another run has written it since this one read it; nothing was kept. Run it again"
            raise self._refusal(f"{self}: {says}") from None

    def _warn(self, ledger: Ledger) -> None:
        if ledger.made:
            self.warnings.append(ledger.made)

    def _told(self, held: states.Held) -> str:
        owner = owner_from_text(held.holder)
        by = f"process {owner.pid} on {owner.host}" if owner else "which does not say its name"
        place = describe(parse_database(self._database))
        return f"{self._name} in {place} is in use by another run, {by}; wait for its end, or until {shown_time(held.until)}"

    def _refusal(self, says: str) -> InputError:
        return InputError([Mistake(self.option, says)])


def texts_in_ledger(database: str | None, name: str, prefix: str, most: int, option: str) -> list[TextAsRead]:
    """Return the newest texts of a state whose parts begin with a prefix; none where the state or the database is not there.

    `option` has the name of the state. Raises InputError and Unavailable.
    """
    state = read_all(OWNER, name, f"{option}.state_name")
    with open_ledger(database, dry_run=True) as ledger:
        found = ledger.read(lambda connection: states.texts_of(connection, state, prefix, most))
    return [TextAsRead(_title(part, state, database), option, content) for part, content in found]


def _title(part: str, name: str, database: str | None) -> str:
    return f"{part} of the state {name} in {describe(parse_database(database))}"


def _is_gone(holder: str) -> bool:
    owner = owner_from_text(holder)
    return owner is not None and is_gone(owner)
