# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the steps on LUKS containers. The key goes to cryptsetup by its standard input or by the name of a file: never as a word."""

from __future__ import annotations

import os
import re
import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .._storage.overhead import LUKS_HEAD
from .._storage.units import MIB
from .._storage.unlock import why_no_key_file, why_no_passphrase
from .kinds import CloseMapping, FormatLuks, OpenLuks, ResizeLuks
from .machine import CommandFailed, Machine, StepFailed

_SECTOR = 512
_DATA_START = LUKS_HEAD * MIB
_WRONG_KEY = 2
"""cryptsetup's code for `no permission (bad passphrase)`."""

NO_TOKENS = "--disable-external-tokens"
_FIRST_WITH_TOKENS = (2, 4)
"""From here on cryptsetup asks what a token names (a TPM) before it looks at the key that it is given; NO_TOKENS keeps it from that."""


# What every module that opens containers takes; the doc fragment `keys` describes it.
KEY_ARGUMENTS: Mapping[str, t.Any] = {
    "luks_key": {"type": "str", "no_log": True},
    "luks_key_file": {"type": "path", "no_log": False},
    "luks_key_files": {"type": "dict", "default": {}, "no_log": False},
}
KEY_EXCLUSIVE = ("luks_key", "luks_key_file")


@dataclass(frozen=True)
class Key:
    """What opens LUKS containers: a passphrase, or a file on the host whose whole content counts. The passphrase never shows.

    `files` are files by the names of containers that have keys of their own.
    """

    passphrase: bytes = field(default=b"", repr=False)
    file: t.Optional[str] = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def given(self) -> bool:
        """Whether there is a key at all."""
        return bool(self.passphrase) or self.file is not None

    def of(self, name: str) -> Key:
        """Return the key of the container of this name."""
        return Key(file=self.files[name]) if name in self.files else Key(self.passphrase, self.file)

    def problems(self, place: str = "luks_key_file") -> Iterator[str]:
        """Give what is wrong with the files; `place` is the option that names the one for all containers."""
        named = {f"{place}s.{name}": file for name, file in self.files.items()}
        for where, file in {place: self.file, **named}.items():
            if file is not None and not (isinstance(file, str) and os.path.isfile(file)):
                yield f"{where}: {file} is not a key file on this host"
            elif file is not None:
                found = os.stat(file)
                says = why_no_key_file(found.st_size, found.st_mode)
                if says is not None:
                    yield f"{where}: {file} {says}"

    def passphrase_problems(self) -> Iterator[str]:
        """Give what is wrong with a passphrase that containers are to get; one that they have is used as it is."""
        says = why_no_passphrase(self.passphrase.decode(errors="surrogatepass"))
        if says is not None:
            yield f"luks_key: {says}"


def key_of(params: Mapping[str, t.Any]) -> Key:
    """Return the key of a module's parameters (KEY_ARGUMENTS)."""
    return Key((params["luks_key"] or "").encode(errors="surrogatepass"), params["luks_key_file"], params["luks_key_files"])


def format_luks(step: FormatLuks, machine: Machine, key: Key) -> None:
    """Write the header, and see that it is there; that the key opens it shows when it is opened, which is the next step."""
    begin = [] if step.aligned else [f"--offset={_DATA_START // _SECTOR}"]
    words = ["cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", f"--uuid={step.uuid}", *begin]
    _with_key(machine, words, [step.device], key.of(step.name))
    found = machine.run(["cryptsetup", "luksUUID", step.device])
    if found is None or found.stdout.strip() != step.uuid:
        raise StepFailed(f"{step.device} has no LUKS header with the UUID {step.uuid} after it was written")


def open_luks(step: OpenLuks, machine: Machine, key: Key) -> None:
    """Open the container."""
    try:
        _with_key(machine, ["cryptsetup", "open", "--type=luks"], [step.device, step.name], key.of(step.name))
    except CommandFailed as error:
        if error.code == _WRONG_KEY:
            raise StepFailed(f"the key does not open {step.device}; give the key it was made with") from error
        raise
    machine.wait_for([f"/dev/mapper/{step.name}"])


def opens(device: str, machine: Machine, key: Key) -> bool:
    """Return whether a key opens the header on a device, the key and not a token; nothing is opened, and nothing changed."""
    words = ["cryptsetup", "open", "--test-passphrase", "--type=luks", *([NO_TOKENS] if _knows_tokens(machine) else [])]
    try:
        _with_key(machine, words, [device], key)
    except CommandFailed as error:
        if error.code == _WRONG_KEY:
            return False
        raise
    return True


def _knows_tokens(machine: Machine) -> bool:
    outcome = machine.run(["cryptsetup", "--version"])
    found = re.search(r"cryptsetup ([0-9]+)\.([0-9]+)", outcome.stdout) if outcome is not None else None
    return found is None or (int(found[1]), int(found[2])) >= _FIRST_WITH_TOKENS


def resize_luks(step: ResizeLuks, machine: Machine, key: Key) -> None:
    """Let the mapping follow its device. LUKS 2 asks for the key, for the kernel does not give it back."""
    _with_key(machine, ["cryptsetup", "resize"], [step.name], key.of(step.name))
    machine.settle()


def close_mapping(step: CloseMapping, machine: Machine) -> None:
    """Close the mapping, which cryptsetup refuses while it is in use."""
    machine.change(["cryptsetup", "close", step.name])
    machine.settle()


def _with_key(machine: Machine, options: Sequence[str], arguments: Sequence[str], key: Key) -> None:
    if not key.given:
        raise StepFailed(f"{options[1]} of {arguments[0]} needs luks_key or luks_key_file")
    machine.change([*options, f"--key-file={key.file or '-'}", *arguments], key.passphrase)
