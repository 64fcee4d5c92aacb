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
import os
import pickle
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from .model import Schema
from .schema.memo import Memory

_MOST = 32
"""So many schemas and solutions of machines that look alike are kept at most: to read thousands takes longer than to do without."""


@dataclass
class Learnt:
    """Results of expressions, schemas by what machines have in common, and solutions by problem."""

    memory: Memory = field(default_factory=Memory)
    schemas: dict[t.Hashable, Schema] = field(default_factory=dict)
    solutions: dict[t.Hashable, t.Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Return how much is known; it only grows."""
        return len(self.schemas) + len(self.solutions)


class Shelf:
    """A folder in which processes leave for each other what they learnt. It must be theirs alone: who writes into it runs code in them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> Learnt:
        """Return what is known by a name; nothing where no process has left anything, or could."""
        try:
            found = pickle.loads(self._path(name).read_bytes())
        except OSError:
            found = Learnt()
        return t.cast("Learnt", found)

    def leave(self, name: str, learnt: Learnt) -> None:
        """Leave what is known for the others, unless it is too much. Without room or rights for it they go without."""
        if learnt.count > _MOST:
            return
        path = self._path(name)
        # Beside the file, so that a rename puts it there whole, whoever else reads or writes it.
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            beside.write_bytes(pickle.dumps(learnt, pickle.HIGHEST_PROTOCOL))
            beside.replace(path)

    def _path(self, name: str) -> Path:
        return self._folder / hashlib.sha256(name.encode()).hexdigest()
