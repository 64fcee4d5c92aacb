# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No pattern of ours ends with `$`, which also matches before a newline at the end: a name is matched as a whole.

In Python by fullmatch, in templates by `\\Z`.
"""

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


TEMPLATE = re.compile(
    r"""(?:match|search|regex|regex_replace|regex_search|regex_findall)['"]?[,( ]\s*(['"])(?P<pattern>.*?[^\\])\1(?P<rest>[^\n}]*)"""
)
"""A filter or a test with a pattern, called as such or by map, select and the like."""


def open_templates(text: str) -> list[int]:
    """Return the lines of templates with a pattern that ends with `$`, unless each line of a text is looked at."""
    return [
        text.count("\n", 0, found.start()) + 1
        for found in TEMPLATE.finditer(text)
        if any(match.end() == len(found["pattern"]) for match in OPEN_END.finditer(found["pattern"])) and "multiline=" not in found["rest"]
    ]


def templates() -> dict[str, str]:
    """Return the texts with templates, by path: roles, playbooks, scenarios, and what people copy from the guides."""
    files = [path for top in ("roles", "playbooks", "extensions", "docs") for path in (ROOT / top).rglob("*")]
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files if path.suffix in {".yml", ".j2", ".md", ".rst"}
    }


def test_no_pattern_of_a_template_ends_with_what_a_newline_passes() -> None:
    broken = {path: lines for path, text in templates().items() if (lines := open_templates(text))}
    assert not broken, "use \\Z"
    assert len([path for path, text in templates().items() if TEMPLATE.search(text)]) > 5, "some templates have patterns"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{{ x | reject('match', '[0-9]*$') }}", True),
        ('that: name is match("[a-z]+$")', True),
        ("{{ x | map('regex_replace', '^(.*)$', '/\\\\1') }}", True),
        ("{{ x | regex_search('(a|$)') }}", True),
        ("{{ x | selectattr('key', 'match', '(a|b)[0-9]*$') }}", True),
        ("{{ x | regex_findall('^a$', multiline=true) }}", False),
        (r"{{ x | reject('match', '[0-9]*\\Z') }}", False),
        (r"{{ x | regex_replace('costs \$', '') }}", False),
        ("{{ x | regex_replace('^', '$') }}", False),
    ],
)
def test_such_templates_are_found(text: str, found: bool) -> None:
    assert bool(open_templates(text)) == found


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
