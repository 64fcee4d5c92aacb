# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LUKS containers. The key goes to cryptsetup by its standard input or by the name of a file: never as a word."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .._facts.present import Present
from .._storage.overhead import LUKS_HEAD
from .._storage.units import MIB
from .key import Key
from .machine import CommandFailed, Machine, StepFailed
from .needs import DEVICE_MAPPER, Ability, Tool
from .partitions import DMSETUP
from .picture import Picture, Piece, changed
from .reach import Reach, whole_devices
from .step import Step, Writes

CRYPTSETUP = Tool("cryptsetup", "cryptsetup-bin", "cryptsetup")

HEADER = "LUKS"
"""The content of a device with a container in pictures."""
_HEADING = "LUKS mappings"

_SECTOR = 512
_DATA_START = LUKS_HEAD * MIB
_WRONG_KEY = 2
"""cryptsetup's code for `no permission (bad passphrase)`."""

NO_TOKENS = "--disable-external-tokens"
_FIRST_WITH_TOKENS = (2, 4)
"""From here on cryptsetup asks what a token names (a TPM) before it tries the given key; NO_TOKENS keeps it from that."""


class _ContainerStep(Step):
    """A step on a LUKS container, by its name."""

    name: str

    @property
    def node(self) -> str:
        """The node of the open container."""
        return f"/dev/mapper/{self.name}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (CRYPTSETUP,)


class _KeyStep(_ContainerStep):
    """A step that takes the key of its container."""

    @property
    def key_name(self) -> str:
        """The name by which its key is chosen."""
        return self.name

    def _use_key(self, machine: Machine, options: Sequence[str], arguments: Sequence[str]) -> None:
        _change_with_key(machine, options, arguments, machine.luks_key.of(self.key_name))


@dataclass(frozen=True)
class FormatLuks(_KeyStep):
    """Write a LUKS2 header with this UUID.

    `aligned`: the device is an array, whose stripes cryptsetup follows; else data begin at 16 MiB. `name` is that of the container, which
    selects its key.
    """

    device: str
    uuid: str
    aligned: bool
    name: str = ""

    words: t.ClassVar[str] = "encrypt {device} (LUKS)"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device])

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device,))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return changed(picture, self.device, holds=HEADER)

    def run(self, machine: Machine) -> None:
        """Write the header, and see that it is there; whether the key opens it shows in the next step, which opens it."""
        begin = [] if self.aligned else [f"--offset={_DATA_START // _SECTOR}"]
        words = ["cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", f"--uuid={self.uuid}", *begin]
        self._use_key(machine, words, [self.device])
        found = machine.run(["cryptsetup", "luksUUID", self.device])
        if found is None or found.stdout.strip() != self.uuid:
            raise StepFailed(f"{self.device} has no LUKS header with the UUID {self.uuid} after it was written")


@dataclass(frozen=True)
class OpenLuks(_KeyStep):
    """Open a LUKS container as `/dev/mapper/NAME`."""

    device: str
    name: str
    container: str = ""
    """The container whose key opens it, where that has another name for now."""

    words: t.ClassVar[str] = "open {device} as /dev/mapper/{name}"

    @property
    def key_name(self) -> str:
        """See _KeyStep."""
        return self.container or self.name

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (DEVICE_MAPPER,)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device], keeps=True)

    def writes(self) -> Writes:
        """See Step. Only the header is read."""
        return Writes()

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        closed = {key: piece for key, piece in picture.items() if not (piece.heading == _HEADING and piece.on == (self.device,))}
        return {**closed, self.node: mapping_piece(self.name, (self.device,))}

    def run(self, machine: Machine) -> None:
        """Open the container."""
        try:
            self._use_key(machine, ["cryptsetup", "open", "--type=luks"], [self.device, self.name])
        except CommandFailed as error:
            if error.code == _WRONG_KEY:
                raise StepFailed(f"the key does not open {self.device}; give the key it was made with") from error
            raise
        machine.wait_for([self.node])


@dataclass(frozen=True)
class ResizeLuks(_KeyStep):
    """Let an open LUKS container take the whole of its device, which has grown."""

    name: str

    words: t.ClassVar[str] = "grow the LUKS mapping {name} to the size of its device"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.node], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.node,))

    def run(self, machine: Machine) -> None:
        """Let the mapping follow its device. LUKS 2 asks for the key, for the kernel does not give it back."""
        self._use_key(machine, ["cryptsetup", "resize"], [self.name])
        machine.settle()


@dataclass(frozen=True)
class CloseMapping(_ContainerStep):
    """Close an open LUKS container; `name` is its device-mapper name."""

    name: str

    words: t.ClassVar[str] = "close the LUKS mapping {name}"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.node])

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.node,))

    def run(self, machine: Machine) -> None:
        """Close the mapping, which cryptsetup refuses while it is in use."""
        machine.change(["cryptsetup", "close", self.name])
        machine.settle()


@dataclass(frozen=True)
class RenameMapping(_ContainerStep):
    """Give an open LUKS container, which may be in use, another device-mapper name."""

    old: str
    name: str

    words: t.ClassVar[str] = "rename the LUKS mapping {old} to {name}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (DMSETUP,)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [f"/dev/mapper/{self.old}"], keeps=True)

    def writes(self) -> Writes:
        """See Step. The name is in memory alone."""
        return Writes()

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        old = f"/dev/mapper/{self.old}"
        if old not in picture:
            return picture
        moved = {self.node if key == old else key: piece for key, piece in picture.items()}
        return changed(moved, self.node, title=self.name, order=(0, self.name))

    def run(self, machine: Machine) -> None:
        """Rename the mapping."""
        machine.change(["dmsetup", "rename", self.old, self.name])
        machine.settle()
        machine.wait_for([self.node])


def mapping_piece(name: str, on: tuple[str, ...], holds: str = "") -> Piece:
    """Return an open container of a picture."""
    return Piece(_HEADING, (0, name), name, 0, on, holds)


def lacks_key(step: Step, key: Key) -> bool:
    """Return whether the step takes a LUKS key that is not given."""
    return isinstance(step, _KeyStep) and not key.of(step.key_name).given


def opens(device: str, machine: Machine, key: Key) -> bool:
    """Return whether a key opens the header on a device, the key and not a token; nothing is opened, and nothing changed."""
    words = ["cryptsetup", "open", "--test-passphrase", "--type=luks", *([NO_TOKENS] if _knows_tokens(machine) else [])]
    try:
        _change_with_key(machine, words, [device], key)
    except CommandFailed as error:
        if error.code == _WRONG_KEY:
            return False
        raise
    return True


def _knows_tokens(machine: Machine) -> bool:
    outcome = machine.run(["cryptsetup", "--version"])
    found = re.search(r"cryptsetup ([0-9]+)\.([0-9]+)", outcome.stdout) if outcome is not None else None
    return found is None or (int(found[1]), int(found[2])) >= _FIRST_WITH_TOKENS


def _change_with_key(machine: Machine, options: Sequence[str], arguments: Sequence[str], key: Key) -> None:
    if not key.given:
        raise StepFailed(f"{options[1]} of {arguments[0]} needs luks_key or luks_key_file")
    machine.change([*options, f"--key-file={key.file or '-'}", *arguments], key.passphrase)
