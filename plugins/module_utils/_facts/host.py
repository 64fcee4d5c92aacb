# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host as the readers see it: tools to run and files to read, and nothing that changes it.

Everything that touches the machine goes through `Host`, so that a recorded host can take the place of a real one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import subprocess
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SYSTEM_PATHS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")
"""Where the tools lie when PATH does not say: unprivileged users often have no sbin in it, services may have no PATH at all."""

TOOL_TIMEOUT = 60
"""Seconds after which a tool is given up, so that one dead disk does not hang the run."""


_WATCHERS = frozenset(
    {
        "systemd-udevd",
        "(udev-worker)",
        "udevd",
        "blkid",
        "lsblk",
        "lvm",
        "lvs",
        "pvs",
        "vgs",
        "pvscan",
        "lvmetad",
        "mdadm",
        "multipathd",
        "smartd",
        "udisksd",
    }
)
"""Programs that open every disk to look at it, for an instant or for as long as they run."""


@dataclass(frozen=True)
class Outcome:
    """What a tool gave back; `stdout` and `stderr` are text."""

    code: int
    stdout: str
    stderr: str


class Host(t.Protocol):
    """What a reader may ask of a machine."""

    def run(self, command: Sequence[str]) -> t.Optional[Outcome]:
        """Return what the tool gave back; None when there is no such tool or it did not come back in time."""

    def read(self, path: str) -> t.Optional[str]:
        """Return a file's text without the blanks around it; None when it cannot be read."""

    def read_setting(self, path: str) -> t.Optional[str]:
        """Return the text of a file of settings; None when there is no such file.

        Raises OSError when it is there and cannot be read, or is no file, and ValueError when it is no text.
        """

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a directory, sorted; none when it cannot be read."""

    def resolve(self, path: str) -> t.Optional[str]:
        """Return the path with all links followed; None when there is nothing."""

    def read_bytes(self, path: str, start: int, size: int) -> bytes:
        """Return a part of a device, shorter where it ends; raises OSError where it cannot be read."""

    def openers(self, nodes: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the processes that have any of these nodes open, `name (number)`, by node; not those that watch all disks there are."""

    def claimed(self, device: str) -> t.Optional[bool]:
        """Return whether the kernel holds the block device for somebody; None when it cannot be opened."""


class LocalHost:
    """The machine this runs on."""

    def run(self, command: Sequence[str]) -> t.Optional[Outcome]:
        """Run the tool with a plain locale; see Host."""
        program = find_program(command[0])
        if program is None:
            return None
        try:
            # There is no AnsibleModule here: a host is read the same way by tests and by hand.
            done = subprocess.run(  # pylint: disable=ansible-bad-function
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TOOL_TIMEOUT,
                check=False,
                env=tool_environment(),
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return Outcome(done.returncode, _text(done.stdout), _text(done.stderr))

    def read(self, path: str) -> t.Optional[str]:
        """See Host."""
        try:
            with open(path, "rb") as file:
                return _text(file.read()).strip(" \t\r\n\0")
        except OSError:
            return None

    def read_setting(self, path: str) -> t.Optional[str]:
        """See Host."""
        try:
            # What waits for a writer, or for a carrier, would not come back otherwise.
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise OSError(errno.EINVAL, "is no regular file")
                return file.read().decode("utf-8-sig")
        except FileNotFoundError:
            if os.path.islink(path):
                raise OSError(errno.ENOENT, "is a link to nothing") from None
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """See Host."""
        try:
            return tuple(sorted(os.listdir(path)))
        except OSError:
            return ()

    def resolve(self, path: str) -> t.Optional[str]:
        """See Host."""
        try:
            return os.path.realpath(path) if os.path.exists(path) else None
        except OSError:
            return None

    def read_bytes(self, path: str, start: int, size: int) -> bytes:
        """See Host."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            parts = []
            while size > 0:
                part = os.pread(handle, size, start)
                if not part:
                    break
                parts.append(part)
                start, size = start + len(part), size - len(part)
            return b"".join(parts)
        finally:
            os.close(handle)

    def openers(self, nodes: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
        """See Host."""
        found: dict[str, list[str]] = {}
        numbers = {number: node for node in nodes for number in _block_number(node)}
        for process in self.names("/proc"):
            if not process.isdigit() or int(process) == os.getpid():
                continue
            for node in _open_nodes(process, nodes, numbers) if nodes else ():
                name = self.read(f"/proc/{process}/comm") or "a process"
                if name not in _WATCHERS:
                    found.setdefault(node, []).append(f"{name} ({process})")
        return {node: tuple(processes) for node, processes in found.items()}

    def claimed(self, device: str) -> t.Optional[bool]:
        """Open the device for reading, exclusively, for an instant.

        The kernel refuses while a mount, swap, md, LVM, ZFS or the like holds it.
        Opening for reading alone starts no udev event and writes nothing.
        """
        try:
            handle = os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            return True if error.errno == errno.EBUSY else None
        os.close(handle)
        return False


def _open_nodes(process: str, nodes: frozenset[str], numbers: Mapping[int, str]) -> set[str]:
    """Return those of the nodes that a process has open, by their own names or by others: a container may call a disk as it likes.

    Links of /proc are read, and followed only to what is called a device: what lies on a server that is gone would hang.
    """
    folder, found = f"/proc/{process}/fd", set()
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            # A file may be closed, a process end, between the two.
            with contextlib.suppress(OSError):
                path = os.readlink(f"{folder}/{name}")
                other = _block_number(f"{folder}/{name}") if path.startswith("/dev/") else ()
                found |= {path} & nodes | {numbers[number] for number in other if number in numbers}
    return found


def _block_number(path: str) -> tuple[int, ...]:
    """Return the number of the block device that a path is, if it is one."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_rdev,) if stat.S_ISBLK(found.st_mode) else ()


def find_program(name: str) -> t.Optional[str]:
    """Return the path of a tool, None when there is none."""
    return shutil.which(name, path=_search_path())


def tool_environment() -> dict[str, str]:
    """Return the environment that tools run in: one search path, one language."""
    return {"PATH": _search_path(), "LC_ALL": "C", "LVM_SUPPRESS_FD_WARNINGS": "1"}


def _search_path() -> str:
    own = [place for place in os.environ.get("PATH", "").split(os.pathsep) if place]
    return os.pathsep.join([*own, *(place for place in SYSTEM_PATHS if place not in own)])


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")
