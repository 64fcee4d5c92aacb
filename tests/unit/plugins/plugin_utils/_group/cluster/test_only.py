# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`only` selects instances by name, tag and pool; no action moves another one, nor its mirror, nor one of its disks."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute

NODES = [
    {"name": name, "group": "one" if name < "c" else "two", "total_memory": 65536, "total_disk": 2**20, "total_cpus": 16} for name in "abcd"
]
GROUPS = [{"name": "one"}, {"name": "two"}]
POOL = {"type": "external", "pool": "fast"}
INSTANCES = [
    {"name": f"i{number}", "memory": 8192, "disk": 1024, "vcpus": 1, "primary": "a", "disk_template": "ext", "tags": [f"t{number % 2}"]}
    for number in range(5)
] + [{"name": "deep", "memory": 4096, "disk": 1024, "vcpus": 1, "primary": "a", "disk_template": "ext", "storage": POOL}]
for node in NODES:
    node["storage"] = [{**POOL, "total": 2**20, "free": 2**20}]
RUNS = {
    "balance": lambda loaded: run_balance(loaded, {"workers": 1}, solve_each),
    "redistribute": lambda loaded: run_redistribute(loaded, {"by": "load"}),
    "compress": lambda loaded: run_compress(loaded, {}),
}


def load(only):
    cluster = {"groups": GROUPS, "nodes": NODES, "instances": INSTANCES}
    return load_any_cluster({"cluster": cluster, "only": only}, str)


@pytest.mark.parametrize(
    ("only", "selected"),
    [
        ({"instances": ["i1"]}, {"i1"}),
        ({"tags": ["t0"]}, {"i0", "i2", "i4"}),
        ({"pools": ["fast"]}, {"deep"}),
        ({"instances": ["i1"], "tags": ["t0"], "pools": None}, {"i0", "i1", "i2", "i4"}),
    ],
)
@pytest.mark.parametrize("action", RUNS)
def test_only_what_is_selected_moves(action, only, selected):
    answer = RUNS[action](load(only))
    moved = {move["instance"] for move in answer["plan"]["moves"]}
    assert moved <= selected
    assert answer["left_out"]["only"] == len(INSTANCES) - len(selected)
    if action == "balance":
        assert moved


@pytest.mark.parametrize("only", [None, {}, {"instances": None, "tags": None, "pools": None}])
def test_without_words_all_may_move(only):
    loaded = load(only)
    assert loaded.cluster.rules == ()
    assert RUNS["balance"](loaded)["plan"]["moves"]


def test_an_empty_list_selects_nothing():
    answer = RUNS["balance"](load({"instances": []}))
    assert answer["plan"]["moves"] == []
    assert answer["left_out"]["only"] == len(INSTANCES)


def test_words_that_select_nothing_are_mistakes_all_at_once():
    with pytest.raises(InputError) as caught:
        load({"instances": ["i1", "i9"], "tags": ["t7"], "pools": ["slow"]})
    assert [mistake.place for mistake in caught.value.mistakes] == ["only.instances[1]", "only.tags[0]", "only.pools[0]"]
