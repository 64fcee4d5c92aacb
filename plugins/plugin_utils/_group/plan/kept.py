# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A text that runs keep for later ones: in a file, or where plugin_utils/_bridge keeps it."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake
from ..._common.files import replace_file


class ReadableText(t.Protocol):
    """A text that an earlier run has kept; its str() names it in messages."""

    @property
    def option(self) -> str:
        """The option that names the place, for messages."""

    def read(self) -> str | None:
        """Return the text; None where nothing is kept yet. Raises InputError."""


class Kept(ReadableText, t.Protocol):
    """Where a text is kept."""

    def write(self, content: str) -> None:
        """Keep a text in place of the one before, which stays until the new one is complete. Raises InputError."""


@dataclass(frozen=True)
class TextAsRead:
    """A text that was read together with others."""

    title: str
    option: str
    content: str

    def __str__(self) -> str:
        return self.title

    def read(self) -> str:
        """Return the text."""
        return self.content


@dataclass(frozen=True)
class KeptFile:
    """A file on the controller."""

    path: Path
    option: str

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> str | None:
        """Return the text; None where there is no file. Raises InputError."""
        try:
            return self.path.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise InputError([Mistake(self.option, f"cannot read {self.path}: {error.strerror or error}")]) from error
        except ValueError as error:
            raise InputError([Mistake(self.option, f"{self.path} is no text: {error}; move it away to start over")]) from error

    def write(self, content: str) -> None:
        """Replace the file. Raises InputError."""
        try:
            replace_file(self.path, content)
        except OSError as error:
            raise InputError([Mistake(self.option, f"cannot write {self.path}: {error.strerror or error}")]) from error
