# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.cache import is_part, name_of


@pytest.mark.parametrize(
    ("listed", "name"), [("[fast_cvol]", "fast"), ("fast_cvol", "fast"), ("[pool_cpool]", "pool_cpool"), ("fast", "fast")]
)
def test_a_cache_keeps_the_name_that_it_was_made_with(listed: str, name: str) -> None:
    assert name_of(listed) == name


def test_parts_of_what_is_cached_are_known_by_their_names() -> None:
    names = ("data", "data_corig", "fast_cvol", "fast_cvol-cdata", "fast_cvol-cmeta", "cvol", "my_corig_x")
    assert [name for name in names if is_part(name)] == ["data_corig", "fast_cvol", "fast_cvol-cdata", "fast_cvol-cmeta"]
