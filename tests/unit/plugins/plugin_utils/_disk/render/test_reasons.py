# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a space is as it is: a long expression explains nothing, so the page says in words that there is one."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.reasons import reasons_of

LONG = "yaql=let(n => $.disks.arrayDisks(ssd).len()) -> switch($n > 2 => $n mod 2, true => 0)"


@pytest.mark.parametrize(
    ("spares", "says"), [(1, "with one spare disk"), (2, "spare disks: 2"), (LONG, "spare disks: as many as an expression gives")]
)
def test_spare_disks_are_told_in_words(spares: t.Any, says: str) -> None:
    assert reasons_of({"id": "data", "type": "raid", "spares": spares}, 1000) == (says,)
