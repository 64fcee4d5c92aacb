# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long plans take by the rate of links."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.times import seconds_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import evacuation_summary

MEMORY = {"web": 1000.0, "db": 500.0, "mail": 250.0}


def step(kind, source, node):
    return {"kind": kind, "from": source, "node": node}


def move(name, *steps, data=0):
    return {"instance": name, "steps": list(steps), "data": data, "memory": MEMORY[name]}


def seconds(*stages, rate=100.0):
    moves = [one for stage in stages for one in stage]
    numbers = iter(range(len(moves)))
    return seconds_of({"moves": moves, "stages": [[next(numbers) for _move in stage] for stage in stages]}, rate)


def test_a_migration_sends_the_memory():
    assert seconds([move("web", step("migrate", ["a"], "b"))]) == {"stages": [10.0], "total": 10.0, "rate": 100.0}


def test_side_by_side_from_one_node_they_share_its_link():
    both = [move("web", step("migrate", ["a"], "b")), move("db", step("migrate", ["a"], "c"))]
    assert seconds(both)["stages"] == [15.0]
    assert seconds(both[:1], both[1:]) == {"stages": [10.0, 5.0], "total": 15.0, "rate": 100.0}


def test_to_one_node_they_share_its_link():
    assert seconds([move("web", step("migrate", ["a"], "c")), move("db", step("migrate", ["b"], "c"))])["stages"] == [15.0]


def test_between_other_nodes_they_share_nothing():
    assert seconds([move("web", step("migrate", ["a"], "b")), move("db", step("migrate", ["c"], "d"))])["stages"] == [10.0]


def test_a_link_sends_and_receives_at_once():
    assert seconds([move("web", step("migrate", ["a"], "b")), move("db", step("migrate", ["b"], "a"))])["stages"] == [10.0]


def test_a_copy_sends_the_disk_from_the_primary():
    """The mirror of db is copied from a, which web leaves as well."""
    copied = move("db", step("replace_disks", ["a", "b"], "c"), data=4000)
    assert seconds([copied])["stages"] == [40.0]
    assert seconds([copied, move("web", step("migrate", ["a"], "d"))])["stages"] == [50.0]


def test_the_data_of_a_move_is_divided_among_its_copies():
    """First to c from a, then from c to d, once it runs there."""
    steps = [
        step("replace_disks", ["a", "b"], "c"),
        step("migrate", ["a", "c"], "c"),
        step("replace_disks", ["c", "a"], "d"),
    ]
    assert seconds([move("mail", *steps, data=8000)])["stages"] == [42.5]


def test_a_local_disk_goes_along_with_its_instance():
    assert seconds([move("web", step("migrate", ["a"], "b"), data=2000)])["stages"] == [30.0]
    assert seconds([move("web", step("failover", ["a"], "b"), data=2000)])["stages"] == [20.0]


def test_what_is_stopped_on_shared_storage_takes_no_time():
    assert seconds([move("web", step("failover", ["a"], "b"))]) == {"stages": [0.0], "total": 0.0, "rate": 100.0}


POOL = {"type": "external", "pool": "ceph"}
CLUSTER = {
    "nodes": [{"name": name, "total_memory": 65536, "total_cpus": 16, "storage": [POOL]} for name in ("a", "b", "c")],
    "instances": [{"name": f"i{number}", "memory": 1100, "disk": 1, "vcpus": 1, "primary": "a", "storage": POOL} for number in range(4)],
}


def test_an_evacuation_says_how_long_it_takes():
    """All four leave a, whose link is the bottleneck, in however many stages."""
    answer = run_evacuate(load_any_cluster({"cluster": CLUSTER, "link_rate": "110 MiB"}, str), {"nodes": ["a"]})
    assert answer["plan"]["seconds"]["total"] == 40.0
    assert "40 s" in evacuation_summary(answer)


def test_without_a_rate_nothing_is_estimated():
    answer = run_evacuate(load_any_cluster({"cluster": CLUSTER}, str), {"nodes": ["a"]})
    assert "seconds" not in answer["plan"]


@pytest.mark.parametrize("rate", [0, -1, "0 MiB", "fast", [], {}, float("nan"), True])
def test_what_is_no_rate_is_refused(rate):
    with pytest.raises(InputError, match="link_rate"):
        load_any_cluster({"cluster": CLUSTER, "link_rate": rate}, str)
