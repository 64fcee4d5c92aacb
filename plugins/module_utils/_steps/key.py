# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The key that opens LUKS containers, and the options of modules that give it."""

from __future__ import annotations

import os
import typing as t
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .._storage.unlock import why_no_key_file, why_no_passphrase

# What every module that opens containers takes; the doc fragment `keys` describes it.
KEY_ARGUMENTS: Mapping[str, t.Any] = {
    "luks_key": {"type": "str", "no_log": True},
    "luks_key_file": {"type": "path", "no_log": False},
    "luks_key_files": {"type": "dict", "default": {}, "no_log": False},
}
KEY_EXCLUSIVE = ("luks_key", "luks_key_file")


@dataclass(frozen=True)
class Key:
    """What opens LUKS containers: a passphrase, or a file on the host whose whole content counts. The passphrase never shows.

    `files` are files by the names of containers that have keys of their own.
    """

    passphrase: bytes = field(default=b"", repr=False)
    file: t.Optional[str] = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def given(self) -> bool:
        """Whether there is a key at all."""
        return bool(self.passphrase) or self.file is not None

    def of(self, name: str) -> Key:
        """Return the key of the container of this name."""
        return Key(file=self.files[name]) if name in self.files else Key(self.passphrase, self.file)

    def problems(self, place: str = "luks_key_file") -> Iterator[str]:
        """Give what is wrong with the files; `place` is the option that names the one for all containers."""
        named = {f"{place}s.{name}": file for name, file in self.files.items()}
        for where, file in {place: self.file, **named}.items():
            if file is not None and not (isinstance(file, str) and os.path.isfile(file)):
                yield f"{where}: {file} is not a key file on this host"
            elif file is not None:
                says = why_no_key_file(os.stat(file))
                if says is not None:
                    yield f"{where}: {file} {says}"

    def passphrase_problems(self) -> Iterator[str]:
        """Give what is wrong with a passphrase that containers are to get; one that they have is used as it is."""
        says = why_no_passphrase(self.passphrase.decode(errors="surrogatepass"))
        if says is not None:
            yield f"luks_key: {says}"


def key_of(params: Mapping[str, t.Any]) -> Key:
    """Return the key of a module's parameters (KEY_ARGUMENTS)."""
    return Key((params["luks_key"] or "").encode(errors="surrogatepass"), params["luks_key_file"], params["luks_key_files"])


NO_KEY = Key()
