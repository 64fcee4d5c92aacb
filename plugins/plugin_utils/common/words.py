# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names in a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def listed(words: Sequence[str], most: int | None = None) -> str:
    """Return words as a sentence lists them: `a, b and c`; of more than `most` only so many, and how many there are besides."""
    if most is not None and len(words) > most + 1:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
