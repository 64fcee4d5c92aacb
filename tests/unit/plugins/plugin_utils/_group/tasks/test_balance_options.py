# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of group_balance that cannot be: each named, all at once."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import read_request

CLUSTER = parse_inline({"nodes": [{"name": "n", "total_memory": 1, "total_disk": 1, "total_cpus": 1}]})


def test_negative_limits_are_refused_all_at_once():
    options = {"time_limit": -5, "workers": -1, "max_moves": -1, "max_moves_at_node": 0, "min_gain": float("nan")}
    with pytest.raises(InputError) as caught:
        read_request(CLUSTER, options)
    assert {str(mistake) for mistake in caught.value.mistakes} == {
        "time_limit: is -5; must be 0 or more",
        "workers: is -1; must be 0 or more",
        "max_moves: is -1; must be 0 or more",
        "max_moves_at_node: is 0; must be 1 or more",
        "min_gain: is nan; must be 0 or more",
    }


def test_loads_that_are_no_numbers_are_refused():
    with pytest.raises(InputError) as caught:
        read_request(CLUSTER, {"node_load": {"n": {"cpu": 10**400, "dsk": 1}, "m": 5}})
    assert [mistake.place for mistake in caught.value.mistakes] == ["node_load[n].dsk", "node_load[n].cpu", "node_load[m]", "node_load[m]"]
