# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the actions on groups keep between runs, in the database of a ledger instead of files: `state: ledger`.

    check_state(arguments, ("state_file",))                             # raises InputError for options of the other place
    with kept_in_ledger(arguments, "follow", writes=True) as kept:      # this run has the state; raises InputError while another has it
        kept.read(), kept.write(content)                                # as files of the room `group`
        kept.hold = 600                                                 # for how many seconds it has it after the task; 0 unless said

A text is written at the end of the block, if nobody else has written it since it was read. Without `writes` nothing is written, and another
run may have the state.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from ...module_utils._data.errors import InputError, Mistakes, Unavailable
from .._common.libraries import refuse_missing
from .._group.plan.links import MOST_JOURNALS

if t.TYPE_CHECKING:
    from .._group.plan.kept import TextAsRead
    from .ledger_state import LedgerText

STATE_ARGUMENTS: Mapping[str, t.Any] = {
    "state": {"type": "str", "choices": ["file", "ledger"], "default": "file"},
    "state_name": {"type": "str"},
    "database": {"type": "str"},
    "hold": {"type": "float", "default": 0.0},
}
"""The fragment `kept` describes them."""

JOURNAL = "journal "
"""How the parts of a state begin that are journals of moves; the digest of a plan follows."""

LONGEST_HOLD = 7 * 24 * 3600


def is_in_ledger(arguments: Mapping[str, t.Any]) -> bool:
    """Return whether the state is kept in a ledger."""
    return arguments["state"] == "ledger"


def check_state(arguments: Mapping[str, t.Any], files: Sequence[str]) -> None:
    """Raise InputError for options of the one place of a state that are given with the other; `files` are the options of paths."""
    mistakes = Mistakes()
    for name in files if is_in_ledger(arguments) else ("state_name", "database"):
        if arguments[name] is not None:
            mistakes.add(name, f"only applies to state {'file' if is_in_ledger(arguments) else 'ledger'}")
    if is_in_ledger(arguments) and arguments["state_name"] is None:
        mistakes.add("state_name", "is missing; state ledger needs a name, such as that of the cluster")
    if not 0 <= arguments["hold"] <= LONGEST_HOLD:
        mistakes.add("hold", f"is {arguments['hold']!r}; must be a number of seconds from 0 to {LONGEST_HOLD}")
    mistakes.check()


def journals_in_ledger(link_ledger: Mapping[str, t.Any]) -> list[TextAsRead]:
    """Return the newest journals of the state that the option link_ledger names, if any. Raises InputError and Unavailable."""
    # Only users of a ledger need SQLAlchemy, which takes long to load.
    from .ledger_state import texts_in_ledger

    refuse_missing("ledger")
    return texts_in_ledger(link_ledger.get("database"), link_ledger["state_name"], JOURNAL, MOST_JOURNALS, "link_ledger")


@contextmanager
def kept_in_ledger(arguments: Mapping[str, t.Any], part: str, *, writes: bool) -> Iterator[LedgerText]:
    """Give a text of the state that the arguments name. Raises InputError and Unavailable."""
    # Only users of a ledger need SQLAlchemy, which takes long to load.
    from .ledger_state import LedgerText

    refuse_missing("ledger")
    kept = LedgerText(arguments["database"], arguments["state_name"], part)
    if not writes:
        kept.look()
        yield kept
        return
    kept.begin()
    try:
        yield kept
        kept.end()
    except BaseException:
        # The first error is the one to report. Without a give-back the run has the state until its time is over.
        with suppress(InputError, Unavailable):
            kept.give_back()
        raise
