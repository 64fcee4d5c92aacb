# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host that steps change: a Host with commands that must succeed, zeros on devices, locks, and waiting for nodes.

Everything that changes the machine goes through `Machine`, so that a recording one can take the place of a real one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import subprocess
import time
import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .._facts.host import Host, LocalHost, Outcome, find_program, tool_environment
from .._storage.unlock import why_no_key_file
from .key import NO_KEY, Key

PATIENCE = 600
"""Seconds after which a command that changes something is given up."""

LONG_PATIENCE = 6 * 3600
"""The same for what grows with the size of a device: mkfs that discards it, checks before growing."""

MOVING_PATIENCE = 20 * 24 * 3600
"""The same for what reads and writes all of a disk, while others use it; poll(2) takes no more than 24 days."""

_NODE_PATIENCE = 30
_NODE_PAUSE = 0.05
_LOOK = 0.25
"""Seconds: scans for signatures (udev, LVM, another container's) are over by then."""
_UDEV_CONTROL = "/run/udev/control"
_ZEROS = bytes(1024**2)


class StepFailed(Exception):
    """A step could not be carried out; the text is for humans."""


class CommandFailed(StepFailed):
    """A command failed: `command` in words, `code` (None when it did not run, or not to its end), and what it said."""

    def __init__(self, command: Sequence[str], code: t.Optional[int], said: str) -> None:
        how = "failed" if code is None else f"failed with code {code}"
        super().__init__(f"{' '.join(command)} {how}: {said or 'it said nothing'}")
        self.command = tuple(command)
        self.code = code
        self.said = said


class Region(t.NamedTuple):
    """A part of a device, in bytes."""

    start: int
    size: int


