# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where something is mounted."""

from __future__ import annotations

import typing as t

from ....module_utils._data.kinds import Json, Kind, Text
from ....module_utils._storage.filesystems import SWAP
from ....module_utils._storage.names import why_no_mount

NO_MOUNT = ("none", SWAP)


class Mount(Kind):
    """A place in the tree of files, in its shortest spelling; or `none`, or `swap`."""

    wanted = "an absolute path without spaces, or none"

    def __init__(self, holds_files: str = "") -> None:
        """`holds_files` is what can never be swap, in words."""
        self._holds_files = holds_files

    def read(self, value: t.Any) -> str:
        path = Text(filled=True).read(value)
        if path == SWAP and self._holds_files:
            raise ValueError(f"is {SWAP!r}; {self._holds_files} holds files")
        if path in NO_MOUNT:
            return path
        short = "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
        if not path.startswith("/") or any(character.isspace() for character in path) or why_no_mount(short) is not None:
            self.refuse(value)
        return short

    def json_schema(self) -> Json:
        return {"type": "string", "pattern": rf"^\s*(/\S*|none{'' if self._holds_files else '|swap'})\s*$"}
