# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file system that loses in a power cut what was not flushed: a model of the promises of POSIX, and of nothing beyond them.

A file's text is there as far as its last fsync; names are there as of the last fsync of their folder. Whatever came after may be there
or not, each by itself: XFS has names without texts, others have texts without names. It stands in for `os` in the module under test, and
refuses what the real one refuses.
"""

from __future__ import annotations

import errno
import itertools
import os
import posixpath
import typing as t
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Inode:
    """A file: its text, and what of it is on the disk."""

    text: bytes = b""
    flushed: bytes = b""
    mode: int = 0o600
    attributes: dict[str, bytes] = field(default_factory=dict)
    st_uid: int = 0
    st_gid: int = 0

    @property
    def st_mode(self) -> int:
        return 0o100000 | self.mode


class LosingFiles:
    """See the module. `cuts` are all states of the disk that a cut after some operation may leave: texts by path."""

    path = os.path
    O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_CLOEXEC, O_RDONLY = (
        *(os.O_WRONLY, os.O_CREAT, os.O_EXCL, os.O_NOFOLLOW, os.O_CLOEXEC, os.O_RDONLY),
    )

    def __init__(self, files: dict[str, bytes], failing: str = "") -> None:
        self.names = {path: Inode(text, text) for path, text in files.items()}
        self.flushed_names = dict(self.names)
        self.open_files: dict[int, str | Inode] = {}
        self.failing = failing
        self.cuts: list[dict[str, bytes]] = []
        self._after()

    def _begin(self, operation: str) -> None:
        if operation == self.failing:
            raise OSError(errno.ENOSPC, "No space left on device")

    def _after(self) -> None:
        self.cuts.extend(self._states())

    def _states(self) -> Iterator[dict[str, bytes]]:
        """Give every state: the names as they were flushed or as they are, each file's text as it was flushed or as it is."""
        inodes = list({id(inode): inode for inode in (*self.names.values(), *self.flushed_names.values())}.values())
        for names in (self.flushed_names, self.names):
            for whole in itertools.product((False, True), repeat=len(inodes)):
                text = {id(inode): inode.text if kept else inode.flushed for inode, kept in zip(inodes, whole)}
                yield {path: text[id(inode)] for path, inode in names.items()}

    def getpid(self) -> int:
        return 7

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        self._begin("open")
        handle = 3 + len(self.open_files)
        if flags & os.O_CREAT:
            if path in self.names and flags & os.O_EXCL:
                raise FileExistsError(errno.EEXIST, "File exists")
            self.names[path] = self.open_files[handle] = Inode(mode=mode)
            self._after()
        else:
            self.open_files[handle] = path
        return handle

    def write(self, handle: int, content: bytes) -> int:
        """Take at most three bytes: callers have to go on with the rest."""
        self._begin("write")
        t.cast("Inode", self.open_files[handle]).text += content[:3]
        self._after()
        return len(content[:3])

    def fsync(self, handle: int) -> None:
        self._begin("fsync")
        opened = self.open_files[handle]
        if isinstance(opened, Inode):
            opened.flushed = opened.text
        else:
            self.flushed_names = {
                **{path: inode for path, inode in self.flushed_names.items() if posixpath.dirname(path) != opened},
                **{path: inode for path, inode in self.names.items() if posixpath.dirname(path) == opened},
            }
        self._after()

    def close(self, handle: int) -> None:
        assert handle in self.open_files

    def fchmod(self, handle: int, mode: int) -> None:
        t.cast("Inode", self.open_files[handle]).mode = mode

    def fchown(self, handle: int, uid: int, gid: int) -> None:
        inode = t.cast("Inode", self.open_files[handle])
        inode.st_uid, inode.st_gid = uid, gid

    def stat(self, path: str) -> Inode:
        return self._inode(path)

    def listxattr(self, path: str) -> list[str]:
        return list(self._inode(path).attributes)

    def getxattr(self, path: str, name: str) -> bytes:
        return self._inode(path).attributes[name]

    def setxattr(self, handle: int, name: str, value: bytes) -> None:
        t.cast("Inode", self.open_files[handle]).attributes[name] = value

    def replace(self, old: str, new: str) -> None:
        self._begin("replace")
        self.names[new] = self._inode(old)
        del self.names[old]
        self._after()

    def unlink(self, path: str) -> None:
        self._inode(path)
        del self.names[path]

    def _inode(self, path: str) -> Inode:
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return self.names[path]
