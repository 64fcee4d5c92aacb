# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proxmox VE's documents, as pvesh prints them."""

from __future__ import annotations

import copy
import json
import pathlib

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, RuleKind, Status
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.proxmox.documents import RESOURCES, Reading, parse_proxmox
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report

RECORDED = json.loads((pathlib.Path(__file__).resolve().parents[5] / "data" / "group" / "proxmox.json").read_text())


def test_nodes_have_what_they_report_in_mib():
    first, second, dead = parse_proxmox(RECORDED).nodes
    assert (first.total_memory, first.free_memory, first.total_cpus) == (65536, 45056, 16)
    assert first.node_memory == (20 - 18) * 1024, "what is used beyond the guests' use"
    assert second.node_memory == 12 * 1024
    assert (first.state, dead.state, dead.total_memory) == ("up", "unreachable", 0)


def test_only_active_storage_for_guests_is_a_pool():
    first, second, dead = parse_proxmox(RECORDED).nodes
    assert [(str(pool.name), pool.total, pool.free) for pool in first.storage] == [
        ("external/ceph", 4096000, 3072000),
        ("internal/local-lvm", 819200, 614400),
    ]
    assert [str(pool.name) for pool in second.storage] == ["external/ceph", "internal/local-lvm"]
    assert (first.total_disk, first.free_disk) == (819200, 614400)
    assert dead.storage == ()


def test_a_guest_with_a_local_disk_stays_wherever_its_others_are():
    web, database, dns = parse_proxmox(RECORDED).instances
    assert (web.name, str(web.storage), web.disk_template, web.tags) == ("100-web", "external/ceph", DiskTemplate.EXT, ("prod", "web"))
    assert (str(database.storage), database.disk_template) == ("internal/local-lvm", DiskTemplate.PLAIN)
    assert (dns.status, dns.memory, dns.disk) == (Status.ADMIN_DOWN, 512, 8192)


def test_templates_are_left_out():
    assert "900" not in " ".join(guest.name for guest in parse_proxmox(RECORDED).instances)


def test_only_storage_of_a_node_is_its_guests():
    documents = {name: data for name, data in RECORDED.items() if not name.endswith("content")}
    documents["/nodes/pve1/storage"] = documents["/nodes/pve1/storage"][:2]
    web, _database, dns = parse_proxmox(documents).instances
    assert str(web.storage) == "external/ceph"
    assert dns.storage is None, "the other node has two"


def test_guests_of_a_dead_node_are_known_to_be_somewhere():
    documents = copy.deepcopy(RECORDED)
    documents[RESOURCES] += [
        {"id": "qemu/200", "type": "qemu", "vmid": 200, "node": "pve3", "status": "unknown", "maxmem": 2**30},
        {"id": "lxc/201", "type": "lxc", "vmid": 201, "node": "pve3", "status": "unknown", "template": 0, "tags": ""},
    ]
    *_others, bare, container = parse_proxmox(documents).instances
    assert (bare.name, bare.primary, bare.status, bare.memory, bare.vcpus, bare.disk) == (
        "200",
        "pve3",
        Status.ERROR_NODE_OFFLINE,
        1024,
        0,
        0,
    )
    assert (container.name, container.memory, container.tags) == ("201", 0, ())
    found = run_evacuate(Loaded(parse_proxmox(documents), {}), {"mode": "primary"})
    assert [left["instance"] for left in found["unplaced"]] == ["200", "201"]
    assert {reason["limit"] for left in found["unplaced"] for reason in left["reasons"]} == {"unreachable"}


def test_a_guest_of_a_silent_node_on_shared_storage_is_left_to_ha():
    documents = copy.deepcopy(RECORDED)
    documents[RESOURCES].append({"type": "qemu", "vmid": 200, "node": "pve3", "status": "unknown", "maxmem": 2**30, "maxcpu": 2})
    documents["/nodes/pve1/storage/ceph/content"].append({"volid": "ceph:vm-200-disk-0", "vmid": 200, "size": 2**30, "content": "images"})
    found = run_evacuate(Loaded(parse_proxmox(documents), {}), {"nodes": ["pve3"]})
    assert (found["placed"], found["plan"]["moves"]) == ([], [])
    assert [(left["instance"], left["reasons"][0]["limit"]) for left in found["unplaced"]] == [("200", "unreachable")]


