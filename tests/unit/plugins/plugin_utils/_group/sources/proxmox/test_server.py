# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proxmox VE asked by its API, which a stand-in answers that refuses what the published API refuses."""

from __future__ import annotations

import http.server
import pathlib
import re
import threading
import time

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, NodeState, RuleKind
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline, write_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.load import load_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate

from tests.support.group.proxmox.api import CALLS, Refused, find_call, verify
from tests.support.group.proxmox.cluster import Cluster, small_cluster
from tests.support.group.proxmox.model import AUDITOR, Guest, Machine
from tests.support.group.proxmox.server import serving

ROOT = pathlib.Path(__file__).resolve().parents[7]
TOKEN = {"token_id": "auditor@pve!bareon", "token_secret": "s3cret"}


def read(cluster, **options):
    with serving(cluster) as (url, ca_path):
        source = {"type": "proxmox", "url": url, "ca_path": ca_path, **TOKEN, **options}
        return load_cluster({"source": source}, str).cluster


def test_a_token_that_may_only_read_is_enough():
    standin = small_cluster()
    cluster = read(standin)
    assert [node.name for node in cluster.nodes] == ["pve1", "pve2", "pve3"]
    assert [guest.name for guest in cluster.instances] == [*(f"{100 + n}-web{n}" for n in range(6)), "200-dns"]
    assert {method for method, _path in standin.calls} == {"GET"}


def test_every_call_of_the_source_is_published():
    standin = small_cluster()
    read(standin, load={"mode": "used", "window": "day"})
    standin.version = "8.4"
    read(standin)
    published = {(call["method"], call["path"]) for call in CALLS}
    assert set(standin.calls) <= published
    assert {path for _method, path in standin.calls} >= {"/cluster/ha/rules", "/cluster/ha/groups", "/nodes/{node}/lxc/{vmid}/rrddata"}


def test_user_and_password():
    assert len(read(small_cluster(), token_id=None, token_secret=None, username="auditor@pve", password="word").nodes) == 3


WORD = {"token_id": None, "token_secret": None, "username": "auditor@pve", "password": "word"}


