# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A record belongs to one run at a time, from its first look until its end.

    take(path, this_run())          # path of the record; raises InputError while another run has it

A run is a process, with all tasks of its play. The owner of the record is written into a file next to it, and holds as long as that process
lives: a run that was killed leaves nothing to clear away.

    owner_to_text(this_run()), owner_from_text(text), is_gone(owner)    # for records that are kept elsewhere
"""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake
from ..._common.files import open_private

_LONGEST_HOST = 64
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STARTED = 19
"""Which word of /proc/PID/stat behind the name says when a process was started."""


@dataclass(frozen=True)
class Owner:
    """A process on a host; `started` distinguishes it from a later one with its number; empty where the system does not say.

    `numbering` is where processes have these numbers: a boot of the host, and a namespace, since hosts and containers may have one name.
    """

    host: str
    pid: int
    started: str
    numbering: str = ""


def this_run() -> Owner:
    """Return the process that all tasks of this play are run by."""
    parent = multiprocessing.parent_process()
    pid = os.getpid() if parent is None or parent.pid is None else parent.pid
    return Owner(socket.gethostname(), pid, _started(pid), _numbering())


def take(record: Path, owner: Owner) -> None:
    """Make a record the owner's; raise InputError while another one has it, or where that cannot be noted."""
    if not record.name:
        raise InputError([Mistake("state_file", f"is {str(record)!r}; must be the path of a file")])
    path = record.with_name(f"{record.name}.lock")
    try:
        with open(open_private(path), "a+", encoding="utf-8", errors="replace") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            holder = owner_from_text(file.read())
            if holder is not None and holder != owner and _lives(holder):
                raise InputError([Mistake("state_file", _message(record, path, holder))])
            if holder != owner:
                file.truncate(0)
                file.write(owner_to_text(owner))
    except OSError as error:
        raise InputError([Mistake("state_file", f"cannot write {path}: {error.strerror or error}")]) from error


def _message(record: Path, path: Path, holder: Owner) -> str:
    if holder.host == socket.gethostname():
        return f"{record} is in use by another run, process {holder.pid}; wait for its end"
    return f"{record} is in use by another run, process {holder.pid} on {holder.host}; if it has ended, remove {path}"


def owner_to_text(owner: Owner) -> str:
    """Return an owner as JSON of at most 255 characters."""
    return json.dumps({**vars(owner), "host": owner.host[:_LONGEST_HOST]})


def owner_from_text(text: str) -> Owner | None:
    """Return the owner that a text names; None where it names none, such as after a power cut."""
    try:
        document = json.loads(text)
        return Owner(str(document["host"]), int(document["pid"]), str(document["started"]), str(document.get("numbering", "")))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def is_gone(owner: Owner) -> bool:
    """Return whether a process is known to have ended: nobody can see those of other hosts, boots and containers."""
    return bool(owner.numbering) and owner.numbering == _numbering() and not _lives(owner)


def _lives(owner: Owner) -> bool:
    """Return whether a process still runs; unknown for processes of other hosts."""
    if owner.host != socket.gethostname():
        return True
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return _started(owner.pid) == owner.started


def _numbering() -> str:
    """Return the boot and the namespace that processes are numbered in; empty where the system does not say."""
    try:
        return f"{_BOOT.read_text(encoding='ascii').strip()} {os.readlink('/proc/self/ns/pid')}"
    except (OSError, ValueError):
        return ""


def _started(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return words[_STARTED] if len(words) > _STARTED else ""
