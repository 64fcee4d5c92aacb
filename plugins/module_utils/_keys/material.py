# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys that are tried, and keys that are made. They go to tools by their input or in memory: never as a word, never onto a disk."""

from __future__ import annotations

import json
import re
import secrets
import typing as t
from collections.abc import Mapping

from .._steps.key import Key
from .._steps.luks import NO_TOKENS
from .._steps.machine import Machine, StepFailed
from .._storage.unlock import Method
from .jwe import compact, parse_compact

_KEY_FILE_BYTES = 64
_TANG_BYTES = 32
_NETWORK_PATIENCE = 180
_ANY_CODE = range(256)
_WRONG = 2


def key_file_content() -> bytes:
    """Return what a new key file holds."""
    return secrets.token_bytes(_KEY_FILE_BYTES)


def tang_key() -> bytes:
    """Return a key for Clevis to encrypt, 256 random bits as letters, which it hands on as a line."""
    return secrets.token_urlsafe(_TANG_BYTES).encode()


def encrypted_by_tang(machine: Machine, method: Method, key: bytes) -> dict[str, str]:
    """Return a key encrypted for the Tang server of a method; raises StepFailed where that does not sign as it should."""
    given = json.dumps({"url": method.url, "thp": method.thumbprint}, separators=(",", ":"))
    try:
        parts = parse_compact(machine.change(["clevis", "encrypt", "tang", given], key, patience=_NETWORK_PATIENCE))
    except ValueError as error:
        raise StepFailed(str(error)) from error
    if decrypted(machine, parts) != key:
        raise StepFailed(f"the Tang server at {method.url} does not decrypt what was encrypted for it")
    return parts


def decrypted(machine: Machine, parts: Mapping[str, str]) -> bytes:
    """Return what Clevis has encrypted; raises StepFailed where the server does not help."""
    return machine.change(["clevis", "decrypt"], compact(parts).encode(), patience=_NETWORK_PATIENCE).encode()


def tpm_opens(machine: Machine, device: str, token: int, pin: str = "") -> bool:
    """Return whether the TPM opens a container by a token now, with `pin` if it wants one; opens and changes nothing."""
    words = ["cryptsetup", "open", "--test-passphrase", "--verbose", "--type=luks", "--token-only", f"--token-id={token}", device]
    return "unlocked" in machine.change(words, pin.encode(), accepted=_ANY_CODE)


def slot_opened(machine: Machine, device: str, key: Key, slot: t.Optional[int] = None) -> t.Optional[int]:
    """Return the slot that a key opens, this one or any; None when it opens none. Nothing is opened, and nothing changed.

    Without NO_TOKENS cryptsetup would ask a TPM first, and take any key for right.
    """
    only = [] if slot is None else [f"--key-slot={slot}"]
    words = ["cryptsetup", "open", "--test-passphrase", "--verbose", "--type=luks", NO_TOKENS, *only]
    said = machine.change([*words, f"--key-file={key.file or '-'}", device], key.passphrase, accepted=(0, _WRONG))
    found = re.search(r"Key slot ([0-9]+) unlocked", said)
    return int(found[1]) if found else None