@pytest.mark.parametrize(
    ("credentials", "path"),
    [(TOKEN, "/access/permissions"), (WORD, "/access/ticket"), (WORD, "/access/permissions")],
    ids=["token", "password", "ticket"],
)
def test_credentials_follow_no_redirect(credentials, path):
    asked = []

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, dict(self.headers), self.rfile.read(int(self.headers.get("Content-Length") or 0))))
            self.send_error(404)

        do_POST = do_GET

        def log_message(self, *_arguments):
            """Keep quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        there = f"http://127.0.0.1:{elsewhere.server_port}"
        with serving(small_cluster(), there, path) as (url, ca_path), pytest.raises(Unavailable) as caught:
            load_cluster({"source": {"type": "proxmox", "url": url, "ca_path": ca_path, **credentials}}, str)
        elsewhere.shutdown()
    assert asked == []
    assert f"redirects {path} elsewhere; redirects are not followed" in str(caught.value)


def test_the_environment_may_say_where_and_as_whom(monkeypatch):
    with serving(small_cluster()) as (url, ca_path):
        for name, value in {"URL": url, "CA_PATH": ca_path, "TOKEN_ID": TOKEN["token_id"], "TOKEN_SECRET": TOKEN["token_secret"]}.items():
            monkeypatch.setenv(f"PROXMOX_{name}", value)
        assert len(load_cluster({"source": {"type": "proxmox"}}, str).cluster.nodes) == 3


def test_a_token_may_be_named_beside_its_user():
    assert len(read(small_cluster(), token_id="bareon", username="auditor@pve").nodes) == 3


def refused(cluster, **options):
    with pytest.raises(Unavailable) as caught:
        read(cluster, **options)
    assert "s3cret" not in str(caught.value)
    return str(caught.value)


def test_a_wrong_secret_is_told_without_it():
    assert "rejects this user or token (401" in refused(small_cluster(), token_secret="wrong")
    assert "rejects this user" in refused(small_cluster(), token_id="", token_secret="", username="auditor@pve", password="no")


@pytest.mark.parametrize("right", ["VM.Audit", "Sys.Audit", "Datastore.Audit"])
def test_half_a_cluster_is_not_planned(right):
    standin = small_cluster()
    standin.tokens["auditor@pve!bareon"] = ("s3cret", {"/": AUDITOR - {right}})
    said = refused(standin)
    assert f"lacks {right} on /" in said
    assert "PVEAuditor" in said


@pytest.mark.parametrize(("path", "right"), [("/vms/101", "VM.Audit"), ("/nodes/pve2", "Sys.Audit"), ("/storage/ceph", "Datastore.Audit")])
def test_a_single_path_that_may_not_be_seen_is_named(path, right):
    standin = small_cluster()
    standin.tokens["auditor@pve!bareon"] = ("s3cret", {"/": AUDITOR, path: {"Pool.Audit"}})
    assert f"lacks {right} on {path};" in refused(standin)


def test_a_right_that_does_not_hold_below_its_path_is_not_enough():
    standin = small_cluster()
    standin._permissions = lambda *_asked: {"/": dict.fromkeys(sorted(AUDITOR), 0)}
    assert "lacks VM.Audit on /, Sys.Audit on /, Datastore.Audit on /;" in refused(standin)


def test_a_path_that_is_forbidden_after_all_is_named():
    def forbid(*_asked):
        raise Refused(403, "Permission check failed (/vms/100, VM.Audit)")

    standin = small_cluster()
    standin._qemu_config = forbid
    assert "answers 403" in refused(standin)
    assert "/qemu/100/config" in refused(standin)


def test_a_cluster_without_guests():
    cluster = read(Cluster({"pve1": Machine(), "pve2": Machine()}, []))
    assert (len(cluster.nodes), cluster.instances, cluster.rules) == (2, (), ())


def test_what_a_guest_may_have_is_read_without_a_word_too_much():
    """Pools and tags become tags; templates are left out; names may be alike; containers may be unprivileged."""
    shared = {"unprivileged": 1, "rootfs": "ceph:vm-103-disk-0,size=8G", "mp0": "/mnt,mp=/x,shared=1"}
    guests = [
        Guest(100, "pve1", "size", pool="web", tags="a;b"),
        Guest(101, "pve1", "size", config={}),
        Guest(102, "pve1", "template", template=True),
        Guest(103, "pve2", "ct", kind="lxc", config=shared),
        Guest(104, "pve2", "bound", kind="lxc", config={"rootfs": "ceph:vm-104-disk-0,size=8G", "mp0": "/mnt,mp=/x"}),
        Guest(105, "pve1", "clone", config={"scsi0": "ceph:base-102-disk-0/vm-105-disk-0,size=8G"}),
        Guest(106, "pve1", "asleep", status="stopped", lock="suspended"),
    ]
    cluster = read(Cluster({"pve1": Machine(), "pve2": Machine()}, guests))
    assert [guest.name for guest in cluster.instances] == ["100-size", "101-size", "103-ct", "104-bound", "105-clone", "106-asleep"]
    assert cluster.instances[0].tags == ("a", "b", "pool:web")
    assert {guest.disk_template for guest in cluster.instances} == {DiskTemplate.EXT}
    assert [rule.name for rule in cluster.rules] == ["104-bound: mp0 is /mnt", "106-asleep: is locked (suspended)"]


def test_a_certificate_that_nobody_signed_is_refused():
    said = refused(small_cluster(), ca_path=None)
    assert "cannot be trusted" in said
    assert "/etc/pve/pve-root-ca.pem" in said
    assert len(read(small_cluster(), ca_path=None, validate_certs=False).nodes) == 3


def test_nobody_there():
    with pytest.raises(Unavailable, match="cannot ask https://127.0.0.1:1"):
        load_cluster({"source": {"type": "proxmox", "url": "https://127.0.0.1:1", **TOKEN}}, str)


@pytest.mark.parametrize("url", ["http://pve1:8006", "pve1", "https://root:word@pve1:8006", ""])
def test_an_address_that_is_none(url):
    with pytest.raises(InputError, match="source.url: must be like https://") as caught:
        load_cluster({"source": {"type": "proxmox", "url": url, **TOKEN}}, str)
    assert "word" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"token_id": "a@pve!b"}, "needs both token_id and token_secret"),
        ({"token_id": "b", "token_secret": "c"}, "must be like user@realm!name"),
        ({"username": "a@pve"}, "or username and password"),
    ],
)
def test_who_asks_must_be_whole(options, says):
    with pytest.raises(InputError, match=re.escape(says)):
        load_cluster({"source": {"type": "proxmox", "url": "https://pve1:8006", **options}}, str)


def test_a_node_that_is_away_is_unreachable():
    standin = small_cluster()
    standin.machines["pve1"].away = True
    cluster = read(standin)
    assert [node.state for node in cluster.nodes] == [NodeState.UNREACHABLE, NodeState.UP, NodeState.UP]
    assert {str(guest.status) for guest in cluster.instances if guest.primary == "pve1"} == {"ERROR_nodeoffline"}


def test_what_guests_have_used():
    standin = Cluster({"pve1": Machine()}, [Guest(100, "pve1", cores=4, cpu=0.5, used=3.0, pressure=7.0)])
    load = read(standin, load={"mode": "used", "window": "hour"}).instances[0].load
    assert (load.cpu, load.memory, round(load.net * 2**20)) == (pytest.approx(2.0), pytest.approx(3.0), 200)
    assert read(standin, load={"mode": "pressure", "window": "hour"}).instances[0].load.cpu == pytest.approx(7.0)
    assert read(standin, load={"mode": "assigned", "window": "hour"}).instances[0].load.memory == 4.0


def test_rules_of_the_server():
    standin = small_cluster()
    standin.guests[100].ha = standin.guests[101].ha = "started"
    standin.rules = [{"rule": "apart", "type": "resource-affinity", "affinity": "negative", "resources": "vm:100,vm:101"}]
    standin.guests[102].lock = "backup"
    standin.machines["pve3"].maintenance = True
    cluster = read(standin)
    assert [(rule.kind, rule.instances) for rule in cluster.rules] == [
        (RuleKind.ANTI_AFFINITY, ("100-web0", "101-web1")),
        (RuleKind.IGNORE, ("102-web2",)),
    ]
    assert cluster.nodes[2].state == NodeState.DRAINED


def test_the_stand_in_refuses_what_the_published_api_refuses():
    call, names = find_call("POST", "/nodes/pve1/qemu/100/migrate")
    with pytest.raises(Refused) as caught:
        verify(call, {**names, "online": "maybe", "speed": "1"})
    assert sorted(caught.value.errors) == ["online", "speed", "target"]
    with pytest.raises(Refused, match="501"):
        find_call("GET", "/nodes/pve1/qemu/100/feelings")


def test_every_path_that_the_code_names_is_published():
    """Whatever looks like a path of the API in the source and the role is one, with its names filled in."""
    known = [re.sub(r"\{\w+\}", "[^/]+", call["path"]) for call in CALLS]
    code = [ROOT / "plugins/plugin_utils/_group/sources/proxmox/server.py", *(ROOT / "roles/group_moves").rglob("proxmox*.yml")]
    named = {
        path for file in code for path in re.findall(r"""["'](?:f")?(/(?:cluster|access|version|nodes)[\w/-]*)["']""", file.read_text())
    }
    assert len(named) > 5
    others = [path for path in sorted(named) if not any(re.fullmatch(known_path, path) for known_path in known)]
    assert others == ["/cluster/ha/resources/", "/nodes/"], "what names are put behind"


