# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of all variables of all playbooks, from what each playbook says at its head: playbooks.py writes docs/playbooks.md."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "playbooks.md"
PLAYBOOKS = ROOT / "playbooks"
# REUSE-IgnoreStart
_HEAD = """<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<!-- Written by `make guide` from the heads of the playbooks; a change by hand is lost. -->
# Playbooks and their variables

Run a playbook of the installed collection by its name, for example `ansible-playbook bareon.allocator.plan`. Give variables with
`--extra-vars`, in the inventory, or in a play of your own that imports the playbook. A variable that begins with `bareon_`, `disk_layout_`,
`group_moves_` or `follow_` and that no playbook or role has is refused, with the name that you may have meant.
One that is given on the command line, and that only other playbooks read, is a warning.

Folders and files without a leading `/` are below the folder in which you started the playbook.
"""
# REUSE-IgnoreEnd
_VARIABLE = re.compile(r"((?:[a-z][a-z0-9_]+, )*[a-z][a-z0-9_]+) {2,}(\S.*)")
_NAMES_GO_ON = re.compile(r"(?:[a-z][a-z0-9_]+, )*[a-z][a-z0-9_]+,")
_DEFAULT = re.compile(r"(.*) \(([^()]*(?:\([^()]*\)[^()]*)*)\)")


@dataclasses.dataclass(frozen=True)
class Variable:
    """One row of a playbook's head: names that share a meaning, and the default in words; "" where it has none."""

    names: tuple[str, ...]
    meaning: str
    default: str


@dataclasses.dataclass(frozen=True)
class Head:
    """What a playbook says of itself: paragraphs, of which those that are commands are indented, and variables."""

    paragraphs: tuple[str, ...]
    variables: tuple[Variable, ...]


def head(playbook: Path) -> Head:
    """Return what stands in the comment at the head of a playbook."""
    lines = playbook.read_text(encoding="utf-8").splitlines()
    comment = itertools.takewhile(lambda line: line.startswith("#"), lines[lines.index("---") + 1 :])
    said: list[str] = []
    rows: list[list[str]] = []
    names = ""
    for line in (line[2:] for line in comment):
        if _NAMES_GO_ON.fullmatch(line):
            names += f"{line} "
        elif found := _VARIABLE.fullmatch(names + line):
            rows.append([found[1], found[2]])
            names = ""
        elif rows and line.startswith(" " * 4):
            rows[-1][1] += f" {line.strip()}"
        elif not rows:
            said.append(line)
    return Head(tuple(_paragraphs(said)), tuple(_variable(*row) for row in rows))


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """Yield text in one line, and commands as blocks of code."""
    for is_code, block in itertools.groupby(filter(None, lines), key=lambda line: line.startswith("  ")):
        said = list(block)
        yield "\n".join(f"    {line.strip()}" for line in said) if is_code else " ".join(said)


def _variable(names: str, said: str) -> Variable:
    found = _DEFAULT.fullmatch(said)
    return Variable(tuple(names.split(", ")), *((found[1], found[2]) if found else (said, "")))


def page(playbooks: Sequence[Path]) -> str:
    """Return the page, in Markdown."""
    return "\n".join([_HEAD, *itertools.chain.from_iterable(map(_section, playbooks))])


def _section(playbook: Path) -> Iterator[str]:
    said = head(playbook)
    yield f"## {playbook.stem}\n"
    yield from (f"{paragraph}\n" for paragraph in said.paragraphs)
    if said.variables:
        yield "| variable | meaning | default |\n|---|---|---|"
        yield from (_row(variable) for variable in said.variables)
        yield ""


def _row(variable: Variable) -> str:
    names = ", ".join(f"`{name}`" for name in variable.names)
    return f"| {names} | {_escaped(variable.meaning)} | {_escaped(variable.default)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    PAGE.write_text(page(sorted(PLAYBOOKS.glob("*.yml"))), encoding="utf-8")


if __name__ == "__main__":
    main()
