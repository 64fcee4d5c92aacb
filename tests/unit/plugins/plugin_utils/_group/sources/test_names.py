# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names in every source: what a command line, a URL or a host to delegate to would read differently is refused, with its place."""

from __future__ import annotations

import dataclasses
import json
import uuid
from xml.sax.saxutils import escape

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._data.kinds import Name
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.ledger_cluster import world_to_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.iallocator import parse_iallocator, requested_instances
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline, parse_new_instances
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.libvirt.documents import parse_libvirt
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.proxmox.documents import parse_proxmox
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.rapi import parse_rapi
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.group import libvirt as virsh

HOSTILE = [
    "-n",
    "--help",
    "x/system?command=/tmp/evil#",
    "../../../etc/passwd",
    "..",
    "a/b",
    "a b",
    "a\tb",
    "web1;id",
    "$(id)",
    "{{ 1 }}",
    "a'b",
    'a"b',
    "a%2fb",
    "a?b",
    "a#b",
    "a@b",
    "a:b",
    "größe",
    "a\u202eb",
    "a\x00b",
    "a" * 256,
]
LINES = ["web1\n", "a\nb", "web1\r"]
"""What a file of lines cannot hold within one."""
SOUND = ["node1.example.com", "101-web", "local-lvm", "0d3a9f6e-9a5f-4a0f-8c39-5a8a3d6f4c01", "A_b.c", "9", "a" * 255]
RACK, CEPH = (str(uuid.UUID(int=number)) for number in (10, 11))
POOL = {"type": "external", "pool": "ceph"}


def inline(**names):
    name = {"group": "g", "uuid": "u", "network": "n", "node": "a", "pool": "ceph", "instance": "web", "disk": "disk0"} | names
    pool = {**POOL, "pool": name["pool"]}
    node = {"total_memory": 9000, "total_cpus": 8, "total_disk": 9000, "group": name["group"], "storage": [pool]}
    instance = {"memory": 1, "vcpus": 1, "storage": pool, "networks": [name["network"]]}
    return {
        "groups": [{"name": name["group"], "uuid": name["uuid"], "networks": [name["network"]]}],
        "nodes": [{"name": name["node"], **node}, {"name": "other", **node}],
        "instances": [
            {**instance, "name": name["instance"], "primary": name["node"], "disks": [{"size": 1, "name": name["disk"], "storage": pool}]},
            {**instance, "name": "two", "disk": 1, "primary": "other", "secondary": name["node"], "disk_template": "drbd"},
        ],
    }


def text(**names):
    name = {"group": "g", "uuid": "u", "network": "n", "node": "a", "instance": "web"} | names
    return "\n".join(
        [
            f"{name['group']}|{name['uuid']}|preferred||{name['network']}",
            "",
            *(f"{node}|9000|0|9000|9000|9000|8|N|{name['uuid']}|1" for node in (name["node"], "other")),
            "",
            f"{name['instance']}|1|1|1|running|Y|{name['node']}|other|drbd||1",
            f"two|1|1|1|running|Y|other|{name['node']}|drbd||1",
            "",
            "",
        ]
    )


def iallocator(**names):
    name = {"uuid": "u", "group": "g", "network": "n", "node": "a", "instance": "web", "new": "fresh"} | names
    node = {"group": name["uuid"], "offline": False, "drained": False, "total_memory": 9, "reserved_memory": 0, "free_memory": 9}
    node |= {"total_disk": 9, "free_disk": 9, "total_cpus": 8}
    instance = {"memory": 1, "disk_space_total": 1, "vcpus": 1, "disk_template": "drbd", "nics": [{"network": name["network"]}]}
    return {
        "nodegroups": {name["uuid"]: {"name": name["group"], "alloc_policy": "preferred", "networks": [name["network"]]}},
        "nodes": {name["node"]: node, "other": node},
        "instances": {name["instance"]: {**instance, "nodes": [name["node"], "other"]}},
        "request": {"type": "allocate", "name": name["new"], **instance},
    }


