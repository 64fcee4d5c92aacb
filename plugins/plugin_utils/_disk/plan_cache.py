# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What planning one machine teaches about all those alike, in this process or in a folder that several processes share.

Ansible forks a process for each host of a task, and most hosts of a fleet are twins of others. To read what another process found
costs a tenth of finding it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import secrets
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .._common.files import replace_file
from .model import Schema
from .schema.memo import Memory, ReadSet

_MOST = 32
"""So much is kept at most under one name: to look through thousands takes longer than to do without."""
_SECRET = secrets.token_bytes(32)
"""Known to this process and those that are forked from it: what others wrote is never unpickled."""
_SEAL_SIZE = 32
"""Bytes of a seal, with which every file begins."""


@dataclass
class PlanCache:
    """Results of expressions, schemas by what machines have in common, and solutions by problem."""

    memory: Memory = field(default_factory=Memory)
    schemas: dict[t.Hashable, Schema] = field(default_factory=dict)
    solutions: dict[t.Hashable, t.Any] = field(default_factory=dict)


Records = tuple[tuple[ReadSet, bytes], ...]
"""What was found, pickled, and of which machines it holds."""


class SharedCache:
    """A folder in which processes that are forked from one leave for each other what they found.

    What is there is read only if one of them sealed it, so a file that is cut off, or that anybody else wrote, counts as nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, name: str, facts: Mapping[str, t.Any]) -> t.Any:
        """Return what was left under a name for machines with facts like these; None where nothing was, or can be read."""
        for read_set, found in self._records(name):
            if read_set.hold(facts):
                return pickle.loads(found)
        return None

    def leave(self, name: str, read_set: ReadSet, found: t.Any) -> None:
        """Leave a result for other processes with facts of this read set, unless it is full; without room or rights nothing is kept."""
        records = self._records(name)
        if len(records) < _MOST:
            self._write(self._path(name), (*records, (read_set, pickle.dumps(found, pickle.HIGHEST_PROTOCOL))))

    def _records(self, name: str) -> Records:
        try:
            content = self._path(name).read_bytes()
        except OSError:
            return ()
        seal, records = content[:_SEAL_SIZE], content[_SEAL_SIZE:]
        return t.cast("Records", pickle.loads(records)) if secrets.compare_digest(seal, _seal(records)) else ()

    def _write(self, path: Path, records: Sequence[tuple[ReadSet, bytes]]) -> None:
        content = pickle.dumps(tuple(records), pickle.HIGHEST_PROTOCOL)
        with contextlib.suppress(OSError):
            replace_file(path, _seal(content) + content, lasting=False)

    def _path(self, name: str) -> Path:
        return self._folder / hashlib.blake2b(name.encode(), digest_size=_SEAL_SIZE).hexdigest()


def _seal(content: bytes) -> bytes:
    # Python's own: the first use of OpenSSL in a forked process takes longer than all else here.
    return hashlib.blake2b(content, key=_SECRET, digest_size=_SEAL_SIZE).digest()
