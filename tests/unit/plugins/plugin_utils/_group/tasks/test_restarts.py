# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What instances that cannot be moved live cost, and how they are told."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import evacuation_summary


def test_a_container_is_restarted_only_where_it_is_worth_its_price():
    pool = {"type": "external", "pool": "ceph"}
    nodes = [{"name": name, "total_memory": 65536, "total_cpus": 16, "storage": [pool]} for name in ("n1", "n2")]
    usual = {"memory": 1024, "disk": 1024, "vcpus": 1, "primary": "n1", "storage": pool}
    instances = [{"name": name, "live": not name.startswith("ct"), **usual} for name in ("ct1", "ct2", "vm1", "vm2")]
    loaded = Loaded(parse_inline({"nodes": nodes, "instances": instances}), {})

    def moved(**arguments):
        told = run_balance(loaded, {"groups": ["default"], **arguments}, solve_each)
        return {move["instance"] for move in told["plan"]["moves"]}, told

    assert moved()[0] == {"vm1", "vm2"}, "as good as any other two, and they go on running"
    names, told = moved(restart_price=0.0, move_price=0.1)
    assert names == {"ct1", "ct2"}
    assert told["groups"][0]["restarts"] == ["ct1", "ct2"]
    assert "stopped and started again, because they cannot be moved while they run: ct1 and ct2" in told["summary"]


def test_who_is_restarted_when_a_node_is_emptied_is_told():
    pool = {"type": "external", "pool": "ceph"}
    nodes = [{"name": name, "total_memory": 65536, "total_cpus": 16, "storage": [pool]} for name in ("n1", "n2", "n3")]
    usual = {"memory": 1024, "disk": 1024, "vcpus": 1, "primary": "n1", "storage": pool}
    instances = [
        {"name": "ct", "live": False, **usual},
        {"name": "vm", **usual},
        {"name": "off", "live": False, "status": "ADMIN_down", **usual},
    ]
    told = run_evacuate(Loaded(parse_inline({"nodes": nodes, "instances": instances}), {}), {"nodes": ["n1"]})
    assert told["restarts"] == ["ct"], "who is stopped already is not"
    assert "ct is stopped and started again, because it cannot move while it runs" in evacuation_summary(told)
