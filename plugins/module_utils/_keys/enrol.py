# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out one change of a container's keys.

A slot is marked in the header before it is filled, and the mark goes when it opens and its token is there. Whatever an interrupted run
leaves is marked, therefore; the next run removes it and begins again. The mark of a recovery key stays until the controller confirms it.
"""

from __future__ import annotations

import contextlib
import json
import os
import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from .._steps.key import Key
from .._steps.machine import Machine, StepFailed
from .._storage.unlock import PASSPHRASE, RECOVERY, TANG, TPM2
from .changes import Confirm, DropUnfinished, Enrol, Request, TakeAway
from .header import TOKENS, UNFINISHED, Header, read_header
from .material import encrypted_by_tang, key_file_content, slot_opened, tang_key, tpm_opens

_QUICK = ("--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000")
"""Nobody guesses a key of 256 random bits, so there is no use in making every try slow."""


@dataclass(frozen=True)
class _Material:
    key: Key
    token: t.Optional[Mapping[str, t.Any]] = None
    quick: bool = False


def enrol(step: Enrol, machine: Machine, unlocking: Key, request: Request) -> int:
    """Fill a free slot by a method, and return it; `unlocking` opens the container now. Raises StepFailed."""
    material = None if step.method.kind == TPM2 else _material(step, machine, request)
    header = read_header(machine, step.device)
    slot, tokens = header.free_slot, header.free_tokens
    # One token is the mark, the other says what the slot is for.
    if slot is None or len(tokens) < 2:
        raise StepFailed(f"all key slots or tokens of {step.device} are taken")
    mark, number, *_rest = tokens
    _import(machine, step.device, mark, {"type": UNFINISHED, "keyslots": [], "slot": str(slot)})
    if material is None:
        slot = _enrol_tpm(step, machine, unlocking, header, request.pin)
        machine.change(["cryptsetup", "token", "remove", f"--token-id={mark}", step.device])
        return slot
    _add_key(machine, step.device, slot, unlocking, material)
    if slot_opened(machine, step.device, material.key, slot) != slot:
        raise StepFailed(f"{step.method.words} does not open key slot {slot} of {step.device}, although it was added there")
    if material.token is not None:
        _import(machine, step.device, number, {"type": TOKENS[step.method.kind], "keyslots": [str(slot)], **material.token})
    if step.method.kind != RECOVERY:
        machine.change(["cryptsetup", "token", "remove", f"--token-id={mark}", step.device])
    return slot


def _material(step: Enrol, machine: Machine, request: Request) -> _Material:
    method = step.method
    if method.kind == PASSPHRASE:
        return _Material(Key(request.key.passphrase))
    if method.kind == RECOVERY:
        if step.name not in request.hand_over.recovery_keys:
            raise StepFailed("the controller has created no recovery key for it")
        return _Material(Key(request.hand_over.recovery_keys[step.name].encode()), {}, quick=True)
    if method.kind == TANG:
        key = tang_key()
        return _Material(Key(key), {"jwe": encrypted_by_tang(machine, method, key)}, quick=True)
    path = path_below(request.root, method.path)
    if machine.resolve(path) is None:
        machine.create_secret(path, key_file_content())
    return _Material(Key(file=path))


def _enrol_tpm(step: Enrol, machine: Machine, unlocking: Key, before: Header, pin: str) -> int:
    """Have systemd seal a key of its own in the TPM; it takes the first slot that is free. Return the slot.

    A PIN it takes from its environment, or from somebody at a terminal.
    """
    words = ["systemd-cryptenroll", "--tpm2-device=auto", f"--tpm2-pcrs={'+'.join(map(str, step.method.pcrs))}"]
    words += ["--tpm2-with-pin=yes"] if step.method.pin else []
    with contextlib.ExitStack() as stack:
        path = unlocking.file or stack.enter_context(machine.handed(unlocking.passphrase))
        passed = {"NEWPIN": pin} if step.method.pin else None
        machine.change([*words, f"--unlock-key-file={path}", step.device], environment=passed)
    known = {token.number for token in before.tokens}
    new = [token for token in read_header(machine, step.device).of(step.method) if token.number not in known]
    if len(new) != 1 or not tpm_opens(machine, step.device, new[0].number, pin if step.method.pin else ""):
        raise StepFailed(f"{step.method.words} does not open {step.device}, although systemd-cryptenroll added it")
    return new[0].slots[0]


def path_below(root: str, path: str) -> str:
    """Return where a key file lies on the running system."""
    return os.path.join(root, path.lstrip("/"))


def _add_key(machine: Machine, device: str, slot: int, unlocking: Key, material: _Material) -> None:
    words = ["cryptsetup", "luksAddKey", "--batch-mode", f"--key-slot={slot}", *(_QUICK if material.quick else ())]
    words += [f"--key-file={unlocking.file or '-'}", device]
    if material.key.file is not None:
        machine.change([*words, material.key.file], unlocking.passphrase)
        return
    with machine.handed(material.key.passphrase) as path:
        machine.change([*words, path], unlocking.passphrase)


def _import(machine: Machine, device: str, number: int, token: Mapping[str, t.Any]) -> None:
    words = ["cryptsetup", "token", "import", "--json-file=-", f"--token-id={number}", device]
    machine.change(words, json.dumps(token).encode())


def take_away(step: TakeAway, machine: Machine) -> None:
    """Remove slots, and then their tokens: a token without a slot is found again, a slot without its token is not."""
    present = read_header(machine, step.device)
    for slot in step.slots:
        if slot in present.slots:
            machine.change(["cryptsetup", "luksKillSlot", "--batch-mode", step.device, str(slot)])
    for token in step.tokens:
        machine.change(["cryptsetup", "token", "remove", f"--token-id={token}", step.device])


def drop_unfinished(step: DropUnfinished, machine: Machine) -> None:
    """Remove what a run that was cut off has left; the mark goes last."""
    header = read_header(machine, step.device)
    if step.slot in header.slots:
        machine.change(["cryptsetup", "luksKillSlot", "--batch-mode", step.device, str(step.slot)])
    for token in header.tokens:
        if step.slot is not None and token.slots == (step.slot,):
            machine.change(["cryptsetup", "token", "remove", f"--token-id={token.number}", step.device])
    machine.change(["cryptsetup", "token", "remove", f"--token-id={step.token}", step.device])


def confirm(step: Confirm, machine: Machine) -> None:
    """Remove the mark of a recovery key."""
    machine.change(["cryptsetup", "token", "remove", f"--token-id={step.token}", step.device])
