# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every server finds the candidates that a search of the whole world has, in the same order, and never looks at a tree it need not."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.feasible import parts, roots
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.feasible.parts import Asker
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.query import parse_query
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.model import World
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.provider.random_requests import Maker
from ansible_collections.bareon.allocator.tests.support.provider.refill import refill

WORLDS, REQUESTS = 12, 12
SIZES = {
    "as they are": {},
    "one by one": {"_FIRST_PAGE": 1, "_LARGEST_PAGE": 1, "_FIRST_TREES": 1, "_MOST_TREES": 1},
    "in steps": {"_FIRST_TREES": 1, "_STEPS": 2},
    "all that do, soon": {"_FIRST_PAGE": 1, "_LARGEST_PAGE": 2, "_WALKED_AT_LEAST": 1, "_FEW": 1, "_COUNTED": (1, 2)},
}


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
@pytest.mark.parametrize("sizes", list(SIZES))
def test_candidates_are_those_of_the_whole_world(server, sizes, request, monkeypatch):
    for name, value in SIZES[sizes].items():
        monkeypatch.setattr(parts if hasattr(parts, name) else roots, name, value)
    found = 0
    with open_ledger(request.getfixturevalue(server), timeout=3600) as ledger:
        for seed in range(WORLDS):
            maker = Maker(f"{sizes}{seed}")
            data = maker.world()
            world = parse_world(data)
            index = build_index(world)
            ledger.write(lambda connection, world=world: refill(connection, world))
            for number in range(REQUESTS):
                query = "&".join(f"{key}={value}" for key, value in maker.request(data))
                limited = query if number % 3 == 0 else f"{query}&limit={number % 3}"
                try:
                    asked = parse_query(limited, index.known)
                except InputError:
                    continue
                options = SearchOptions("mappings", ("none", "spread", "pack")[number % 4 % 3])
                expected = find_candidates(index, asked, options)
                found += len(expected.candidates)
                assert ledger.read(lambda connection, asked=asked, options=options: Asker(connection).find(asked, options)) == expected
        # Other tests have the same server, and find fault with worlds over their capacity.
        ledger.write(lambda connection: refill(connection, World(())))
    assert found > WORLDS
