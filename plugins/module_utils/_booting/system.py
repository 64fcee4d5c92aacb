# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is in a system that is to start: in a folder of the host, or in an archive that is not unpacked yet."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from .._steps.machine import LONG_PATIENCE, Machine, StepFailed

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

_LISTED = ("tar", "--list", "--verbose", "--block-number", "--numeric-owner")
_ENTRY = re.compile(r"block (?P<block>\d+): (?:(?P<kind>[-a-zA-Z])\S+ \S+ +(?P<size>\d+)(?:,\d+)? \S+ \S+ (?P<path>.*))?")
_BLOCK = 512
_BEHIND = {"l": " -> ", "h": " link to "}
"""What comes between the path of a link and what it leads to."""


class System(t.Protocol):
    """A system, of which paths are given without the slash before them."""

    @property
    def place(self) -> str:
        """Return where it is, as messages say it."""

    def names(self, folder: str) -> tuple[str, ...]:
        """Return the sorted names in a folder of the system."""

    def read(self, file: str) -> str:
        """Return the text of a file of the system; empty if the file does not exist, or cannot be known yet."""


@dataclass(frozen=True)
class Folder:
    """A system in a folder of the host."""

    path: str
    machine: Machine

    @property
    def place(self) -> str:
        """See System."""
        return self.path.rstrip("/") or "/"

    def names(self, folder: str) -> tuple[str, ...]:
        """See System."""
        return self.machine.names(f"{self.path.rstrip('/')}/{folder}")

    def read(self, file: str) -> str:
        """See System."""
        return self.machine.read(f"{self.path.rstrip('/')}/{file}") or ""


@dataclass(frozen=True)
class Archive:
    """A system in an archive: `place` is its path, `sizes` are the bytes that each path in it takes when it is unpacked."""

    place: str
    sizes: Mapping[str, int] = field(default_factory=dict)

    def names(self, folder: str) -> tuple[str, ...]:
        """See System; where programs lie in one folder for all, the other one is a link to it."""
        folders = {folder, folder.replace("usr/sbin", "usr/bin")}
        return tuple(sorted({name for path in self.sizes for top, _slash, name in [path.rpartition("/")] if top in folders}))

    def read(self, _file: str) -> str:
        """See System; the tables are written when it is unpacked."""
        return ""


def list_archive(archive: str, machine: Machine) -> Archive:
    """Read an archive to its end, so that one that was cut off is found out; raises StepFailed with what tar says."""
    try:
        said = machine.change([*_LISTED, f"--file={archive}"], patience=LONG_PATIENCE)
    except StepFailed as error:
        raise StepFailed(f"{archive} is not an archive of a root file system that can be read to its end: {error}") from error
    return Archive(archive, dict(_entries(said)))


def _entries(listed: str) -> Iterator[tuple[str, int]]:
    """Give the paths of an archive, with what each takes: of a file with holes it is what there is between them."""
    found = [entry for entry in map(_ENTRY.match, listed.splitlines()) if entry is not None]
    for entry, behind in zip(found, [*found[1:], None]):
        if entry["kind"] is not None:
            path = entry["path"].partition(_BEHIND.get(entry["kind"], "\n"))[0]
            stored = _BLOCK * (int(behind["block"]) - int(entry["block"])) if behind is not None else int(entry["size"])
            yield re.sub(r"^(\./)*|/\Z", "", path), min(int(entry["size"]), stored) if entry["kind"] == "-" else 0


def compression_of(archive: str, machine: Machine) -> str:
    """Return the program that tar unpacks an archive with, which is empty where it takes none; raises StepFailed where there is no file."""
    try:
        begin = machine.read_bytes(archive, 0, max(map(len, _COMPRESSIONS)))
    except OSError as error:
        raise StepFailed(f"{archive} cannot be read: {error.strerror}. Give the path of an archive of a root file system") from error
    return next((program for magic, program in _COMPRESSIONS.items() if begin.startswith(magic)), "")


def unknown_accounts(archive: str, machine: Machine, users: Collection[str], groups: Collection[str]) -> Iterator[str]:
    """Give a sentence for each name that the system in an archive has not; raises StepFailed."""
    for kind, names, table in (("user", users, "etc/passwd"), ("group", groups, "etc/group")):
        # It lies under one of the two names, and tar does not like that it lies not under the other.
        command = ["tar", "--extract", "--to-stdout", f"--file={archive}", table, f"./{table}"]
        text = machine.change(command, patience=LONG_PATIENCE, accepted=(0, 2)) if names else ""
        known = {line.partition(":")[0] for line in text.splitlines()}
        yield from (f"there is no {kind} {name} in {archive}, which is to own a mount point" for name in names if name not in known)


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
