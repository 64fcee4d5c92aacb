# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clusters of libvirt: nodes, guests, pools and rules, from what virsh prints."""

from __future__ import annotations

import json
import pathlib
import time

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    DiskTemplate,
    Manager,
    NodeState,
    PoolKind,
    RuleKind,
    Status,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.libvirt.documents import (
    Reading,
    parse_libvirt,
    read_uris,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.libvirt.pools import Pool, Volume, read_volumes
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.load import check_source
from ansible_collections.bareon.allocator.tests.support.group.libvirt import GIB, NFS, disk, domain, node, pool

RECORDED = json.loads((pathlib.Path(__file__).resolve().parents[5] / "data" / "group" / "libvirt.json").read_text())
SHARED, AS_IT_IS = Reading(shared_pools=("shared",)), Reading()
ON_A_NODE = disk("/images/web.img")
NODES = ("n1", "n2", "n3")


def cluster_of(domains, reading=AS_IT_IS, **nodes):
    """Return a cluster of three nodes, the first with these domains; `nodes` are answers that differ."""
    return parse_libvirt({name: node(**({"domains": domains} if name == "n1" else {}) | nodes.get(name, {})) for name in NODES}, reading)


def guest_of(domains, reading=AS_IT_IS, **nodes):
    (guest,) = cluster_of(domains, reading, **nodes).instances
    return guest


def allowed_of(domains, **nodes):
    """Return the nodes that the only pin allows, and whether it is one of hardware."""
    (rule,) = cluster_of(domains, **nodes).rules
    assert rule.kind == RuleKind.PIN
    return rule.nodes, rule.hardware


def tie_of(domains, **nodes):
    (rule,) = cluster_of(domains, **nodes).rules
    assert rule.kind == RuleKind.IGNORE
    return rule


class TestRecorded:
    """What a real libvirt 9.0 printed, with machines of QEMU under TCG."""

    def test_nodes(self):
        nodes = {node.name: node for node in parse_libvirt(RECORDED, SHARED).nodes}
        assert {name: one.state for name, one in nodes.items()} == {"n1": "up", "n2": "up", "n3": NodeState.UNREACHABLE}
        assert (nodes["n1"].total_memory, nodes["n1"].total_cpus) == (24105.0, 2.0)
        assert 0 < nodes["n1"].free_memory < nodes["n1"].total_memory
        assert nodes["n3"].total_memory == 0

    def test_guests(self):
        guests = {guest.name: guest for guest in parse_libvirt(RECORDED, SHARED).instances}
        assert {name: guest.primary for name, guest in guests.items()} == {"cold": "n1", "web": "n2", "db": "n2", "idle": "n2"}
        web = guests["web"]
        assert (web.memory, web.vcpus, web.status, web.disk, web.disk_template) == (64, 1, Status.RUNNING, 16, DiskTemplate.EXT)
        assert str(web.storage) == "external/shared"
        assert web.tags == ("gold", "rack:1")
        assert guests["idle"].status == Status.ADMIN_DOWN
        assert (guests["cold"].disk, guests["cold"].disk_template) == (5120, DiskTemplate.PLAIN)

    def test_manager(self):
        cluster = parse_libvirt(RECORDED, SHARED)
        assert cluster.manager == Manager.LIBVIRT
        assert not cluster.rules

    def test_a_folder_is_not_shared_by_its_type(self):
        guests = {guest.name: guest for guest in parse_libvirt(RECORDED).instances}
        assert guests["web"].disk_template == DiskTemplate.PLAIN
        assert "shared" in guests["web"].stays


@pytest.mark.parametrize("kind", ["netfs", "rbd", "iscsi", "iscsi-direct", "gluster"])
def test_pools_elsewhere_are_shared(kind):
    both = {"pools": [pool("vms", kind, source=NFS)]}
    guest = guest_of([domain("web", devices=disk("/images/web.qcow2"))], n1=both, n2=both)
    assert guest.disk_template == DiskTemplate.EXT
    assert guest.storage.kind == PoolKind.EXTERNAL


@pytest.mark.parametrize("kind", ["dir", "fs", "logical", "zfs", "disk", "scsi"])
def test_pools_of_a_node_are_not(kind):
    both = {"pools": [pool("vms", kind)]}
    guest = guest_of([domain("web", devices=disk("/images/web.qcow2"))], n1=both, n2=both)
    assert guest.disk_template == DiskTemplate.PLAIN
    assert guest.storage.kind == PoolKind.INTERNAL


@pytest.mark.parametrize(
    "other",
    [pool("vms", "netfs", source=NFS.replace("nas", "nas2")), pool("vms", "netfs", "/elsewhere", NFS), pool("vms", "dir")],
    ids=["another server", "another path", "a folder"],
)
def test_pools_of_one_name_need_one_source(other):
    pools = {"n1": {"pools": [pool("vms", "netfs", source=NFS)]}, "n2": {"pools": [other]}}
    assert guest_of([domain("web", devices=disk("/images/web.qcow2"))], **pools).disk_template == DiskTemplate.PLAIN


def test_the_deepest_pool_has_a_disk():
    pools = {"pools": [pool("all", path="/images"), pool("nfs", "netfs", "/images/nfs", NFS)]}
    guest = guest_of([domain("web", devices=disk("/images/nfs/web.img"))], n1=pools, n2=pools)
    assert guest.storage.pool == "nfs"


def test_a_volume_by_its_path_or_by_its_pool():
    listed = " one.img   /images/one.img   file   5.50 GiB   196.00 KiB\n two.img   /images/two.img   file   1.00 TiB   0.00 B\n"
    named = "<disk type='volume' device='disk'><source pool='vms' volume='two.img'/><target dev='vdb'/></disk>"
    answers = {"pools": [pool("vms", "netfs", source=NFS)], "volumes": [listed]}
    guest = guest_of([domain("web", devices=disk("/images/one.img") + named, runs=False)], n1=answers, n2=answers)
    assert [disk.size for disk in guest.disks] == [5632, 1024 * 1024]


def test_disks_on_the_network_are_reached_from_everywhere():
    rbd = "<disk type='network' device='disk'><source protocol='rbd' name='vms/web'/><target dev='vda'/></disk>"
    guest = guest_of([domain("web", devices=rbd)])
    assert (guest.disk_template, guest.storage) == (DiskTemplate.EXT, None)


class TestLocalDisks:
    POOLS = {"pools": [pool("vms")]}
    STATISTICS = "Domain: 'web'\n  state.state=1\n  balloon.rss=1000\n  block.count=1\n  block.0.name=vda\n  block.0.capacity=5368709120\n"

    def guest(self, reading, devices=ON_A_NODE, runs=True):
        answers = {**self.POOLS, "domstats": self.STATISTICS if runs else ""}
        return guest_of([domain("web", devices=devices, runs=runs)], reading, n1=answers, n2=self.POOLS)

    def test_they_stay(self):
        assert "source.local_disks" in self.guest(Reading()).stays

    def test_they_are_copied_if_asked_for(self):
        guest = self.guest(Reading(local_disks=True))
        assert (guest.disk_template, guest.disk) == (DiskTemplate.EXT, 5120)
        assert guest.takes_disk_along

    def test_not_of_a_guest_that_is_stopped(self):
        assert "run" in self.guest(Reading(local_disks=True), runs=False).stays

    def test_not_beside_shared_ones(self):
        rbd = "<disk type='network' device='disk'><source protocol='rbd' name='vms/web'/><target dev='vdb'/></disk>"
        assert "shared" in self.guest(Reading(local_disks=True), disk("/images/web.img") + rbd).stays

    def test_not_outside_of_pools(self):
        assert "no storage pool" in self.guest(Reading(local_disks=True), disk("/elsewhere/web.img")).stays


@pytest.mark.parametrize(
    ("devices", "body"),
    [
        ("<hostdev mode='subsystem' type='pci' managed='yes'/>", ""),
        ("<hostdev mode='subsystem' type='usb'/>", ""),
        ("<interface type='hostdev' managed='yes'/>", ""),
        ("<serial type='dev'><source path='/dev/ttyS0'/></serial>", ""),
        ("<filesystem type='mount'><source dir='/srv'/></filesystem>", ""),
        ("<disk type='nvme' device='disk'/>", ""),
        ("<tpm model='tpm-crb'><backend type='passthrough'/></tpm>", ""),
        (disk("/isos/debian.iso", "sda", "type='file' device='cdrom'", "<readonly/>"), ""),
        ("", "<launchSecurity type='sev'/>"),
    ],
)
def test_what_ties_a_guest_to_its_node(devices, body):
    assert tie_of([domain("web", body, devices)]).reason == "devices"


def test_an_empty_drive_ties_nobody():
    assert not cluster_of([domain("web", devices="<disk type='file' device='cdrom'><target dev='sda'/></disk>")]).rules


def test_an_image_in_a_shared_pool_ties_nobody():
    pools = {"pools": [pool("isos", "netfs", "/isos", NFS)]}
    image = disk("/isos/debian.iso", "sda", "type='file' device='cdrom'", "<readonly/>")
    assert not cluster_of([domain("web", devices=image)], n1=pools, n2=pools, n3=pools).rules


def test_snapshots_tie_a_guest():
    uuid = "11111111-7452-4b32-bd5d-5fd4ec6e5ebf"
    rule = tie_of([domain("web", uuid=uuid)], n1={"domains": [domain("web", uuid=uuid)], "snapshots": f"{uuid}\n"})
    assert rule.reason == "snapshots"


HUGE = "<memoryBacking><hugepages>{}</hugepages></memoryBacking>"


@pytest.mark.parametrize(
    ("guest", "nodes", "hardware"),
    [
        (domain("web"), {"n2": {"kvm": False}}, True),
        (domain("web", machine="pc-q35-7.2"), {"n2": {"machines": ("pc-q35-7.1",)}}, True),
        (domain("web", vcpus=1, body="<cputune><vcpupin vcpu='0' cpuset='0-3,7,^2'/></cputune>"), {"n2": {"cpus": 7}}, True),
        (domain("web", devices="<interface type='network'><source network='default'/></interface>"), {"n2": {"networks": "\n"}}, True),
        (domain("web", "<cpu mode='custom'><model>EPYC</model></cpu>"), {"n2": {"models": {"EPYC": False, "qemu64": True}}}, True),
        (domain("web", "<cpu mode='host-passthrough'/>"), {"n2": {"host_model": ("EPYC", {})}}, False),
        (domain("web", "<cpu mode='maximum'/>"), {"n2": {"host_model": ("Skylake-Server", {"avx2": "require"})}}, False),
        (
            domain("web", "<cpu mode='custom'><model>EPYC</model><feature policy='require' name='avx2'/></cpu>"),
            {"n2": {"host_model": ("EPYC", {})}},
            False,
        ),
        (
            domain("web", "<cpu mode='custom'><model>EPYC</model><feature policy='require' name='aes'/></cpu>"),
            {"n2": {"host_model": ("Other", {"aes": "disable"})}},
            False,
        ),
    ],
    ids=["kvm", "machine", "cpuset", "network", "model", "passthrough", "maximum", "flag", "flag of another model"],
)
def test_what_a_node_must_have(guest, nodes, hardware):
    assert allowed_of([guest], **nodes) == (("n1", "n3"), hardware)


@pytest.mark.parametrize(
    "body", ["<cpu mode='host-passthrough'/>", "<cpu mode='custom'><model>EPYC</model><feature policy='require' name='avx2'/></cpu>"]
)
def test_the_flags_of_a_cpu_matter_while_a_guest_runs(body):
    assert not cluster_of([domain("web", body, runs=False)], n2={"host_model": ("EPYC", {})}).rules


def test_without_kvm_a_cpu_is_emulated():
    assert not cluster_of(
        [domain("web", "<cpu mode='custom'><model>EPYC</model></cpu>", kind="qemu")], n2={"models": {"EPYC": False}}
    ).rules


@pytest.mark.parametrize("page", ["", "<page size='2048' unit='KiB'/>", "<page size='2' unit='M'/>", "<page size='1048576' unit='KiB'/>"])
def test_huge_pages(page):
    enough = {"freepages": "Node 0:\n4KiB: 9\n2048KiB: 512\n1048576KiB: 1\n"}
    less = {"freepages": "Node 0:\n4KiB: 999999999\n2048KiB: 511\n1048576KiB: 0\n"}
    assert allowed_of([domain("web", HUGE.format(page))], n1=less, n2=less, n3=enough) == (("n1", "n3"), True)


def test_huge_pages_are_counted_over_all_numa_nodes():
    halves = {"freepages": "Node 0:\n2048KiB: 256\n\nNode 1:\n2048KiB: 256\n"}
    assert not cluster_of([domain("web", HUGE.format(""))], n2=halves, n3=halves).rules


def test_guests_with_huge_pages_take_no_other_memory():
    """The node has 2 GiB in use, 1 GiB of which are the huge pages that its guest has."""
    (first, *_others) = cluster_of([domain("web", HUGE.format(""))]).nodes
    assert first.node_memory == 1024


def test_several_disks_need_all_their_pools():
    both = {"pools": [pool("a", "netfs", "/a", NFS), pool("b", "netfs", "/b", NFS.replace("export", "b"))]}
    one = {"pools": both["pools"][:1]}
    guest = domain("web", devices=disk("/a/web.img") + disk("/b/web.img", "vdb"))
    assert allowed_of([guest], n1=both, n2=one, n3=both) == (("n1", "n3"), True)


class TestTwice:
    """A domain that two nodes have."""

    def cluster(self, first, second):
        return parse_libvirt({"n1": node(domains=[domain("web", runs=first)]), "n2": node(domains=[domain("web", runs=second)])})

    def test_a_definition_takes_nothing(self):
        cluster = self.cluster(False, True)
        assert [(guest.name, guest.primary) for guest in cluster.instances] == [("web", "n2")]
        assert cluster.rules[0].reason == "twice"

    @pytest.mark.parametrize("runs", [True, False])
    def test_both_stay(self, runs):
        cluster = self.cluster(runs, runs)
        assert [(guest.name, guest.primary) for guest in cluster.instances] == [("web", "n1"), ("web.n2", "n2")]
        assert [rule.kind for rule in cluster.rules] == [RuleKind.IGNORE] * 2


class TestMemory:
    def test_what_others_use_is_the_nodes_own(self):
        """2 GiB are in use, half a GiB of them by a guest that may have 1 GiB."""
        statistics = f"Domain: 'web'\n  state.state=1\n  balloon.current={GIB}\n  balloon.rss={GIB // 2}\n"
        cluster = cluster_of([domain("web")], n1={"domains": [domain("web")], "domstats": statistics})
        assert cluster.nodes[0].node_memory == 1536
        assert cluster.nodes[0].free_memory == 30 * 1024

    def test_a_node_that_does_not_count_it(self):
        cluster = cluster_of([domain("web")], n1={"domains": [domain("web")], "nodememstats": ""})
        assert (cluster.nodes[0].node_memory, cluster.nodes[0].free_memory) == (0, 31 * 1024)

    @pytest.mark.parametrize(("state", "runs"), [("1", True), ("3", True), ("7", True), ("5", False), ("6", False)])
    def test_states(self, state, runs):
        guest = guest_of([], n1={"domains": [domain("web")], "domstats": f"Domain: 'web'\n  state.state={state}\n"})
        assert guest.uses_memory == runs

    def test_cpus_that_are_plugged_in(self):
        xml = domain("web").replace("<vcpu placement='static'>1", "<vcpu placement='static' current='2'>4")
        assert guest_of([xml]).vcpus == 2


@pytest.mark.parametrize(
    ("answers", "place"),
    [
        ({"capabilities": "<capabilities>"}, "n1.capabilities"),
        ({"domcapabilities": "<domain/>"}, "n1.domcapabilities"),
        ({"domains": ["<domain><name>web</name></domain>"]}, "n1.domains[0]"),
        ({"domains": ["{}"]}, "n1.domains[0]"),
        ({"pools": ["<pool><name>"]}, "n1.pools[0]"),
        ({"nodeinfo": "Memory size: 5 KiB"}, "n1.nodeinfo"),
        ({"domains": [domain("-rf")]}, "n1.domains[0].name"),
        ({"domains": [domain("$(reboot)")]}, "n1.domains[0].name"),
        ({"pools": [pool("a b")]}, "source.uris.n1.storage[0].pool"),
    ],
)
def test_what_is_wrong_is_named(answers, place):
    with pytest.raises(InputError) as caught:
        parse_libvirt({"n1": node(**answers), "n2": node()})
    assert place in [mistake.place for mistake in caught.value.mistakes]


@pytest.mark.parametrize("uris", [{}, None, [], {"-n": "x"}, {"n": ""}, {"n": ["x"]}, {"a b": "x"}, {"n": "  "}])
def test_uris(uris):
    with pytest.raises(InputError):
        read_uris(uris)


@pytest.mark.parametrize("more", [{"path": "x"}, {"url": "https://x"}, {"database": "x"}, {"uris": None, "local_disks": True}])
def test_options_that_do_not_go_with_it(more):
    with pytest.raises(InputError):
        check_source({"type": "libvirt", "uris": {"n": "qemu:///system"}} | more)


HOSTILE = {
    "blanks": " " * 300_000,
    "columns": "a  " * 100_000 + "1.00 GiB",
    "colons": "a : " * 100_000,
    "digits": "1" * 300_000,
    "lines": "a  b\n" * 60_000,
}


@pytest.mark.parametrize("answer", ["nodeinfo", "nodememstats", "freepages", "networks", "snapshots", "domstats", "volumes"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_lying_host_costs_no_more_than_reading_its_answer(answer, text):
    """Lines of any length are read in proportion to their length; a pattern that tries every way to divide them takes hours."""
    own = {"volumes": [text], "pools": [pool("vms")]} if answer == "volumes" else {answer: node()[answer] + text}
    started = time.process_time()
    cluster = cluster_of([domain(f"g{number}") for number in range(50)], n2=node(domains=[], **own))
    assert len(cluster.instances) == 50
    assert time.process_time() - started < 20


def test_the_path_of_a_volume_may_have_blanks():
    listed = " a b.img   /images/a  b.img   file   1.00 GiB   0.00 B\n odd\n c   /images/c   file   2.5 MiB  \n"
    pools = [Pool("vms", "dir", False, (), 0, 0, "/images")]
    assert read_volumes([listed], pools) == {"/images/a  b.img": Volume("vms", 2**30)}
