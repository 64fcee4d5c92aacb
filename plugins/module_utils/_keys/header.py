# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The header of a LUKS 2 container: its key slots, and the tokens that say what they are for. Reading it takes no key."""

from __future__ import annotations

import json
import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from .._steps.machine import Machine, StepFailed
from .._storage.unlock import RECOVERY, TANG, TPM2, Method
from .jwe import tang_of, thumbprints

UNFINISHED = "bareon.unfinished"
"""The type of a token that names a slot whose key nobody may have: it is being filled, or its recovery key is not confirmed as kept yet."""

KEYS, OTHER = "keys", "other"
"""The method of a slot without a token, a passphrase or a key file, and of one whose token has an unknown type."""

TOKENS = {RECOVERY: "systemd-recovery", TANG: "clevis", TPM2: "systemd-tpm2"}
"""The types of tokens by method. They are those of systemd and Clevis, which open the containers by them."""

SLOTS = 32
"""The most key slots that a LUKS 2 header has."""
TOKENS_AT_MOST = 32


@dataclass(frozen=True)
class Token:
    """A token of a header: `data` is all that it holds."""

    number: int
    type: str
    slots: tuple[int, ...]
    data: Mapping[str, t.Any]

    @property
    def method(self) -> str:
        """What it opens by, or OTHER; Clevis knows more than Tang."""
        if self.type == TOKENS[TANG]:
            return TANG if tang_of(self.data.get("jwe")) is not None else OTHER
        return next((method for method, kind in TOKENS.items() if kind == self.type), OTHER)

    def fits(self, wanted: Method) -> bool:
        """Return whether it is what a method asks for: the same server with the same key, the same registers, a PIN or none."""
        if self.method != wanted.kind:
            return False
        if wanted.kind == TANG:
            tang = tang_of(self.data.get("jwe")) or {}
            return str(tang.get("url", "")).rstrip("/") == wanted.url and wanted.thumbprint in thumbprints(tang)
        if wanted.kind == TPM2:
            return set(self.data.get("tpm2-pcrs") or ()) == set(wanted.pcrs) and bool(self.data.get("tpm2-pin")) == wanted.pin
        return True


@dataclass(frozen=True)
class Header:
    """The key slots that are taken, and the tokens."""

    slots: tuple[int, ...]
    tokens: tuple[Token, ...] = ()

    @property
    def free_slot(self) -> t.Optional[int]:
        """The first slot that is free, which every tool takes; None when there is none."""
        return next((number for number in range(SLOTS) if number not in self.slots), None)

    @property
    def free_tokens(self) -> tuple[int, ...]:
        """The numbers that no token has."""
        taken = [token.number for token in self.tokens]
        return tuple(number for number in range(TOKENS_AT_MOST) if number not in taken)

    @property
    def unfinished(self) -> tuple[Token, ...]:
        """The marks of runs that were cut off."""
        return tuple(token for token in self.tokens if token.type == UNFINISHED)

    def method_of(self, slot: int) -> str:
        """Return the method that a slot is for, KEYS or OTHER."""
        methods = [token.method for token in self.tokens if slot in token.slots]
        return next((method for method in methods if method != OTHER), OTHER if methods else KEYS)

    def kind(self, method: str) -> tuple[Token, ...]:
        """Return the tokens of a method."""
        return tuple(token for token in self.tokens if token.method == method)

    def of(self, method: Method) -> tuple[Token, ...]:
        """Return the tokens that open something by just this method."""
        return tuple(token for token in self.tokens if set(token.slots) & set(self.slots) and token.fits(method))


def read_header(machine: Machine, device: str) -> Header:
    """Return the header on a device; raises StepFailed where there is none, or none of LUKS 2."""
    outcome = machine.run(["cryptsetup", "luksDump", "--dump-json-metadata", device])
    if outcome is None or outcome.code != 0:
        why = "there is no cryptsetup, or it did not answer" if outcome is None else outcome.stderr.strip() or f"code {outcome.code}"
        raise StepFailed(f"{device} has no LUKS 2 header that cryptsetup (2.4 or newer) can read: {why}")
    return parse_header(outcome.stdout)


def has_header(machine: Machine, device: str) -> bool:
    """Return whether a device has the header of a LUKS container, of any version; raises StepFailed if that is unknown."""
    outcome = machine.run(["cryptsetup", "isLuks", device])
    if outcome is None:
        raise StepFailed("there is no cryptsetup, or it did not answer")
    return outcome.code == 0


def parse_header(text: str) -> Header:
    """Return the header of the text of `cryptsetup luksDump --dump-json-metadata`; raises StepFailed."""
    try:
        data = json.loads(text)
        tokens = tuple(
            Token(int(number), str(token["type"]), tuple(int(slot) for slot in token["keyslots"]), token)
            for number, token in data["tokens"].items()
        )
        return Header(tuple(sorted(int(number) for number in data["keyslots"])), tokens)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise StepFailed(f"cryptsetup's description of the header cannot be read: {error!r}") from error