def rapi(**names):
    name = {"uuid": "u", "group": "g", "node": "a", "instance": "web"} | names
    node = {"group.uuid": name["uuid"], "offline": False, "drained": False, "mtotal": 9, "mnode": 0, "mfree": 9, "ctotal": 8}
    instance = {"disk_usage": 1, "status": "running", "disk_template": "drbd", "oper_ram": 1, "beparams": {"vcpus": 1}}
    return {
        "groups": [{"name": name["group"], "uuid": name["uuid"], "alloc_policy": "preferred"}],
        "nodes": [{"name": name["node"], **node}, {"name": "other", **node}],
        "instances": [
            {"name": name["instance"], "pnode": name["node"], "snodes": ["other"], **instance},
            {"name": "two", "pnode": "other", "snodes": [name["node"]], **instance},
        ],
    }


def proxmox(**names):
    name = {"node": "a", "guest": "web", "storage": "ceph"} | names
    disk = f"{name['storage']}:vm-100-disk-0,size=1G"
    storages = [{"storage": name["storage"], "content": "images", "shared": 1, "total": 2**30, "avail": 2**30}]
    return {
        "/cluster/resources": [
            *({"type": "node", "node": node, "status": "online", "maxmem": 2**33, "maxcpu": 8} for node in (name["node"], "other")),
            {"type": "qemu", "vmid": 100, "node": name["node"], "name": name["guest"], "status": "running", "maxmem": 2**20, "maxcpu": 1},
        ],
        f"/nodes/{name['node']}/storage": storages,
        "/nodes/other/storage": storages,
        f"/nodes/{name['node']}/qemu/100/config": {"scsi0": disk},
    }


def libvirt(**names):
    name = {"node": "a", "guest": "web", "storage": "vms"} | {
        key: escape(value) if key != "node" else value for key, value in names.items()
    }
    xml = virsh.domain(name["guest"], devices=virsh.disk("/images/web.img"))
    pools = [virsh.pool(name["storage"], "netfs", source=virsh.NFS)]
    return {name["node"]: virsh.node(domains=[xml], pools=pools), "other": virsh.node(pools=pools)}


def ledger(**names):
    name = {"node": "host1", "pool": "ceph", "consumer": "web"} | names
    inventory = {"VCPU": 8, "MEMORY_MB": 9000}
    world = parse_world(
        {
            "providers": [
                {"name": name["node"], "uuid": RACK, "inventories": inventory, "aggregates": [RACK, CEPH]},
                {"name": name["pool"], "inventories": {"DISK_GB": 9}, "aggregates": [CEPH], "traits": ["MISC_SHARES_VIA_AGGREGATE"]},
            ],
            "allocations": {"web": {name["node"]: {"VCPU": 1, "MEMORY_MB": 1}, name["pool"]: {"DISK_GB": 1}}},
        }
    )
    # Whoever writes to the database itself is not held to what the modules make of a consumer's name.
    (allotted,) = world.allocations.values()
    return world_to_cluster(dataclasses.replace(world, allocations={name["consumer"]: allotted}), {name.get("group", "g"): RACK})


def loaded(message):
    found = parse_iallocator(message)
    requested_instances(found)
    return found


def new_instance(**names):
    return parse_new_instances([{"name": names["new"], "memory": 1, "disk": 1, "vcpus": 1}], parse_inline(inline()))


