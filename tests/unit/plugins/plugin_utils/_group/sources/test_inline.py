# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clusters in plain data: defaults, units, pools, and everything that can be wrong in one message."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._data.units import UNITS
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    AllocPolicy,
    Disk,
    DiskTemplate,
    PoolKind,
    PoolName,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline, parse_new_instances

NODES = [
    {"name": "n1", "total_memory": "4 GiB", "node_memory": 96, "total_disk": "1 TiB", "total_cpus": 4},
    {"name": "n2", "total_memory": 4096, "total_cpus": 4, "storage": [{"pool": "lvm", "total": 1000}, {"pool": "fast", "total": "500"}]},
]
WEB = {"name": "web", "memory": "1 GiB", "disk": 100, "vcpus": 2, "primary": "n1", "secondary": "n2"}


def mistakes(parse, *arguments):
    with pytest.raises(InputError) as caught:
        parse(*arguments)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_one_group_is_there_without_being_named():
    cluster = parse_inline({"nodes": NODES})
    assert [group.name for group in cluster.groups] == ["default"]
    assert {node.group for node in cluster.nodes} == {"default"}


def test_free_memory_and_disk_are_what_the_instances_leave():
    stopped = WEB | {"name": "off", "status": "ADMIN_down"}
    coming = WEB | {"name": "soon", "forthcoming": True}
    first, second = parse_inline({"nodes": NODES, "instances": [WEB, stopped, coming]}).nodes
    assert first.free_memory == 4096 - 96 - 1024
    assert first.free_disk == 1048576 - 200
    assert second.free_memory == 4096
    assert (second.total_disk, second.free_disk) == (1500, 1300)
    assert [(str(pool.name), pool.total, pool.free) for pool in second.storage] == [
        ("internal/lvm", 1000, 800),
        ("internal/fast", 500, 500),
    ]


def test_shared_pool_is_filled_by_everybody():
    pool = {"type": "external", "pool": "san", "total": 1000}
    nodes = [node | {"storage": [pool]} for node in NODES]
    disks = [{"name": f"i{n}", "memory": 1, "disk": 100, "vcpus": 1, "primary": f"n{n}", "storage": pool_of("san")} for n in (1, 2)]
    cluster = parse_inline({"nodes": nodes, "instances": disks})
    assert [node.storage[0].free for node in cluster.nodes] == [800, 800]
    assert {instance.disk_template for instance in cluster.instances} == {DiskTemplate.EXT}


def pool_of(name):
    return {"type": "external", "pool": name}


def test_template_follows_from_what_is_said():
    plain = {name: value for name, value in WEB.items() if name != "secondary"} | {"name": "plain"}
    cluster = parse_inline({"nodes": NODES, "instances": [WEB, plain]})
    assert [instance.disk_template for instance in cluster.instances] == [DiskTemplate.DRBD, DiskTemplate.PLAIN]


def test_disks_are_summed_and_one_disk_needs_no_list():
    listed = {name: value for name, value in WEB.items() if name != "disk"} | {"disks": [{"size": 10, "spindles": 1}, {"size": "1 GiB"}]}
    single = WEB | {"name": "single", "spindles": 3}
    first, second = parse_inline({"nodes": NODES, "instances": [listed, single]}).instances
    assert (first.disk, first.disks, first.spindles) == (1034, (Disk(10, 1), Disk(1024)), None)
    assert (second.disks, second.spindles) == ((Disk(100, 3),), 3)


def test_needs_are_rounded_up_and_what_is_there_down():
    cluster = parse_inline(
        {
            "nodes": [{"name": "n", "total_memory": "1 GB", "total_disk": "1 GB", "total_cpus": 1}],
            "instances": [{"name": "i", "memory": "1 MB", "disk": "1 MB", "vcpus": 1, "primary": "n"}],
        },
    )
    assert (cluster.nodes[0].total_memory, cluster.nodes[0].total_disk) == (953, 953)
    assert (cluster.instances[0].memory, cluster.instances[0].disk) == (1, 1)


def test_groups_inherit_the_policy_and_nodes_may_name_groups_by_uuid():
    cluster = parse_inline(
        {
            "ipolicy": {"vcpu_ratio": 2, "minmax": [{"min": {"memory_size": 64}, "max": {"memory-size": "1 GiB"}}]},
            "groups": [
                {"name": "a", "uuid": "u", "alloc_policy": "last_resort"},
                {"name": "b", "ipolicy": {"spindle-ratio": 8, "disk-templates": ["ext"]}},
            ],
            "nodes": [NODES[0] | {"group": "u"}, NODES[1] | {"group": "b"}],
        },
    )
    first, second = cluster.groups
    assert (first.alloc_policy, first.policy.vcpu_ratio) == (AllocPolicy.LAST_RESORT, 2.0)
    assert (second.policy.vcpu_ratio, second.policy.spindle_ratio, second.policy.disk_templates) == (2.0, 8.0, ("ext",))
    assert (second.policy.intervals[0].minimum.memory, second.policy.intervals[0].maximum.memory) == (64, 1024)
    assert [node.group for node in cluster.nodes] == ["a", "b"]