def test_a_cluster_of_which_little_is_told():
    documents = {
        RESOURCES: [{"type": "node", "node": "lonely"}, {"type": "pool", "pool": "x"}, {"type": "lxc", "vmid": "7", "node": "lonely"}]
    }
    cluster = parse_proxmox(documents)
    assert [(node.name, node.state, node.total_memory, node.storage) for node in cluster.nodes] == [("lonely", "unreachable", 0, ())]
    assert [(guest.name, guest.status) for guest in cluster.instances] == [("7", Status.ADMIN_DOWN)]


def test_mistakes_name_document_and_place():
    documents = copy.deepcopy(RECORDED)
    documents[RESOURCES][3]["vmid"] = "many"
    documents[RESOURCES][4]["node"] = "pve9"
    documents["/nodes/pve1/storage"][1]["total"] = -1.5
    with pytest.raises(InputError) as caught:
        parse_proxmox(documents)
    assert [mistake.place for mistake in caught.value.mistakes] == [
        "/cluster/resources[3].vmid",
        "/nodes/pve1/storage[1].total",
        "/cluster/resources[4].primary",
    ]


def test_without_resources_there_is_no_cluster():
    with pytest.raises(InputError, match="/cluster/resources: is missing"):
        parse_proxmox({})


def with_config(config, node="pve1", kind="qemu", number=100):
    return {**RECORDED, f"/nodes/{node}/{kind}/{number}/config": config}


def test_disks_and_their_sizes_come_from_the_configuration():
    config = {"scsi0": "ceph:vm-100-disk-0,size=32G", "virtio1": "ceph:vm-100-disk-1,iothread=1,size=512M", "ide2": "none,media=cdrom"}
    web = parse_proxmox(with_config(config)).instances[0]
    assert [disk.size for disk in web.disks] == [32768, 512]
    assert (web.disk, str(web.storage), web.disk_template) == (33280, "external/ceph", DiskTemplate.EXT)


def test_local_disks_are_copied_only_if_asked():
    documents = with_config({"scsi0": "ceph:vm-100-disk-0,size=32G", "scsi1": "local-lvm:vm-100-disk-1,size=8G"})
    assert parse_proxmox(documents).instances[0].disk_template == DiskTemplate.PLAIN
    web = parse_proxmox(documents, Reading(local_disks=True)).instances[0]
    assert (web.disk_template, str(web.storage), web.takes_disk_along) == (DiskTemplate.EXT, "internal/local-lvm", True)


def evacuated(documents, name, reading=None):
    """Return why a guest has to stay where it is, or where it goes."""
    cluster = parse_proxmox(documents, reading or Reading())
    found = run_evacuate(Loaded(cluster, {}), {"instances": [name]})
    return [reason["says"] for left in found["unplaced"] for reason in left["reasons"]] or [found["placed"][0]["nodes"][0]]


@pytest.mark.parametrize(
    ("config", "kind", "says"),
    [
        ({"scsi0": "local-lvm:base-900-disk-0/vm-100-disk-1,size=8G"}, "lvmthin", "scsi0 on local-lvm is a clone of a template's disk"),
        ({"scsi0": "local-lvm:vm-100-disk-1,size=8G"}, "iscsidirect", "disks cannot be copied from a storage of type iscsidirect"),
        ({"scsi0": "local-lvm:vm-100-disk-1,size=8G", "parent": "x"}, "zfspool", "has snapshots, so it cannot be copied while"),
        ({"scsi0": "local-lvm:vm-100-disk-1,size=8G"}, "lvmthin", "pve2"),
    ],
)
def test_why_a_local_disk_is_not_copied(config, kind, says):
    documents = copy.deepcopy(with_config(config))
    for node in ("pve1", "pve2"):
        next(one for one in documents[f"/nodes/{node}/storage"] if one["storage"] == "local-lvm")["type"] = kind
    (told,) = evacuated(documents, "100-web", Reading(local_disks=True))
    assert says in told
    assert evacuated(documents, "100-web") == ["scsi0 on local-lvm, which is local to its node, is copied only with source.local_disks"]


