# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences that each room shows people: messages.py writes them to tests/unit/data/messages, a file for each room.

A line is a text as the code has it, behind the call that takes it: `Reason(network): the group is not connected to {}`. The call names the
kind of message, and in its brackets stand the codes and places that it is given beside the text. What is filled in is named where it has a
name, and else {}. Texts of one word, patterns, SQL, scripts, documentation and docstrings are left out.
"""

from __future__ import annotations

import ast
import collections
import re
from collections.abc import Iterator
from pathlib import Path

from ansible_collections.bareon.allocator.tests.support.house.imports import PLUGINS, ROOT

FOLDER = ROOT / "tests" / "unit" / "data" / "messages"
_SENTENCE = re.compile(r"[A-Za-z}\]][,;:.]? [a-z{(]\w*")
_SCRIPT = re.compile(r"#!|set -e|SELECT |INSERT |UPDATE |DELETE |\^|.*\n.*\n", re.DOTALL)
_TYPE = re.compile(r"[\w.]+\[.*\]")
_UNREAD = {"re", "sa", "TypeVar", "NewType", "cast", "Sql", "Row"}
"""Calls whose texts are patterns, types, SQL, or the documentation of a key, which docs/schemas has."""
_DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
_TRANSPARENT = (ast.IfExp, ast.BoolOp, ast.List, ast.Tuple, ast.Starred, ast.BinOp, ast.JoinedStr, ast.FormattedValue, ast.keyword)


def rooms() -> dict[str, list[Path]]:
    """Return the files of each room: a package of `plugin_utils` or `module_utils`, or a folder of doors."""
    found = collections.defaultdict(list)
    for path in sorted(PLUGINS.rglob("*.py")):
        folder, *below = path.relative_to(PLUGINS).parts
        if folder in {"plugin_utils", "module_utils"}:
            found[below[0].removeprefix("_") if len(below) > 1 else folder].append(path)
        elif folder != "doc_fragments":
            found[folder].append(path)
    return found


def texts() -> dict[str, str]:
    """Return what the files hold, by their names."""
    lines = {room: {line for path in paths for line in sentences(path.read_text(encoding="utf-8"))} for room, paths in rooms().items()}
    return {f"{room}.txt": "".join(f"{line}\n" for line in sorted(found, key=_by_text)) for room, found in lines.items() if found}


def sentences(source: str) -> Iterator[str]:
    """Yield the sentences of a file of code, each behind the call that takes it."""
    yield from _below(ast.parse(source), "")


def _below(node: ast.AST, call: str) -> Iterator[str]:
    """Yield the sentences in a part of the code that stands in a call, which is empty for one that stands in none."""
    if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id in _DOCUMENTATION for target in node.targets):
        return
    text = _text(node)
    if text is not None:
        if _SENTENCE.search(text) and not _SCRIPT.match(text) and not _TYPE.fullmatch(text):
            yield f"{call}: {text!r}" if "\n" in text else f"{call}: {text}"
    elif isinstance(node, ast.Call):
        if _root(node.func) in _UNREAD:
            return
        call = _described(node)
    elif not isinstance(node, _TRANSPARENT):
        call = ""
    for child in ast.iter_child_nodes(node):
        # Between its holes an f-string has no sentences of its own, and an expression that is a text alone is a docstring.
        piece = isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)
        docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if not piece and not docstring:
            yield from _below(child, call if not isinstance(node, ast.JoinedStr) else "")


def _described(node: ast.Call) -> str:
    """Return the name of what is called, with the codes and places that it is given."""
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    codes = [found for found in map(_code, given) if found and not _SENTENCE.search(found)]
    return f"{_named(node.func)}({', '.join(codes)})"


def _code(node: ast.AST) -> str | None:
    """Return an argument that is text, or a member of an enumeration, such as ProblemKind.SPLIT."""
    if isinstance(node, ast.Attribute) and node.attr.isupper():
        return ast.unparse(node)
    return _text(node)


def _text(node: ast.AST) -> str | None:
    """Return text as the code has it, or None for what is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else f"{{{_named(part)}}}" for part in node.values)
    return None


def _named(node: ast.AST) -> str:
    """Return the last name of an expression, or an empty string."""
    if isinstance(node, ast.FormattedValue):
        return _named(node.value)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        node = node.value
    return _named(node)


def _by_text(line: str) -> tuple[str, str]:
    call, _colon, text = line.partition(": ")
    return text, call


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = texts()
    for path in FOLDER.glob("*.txt"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
