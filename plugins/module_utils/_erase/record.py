# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is kept of each erasure: its record, and how far it has come, so that one that was cut off goes on.

They are files on the host, one for each disk, that only root can read: a record names serial numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import typing as t
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from .._steps.machine import StepFailed
from .._steps.whole_file import replace_file

FOLDER = "/var/lib/bareon/erase"

_PRIVATE = 0o600
_NAME_DIGEST_BYTES = 4
_FORBIDDEN = re.compile(r"[^A-Za-z0-9._-]")
_MOST_BYTES = 1024**2


@dataclass(frozen=True)
class Record:
    """An erasure of a disk. `size` is bytes, times are UTC (2026-01-31T12:00:00Z), `ended` is empty while it goes on.

    `way` and `level` are those of the Way; `checked` says what was read afterwards, and `verified` whether that proves the erasure.
    """

    disk: str
    serial: str
    wwn: str
    model: str
    size: int
    method: str
    way: str
    level: str
    started: str
    ended: str = ""
    verified: bool = False
    checked: str = ""

    def plain(self) -> dict[str, t.Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Progress:
    """A record, and what a later run needs: to which byte zeros are down, whether the disk has its command, and samples of before.

    `untouched` shows whether anything was written since it was saved: the start of the system, and how many sectors were written.
    """

    record: Record
    position: int = 0
    commanded: bool = False
    samples: Mapping[int, str] = field(default_factory=dict)
    untouched: str = ""


class Records:
    """The folder of a host with the progress of its erasures."""

    def __init__(self, folder: str = FOLDER) -> None:
        """Take the folder."""
        self.folder = folder

    def load(self, disk: str, serial: str, size: int) -> t.Optional[Progress]:
        """Return the progress of a disk; None for none, and for what is not of this disk or not as it is written here."""
        try:
            with open(self._path(disk, serial), encoding="utf-8") as file:
                data = json.loads(file.read(_MOST_BYTES))
                record = Record(**{name: _of_kind(name, value) for name, value in data["record"].items()})
                samples = {int(start): str(digest) for start, digest in data["samples"].items()}
                progress = Progress(record, _whole(data["position"]), data["commanded"] is True, samples, str(data["untouched"]))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        same = (progress.record.serial, progress.record.size) == (serial, size)
        return progress if same else None

    def save(self, progress: Progress) -> None:
        """Keep the progress of a disk, down to the medium; raises StepFailed."""
        try:
            os.makedirs(self.folder, 0o700, exist_ok=True)
        except OSError as error:
            raise StepFailed(f"cannot make {self.folder}: {error.strerror}") from error
        text = json.dumps(asdict(progress), indent=1, sort_keys=True)
        replace_file(self._path(progress.record.disk, progress.record.serial), f"{text}\n", _PRIVATE)

    def _path(self, disk: str, serial: str) -> str:
        name = _FORBIDDEN.sub("_", disk.rsplit("/", 1)[-1])
        digest = hashlib.blake2b(f"{disk}\0{serial}".encode("utf-8", "surrogateescape"), digest_size=_NAME_DIGEST_BYTES).hexdigest()
        return f"{self.folder}/{name}-{digest}.json"


def _of_kind(name: str, value: t.Any) -> t.Any:
    kinds: dict[str, type] = {each.name: {"int": int, "bool": bool}.get(str(each.type), str) for each in fields(Record)}
    if value.__class__ is not kinds[name]:
        raise TypeError(name)
    return value


def _whole(value: t.Any) -> int:
    if value.__class__ is not int or value < 0:
        raise TypeError("position")
    return value