@pytest.mark.parametrize(("kind", "volume", "copied"), [("zfspool", "", True), ("lvmthin", "", False), ("dir", ".qcow2", True)])
def test_snapshots_of_a_stopped_machine_are_copied_from_where_they_can_be(kind, volume, copied):
    documents = copy.deepcopy(with_config({"scsi0": f"local-lvm:vm-100-disk-1{volume},size=8G", "parent": "before"}))
    documents[RESOURCES][3]["status"] = "stopped"
    for node in ("pve1", "pve2"):
        next(one for one in documents[f"/nodes/{node}/storage"] if one["storage"] == "local-lvm")["type"] = kind
    (told,) = evacuated(documents, "100-web", Reading(local_disks=True))
    assert told == ("pve2" if copied else "scsi0 on local-lvm has snapshots, which cannot be copied from there")


def test_a_cloud_init_drive_goes_along_where_its_storage_is():
    drive = {"scsi0": "ceph:vm-100-disk-0,size=32G", "ide2": "local-lvm:vm-100-cloudinit,media=cdrom,size=4M"}
    assert evacuated(with_config(drive), "100-web") == ["pve2"]
    documents = copy.deepcopy(with_config(drive))
    documents["/nodes/pve2/storage"] = [one for one in documents["/nodes/pve2/storage"] if one["storage"] != "local-lvm"]
    assert "rule 100-web: its drives lie on local-lvm keeps 100-web off pve2" in evacuated(documents, "100-web")


def test_a_shared_image_keeps_a_guest_where_its_storage_is_offered():
    documents = copy.deepcopy(with_config({"scsi0": "ceph:vm-100-disk-0,size=32G", "ide2": "isos:iso/x.iso,media=cdrom"}))
    documents["/nodes/pve1/storage"].append({"storage": "isos", "shared": 1, "active": 1, "enabled": 1, "content": "iso"})
    assert "rule 100-web: its drives lie on isos keeps 100-web off pve2" in evacuated(documents, "100-web")
    documents["/nodes/pve2/storage"].append({"storage": "isos", "shared": 1, "active": 1, "enabled": 1, "content": "iso"})
    assert evacuated(documents, "100-web") == ["pve2"]


def test_a_guest_without_disks_can_move():
    assert evacuated(with_config({"ide2": "none,media=cdrom"}), "100-web") == ["pve2"]


def test_each_guest_is_told_its_own_reason():
    documents = copy.deepcopy(with_config({"scsi0": "ceph:vm-100-disk-0,size=32G", "usb0": "host=046d:c52b"}))
    documents[RESOURCES].append(documents[RESOURCES][3] | {"vmid": 110, "name": "other", "id": "qemu/110", "lock": "backup"})
    documents["/nodes/pve1/qemu/110/config"] = {"scsi0": "ceph:vm-110-disk-0,size=1G"}
    told = evacuated(documents, "100-web")
    assert "rule 100-web: usb0 is passed through keeps it where it is" in told
    assert "110" not in " ".join(told)


@pytest.mark.parametrize("lock", ["backup", "migrate", "snapshot", "suspended", "clone", "disk"])
def test_who_is_locked_stays(lock):
    documents = copy.deepcopy(RECORDED)
    documents[RESOURCES][3]["lock"] = lock
    assert f"rule 100-web: is locked ({lock}) keeps it where it is" in evacuated(documents, "100-web")


