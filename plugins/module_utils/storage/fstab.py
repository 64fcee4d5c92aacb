# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

r"""How fields are written in fstab, and in what the kernel writes like it: blanks, `#` and `\` as `\040` and the like."""

from __future__ import annotations

import re

_OCTAL = re.compile(r"\\([0-7]{3})")
_SPECIAL = re.compile(r"[\s#\\]")


def with_escapes(field: str) -> str:
    """Return a field as it is written."""
    return _SPECIAL.sub(lambda letter: f"\\{ord(letter[0]):03o}", field)


def without_escapes(field: str) -> str:
    """Return a field as it is meant."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), field)
