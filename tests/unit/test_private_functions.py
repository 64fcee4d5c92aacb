# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A private function that is called once and says no more than its body stands where it is called.

A function of 10 to 25 lines that tells one story is fine. Where a limit is reached, write the body at its one call, or a docstring that
says what neither the name nor the body does.
"""

from __future__ import annotations

from ansible_collections.bareon.allocator.tests.support.house.private_functions import Private, private_functions, private_functions_of

MOST_USED_ONCE = 0.67
"""The share of private functions that are used once."""
MOST_BARE = 136
"""How many of these are one statement without a docstring."""


def test_few_private_functions_are_used_once() -> None:
    found = list(private_functions())
    once = [one for one in found if one.uses == 1]
    assert len(once) <= MOST_USED_ONCE * len(found), f"{len(once)} of {len(found)} private functions are used once"


def test_few_of_them_are_one_statement() -> None:
    bare = [one.place for one in private_functions() if one.uses == 1 and one.statements == 1 and not one.is_documented]
    assert len(bare) <= MOST_BARE, f"{len(bare)} private functions that are used once are one statement: {', '.join(bare)}"


def test_uses_and_statements_are_counted() -> None:
    source = "def _a(b):\n    'Say it.'\n    if b:\n        return 1\n    return 2\nclass C:\n    def _d(self):\n        return _a(_a(1))\n"
    assert list(private_functions_of(source, "x.py")) == [Private("x.py:1 _a", 2, 3, True), Private("x.py:7 _d", 0, 1, False)]
