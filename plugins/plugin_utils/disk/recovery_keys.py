# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recovery keys on the controller: a file for each, which only its owner can read."""

from __future__ import annotations

import os
import re
import tempfile
import typing as t
from collections.abc import Mapping
from pathlib import Path


def recovery_key_files(result: Mapping[str, t.Any], folder: Path, host: str) -> dict[str, Path]:
    """Return the files of the new recovery keys of a result of disk_keys, by container: HOST.CONTAINER.SLOT.

    The slot is in the name, so that a new key never takes the place of one that may still open something.
    """
    slots = {one["name"]: [slot["slot"] for slot in one["slots"] if slot["opened_by"] == "recovery"] for one in result["containers"]}
    return {
        name: folder / ".".join(re.sub(r"[^A-Za-z0-9_-]+", "_", part) for part in (host, name, *map(str, slots.get(name, [])[-1:])))
        for name in result["recovery_keys"]
    }


def try_folder(folder: Path) -> str:
    """Make a folder where there is none, and return why it cannot be written to; empty if it can."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"recovery_key_directory: {folder} cannot be written to: {error.strerror}"


def write_new(file: Path, text: str) -> None:
    """Write a file that only its owner can read; one of that name, of an earlier container, is kept beside it."""
    if file.exists():
        number = next(number for number in range(1, 10000) if not file.with_name(f"{file.name}.old{number}").exists())
        file.rename(file.with_name(f"{file.name}.old{number}"))
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(handle, "w", encoding="utf-8") as opened:
        opened.write(f"{text}\n")
        opened.flush()
        os.fsync(opened.fileno())
