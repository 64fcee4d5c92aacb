# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The private functions of `plugins`, and which of them are used once: each of these is a jump for whoever reads the file."""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.bareon.allocator.tests.support.house.imports import ROOT, source_files


@dataclass(frozen=True)
class Private:
    """A private function or method: how often its file names it, and how many statements it has besides a docstring."""

    place: str
    uses: int
    statements: int
    is_documented: bool


def private_functions() -> Iterator[Private]:
    """Yield all private functions of `plugins`, file after file."""
    for path in source_files().values():
        yield from private_functions_of(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))


def private_functions_of(source: str, file: str) -> Iterator[Private]:
    """Yield the private functions of one file."""
    tree = ast.parse(source)
    uses: collections.Counter[str] = collections.Counter()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            uses[node.id if isinstance(node, ast.Name) else node.attr] += 1
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.name.startswith("__"):
            statements = sum(isinstance(inner, ast.stmt) for inner in ast.walk(node)) - 1
            is_documented = ast.get_docstring(node) is not None
            yield Private(f"{file}:{node.lineno} {node.name}", uses[node.name], statements - is_documented, is_documented)