def test_memory_is_the_maximum_or_what_is_kept_or_what_is_used():
    documents = copy.deepcopy(with_config({"scsi0": "ceph:vm-100-disk-0,size=32G", "balloon": "1024"}))
    documents[RESOURCES][3] |= {"maxmem": 8 * 2**30, "mem": 2 * 2**30, "memhost": 3 * 2**30}

    def read_as(*ways):
        return [parse_proxmox(documents, Reading(memory=way)).instances[0].memory for way in ways]

    assert read_as("maximum", "balloon", "used") == [8192, 1024, 3072]
    documents[RESOURCES][3]["status"] = "stopped"
    assert read_as("balloon", "used") == [8192, 8192]
    documents["/nodes/pve1/qemu/100/config"]["balloon"] = "0"
    documents[RESOURCES][3]["status"] = "running"
    assert read_as("balloon") == [8192], "0 is no ballooning"


def test_a_cluster_of_one_node_has_nobody_to_move_to():
    documents = copy.deepcopy(RECORDED)
    documents[RESOURCES] = [one for one in documents[RESOURCES] if one["node"] == "pve1"]
    (told,) = evacuated(documents, "100-web")
    assert told == "there is no node that it may go to"


def test_names_may_be_alike():
    documents = copy.deepcopy(RECORDED)
    documents[RESOURCES][3]["name"] = documents[RESOURCES][4]["name"] = "size-1.example.com"
    assert [guest.name for guest in parse_proxmox(documents).instances[:2]] == ["100-size-1.example.com", "101-size-1.example.com"]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"hostpci0": "0000:01:00.0,pcie=1"}, "100-web: hostpci0 is passed through"),
        ({"usb1": "host=046d:c52b"}, "100-web: usb1 is passed through"),
        ({"ide2": "local:iso/debian.iso,media=cdrom"}, "100-web: an ISO image on local is in its drive"),
        ({"ide2": "cdrom,media=cdrom"}, "100-web: ide2 is a drive of its node"),
        ({"hostpci0": "mapping=gpu,pcie=1"}, "100-web: it has the mapped device gpu"),
        ({"usb0": "mapping=dongle"}, "100-web: it has the mapped device dongle"),
        ({"virtiofs0": "share"}, "100-web: virtiofs0 is passed through"),
        ({"ivshmem": "size=32"}, "100-web: ivshmem is passed through"),
        ({"amd-sev": "type=std"}, "100-web: its memory is encrypted (amd-sev)"),
        ({"vga": "std,clipboard=vnc"}, "100-web: it uses the clipboard of VNC"),
    ],
)
def test_what_is_tied_to_its_machine_stays_and_says_why(config, says):
    (rule,) = parse_proxmox(with_config({"scsi0": "ceph:vm-100-disk-0,size=32G", **config})).rules
    assert (rule.kind, rule.name, rule.instances) == (RuleKind.IGNORE, says, ("100-web",))


@pytest.mark.parametrize(
    "config",
    [
        {"usb0": "spice"},
        {"usb0": "host=spice,usb3=1"},
        {"serial0": "socket"},
        {"ide2": "ceph:iso/x.iso,media=cdrom"},
        {"ide2": "none,media=cdrom"},
        {"ide2": "local-lvm:vm-100-cloudinit,media=cdrom,size=4M"},
        {"vga": "qxl"},
        {"balloon": 0},
    ],
)
def test_what_is_nobodys_does_not_tie(config):
    assert parse_proxmox(with_config(config)).rules == ()


