# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run at a time on a host: the locks, what their holders write into them, and how long others wait for them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
import typing as t
from collections.abc import Iterator, Mapping

from .._steps.machine import StepFailed

LOCK_FILE = "/run/bareon-disk-layout.lock"
TABLES_LOCK_FILE = "/run/bareon-tables.lock"
"""The lock of what is written for a start of the host, which is kept for the time of one writing."""
TABLES_PATIENCE = 60
"""How many seconds others wait for it."""
LOCK_ARGUMENTS: dict[str, t.Any] = {"lock_timeout": {"type": "int", "default": 0}}

_PAUSE = 0.2
_MOST_ANCESTORS = 64
_MOST_BYTES = 4096
_CLIENT = re.compile(r"(?:^|\0)SSH_(?:CONNECTION|CLIENT)=([0-9A-Za-z.:%_-]+) ")
_PARENT = re.compile(r"^PPid:\s*([0-9]+)$", re.MULTILINE)


def why_no_timeout(params: Mapping[str, t.Any]) -> Iterator[str]:
    """Give what is wrong with the time to wait for the lock among a module's parameters (LOCK_ARGUMENTS)."""
    if params["lock_timeout"] < 0:
        yield f"lock_timeout: must be 0 or more seconds, not {params['lock_timeout']}"


@contextlib.contextmanager
def only_run(command: str, timeout: int = 0, path: str = LOCK_FILE) -> Iterator[None]:
    """Keep other runs on this host out, waiting up to `timeout` seconds for one that is active; raises StepFailed, which names that one.

    The lock ends with the process, however it ends, and with the tools that it has started.
    """
    with _locked(path) as handle:
        _take(handle, timeout, path, f"; waited {timeout} s for it (lock_timeout)" if timeout else "; lock_timeout has a run wait for it")
        _write_holder(handle, command)
        os.set_inheritable(handle, True)
        yield


@contextlib.contextmanager
def only_writer(command: str, path: str = TABLES_LOCK_FILE, patience: int = TABLES_PATIENCE) -> Iterator[None]:
    """Keep others from writing tables of this host, from their reading on; raises StepFailed, which names the writer that does not end.

    No program that is started has this lock, for helpers of mounts stay as long as these. Only root can write what others read.
    """
    if os.geteuid() != 0:
        yield
        return
    with _locked(path) as handle:
        _take(handle, patience, path, f"; waited {patience} s for it")
        _write_holder(handle, command)
        yield


@contextlib.contextmanager
def _locked(path: str) -> Iterator[int]:
    """Open the file of a lock, which ends with this."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StepFailed(f"cannot lock out other runs: {path}: {error.strerror}") from error
    try:
        yield handle
    finally:
        os.close(handle)


def _take(handle: int, timeout: int, path: str, waited: str) -> None:
    end = time.monotonic() + timeout
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise StepFailed(f"{_active(_read_holder(handle))} (it holds {path}); nothing was changed{waited}") from None
        time.sleep(_PAUSE)


def _write_holder(handle: int, command: str) -> None:
    """Write the holder into the lock. On a full file system it stays empty: the text is for people, and the lock holds all the same."""
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = json.dumps({"pid": os.getpid(), "command": command, "since": since, "from": _origin()})
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)


def _read_holder(handle: int) -> dict[str, t.Any]:
    try:
        found = json.loads(os.pread(handle, _MOST_BYTES, 0).decode())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _active(holder: dict[str, t.Any]) -> str:
    """Return the description of the other run, as far as the lock has it."""
    pid, command, since, origin = (holder.get(key) for key in ("pid", "command", "since", "from"))
    if not isinstance(pid, int) or not all(isinstance(text, str) and text.isprintable() for text in (command, since, origin)):
        return "another run of disk_layout is active on this host"
    gone = "" if os.path.exists(f"/proc/{pid}") else ", which has ended, but a tool that it started is still at work"
    return f"another run of {command} is active on this host, since {since}, started from {origin}, process {pid}{gone}"


def _origin() -> str:
    """Return where this run was started from: the address of the SSH client. sudo takes it out of the environment of what it starts."""
    process = "self"
    for _generation in range(_MOST_ANCESTORS):
        found = _CLIENT.search(_text(f"/proc/{process}/environ"))
        if found is not None:
            return found[1]
        parent = _PARENT.search(_text(f"/proc/{process}/status"))
        if parent is None or parent[1] == "0":
            break
        process = parent[1]
    return "this host"


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
