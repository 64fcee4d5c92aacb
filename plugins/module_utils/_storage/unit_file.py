# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The units of systemd that mount something: the one writer of their names and their texts. systemd.unit(5), systemd.syntax(7)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NOT_ON_A_LINE = re.compile(r"[\x00-\x1f\x7f]|\\\Z")
"""Control characters end a line or are refused; a backslash at its end takes the next line to it."""
_SECTION = re.compile(r"\[[A-Za-z]+\]")


def unit_text(lines: Iterable[str]) -> str:
    """Return the text of a unit: lines `Key=value`, `[Section]` and empty ones; a percent sign by itself would be a specifier.

    Raises ValueError with a line that cannot be written.
    """
    made = []
    for line in lines:
        if _NOT_ON_A_LINE.search(line) or (line and _SECTION.fullmatch(line) is None and "=" not in line):
            raise ValueError(f"{line!r} cannot be a line of a unit of systemd")
        made.append(line.replace("%", "%%"))
    return "\n".join(made)


def unit_name(path: str) -> str:
    """Return a path as systemd writes it in the name of a unit (`systemd-escape --path`)."""
    text = re.sub("/+", "/", path.strip("/"))
    quoted = "".join(
        "-" if letter == "/" else letter if re.match(r"[A-Za-z0-9:_.]", letter) else "".join(f"\\x{byte:02x}" for byte in letter.encode())
        for letter in text
    )
    return f"\\x2e{quoted[1:]}" if quoted.startswith(".") else quoted or "-"
