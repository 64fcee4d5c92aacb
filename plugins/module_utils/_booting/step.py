# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One thing that is done inside of a system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BootStep:
    """One thing to do: `says` in words, `command` inside of the system, with the ESP that is mounted for it (empty: none).

    With `on_host` the command is one for the host, for what both share: the memory of the firmware.
    """

    says: str
    command: tuple[str, ...]
    esp: str = ""
    on_host: bool = False


def write_step(says: str, file: str, text: str, mode: str = "644") -> BootStep:
    """Return the step that writes a text of one or more lines into a file of the system, in its folder, which is made."""
    words = 'mkdir -p "${1%/*}"; printf "%s\\n" "$2" >"$1"; chmod "$3" "$1"'
    return BootStep(says, ("sh", "-c", words, "sh", file, text, mode))
