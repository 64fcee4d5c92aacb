# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names in a sentence, and text without characters that nobody sees."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_SPACES = "Zs"
"""Spaces of all widths, which Python does not count as printable."""


def listed(words: Sequence[str], most: int | None = None) -> str:
    """Return words as a sentence lists them: `a, b and c`; of more than `most` words only the first `most`, and how many more."""
    if most is not None and len(words) > most + 1:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def visible(text: str) -> str:
    """Return text with a mark for each character that nobody sees but that changes what is seen: controls, escapes, overrides of direction.

    A terminal obeys them, XML does not take some of them, and a name with one can look like another name.
    """
    if text.isprintable():
        return text
    return "".join(character if _is_seen(character) else "\N{REPLACEMENT CHARACTER}" for character in text)


def visible_lines(text: str) -> str:
    """Return a text of several lines with the same marks; the ends of its lines stay."""
    return text if text.isprintable() else "\n".join(map(visible, text.split("\n")))


def _is_seen(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == _SPACES
