# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What takes time: things that are due later, and tasks with UPIDs that end with words."""

from __future__ import annotations

import threading
import time


class Clock:
    """What is due, and the tasks by UPID; nothing happens but when somebody asks."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.tasks: dict[str, dict] = {}
        self._pending: list = []

    def later(self, seconds: float, happen: callable) -> None:
        """Let something happen after a time."""
        self._pending.append((time.monotonic() + seconds, happen))

    def advance(self) -> None:
        """Let happen what is due."""
        now = time.monotonic()
        due = [item for item in self._pending if item[0] <= now]
        self._pending = [item for item in self._pending if item[0] > now]
        for _when, happen in sorted(due, key=lambda item: item[0]):
            happen()

    def hurry(self) -> None:
        """Let happen now what is due at any time, but not what that begins."""
        self._pending = [(0.0, happen) for _when, happen in self._pending]
        self.advance()

    def settle(self) -> None:
        """Let all happen, and what that begins as well."""
        while self._pending:
            self.hurry()

    def task(self, node: str, kind: str, vmid: int, user: str, seconds: float, end: callable) -> str:
        """Return the UPID of a task that ends after a time, with what `end` returns."""
        number = len(self.tasks) + 1
        began = int(time.time())
        upid = f"UPID:{node}:{number:08X}:{number:08X}:{began:08X}:{kind}:{vmid}:{user}:"
        task = {
            "upid": upid,
            "node": node,
            "pid": number,
            "pstart": number,
            "starttime": began,
            "type": kind,
            "id": str(vmid),
            "user": user,
        }
        self.tasks[upid] = task | {"status": "running"}

        def finish() -> None:
            self.tasks[upid] |= {"status": "stopped", "exitstatus": end(), "endtime": int(time.time())}

        self.later(seconds, finish)
        if not seconds:
            self.advance()
        return upid
