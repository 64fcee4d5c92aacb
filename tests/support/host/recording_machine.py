# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine on which nothing happens: it writes down what it is asked to do, and answers as it is told to."""

from __future__ import annotations

import contextlib
import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import Outcome
from ansible_collections.bareon.allocator.plugins.module_utils._steps.key import NO_KEY, Key
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import PATIENCE, CommandFailed, Region


class RecordingMachine:
    """`answers` are outputs of commands (in one string), a list of them for one call after the other; `files` and `links` are read.

    `failing` are commands (their beginnings) that fail, by code. `events` is what happened, in order.
    """

    def __init__(
        self,
        answers: Mapping[str, t.Any] | None = None,
        files: Mapping[str, str] | None = None,
        folders: Mapping[str, Sequence[str]] | None = None,
        failing: Mapping[str, int] | None = None,
        tools: Iterable[str] | None = None,
    ) -> None:
        self.answers = {command: list(said) if isinstance(said, list) else said for command, said in (answers or {}).items()}
        self.files, self.folders, self.failing = dict(files or {}), dict(folders or {}), dict(failing or {})
        self.tools = None if tools is None else set(tools)
        self.events: list[tuple[t.Any, ...]] = []
        self.luks_key = NO_KEY

    def with_key(self, key: Key) -> RecordingMachine:
        """Give the machine the key of LUKS containers."""
        self.luks_key = key
        return self

    @property
    def commands(self) -> list[str]:
        """The commands that change something, in order."""
        return [event[1] for event in self.events if event[0] == "change"]

    @property
    def given(self) -> dict[str, bytes]:
        """What commands were given as input."""
        return {event[1]: event[2] for event in self.events if event[0] == "change" and event[2]}

    def has(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    def run(self, command: Sequence[str]) -> Outcome | None:
        words = " ".join(command)
        self.events.append(("run", words))
        return Outcome(0, self._answer(words), "") if words in self.answers else None

    def _answer(self, words: str) -> str:
        said = self.answers.get(words, "")
        return said.pop(0) if isinstance(said, list) else said

    def change(
        self,
        command: Sequence[str],
        given: bytes = b"",
        patience: int = PATIENCE,
        accepted: Sequence[int] = (0,),
        environment: t.Mapping[str, str] | None = None,
    ) -> str:
        words = " ".join(command)
        self.events.append(("change", words, given))
        code = next((code for beginning, code in self.failing.items() if words.startswith(beginning)), 0)
        if code not in accepted:
            raise CommandFailed(command, code, "its words")
        return self._answer(words)

    @contextlib.contextmanager
    def handed(self, content: bytes) -> Iterator[str]:
        self.events.append(("handed", len(content)))
        yield "/handed"

    def why_no_key_file(self, path: str) -> str | None:
        return None

    def create_secret(self, path: str, content: bytes) -> None:
        self.events.append(("secret", path, len(content)))

    def zero(self, device: str, regions: Iterable[Region], exclusively: bool) -> None:
        self.events.append(("zero", device, tuple(regions), exclusively))

    def write(self, device: str, pieces: Iterable[tuple[int, bytes]]) -> None:
        self.events.append(("write", device, tuple(pieces)))

    def copy(self, source: str, target: str, size: int) -> None:
        self.events.append(("copy", source, target, size))

    def flush(self, disks: Iterable[str]) -> None:
        self.events.append(("flush", tuple(disks)))

    @contextlib.contextmanager
    def locked(self, device: str) -> Iterator[None]:
        self.events.append(("lock", device))
        yield
        self.events.append(("unlock", device))

    def wait_for(self, nodes: Iterable[str]) -> None:
        self.events.append(("wait", tuple(nodes)))

    def settle(self) -> None:
        self.events.append(("settle",))

    def give_way(self) -> None:
        self.events.append(("give way",))

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def read_setting(self, path: str) -> str | None:
        return self.files.get(path)

    def names(self, path: str) -> tuple[str, ...]:
        return tuple(self.folders.get(path, ()))

    def resolve(self, path: str) -> str | None:
        return path

    def read_bytes(self, path: str, start: int, size: int) -> bytes:
        return bytes(size)

    def openers(self, nodes: frozenset[str]) -> dict[str, tuple[str, ...]]:
        return {}

    def claimed(self, device: str) -> bool | None:
        return None