def test_an_answer_that_drips_is_not_waited_for():
    cluster = small_cluster()
    held = threading.Event()
    cluster._version = lambda *_asked: held.wait(20) and {}
    begun = time.monotonic()
    try:
        with pytest.raises(Unavailable, match="no complete answer after 1 s"):
            read(cluster, timeout=1.0)
    finally:
        held.set()
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("inf"), float("nan")])
def test_a_timeout_is_more_than_nothing(timeout):
    with pytest.raises(InputError, match="source.timeout"):
        read(small_cluster(), timeout=timeout)


DISK = {"scsi0": "ceph:vm-100-disk-0,size=10G"}


def allowed(guest, **options):
    """Return the nodes that the first guest of three nodes may be on by its pins, and whether it stays where it is."""
    machines = {f"pve{number}": Machine(**options.pop(f"pve{number}", {})) for number in (1, 2, 3)}
    cluster = read(Cluster(machines, [guest], **options))
    pins = [rule for rule in cluster.rules if rule.kind == RuleKind.PIN]
    nodes = set(machines).intersection(*(rule.nodes for rule in pins)) if pins else set(machines)
    return nodes, {rule.hardware for rule in pins}, bool([rule for rule in cluster.rules if rule.kind == RuleKind.IGNORE])


OLD = {"machines": ("8.2", "9.0")}


@pytest.mark.parametrize(
    ("config", "status", "nodes", "hardware"),
    [
        ({"machine": "pc-q35-10.1"}, "stopped", {"pve1", "pve3"}, {True}),
        ({"machine": "pc-q35-10.1+pve0,viommu=intel"}, "running", {"pve1", "pve3"}, {True}),
        ({"machine": "q35"}, "running", {"pve1", "pve3"}, {False}),
        ({"machine": "q35"}, "stopped", {"pve1", "pve2", "pve3"}, set()),
        ({}, "running", {"pve1", "pve3"}, {False}),
    ],
)
def test_a_machine_does_not_go_to_an_older_qemu(config, status, nodes, hardware):
    guest = Guest(100, "pve1", status=status, config={**DISK, **config})
    assert allowed(guest, pve2=OLD) == (nodes, hardware, False)


