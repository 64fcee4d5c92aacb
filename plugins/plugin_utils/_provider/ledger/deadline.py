# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One deadline for all that a task waits for: connecting, locks, a server that went silent, and what is run again.

All time inside a transaction counts, so also that of a search for candidates, which reads as it goes on and ends by `budget`. What is
computed between transactions does not count: a plan that takes its time must not fail on a busy machine.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
import typing as t
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

DEFAULT_TIMEOUT = 60.0
LONGEST_TIMEOUT = 86400


class Deadline:
    """How many seconds a task may still wait for its database; None is no end."""

    def __init__(self, seconds: float | None = DEFAULT_TIMEOUT) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._spent = 0.0
        self._since: float | None = None

    @property
    def left(self) -> float:
        """The seconds that are left, 0 when there are none."""
        running = 0.0 if self._since is None else time.monotonic() - self._since
        return max(0.0, self.seconds - self._spent - running)

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self.left <= 0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Count the time until the block ends."""
        self._since = began = time.monotonic()
        try:
            yield
        finally:
            self._since = None
            self._spent += time.monotonic() - began


@dataclass
class Watchdog:
    """Cuts connections to a server when time is up, which ends every wait for it.

    No setting of a server, a driver or a kernel bounds the wait for the answer of a server process that was stopped.
    """

    cut: Callable[[t.Any], None]
    """Ends one of a driver's connections from another thread."""
    _connections: list[t.Any] = field(default_factory=list)
    _condition: threading.Condition = field(default_factory=threading.Condition)
    _due: float | None = None
    _wakes: float = math.inf
    _thread: threading.Thread | None = None
    _closed: bool = False

    def watch(self, connection: t.Any) -> None:
        """Cut this connection, too, when time is up."""
        with self._condition:
            self._connections.append(connection)

    @contextlib.contextmanager
    def armed(self, seconds: float) -> Iterator[None]:
        """Cut all connections if the block takes longer."""
        if math.isinf(seconds):
            yield
            return
        with self._condition:
            self._due = time.monotonic() + seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._guard, daemon=True, name="bareon-watchdog")
                self._thread.start()
            elif self._wakes > self._due:
                self._condition.notify()
        try:
            yield
        finally:
            with self._condition:
                # The thread finds out when it wakes: to wake it now would cost each claim a switch of threads.
                self._due = None

    def close(self) -> None:
        """End the thread."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join()

    def _guard(self) -> None:
        with self._condition:
            while not self._closed:
                now = time.monotonic()
                if self._due is not None and self._due <= now:
                    for connection in self._connections:
                        # One that was closed meanwhile has no socket any more.
                        with contextlib.suppress(Exception):
                            self.cut(connection)
                    self._due = None
                self._wakes = math.inf if self._due is None else self._due
                self._condition.wait(None if self._due is None else self._due - now)


def cut_psycopg(connection: t.Any) -> None:
    """Shut the socket of a connection of psycopg; libpq keeps the descriptor, so only a copy of the descriptor is closed here."""
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as copy:
        copy.shutdown(socket.SHUT_RDWR)


def cut_pymysql(connection: t.Any) -> None:
    """Shut the socket of a connection of PyMySQL."""
    connection._sock.shutdown(socket.SHUT_RDWR)