SOURCES = {
    "inline": (lambda **names: parse_inline(inline(**names)), ("group", "uuid", "network", "node", "pool", "instance", "disk")),
    "new": (new_instance, ("new",)),
    "text": (lambda **names: parse_text(text(**names)), ("group", "uuid", "network", "node", "instance")),
    "iallocator": (
        lambda **names: loaded(json.loads(json.dumps(iallocator(**names)))),
        ("uuid", "group", "network", "node", "instance", "new"),
    ),
    "rapi": (lambda **names: parse_rapi(rapi(**names)), ("uuid", "group", "node", "instance")),
    "proxmox": (lambda **names: parse_proxmox(proxmox(**names)), ("node", "guest", "storage")),
    "libvirt": (lambda **names: parse_libvirt(libvirt(**names)), ("node", "guest", "storage")),
    "ledger": (ledger, ("node", "pool", "consumer", "group")),
}
FIELDS = [(source, field) for source, (_parse, fields) in SOURCES.items() for field in fields]
PLACES = {
    ("inline", "group"): "cluster.groups[0].name",
    ("inline", "uuid"): "cluster.groups[0].uuid",
    ("inline", "network"): "cluster.instances[0].networks[0]",
    ("inline", "node"): "cluster.nodes[0].name",
    ("inline", "pool"): "cluster.nodes[0].storage[0].pool",
    ("inline", "instance"): "cluster.instances[0].name",
    ("inline", "disk"): "cluster.instances[0].disks[0].name",
    ("new", "new"): "instances[0].name",
    ("text", "group"): "line 1, name",
    ("text", "uuid"): "line 1, uuid",
    ("text", "network"): "line 1, networks[0]",
    ("text", "node"): "line 3, name",
    ("text", "instance"): "line 6, name",
    ("iallocator", "uuid"): "nodegroups.-n.uuid",
    ("iallocator", "group"): "nodegroups.u.name",
    ("iallocator", "network"): "instances.web.networks[0]",
    ("iallocator", "node"): "nodes.-n.name",
    ("iallocator", "instance"): "instances.-n.name",
    ("iallocator", "new"): "request.name",
    ("rapi", "uuid"): "groups[0].uuid",
    ("rapi", "group"): "groups[0].name",
    ("rapi", "node"): "nodes[0].name",
    ("rapi", "instance"): "instances[0].name",
    ("proxmox", "node"): "/cluster/resources[0].name",
    ("proxmox", "storage"): "/cluster/resources[2].storage.pool",
    ("libvirt", "node"): "source.uris",
    ("libvirt", "guest"): "a.domains[0].name",
    ("libvirt", "storage"): "source.uris.a.storage[0].pool",
    ("ledger", "node"): "provider -n.name",
    ("ledger", "pool"): "provider host1.storage[0].pool",
    ("ledger", "consumer"): "consumer -n.name",
    ("ledger", "group"): "source.aggregates.-n.name",
}


@pytest.mark.parametrize(("source", "field"), FIELDS)
def test_a_sound_name_is_taken(source, field):
    # A guest of Proxmox VE is called by its number as well, and a provider by a UUID or by 200 letters at most.
    for name in [name[:200] for name in SOUND if source != "ledger" or name != SOUND[3]] if source in ("ledger", "proxmox") else SOUND:
        SOURCES[source][0](**{field: name})


@pytest.mark.parametrize(("source", "field"), FIELDS)
def test_what_is_no_name_is_refused(source, field):
    taken = []
    for name in HOSTILE if source == "text" else [*HOSTILE, *LINES]:
        # Behind the number of its guest a dash is no option.
        if field == "guest" and name in ("-n", "--help", ".."):
            continue
        try:
            SOURCES[source][0](**{field: name})
        except InputError:
            continue
        taken.append(name)
    assert not taken


@pytest.mark.parametrize(("source", "field"), [pair for pair in FIELDS if pair in PLACES])
def test_what_is_no_name_is_refused_with_its_place(source, field):
    with pytest.raises(InputError) as caught:
        SOURCES[source][0](**{field: "-n"})
    found = {mistake.place: mistake.says for mistake in caught.value.mistakes}
    assert PLACES[source, field] in found
    assert Name.wanted in found[PLACES[source, field]]


def test_the_schema_says_what_a_name_is():
    assert Name().json_schema() == {"type": ["string", "integer"], "pattern": "^([A-Za-z0-9][A-Za-z0-9._-]{0,254})$"}
