# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No pattern of ours ends with `$`, which also matches before a newline at the end: a name is matched as a whole, by fullmatch."""

from __future__ import annotations

import ast
import re

import pytest
from ansible_collections.bareon.allocator.tests.support.house.imports import ROOT, source_files

PATTERNS = {"match", "search", "compile", "split", "sub", "findall", "finditer"}
OPEN_END = re.compile(r"(?:^|[^\\])(?:\\\\)*\$\)*", re.DOTALL)


def open_patterns(source: str) -> list[int]:
    """Return the lines of calls of `re` whose pattern ends with `$`, unless each line of a text is looked at."""
    found = []
    tree = ast.parse(source)
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value, (ast.Constant, ast.JoinedStr))
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr not in PATTERNS or ast.unparse(node.func.value) != "re":
            continue
        pattern = node.args[0]
        pattern = named.get(pattern.id, pattern) if isinstance(pattern, ast.Name) else pattern
        if "MULTILINE" not in ast.unparse(node) and _ends_open(pattern):
            found.append(node.lineno)
    return found


def _ends_open(pattern: ast.expr) -> bool:
    """Tell whether the last text of a pattern, which may be put together of several, ends with `$`."""
    texts = [part.value for part in ast.walk(pattern) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    last = texts[-1] if texts else ""
    return any(match.end() == len(last) for match in OPEN_END.finditer(last))


def test_no_pattern_ends_with_what_a_newline_passes() -> None:
    found = {path.relative_to(ROOT): open_patterns(path.read_text(encoding="utf-8")) for path in source_files().values()}
    broken = {str(path): lines for path, lines in found.items() if lines}
    assert not broken, "use fullmatch without ^ and $, or \\Z"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('re.match(r"^[a-z]+$", name)', True),
        ('re.match("(a|b$)", name)', True),
        ('NAME = re.compile(rf"^{PART}$")', True),
        ('re.search("[0-9]+$", name)', True),
        ('NAME = r"[a-z]+$"\nre.match(NAME, text)', True),
        ('re.search(r"^a$", text, re.MULTILINE)', False),
        (r're.search(r"[0-9]+\Z", name)', False),
        (r're.match(r"costs\$", name)', False),
        ('re.fullmatch(r"[a-z]+", name)', False),
    ],
)
def test_such_patterns_are_found(source: str, found: bool) -> None:
    assert bool(open_patterns(source)) == found
