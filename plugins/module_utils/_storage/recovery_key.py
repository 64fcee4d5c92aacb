# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The form of a recovery key, which is systemd's: 256 random bits as eight groups of eight letters.

The controller creates recovery keys and keeps them; hosts only accept text of this form.
"""

from __future__ import annotations

import re
import secrets

_MODHEX = "cbdefghijklnrtuv"
"""Letters that lie on the same keys of most keyboards."""
_BYTES = 32
_GROUP = 8
_FORM = re.compile(f"[{_MODHEX}]{{{_GROUP}}}(-[{_MODHEX}]{{{_GROUP}}}){{{_BYTES * 2 // _GROUP - 1}}}")


def new_recovery_key() -> str:
    """Return a new recovery key."""
    letters = "".join(_MODHEX[byte >> 4] + _MODHEX[byte & 15] for byte in secrets.token_bytes(_BYTES))
    return "-".join(letters[start : start + _GROUP] for start in range(0, len(letters), _GROUP))


def is_recovery_key(text: object) -> bool:
    """Return whether a text has the form of a recovery key."""
    return isinstance(text, str) and _FORM.fullmatch(text) is not None