def test_ha_rules_of_release_9():
    documents = {
        **RECORDED,
        "/cluster/ha/resources": [{"sid": "vm:100"}, {"sid": "vm:101", "failback": 0}, {"sid": "ct:102"}],
        "/cluster/ha/rules": [
            {"rule": "near", "type": "node-affinity", "nodes": "pve1:1,pve2:2,pve3:9", "resources": "vm:100,vm:101", "strict": 1},
            {"rule": "apart", "type": "resource-affinity", "affinity": "negative", "resources": "vm:100,ct:102"},
            {"rule": "together", "type": "resource-affinity", "affinity": "positive", "resources": "vm:100,vm:101"},
            {"rule": "off", "type": "resource-affinity", "affinity": "positive", "resources": "vm:100,vm:101", "disable": 1},
            {"rule": "wish", "type": "node-affinity", "nodes": "pve3", "resources": "ct:102"},
            {"rule": "best", "type": "node-affinity", "nodes": "pve1:1,pve2:2", "resources": "ct:102"},
        ],
    }
    assert [(rule.name, str(rule.kind), rule.nodes, rule.strict) for rule in parse_proxmox(documents).rules] == [
        ("HA rule near", "pin", ("pve2",), True),
        ("HA rule near", "pin", ("pve1", "pve2", "pve3"), True),
        ("HA rule apart", "anti_affinity", (), True),
        ("HA rule together", "affinity", (), True),
        ("HA rule best", "pin", ("pve2",), False),
    ], "pve3 is down: of the best that are up, or, without failback, of all; a wish for a dead node is none"


def test_ha_groups_of_release_8():
    documents = {
        **RECORDED,
        "/cluster/ha/resources": [{"sid": "vm:100", "group": "first"}, {"sid": "vm:101", "group": "free"}],
        "/cluster/ha/groups": [
            {"group": "first", "nodes": "pve2", "restricted": 1},
            {"group": "free", "nodes": "pve1", "nofailback": 1},
        ],
    }
    assert [(rule.name, rule.instances, rule.nodes) for rule in parse_proxmox(documents).rules] == [
        ("HA group first", ("100-web",), ("pve2",))
    ]


def test_tags_of_proxlb():
    documents = copy.deepcopy(RECORDED)
    for position, tags in ((3, "plb_anti_affinity_db;plb_pin_pve1;plb_pin_PVE2"), (4, "plb_anti_affinity_db;plb_ignore_me")):
        documents[RESOURCES][position]["tags"] = tags
    assert {(rule.name, str(rule.kind), rule.nodes) for rule in parse_proxmox(documents).rules} == {
        ("tag plb_pin_pve1, plb_pin_PVE2 of 100-web", "pin", ("pve1", "pve2")),
        ("tag plb_anti_affinity_db", "anti_affinity", ()),
        ("tag plb_ignore_me", "ignore", ()),
    }


@pytest.mark.parametrize(
    ("crs", "left"),
    [
        ({"ha": "static", "ha-auto-rebalance": 1}, True),
        ("ha=static,ha-auto-rebalance=1,ha-auto-rebalance-threshold=0.2", True),
        ("ha=dynamic,ha-auto-rebalance=1", True),
        ("ha=dynamic,ha-rebalance-on-start=1", False),
        ({"ha": "dynamic", "ha-auto-rebalance": 0}, False),
        ("ha=basic,ha-auto-rebalance=1", False),
    ],
)
def test_guests_that_ha_balances_are_left_to_it(crs, left):
    resources = [{"sid": "vm:100"}, {"sid": "vm:101", "auto-rebalance": 0}]
    rules = parse_proxmox({**RECORDED, "/cluster/options": {"crs": crs}, "/cluster/ha/resources": resources}).rules
    assert [(rule.kind, rule.instances, rule.reason) for rule in rules] == ([(RuleKind.IGNORE, ("100-web",), "ha")] if left else [])


@pytest.mark.parametrize(
    "told",
    [{"/cluster/status": [{"type": "cluster", "quorate": 0}]}, {"/cluster/ha/status/manager_status": {"quorum": {"quorate": "0"}}}],
)
def test_without_quorum_nothing_is_planned(told):
    with pytest.raises(InputError) as caught:
        parse_proxmox({**RECORDED, **told})
    assert [mistake.place for mistake in caught.value.mistakes] == ["/cluster/status"]


