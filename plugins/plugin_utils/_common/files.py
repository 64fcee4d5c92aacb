# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files on the controller: never half written, never through a link that somebody has planted, and their owner's alone.

A draft has a random name in the folder of its target and is created by O_EXCL and O_NOFOLLOW. What already exists keeps its mode.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

PRIVATE_FILE, PUBLIC_FILE = 0o600, 0o644
_FOLDERS = {PRIVATE_FILE: 0o700, PUBLIC_FILE: 0o755}
"""Modes of files, and of the folders that are created for them: pages and drawings may be public, for people serve them."""

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
"""What file systems without hard links answer."""


def make_folder(folder: Path, mode: int = _FOLDERS[PRIVATE_FILE]) -> None:
    """Create a folder, and those above it that are missing, for their owner alone or with another mode. Raises OSError."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent, mode)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=mode)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def text_before(path: Path) -> str | None:
    """Return what is in a file that is to be replaced; None where there is no file, or a link or a pipe that somebody has planted.

    Raises OSError for a file that cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP, errno.ENXIO}:
            return None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with open(handle, encoding="utf-8", errors="replace") as file:
        return file.read()


def create_file(path: Path, content: str | bytes, mode: int = PRIVATE_FILE) -> None:
    """Create a file, whole or not at all, and the folders above it; raises FileExistsError for any name that is taken, OSError."""
    with _draft(path, content, mode) as draft:
        try:
            os.link(draft, path, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
            draft.rename(path)
    sync_folder(path.parent)


def replace_file(path: Path, content: str | bytes, mode: int = PRIVATE_FILE, *, lasting: bool = True) -> None:
    """Write a file, and the folders above it; what was there before stays until the new one is complete. Raises OSError.

    A regular file keeps its mode. A link is replaced by the file; what it points to stays as it is. With `lasting` the file is on its
    medium at the end; what goes with the run of Ansible need not be.
    """
    make_folder(path.parent, _FOLDERS.get(mode, _FOLDERS[PRIVATE_FILE]))
    with contextlib.suppress(FileNotFoundError):
        found = os.lstat(path).st_mode
        mode = stat.S_IMODE(found) if stat.S_ISREG(found) else mode
    with _draft(path, content, mode, lasting=lasting) as draft:
        draft.replace(path)
    if lasting:
        sync_folder(path.parent)


def open_private(path: Path) -> int:
    """Open a file that stays, such as a lock or a journal, for reading and appending; raises OSError, also for a link.

    It and the folders above it are created for their owner alone where they are missing.
    """
    make_folder(path.parent)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)


def sync_folder(folder: Path) -> None:
    """Bring onto the medium what was created and renamed in a folder; raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _draft(path: Path, content: str | bytes, mode: int, *, lasting: bool = True) -> Iterator[Path]:
    """Give a complete file in the folder of a path, and remove it at the end if it is still there."""
    make_folder(path.parent)
    # A long name plus ours might be longer than names may be.
    draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        with open(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            if lasting:
                os.fsync(file.fileno())
        yield draft
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
