# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A recorded host in the place of a real one, and the recorder that makes the record."""

from __future__ import annotations

import json
import pathlib
import typing as t
from collections.abc import Sequence

from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import Host, Outcome

DATA = pathlib.Path(__file__).parents[2] / "unit" / "data" / "hardware"


class RecordedHost:
    """Answers from a record; what is not in it is not there: no such tool, no such file."""

    def __init__(self, record: dict[str, t.Any]) -> None:
        self.record = record

    @classmethod
    def load(cls, name: str) -> RecordedHost:
        return cls(json.loads((DATA / name).read_text(encoding="utf-8")))

    def run(self, command: Sequence[str]) -> t.Optional[Outcome]:
        outcome = self.record.get("commands", {}).get(" ".join(command))
        return None if outcome is None else Outcome(outcome["code"], outcome["stdout"], outcome["stderr"])

    def read(self, path: str) -> t.Optional[str]:
        return self.record.get("files", {}).get(path)

    def read_setting(self, path: str) -> t.Optional[str]:
        found = self.record.get("files", {}).get(path)
        if isinstance(found, Exception):
            raise found
        return found

    def names(self, path: str) -> tuple[str, ...]:
        return tuple(self.record.get("directories", {}).get(path, ()))

    def resolve(self, path: str) -> t.Optional[str]:
        return self.record.get("links", {}).get(path)

    def claimed(self, device: str) -> t.Optional[bool]:
        return self.record.get("claimed", {}).get(device)

    def read_bytes(self, path: str, start: int, size: int) -> bytes:
        """What is recorded as written lies among zeros; an error is recorded in its place."""
        content = bytearray(size)
        for offset, written in self.record.get("bytes", {}).get(path, {}).items():
            if isinstance(written, OSError) and start <= offset < start + size:
                raise written
            if isinstance(written, bytes) and offset < start + size and offset + len(written) > start:
                first = max(offset, start)
                part = written[first - offset : start + size - offset]
                content[first - start : first - start + len(part)] = part
        return bytes(content)

    def openers(self, nodes: frozenset[str]) -> dict[str, tuple[str, ...]]:
        return {node: tuple(self.record.get("openers", {}).get(node, ())) for node in nodes}

    def without_tools(self, *tools: str) -> RecordedHost:
        """The same host on which these tools are not installed."""
        commands = {command: outcome for command, outcome in self.record["commands"].items() if command.split()[0] not in tools}
        return RecordedHost({**self.record, "commands": commands})

    def with_command(self, command: str, stdout: str = "", code: int = 0, stderr: str = "") -> RecordedHost:
        """The same host on which a command gives something else."""
        commands = {**self.record.get("commands", {}), command: {"code": code, "stdout": stdout, "stderr": stderr}}
        return RecordedHost({**self.record, "commands": commands})

    def with_files(self, **changed: t.Any) -> RecordedHost:
        """The same host with parts of the record (files, directories, links, claimed) merged over."""
        return RecordedHost({**self.record, **{part: {**self.record.get(part, {}), **values} for part, values in changed.items()}})


class Recorder:
    """Passes on what a host answers, and writes down what was asked and answered; what is not there is not written down."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.record: dict[str, dict[str, t.Any]] = {"commands": {}, "files": {}, "directories": {}, "links": {}, "claimed": {}}

    def run(self, command: Sequence[str]) -> t.Optional[Outcome]:
        outcome = self.host.run(command)
        if outcome is not None:
            self.record["commands"][" ".join(command)] = {"code": outcome.code, "stdout": outcome.stdout, "stderr": outcome.stderr}
        return outcome

    def read(self, path: str) -> t.Optional[str]:
        return self._note("files", path, self.host.read(path))

    def read_setting(self, path: str) -> t.Optional[str]:
        return self._note("files", path, self.host.read_setting(path))

    def names(self, path: str) -> tuple[str, ...]:
        return self._note("directories", path, self.host.names(path)) or ()

    def resolve(self, path: str) -> t.Optional[str]:
        return self._note("links", path, self.host.resolve(path))

    def claimed(self, device: str) -> t.Optional[bool]:
        return self._note("claimed", device, self.host.claimed(device))

    def read_bytes(self, path: str, start: int, size: int) -> bytes:
        return self.host.read_bytes(path, start, size)

    def openers(self, nodes: frozenset[str]) -> t.Mapping[str, tuple[str, ...]]:
        return self.host.openers(nodes)

    def _note(self, part: str, key: str, answer: t.Any) -> t.Any:
        if answer is not None and answer != ():
            self.record[part][key] = answer
        return answer
