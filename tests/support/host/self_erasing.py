# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A disk that can erase itself, and its tools: no machine of the tests has one, so this stands for them.

It refuses what a real one refuses: a second operation while one goes on, reading meanwhile, and every command that it does not offer.
"""

from __future__ import annotations

import contextlib
import json
import typing as t
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import Outcome
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import CommandFailed
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine

MIB = 1024**2


@dataclass
class Flash:
    """A disk in memory. `looks` is how often an operation is asked after until it is done; `keeps` lies: it erases nothing."""

    content: bytearray
    looks: int = 2
    keeps: bool = False
    in_use: bool = False
    written: int = 0
    status: str = "none"
    left: int = field(default=0)

    @property
    def size(self) -> int:
        return len(self.content)

    @contextlib.contextmanager
    def opened(self, _node: str, size: int, writes: bool) -> Iterator[Flash]:
        assert size == self.size
        if writes and self.in_use:
            raise OSError(16, "Device or resource busy")
        yield self

    def read(self, start: int, length: int) -> bytes:
        if self.status == "active":
            raise OSError(5, "Input/output error")
        assert start % 512 == length % 512 == 0
        assert start + length <= self.size
        return bytes(self.content[start : start + length])

    def zero(self, start: int, length: int) -> None:
        if not self.keeps:
            self.content[start : start + length] = bytes(length)
        self.written += length

    def discard(self, start: int, length: int) -> None:
        self.zero(start, length)

    def flush(self) -> None:
        """Everything is down at once."""

    def erase(self) -> None:
        """Begin to erase itself; it goes on whatever becomes of the host."""
        if self.status == "active":
            raise OSError(16, "sanitize in progress")
        self.status, self.left = "active", self.looks

    def look(self) -> str:
        """Return how far it is."""
        if self.status == "active":
            self.left -= 1
            if self.left <= 0:
                self.status = "done"
                self.content[:] = self.content if self.keeps else bytes(self.size)
        return self.status


class SelfErasing(RecordingMachine):
    """A machine with an NVMe namespace that has sanitize, by block erase, and format; the words are those of nvme-cli 2.3."""

    def __init__(self, flash: Flash, sanicap: int = 0b10, fna: int = 0, oacs: int = 0b10, namespaces: int = 1) -> None:
        listed = "".join(f"[{number:4}]:{number + 1:#x}\n" for number in range(namespaces))
        super().__init__(
            {
                "nvme id-ctrl --output-format=json /dev/nvme0n1": json.dumps({"sanicap": sanicap, "fna": fna, "oacs": oacs, "sn": "S1"}),
                "nvme id-ns --output-format=json /dev/nvme0n1": json.dumps({"flbas": 0x11, "dps": 0x9}),
                "nvme list-ns --all /dev/nvme0n1": listed,
            }
        )
        self.flash, self.sanicap = flash, sanicap

    def run(self, command: Sequence[str]) -> Outcome | None:
        if list(command) == ["nvme", "sanitize-log", "/dev/nvme0n1"]:
            status = {"none": 0, "done": 0x101, "active": 2, "failed": 3}[self.flash.look()]
            return Outcome(0, f"Sanitize Progress                      (SPROG) :  65535\nSanitize Status  (SSTAT) :  {status:#x}\n", "")
        return super().run(command)

    def change(self, command: Sequence[str], *given: t.Any, **options: t.Any) -> str:
        if list(command[:2]) == ["nvme", "sanitize"]:
            if command[2] != "--sanact=2" or not self.sanicap & 0b10:
                raise CommandFailed(command, 1, "Invalid Field in Command")
            try:
                self.flash.erase()
            except OSError as error:
                raise CommandFailed(command, 1, str(error)) from error
        elif list(command[:2]) == ["nvme", "format"] and not self.flash.keeps:
            self.flash.content[:] = bytes(self.flash.size)
        return super().change(command, *given, **options)
