# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences of each room stand in a file, so that whoever changes one sees it in the diff; other tests look at codes and places."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.tests.support.house.messages import FOLDER, sentences, texts


def test_the_files_have_the_sentences_of_the_code() -> None:
    written = {path.name: path.read_text(encoding="utf-8").splitlines() for path in FOLDER.glob("*.txt")}
    for name, text in texts().items():
        assert written.pop(name, None) == text.splitlines(), f"{name} is out of date: run `make messages`, and read the difference"
    assert not written, "rooms without sentences: run `make messages`"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("mistakes.add(f'{place}.size', f'is {size}; must be {most(a)} MiB')", ["add({place}.size): is {size}; must be {} MiB"]),
        ("Reason(0, 'disk', 'it is full' if full else 'it is small')", ["Reason(disk): it is full", "Reason(disk): it is small"]),
        ("Problem(Kind.SPLIT, says='is in two groups')", ["Problem(Kind.SPLIT): is in two groups"]),
        ("raise Refused('one part, ' 'and another')", ["Refused(): one part, and another"]),
        ("says = f'has {\"no disk\" if alone else size}'", [": has {}", ": no disk"]),
        ("def f():\n    'It is documented.'\n    return {'word': 'and words'}", [": and words"]),
        ("DOCUMENTATION = 'a text of it'", []),
        ("re.compile('a b [c d]')", []),
        ("x: 'int' = t.cast('dict[str, t.Any]', 'word')", []),
        ("connection.execute('SELECT name FROM providers')", []),
    ],
)
def test_sentences_stand_behind_the_call_that_takes_them(source: str, expected: list[str]) -> None:
    assert list(sentences(source)) == expected
