# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys that are tried, and keys that are made. They go to tools by their input or by a pipe: never as a word, never onto a disk."""

from __future__ import annotations

import re
import secrets
import typing as t

from ..steps.luks import Key
from ..steps.machine import Machine

_MODHEX = "cbdefghijklnrtuv"
"""Letters that lie on the same keys of most keyboards, as systemd writes recovery keys."""
_RECOVERY_BYTES = 32
_GROUP = 8
_KEY_FILE_BYTES = 64
_WRONG = 2


def recovery_key() -> str:
    """Return a new recovery key of 256 bits, written as systemd does: eight groups of eight letters."""
    letters = "".join(_MODHEX[byte >> 4] + _MODHEX[byte & 15] for byte in secrets.token_bytes(_RECOVERY_BYTES))
    return "-".join(letters[start : start + _GROUP] for start in range(0, len(letters), _GROUP))


def key_file_content() -> bytes:
    """Return what a new key file holds."""
    return secrets.token_bytes(_KEY_FILE_BYTES)


def slot_opened(machine: Machine, device: str, key: Key, slot: t.Optional[int] = None) -> t.Optional[int]:
    """Return the slot that a key opens, this one or any; None when it opens none. Nothing is opened, and nothing changed.

    Without the last option cryptsetup would ask a TPM first, and take any key for right.
    """
    only = [] if slot is None else [f"--key-slot={slot}"]
    words = ["cryptsetup", "open", "--test-passphrase", "--verbose", "--type=luks", "--disable-external-tokens", *only]
    said = machine.change([*words, f"--key-file={key.file or '-'}", device], key.passphrase, accepted=(0, _WRONG))
    found = re.search(r"Key slot ([0-9]+) unlocked", said)
    return int(found[1]) if found else None