class Machine(Host, t.Protocol):
    """What a step may ask of a machine, in addition to what a reader may."""

    luks_key: Key
    """What opens the LUKS containers that steps make, open or grow."""

    def has(self, tool: str) -> bool:
        """Return whether there is a tool."""

    def change(
        self,
        command: Sequence[str],
        given: bytes = b"",
        patience: int = PATIENCE,
        accepted: Sequence[int] = (0,),
        environment: t.Optional[Mapping[str, str]] = None,
    ) -> str:
        """Run a command with `given` as its input and return its output; raises CommandFailed unless its code is one of `accepted`.

        `environment` is added to the usual one; only root can read it.
        """

    def handed(self, content: bytes) -> contextlib.AbstractContextManager[str]:
        """Give a path at which commands find a secret: it is on no disk, and they alone see it."""

    def why_no_key_file(self, path: str) -> t.Optional[str]:
        """Return why a file cannot be used as a key; None for nothing."""

    def create_secret(self, path: str, content: bytes) -> None:
        """Make a file that only root can read, whole or not at all, and its directory; raises StepFailed, also where there is one."""

    def zero(self, device: str, regions: Iterable[Region], exclusively: bool) -> None:
        """Write zeros onto parts of a device, down to the medium; raises StepFailed.

        `exclusively` lets the kernel refuse while anything (a mount, an array, a group) uses the device or one of its partitions.
        """

    def write(self, device: str, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Write bytes at offsets onto a device, each down to the medium before the next; raises StepFailed."""

    def copy(self, source: str, target: str, size: int) -> None:
        """Copy the first bytes of a device onto another one, the first MiB of them last, and compare; raises StepFailed.

        The kernel refuses while anything uses one of them, and lets nobody mount either meanwhile.
        """

    def flush(self, disks: Iterable[str]) -> None:
        """Have disks bring onto their medium all that was written; raises StepFailed."""

    def locked(self, device: str) -> contextlib.AbstractContextManager[None]:
        """Keep udev, and all programs that respect its lock, away from a whole disk."""

    def wait_for(self, nodes: Iterable[str]) -> None:
        """Wait until there are these nodes; raises StepFailed when they do not appear."""

    def settle(self) -> None:
        """Wait until udev has seen to all that happened, where there is udev."""

    def give_way(self) -> None:
        """Give other programs, which open a device for an instant, the time to close it."""


class LocalMachine(LocalHost):
    """The machine this runs on."""

    luks_key = NO_KEY

    def __init__(self, luks_key: Key = NO_KEY) -> None:
        """Take the key of LUKS containers."""
        self.luks_key = luks_key

    def has(self, tool: str) -> bool:
        """See Machine."""
        return find_program(tool) is not None

    def change(
        self,
        command: Sequence[str],
        given: bytes = b"",
        patience: int = PATIENCE,
        accepted: Sequence[int] = (0,),
        environment: t.Optional[Mapping[str, str]] = None,
    ) -> str:
        """Run the command in a session of its own, for what writes on disks must not be broken off halfway by ^C; see Machine."""
        program = find_program(command[0])
        if program is None:
            raise CommandFailed(command, None, f"there is no {command[0]} on this host")
        try:
            # There is no AnsibleModule here: a layout is made the same way by tests and by hand.
            done = subprocess.run(  # pylint: disable=ansible-bad-function
                [program, *command[1:]],
                input=given,
                capture_output=True,
                timeout=patience,
                check=False,
                start_new_session=True,
                # The lock of the run is inherited (nothing else is): a tool that outlives it keeps the next run out.
                close_fds=False,
                env={**tool_environment(), **(environment or {})},
            )
        except OSError as error:
            raise CommandFailed(command, None, str(error)) from error
        except subprocess.TimeoutExpired:
            raise CommandFailed(command, None, f"nothing within {patience} s") from None
        outcome = Outcome(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
        if outcome.code not in accepted:
            raise CommandFailed(command, outcome.code, "; ".join(_lines(outcome.stderr) or _lines(outcome.stdout)))
        return outcome.stdout

    @contextlib.contextmanager
    def handed(self, content: bytes) -> Iterator[str]:
        """See Machine. A file that is in memory only: systemd seeks in what it reads, which a pipe does not let it."""
        handle = os.memfd_create("key")
        os.fchmod(handle, 0o600)
        try:
            os.write(handle, content)
            os.set_inheritable(handle, True)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)

    def why_no_key_file(self, path: str) -> t.Optional[str]:
        """See Machine."""
        try:
            found = os.stat(path)
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        return why_no_key_file(found)

    def create_secret(self, path: str, content: bytes) -> None:
        """See Machine. A link, unlike a new name, never takes the place of a file that is there."""
        folder, unfinished = os.path.dirname(path), f"{path}.{os.getpid()}"
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o400)
            try:
                os.write(handle, content)
                os.fsync(handle)
                os.link(unfinished, path)
            finally:
                os.close(handle)
                os.unlink(unfinished)
            flush_folder(folder)
        except OSError as error:
            raise StepFailed(f"cannot make {path}: {error.strerror}") from error

    def zero(self, device: str, regions: Iterable[Region], exclusively: bool) -> None:
        """See Machine."""
        mode = os.O_WRONLY | os.O_CLOEXEC | (os.O_EXCL if exclusively else 0)
        try:
            handle = os.open(device, mode)
            try:
                for region in regions:
                    _write_zeros(handle, region)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise StepFailed(f"cannot write zeros on {device}: {error.strerror}") from error

    def write(self, device: str, pieces: Iterable[tuple[int, bytes]]) -> None:
        """See Machine."""
        try:
            handle = os.open(device, os.O_WRONLY | os.O_CLOEXEC)
            try:
                for start, content in pieces:
                    for done in range(0, len(content), len(_ZEROS)):
                        os.pwrite(handle, content[done : done + len(_ZEROS)], start + done)
                    os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise StepFailed(f"cannot write on {device}: {error.strerror}") from error

    def copy(self, source: str, target: str, size: int) -> None:
        """See Machine. Until the first MiB is there the target has nothing that anybody would take for a copy."""
        try:
            with contextlib.ExitStack() as opened:
                read, write = (_opened(opened, device, mode | os.O_EXCL) for device, mode in ((source, os.O_RDONLY), (target, os.O_RDWR)))
                _copy(read, write, Region(len(_ZEROS), size - len(_ZEROS)))
                os.fsync(write)
                _copy(read, write, Region(0, min(size, len(_ZEROS))))
                os.fsync(write)
                os.posix_fadvise(write, 0, 0, os.POSIX_FADV_DONTNEED)
                different = _first_difference(read, write, size)
        except OSError as error:
            raise StepFailed(f"cannot copy {source} onto {target}: {error.strerror}") from error
        if different is not None:
            raise StepFailed(f"{target} differs from {source} in the MiB at byte {different} after it was copied")

    def flush(self, disks: Iterable[str]) -> None:
        """Open each for reading only, for udev looks again when what was opened for writing is closed; see Machine."""
        for disk in disks:
            try:
                handle = os.open(disk, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
            except OSError as error:
                raise StepFailed(f"cannot flush {disk}: {error.strerror}") from error

    @contextlib.contextmanager
    def locked(self, device: str) -> Iterator[None]:
        """Hold the advisory lock that systemd asks for (https://systemd.io/BLOCK_DEVICE_LOCKING), and let udev look when all is done.

        Opened for writing, for udev looks again when such a handle is closed.
        """
        try:
            handle = os.open(device, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise StepFailed(f"cannot open {device} for writing: {error.strerror}") from error
        try:
            _wait_for_lock(handle, device)
            yield
        finally:
            os.close(handle)

    def wait_for(self, nodes: Iterable[str]) -> None:
        """See Machine."""
        end = time.monotonic() + _NODE_PATIENCE
        for node in nodes:
            while not os.path.exists(node):
                if time.monotonic() > end:
                    raise StepFailed(f"{node} did not appear within {_NODE_PATIENCE} s")
                time.sleep(_NODE_PAUSE)

    def settle(self) -> None:
        """See Machine. Containers have no udev of their own."""
        if os.path.exists(_UDEV_CONTROL):
            self.run(["udevadm", "settle", f"--timeout={_NODE_PATIENCE}"])

    def give_way(self) -> None:
        """See Machine."""
        self.settle()
        time.sleep(_LOOK)


def flush_folder(folder: str) -> None:
    """Bring the names in a folder onto its medium; raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _wait_for_lock(handle: int, device: str) -> None:
    end = time.monotonic() + _NODE_PATIENCE
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise StepFailed(f"{device} has been locked by another program for more than {_NODE_PATIENCE} s") from None
            time.sleep(_NODE_PAUSE)


def _opened(stack: contextlib.ExitStack, device: str, mode: int) -> int:
    handle = os.open(device, mode | os.O_CLOEXEC)
    stack.callback(os.close, handle)
    return handle


def _copy(source: int, target: int, region: Region) -> None:
    position, end = region.start, region.start + region.size
    while position < end:
        content = os.pread(source, min(len(_ZEROS), end - position), position)
        if not content:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        position += os.pwrite(target, content, position)


def _first_difference(one: int, other: int, size: int) -> t.Optional[int]:
    """Return where two devices differ, to the MiB; None where they do not."""
    places = range(0, size, len(_ZEROS))
    lengths = (min(len(_ZEROS), size - place) for place in places)
    return next((place for place, length in zip(places, lengths) if os.pread(one, length, place) != os.pread(other, length, place)), None)


def _write_zeros(handle: int, region: Region) -> None:
    position, end = region.start, region.start + region.size
    while position < end:
        position += os.pwrite(handle, _ZEROS[: min(len(_ZEROS), end - position)], position)