def test_a_running_machine_does_not_go_where_its_cpu_is_not():
    documents = {
        **with_config({"cpu": "host"}),
        "/nodes/pve1/status": {"cpuinfo": {"flags": "sse4_2 aes avx2"}},
        "/nodes/pve2/status": {"cpuinfo": {"flags": "sse4_2 aes"}},
    }
    (rule,) = parse_proxmox(documents).rules
    assert (rule.kind, rule.nodes) == (RuleKind.PIN, ("pve1", "pve3"))
    documents["/nodes/pve1/qemu/100/config"] = {"cpu": "x86-64-v2-AES"}
    assert parse_proxmox(documents).rules == ()
    documents["/nodes/pve1/qemu/100/config"] = {"cpu": "cputype=x86-64-v3,flags=+aes"}
    assert parse_proxmox(documents).rules[0].nodes == ("pve1", "pve3")


@pytest.mark.parametrize(
    ("cpu", "there", "goes"),
    [
        ("host", "Intel(R) Xeon(R) Gold 6130", True),
        ("host", "AMD EPYC 7302", False),
        ("max", "AMD EPYC 7302", False),
        ("EPYC-Rome", "AMD EPYC 7302", False),
        ("custom-mine", "AMD EPYC 7302", False),
        ("x86-64-v2-AES", "AMD EPYC 7302", True),
        ("x86-64-v2-AES,flags=+nested-virt", "AMD EPYC 7302", False),
        ("kvm64", "AMD EPYC 7302", True),
        ("", "AMD EPYC 7302", True),
    ],
)
def test_who_has_a_vendors_cpu_stays_with_the_vendor(cpu, there, goes):
    flags = "popcnt pni sse4_1 sse4_2 ssse3 aes"
    documents = with_config({"scsi0": "ceph:vm-100-disk-0,size=32G", "cpu": cpu}) | {
        "/nodes/pve1/status": {"cpuinfo": {"flags": flags, "model": "Intel(R) Xeon(R) Gold 6130"}},
        "/nodes/pve2/status": {"cpuinfo": {"flags": flags, "model": there}},
    }
    told = evacuated(documents, "100-web")
    assert (told == ["pve2"]) == goes
    assert goes or "is of Intel, which pve2 is not keeps 100-web off pve2" in told[0]


@pytest.mark.parametrize(("flags", "goes"), [("avx512f aes", True), ("aes", True), ("avx512f", False)])
def test_flags_that_are_added_are_asked_for(flags, goes):
    """What its own node does not tell is not asked of others, as it runs there."""
    documents = with_config({"scsi0": "ceph:vm-100-disk-0,size=32G", "cpu": "kvm64,flags=+aes;+pcid;-ssbd"}) | {
        "/nodes/pve1/status": {"cpuinfo": {"flags": "avx512f aes"}},
        "/nodes/pve2/status": {"cpuinfo": {"flags": flags}},
    }
    assert (evacuated(documents, "100-web") == ["pve2"]) == goes


def test_a_node_in_maintenance_is_drained():
    status = {"manager_status": {"node_status": {"pve1": "online", "pve2": "maintenance"}}}
    nodes = parse_proxmox({**RECORDED, "/cluster/ha/status/manager_status": status}).nodes
    assert [node.drained for node in nodes] == [False, True, False]


def test_no_policy_stands_in_the_way_of_large_guests():
    documents = copy.deepcopy(RECORDED)
    documents[RESOURCES][3] |= {"maxmem": 60 * 2**30, "maxcpu": 64}
    problems = report(parse_proxmox(documents), ScoreMode.HTOOLS)["problems"]
    assert not [problem for problem in problems if problem["kind"] in ("policy", "cpus")]