def test_all_mistakes_of_shape_come_in_one_message():
    assert mistakes(
        parse_inline,
        {
            "groups": [{"name": "a", "alloc_polcy": "preferred"}, {"name": "b", "alloc_policy": "never"}],
            "nodes": [{"name": "n1", "total_memory": "4 GX", "total_cpus": "many"}, 5],
            "instances": [{"name": "i", "memory": True, "disk": [], "vcpus": 1.5, "auto_balance": "perhaps", "tags": "x"}],
        },
    ) == [
        "cluster.groups[0].alloc_polcy: is not a key of a group (did you mean alloc_policy?)",
        "cluster.groups[1].alloc_policy: is 'never'; must be one of preferred, last_resort, unallocable",
        f"cluster.nodes[0].total_memory: '4 GX' has the unknown unit GX; known are {', '.join(UNITS)}",
        "cluster.nodes[0].total_cpus: is 'many'; must be a number",
        "cluster.nodes[1]: is 5; must be a mapping with name, total_memory and total_cpus",
        "cluster.instances[0].memory: is True; must be a size in MiB, or text such as '50 GiB'",
        "cluster.instances[0].disk: is []; must be a size in MiB, or text such as '50 GiB'",
        "cluster.instances[0].vcpus: is 1.5; must be a whole number, 0 or more",
        "cluster.instances[0].auto_balance: is 'perhaps'; must be true or false",
        "cluster.instances[0].tags: is 'x'; must be a list of text",
        "cluster.nodes[0].group: is missing; must be the name of one of several groups",
    ]


def test_all_mistakes_of_meaning_come_in_one_message():
    assert mistakes(
        parse_inline,
        {
            "groups": [{"name": "a"}, {"name": "a", "uuid": "other"}],
            "nodes": [NODES[0] | {"group": "b", "cpu_speed": 0}, NODES[1] | {"group": "a", "free_disk": -5}],
            "instances": [WEB | {"memory": -1, "secondary": "n3", "storage": {"pool": "fats"}}],
        },
    ) == [
        "cluster.nodes[1].free_disk: is -5; must be 0 or more",
        "cluster.instances[0].memory: is -1; must be 0 or more",
        "cluster.groups[1]: the group with the name a occurs twice, also at cluster.groups[0]",
        "cluster.nodes[0].group: unknown group 'b'",
        "cluster.instances[0].secondary: unknown node 'n3'",
        "cluster.nodes[0].cpu_speed: is 0.0; must be above 0",
        "cluster.instances[0].storage: no node has the storage pool internal/fats (did you mean internal/fast?)",
    ]


def test_instance_needs_a_disk_unless_it_is_diskless():
    bare = {"name": "i", "memory": 1, "vcpus": 1, "primary": "n1"}
    (told,) = mistakes(parse_inline, {"nodes": NODES, "instances": [bare]})
    assert told.startswith("cluster.instances[0].disk: is missing")
    (instance,) = parse_inline({"nodes": NODES, "instances": [bare | {"disk_template": "diskless"}]}).instances
    assert (instance.disk, instance.disks) == (0, ())


@pytest.mark.parametrize("data", [None, [], "x", 5])
def test_what_is_no_mapping_is_refused(data):
    assert mistakes(parse_inline, data)[0].startswith("cluster: is ")


def test_new_instances_have_no_home_and_a_name_of_their_own():
    cluster = parse_inline({"nodes": NODES, "instances": [WEB]})
    new = {"name": "new", "memory": 1, "disk": 1, "vcpus": 1, "storage": {"pool": "fast"}}
    (instance,) = parse_new_instances([new], cluster)
    assert (instance.primary, instance.storage) == ("", PoolName(PoolKind.INTERNAL, "fast"))
    assert mistakes(parse_new_instances, [WEB, new | {"memory": -1}], cluster) == [
        "instances[0].primary: must not be given: the instance is yet to be placed",
        "instances[0].secondary: must not be given: the instance is yet to be placed",
        "instances[0].name: an instance web already exists",
        "instances[1].memory: is -1; must be 0 or more",
    ]


def test_keys_of_policies_that_nobody_reads_are_told():
    spec = {"memory_size": 1, "cores": 2}
    policy = {"vcpu-ration": 4, "minmax": [{"min": spec, "max": {}}], "std": {"disk": 5}}
    with pytest.raises(InputError) as caught:
        parse_inline({"groups": [{"name": "g", "ipolicy": policy}], "nodes": NODES[:1], "ipolicy": {"ratio": 5, "minmax": [3]}})
    assert [mistake.place for mistake in caught.value.mistakes] == [
        "cluster.groups[0].ipolicy.vcpu-ration",
        "cluster.groups[0].ipolicy.minmax[0].min.cores",
        "cluster.groups[0].ipolicy.std.disk",
        "cluster.ipolicy.ratio",
        "cluster.ipolicy.minmax[0]",
    ]
