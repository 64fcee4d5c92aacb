# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""QEMU's monitor, spoken to by QMP: one connection for each command, as commands are few."""

from __future__ import annotations

import json
import socket
import typing as t
from pathlib import Path

PATIENCE = 120


class MonitorError(Exception):
    """QEMU refused a command."""


def execute(monitor: Path, command: str, arguments: t.Mapping[str, t.Any]) -> t.Any:
    """Execute one command and return what it returns; MonitorError with QEMU's words."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(str(monitor))
        with connection.makefile("rw", encoding="utf-8") as lines:
            lines.readline()
            _ask(lines, "qmp_capabilities", {})
            return _ask(lines, command, arguments)


def human(monitor: Path, line: str) -> None:
    """Execute one command of the monitor for humans, which has some that QMP lacks; MonitorError when it prints anything."""
    said = str(execute(monitor, "human-monitor-command", {"command-line": line})).strip()
    if said not in ("", "OK"):
        raise MonitorError(f"{line}: {said}")


def _ask(lines: t.TextIO, command: str, arguments: t.Mapping[str, t.Any]) -> t.Any:
    lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    lines.flush()
    for line in lines:
        answer = json.loads(line)
        if "error" in answer:
            raise MonitorError(f"{command}: {answer['error']['desc']}")
        if "return" in answer:
            return answer["return"]
    raise MonitorError(f"{command}: QEMU ended")