def test_containers_are_not_moved_live():
    assert [guest.live for guest in parse_proxmox(RECORDED).instances] == [True, True, False]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"scsi0": "ceph:vm-100-disk-0,size=32G"}, ""),
        ({"scsi0": "ceph:vm-100-disk-0,size=32G", "parent": "before-update"}, "its guest has snapshots"),
        ({"scsi0": "ceph:base-900-disk-0/vm-100-disk-0,size=32G"}, "it is a clone of a template's disk"),
        ({"scsi0": "nfs:900/base-900-disk-0.qcow2/100/vm-100-disk-0.qcow2,size=32G"}, "it is a clone of a template's disk"),
        ({"unused0": "ceph:vm-100-disk-1"}, "it is not attached"),
        ({"tpmstate0": "ceph:vm-100-disk-1,size=4M,version=v2.0"}, "the state of a TPM only moves while its machine is stopped"),
    ],
)
def test_which_disks_may_go_to_another_storage(config, why):
    (disk,) = parse_proxmox(with_config(config)).instances[0].disks
    assert (disk.stays, disk.content) == (why, "images")


def test_disks_of_containers_that_run_stay():
    documents = with_config({"rootfs": "local-lvm:vm-102-disk-0,size=8G"}, "pve2", "lxc", 102)
    container = next(entry for entry in documents[RESOURCES] if entry.get("vmid") == 102)
    container["status"] = "running"
    assert parse_proxmox(documents).instances[2].disks[0].stays == "its container runs"
    container["status"] = "stopped"
    disk = parse_proxmox(documents).instances[2].disks[0]
    assert (disk.name, str(disk.storage), disk.size, disk.content, disk.stays) == ("rootfs", "internal/local-lvm", 8192, "rootdir", "")


@pytest.mark.parametrize("told", [{"enabled": 0}, {"active": 0}, {"content": "iso,backup"}])
def test_a_disk_on_a_storage_that_is_not_offered_keeps_its_guest_and_nobody_else(told):
    documents = copy.deepcopy(with_config({"scsi0": "local-lvm:vm-100-disk-0,size=32G"}))
    storage = next(one for one in documents["/nodes/pve1/storage"] if one["storage"] == "local-lvm")
    storage |= told
    cluster = parse_proxmox(documents, Reading(local_disks=True))
    assert cluster.instances[0].disk_template == DiskTemplate.PLAIN
    (rule,) = [rule for rule in cluster.rules if rule.instances == ("100-web",)]
    assert (rule.kind, rule.name) == (RuleKind.IGNORE, "100-web: scsi0 lies on local-lvm, which its node does not offer")


def test_a_percentile_of_what_a_week_has_measured():
    """A guest that is busy for a quarter of the day has a small mean and a large percentile; series of a kind count together."""
    hours = range(7 * 48)
    points = [{"time": 1800 * n, "cpu": 0.9 if n % 48 < 12 else 0.1, "mem": 2**30, "diskread": 0, "diskwrite": 2**20} for n in hours]
    points += [{"time": 1800 * len(hours)}]
    documents = {**RECORDED, "/nodes/pve1/qemu/100/rrddata": points}
    guest, cores = "100-web", 4
    for percentile, share in ((None, 0.3), (95, 0.9), (50, 0.1)):
        found = {one.name: one.load for one in parse_proxmox(documents, Reading("used", percentile=percentile)).instances}[guest]
        assert (found.cpu, found.memory, found.disk) == (pytest.approx(share * cores), 1.0, 1.0)


def test_a_load_that_no_guest_tells_is_no_load_of_nothing():
    """Release 8 has no pressure in its rrddata; where all loads were none, nothing would ever be moved for them."""
    points = [{"time": 60, "cpu": 0.5, "mem": 2**30}, {"time": 120}]
    documents = {**RECORDED, "/nodes/pve1/qemu/100/rrddata": points}
    assert parse_proxmox(documents, Reading("used")).instances[0].load.memory == 1.0
    with pytest.raises(InputError, match="source.load.mode: is pressure, which no running guest has in its rrddata; .* release 9"):
        parse_proxmox(documents, Reading("pressure"))
    with pytest.raises(InputError, match="source.load.mode: is used, which no running guest"):
        parse_proxmox(RECORDED, Reading("used"))
    assert parse_proxmox({**documents, "/nodes/pve1/qemu/100/rrddata": [{"pressurecpusome": 0}]}, Reading("pressure"))
