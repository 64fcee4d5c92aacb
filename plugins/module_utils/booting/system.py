# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is in a system that is to start: in a folder of the host, or in an archive that is not unpacked yet."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ..steps.machine import LONG_PATIENCE, Machine, StepFailed

_KERNELS = ("vmlinuz-", "Image-")
_COMPRESSIONS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x5d\0\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"LZIP": "lzip",
}
"""What a file begins with that a program compressed."""


class System(t.Protocol):
    """A system, of which paths are given without the slash before them."""

    @property
    def place(self) -> str:
        """Return where it is, as messages say it."""

    def names(self, folder: str) -> tuple[str, ...]:
        """Return the names in a folder of it, sorted."""

    def read(self, file: str) -> str:
        """Return the text of a file of it, which is empty where there is none, or where it cannot be known yet."""


@dataclass(frozen=True)
class Folder:
    """A system in a folder of the host."""

    path: str
    machine: Machine

    @property
    def place(self) -> str:
        """See System."""
        return self.path.rstrip("/")

    def names(self, folder: str) -> tuple[str, ...]:
        """See System."""
        return self.machine.names(f"{self.place}/{folder}")

    def read(self, file: str) -> str:
        """See System."""
        return self.machine.read(f"{self.place}/{file}") or ""


@dataclass(frozen=True)
class Archive:
    """A system in an archive: `place` is its path, `paths` are all that it has, as `tar --list` prints them."""

    place: str
    paths: frozenset[str]

    def names(self, folder: str) -> tuple[str, ...]:
        """See System; where programs lie in one folder for all, the other one is a link to it."""
        folders = {folder, folder.replace("usr/sbin", "usr/bin")}
        return tuple(sorted({name for path in self.paths for top, _slash, name in [path.rpartition("/")] if top in folders}))

    def read(self, _file: str) -> str:
        """See System; the tables are written when it is unpacked."""
        return ""


def list_archive(archive: str, machine: Machine) -> Archive:
    """Read an archive to its end, so that one that was cut off is found out; raises StepFailed with what tar says."""
    try:
        said = machine.change(["tar", "--list", f"--file={archive}"], patience=LONG_PATIENCE)
    except StepFailed as error:
        raise StepFailed(f"{archive} is not an archive of a root file system that can be read to its end: {error}") from error
    return Archive(archive, frozenset(re.sub(r"^(\./)*|/$", "", line) for line in said.splitlines()))


def compression_of(archive: str, machine: Machine) -> str:
    """Return the program that tar unpacks an archive with, which is empty where it takes none; raises StepFailed where there is no file."""
    try:
        begin = machine.read_bytes(archive, 0, max(map(len, _COMPRESSIONS)))
    except OSError as error:
        raise StepFailed(f"{archive} cannot be read: {error.strerror}. Give the path of an archive of a root file system") from error
    return next((program for magic, program in _COMPRESSIONS.items() if begin.startswith(magic)), "")


def has(system: System, file: str) -> bool:
    """Return whether a system has a file."""
    folder, _slash, name = file.rpartition("/")
    return name in system.names(folder)


def kernels(system: System) -> tuple[str, ...]:
    """Return the names of its kernels in /boot."""
    return tuple(name for name in system.names("boot") if name.startswith(_KERNELS))


def version_of(kernel: str) -> str:
    """Return the version of a kernel by its name."""
    return kernel.partition("-")[2]