def test_large_pages_need_a_cpu_that_has_them():
    guest = Guest(100, "pve1", config={**DISK, "hugepages": "1024"})
    large = {"flags": "fpu sse2 avx2 avx512f pdpe1gb"}
    assert allowed(guest, pve1=large, pve3=large) == ({"pve1", "pve3"}, {True}, False)
    assert allowed(Guest(100, "pve1", config={**DISK, "hugepages": "2"}), pve1=large) == ({"pve1", "pve2", "pve3"}, set(), False)


@pytest.mark.parametrize(
    ("status", "live", "stays"), [("stopped", 0, False), ("running", 0, True), ("running", 1, False)], ids=["stopped", "runs", "live"]
)
def test_mapped_devices_are_where_their_nodes_are(status, live, stays):
    mapping = {"id": "gpu", "map": ["node=pve1,path=0000:01:00.0,id=10de:1eb8", "node=pve3,path=0000:81:00.0,id=10de:1eb8"]}
    mappings = {"pci": [mapping | {"live-migration-capable": live}], "usb": []}
    guest = Guest(100, "pve1", status=status, config={**DISK, "hostpci0": "mapping=gpu,pcie=1"})
    assert allowed(guest, mappings=mappings) == ({"pve1", "pve3"}, {True}, stays)


def test_a_replica_is_the_cheap_target():
    guest = Guest(100, "pve1", config={"scsi0": "local-lvm:vm-100-disk-0,size=100G"}, replicas=["pve3"])
    assert allowed(guest)[0] == {"pve1", "pve3"}
    cluster = read(Cluster({f"pve{number}": Machine() for number in (1, 2, 3)}, [guest]), local_disks=True)
    plan = run_evacuate(Loaded(cluster, {}), {"nodes": ["pve1"]})["plan"]
    assert [(move["to"], move["data"]) for move in plan["moves"]] == [(["pve3"], 0)]


def test_ha_balances_only_what_it_is_told_to():
    machines = {f"pve{number}": Machine() for number in (1, 2)}
    guests = [Guest(100, "pve1", ha="started"), Guest(101, "pve1", ha="started", rebalanced=False), Guest(102, "pve1")]
    told = read(Cluster(machines, guests, options={"crs": {"ha": "static", "ha-auto-rebalance": 1}}))
    assert [(rule.instances, rule.reason) for rule in told.rules] == [(("100",), "ha")]


def test_what_ha_ignores_is_ours_and_not_asked_of_ha():
    """HA refuses to migrate a resource in the state `ignored`, and does not balance it."""
    machines = {f"pve{number}": Machine() for number in (1, 2)}
    guests = [Guest(100, "pve1", ha="ignored"), Guest(101, "pve1", ha="started")]
    told = read(Cluster(machines, guests, options={"crs": {"ha": "static", "ha-auto-rebalance": 1}}))
    assert [(rule.instances, rule.reason) for rule in told.rules] == [(("101",), "ha")]
    assert [instance.under_ha for instance in told.instances] == [False, True]
    plan = run_evacuate(Loaded(told, {}), {"nodes": ["pve1"]})["plan"]
    assert plan["commands"] == ["qm migrate 100 pve2 --online"]


def test_a_cluster_without_quorum_is_refused():
    with pytest.raises(InputError, match="no quorum"):
        read(small_cluster(quorate=False))


LOCAL = {"scsi0": "local-lvm:vm-100-disk-0,size=10G"}


@pytest.mark.parametrize(
    ("guest", "kind", "command"),
    [
        (Guest(100, "pve1"), "migrate", "qm migrate 100 pve2 --online"),
        (Guest(100, "pve1", "web", status="stopped"), "migrate", "qm migrate 100 pve2"),
        (Guest(100, "pve1", config=LOCAL), "migrate", "qm migrate 100 pve2 --online --with-local-disks"),
        (Guest(100, "pve1", kind="lxc", config={"rootfs": "ceph:vm-100-disk-0,size=8G"}), "restart", "pct migrate 100 pve2 --restart"),
        (Guest(100, "pve1", ha="started"), "migrate", "ha-manager migrate vm:100 pve2"),
    ],
)
def test_moves_are_told_in_words_of_proxmox(guest, kind, command):
    cluster = read(Cluster({"pve1": Machine(), "pve2": Machine()}, [guest]), local_disks=True)
    (move,) = run_evacuate(Loaded(parse_inline(write_inline(cluster)), {}), {"nodes": ["pve1"]})["plan"]["moves"]
    assert (move["kind"], move["commands"], [step["command"] for step in move["steps"]]) == (kind, [command], [command])
