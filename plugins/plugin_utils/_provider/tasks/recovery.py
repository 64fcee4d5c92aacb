# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes that were left in doubt: a task that finds them made when it runs again says so, and counts as having made them.

A task that lost the connection at COMMIT cannot know from the ledger whether its change was committed. So a hash of the request
is kept in a file of the controller until the task has run again. Where no such file can be kept, the task that is in doubt says so: the run
after it says no more than that everything is as it should be.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import typing as t
from collections.abc import Callable, Mapping
from pathlib import Path

from ..._common.files import create_file
from ..._common.lasting import why_lost
from ..._common.paths import user_folder
from ..ledger.database import OutcomeUnknown
from ..ledger.open import Ledger
from ..ledger.plain import Plain

_STATE = "XDG_STATE_HOME"
_NO_PART = frozenset({"timeout", "retries", "database", "world"})
"""Arguments that say how a change is made, and not what it is."""


def run_recoverably(ledger: Ledger, arguments: Mapping[str, t.Any], work: Callable[[Ledger], Plain]) -> Plain:
    """Return the result of a task's work, `recovered` true where it found made what it, or the run before it, had left in doubt."""
    if ledger.made:
        return {**(result := work(ledger)), "warnings": [ledger.made, *result.get("warnings", ())]}
    if ledger.dry_run:
        return work(ledger)
    wanted = {key: value for key, value in arguments.items() if key not in _NO_PART}
    url = ledger.url
    where = [url.get_backend_name(), url.host, url.port, url.database]
    text = json.dumps([where, wanted], sort_keys=True, default=str)
    state = user_folder(_STATE, ".local/state")
    note = None if state is None else state / "bareon" / "in_doubt" / hashlib.sha256(text.encode()).hexdigest()
    try:
        result = work(ledger)
    except OutcomeUnknown as error:
        if why := _why_not_noted(note):
            place = f"set {_STATE} to a folder on a volume to have that said"
            raise OutcomeUnknown(f"{error}; but not that it was this task that made it, for {why}: {place}") from None
        raise
    was_noted = note is not None and os.path.exists(note)
    if note is not None and was_noted:
        with contextlib.suppress(OSError):
            note.unlink()
    if result["changed"] or not (was_noted or ledger.outcome.in_doubt):
        return result
    return {**result, "changed": True, "recovered": True}


def _why_not_noted(note: Path | None) -> str:
    """Make the note of a change in doubt; return why the run after this one does not find it, empty where it does."""
    if note is None:
        return "without HOME no folder for notes is known"
    try:
        create_file(note, "")
    except FileExistsError:
        pass
    except OSError as error:
        return f"{note} cannot be written ({error.strerror})"
    why = why_lost(note)
    return f"{note} {why}" if why else ""
