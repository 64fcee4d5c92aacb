# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replaces a text file of a host as a whole: after a power cut at any moment the file has its old text or its new one."""

from __future__ import annotations

import contextlib
import errno
import os
import typing as t

from .machine import StepFailed, flush_folder

READABLE = 0o644
_NO_ATTRIBUTES = (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA)
"""What a file system answers that keeps no extended attributes, or none of this kind."""


def read_file(path: str) -> t.Optional[str]:
    """Return the text of a file, every byte of which survives; None where there is no file. Raises StepFailed."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StepFailed(f"cannot read {path}: {error.strerror}") from error


def replace_file(path: str, text: str, mode: int = READABLE) -> None:
    """Write the text next to the file, flush it, and only then give it the file's name; raises StepFailed.

    A file that exists keeps its owner, mode and extended attributes (its SELinux label); `mode` is that of a new one. A link stays one:
    the file that it leads to is replaced. Missing folders are made.
    """
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    draft = f"{folder}/.{name}.{os.getpid()}.new"
    try:
        make_folder(folder)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        try:
            _write(draft, text.encode("utf-8", "surrogateescape"), path, mode)
            os.replace(draft, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(draft)
            raise
        flush_folder(folder)
    except OSError as error:
        raise StepFailed(f"cannot write {path}: {error.strerror}") from error


def make_folder(folder: str) -> None:
    """Make a folder with all above it, and flush the name of each new one; raises OSError."""
    if folder and not os.path.isdir(folder):
        above = os.path.dirname(folder)
        make_folder(above)
        os.mkdir(folder, 0o755)
        flush_folder(above)


def _write(draft: str, content: bytes, path: str, mode: int) -> None:
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while content:
            content = content[os.write(handle, content) :]
        _take_over_attributes(handle, path, mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def _take_over_attributes(handle: int, path: str, mode: int) -> None:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        os.fchmod(handle, mode)
        return
    os.fchown(handle, there.st_uid, there.st_gid)
    os.fchmod(handle, there.st_mode & 0o7777)
    try:
        for attribute in os.listxattr(path):
            os.setxattr(handle, attribute, os.getxattr(path, attribute))
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTES:
            raise
