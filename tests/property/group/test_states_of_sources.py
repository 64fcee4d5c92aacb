# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every source that tells states of nodes, read by its own door, and every action: one small cluster with a node of each state.

What a source cannot say is left out: Proxmox VE and libvirt mark no node offline, and libvirt drains none.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import typing as t
from datetime import datetime, timezone

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.record import Record
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.rapi import RESOURCES
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.follow import run_follow
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.left_out import with_notes
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.maintenance import run_maintenance, run_squeeze
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.group.answers import found_in
from ansible_collections.bareon.allocator.tests.support.group.libvirt import NFS, disk, domain, install_virsh, node, pool
from ansible_collections.bareon.allocator.tests.support.group.proxmox.cluster import Cluster as ProxmoxCluster
from ansible_collections.bareon.allocator.tests.support.group.proxmox.model import Guest, Machine
from ansible_collections.bareon.allocator.tests.support.group.proxmox.server import serving as serving_proxmox
from ansible_collections.bareon.allocator.tests.support.group.replay_server import RECORDED, serving

NODES = {"silent": "unreachable", "up1": "up", "dead": "offline", "up2": "up", "leaving": "drained"}
"""The states by name."""
MEMORY, DISK = 2048, 10_240


class One(t.NamedTuple):
    """An instance: one of each node on shared storage, and one mirrored on the next node, where the source has mirrors."""

    name: str
    primary: str
    secondary: str = ""


def instances(states: t.Mapping[str, str], *, mirrored: bool) -> list[One]:
    names = list(states)
    following = dict(zip(names, [*names[1:], names[0]]))
    return [One(f"{name}{number}", name, following[name] if mirrored and number else "") for name in names for number in range(2)]


def rapi_documents(states: t.Mapping[str, str]) -> dict[str, t.Any]:
    """Return the recorded documents with nodes and instances of ours."""
    documents = copy.deepcopy(RECORDED)
    live, dead = documents["nodes"][0] | {"mfree": 60_000}, documents["nodes"][2]
    of_state = {
        "up": live,
        "drained": live | {"drained": True},
        "offline": dead,
        "unreachable": dead | {"offline": False},
    }
    documents["nodes"] = [of_state[state] | {"name": name} for name, state in states.items()]
    documents["groups"] = documents["groups"][:1]
    model = documents["instances"][0] | {"oper_ram": MEMORY, "disk_usage": DISK, "disk.sizes": [DISK], "tags": []}
    statuses = {"unreachable": "ERROR_nodedown", "offline": "ERROR_nodeoffline"}
    documents["instances"] = [
        model
        | {"name": one.name, "pnode": one.primary, "snodes": [one.secondary] if one.secondary else []}
        | {"disk_template": "drbd" if one.secondary else "ext", "status": statuses.get(states[one.primary], "running")}
        for one in instances(states, mirrored=True)
    ]
    return documents


@contextlib.contextmanager
def rapi(_folder, _monkeypatch):
    documents = rapi_documents(NODES)
    answers = {path: (200, json.dumps(documents[name]), 0) for name, path in RESOURCES.items()}
    with serving(answers) as url:
        yield {"source": {"type": "ganeti_rapi", "url": url}}


@contextlib.contextmanager
def recorded(folder, _monkeypatch):
    """RAPI's documents in files, as htools' `file://` takes them."""
    for name, document in rapi_documents(NODES).items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    yield {"source": {"type": "ganeti_rapi", "path": str(folder)}}


@contextlib.contextmanager
def text(folder, _monkeypatch):
    """What `hbal -L -S` writes of a cluster that it reads by LUXI; a drained node in our column, which it does not have."""
    numbers = {
        "up": "65536|1024|60000|2097152|2000000|16|N|u0|1||N|0|1|1.0",
        "drained": "65536|1024|60000|2097152|2000000|16|Y|u0|1||N|0|1|1.0|drained",
        "offline": "0|0|0|0|0|0|Y|u0|1||N|0|0|1.0",
        "unreachable": "?|?|?|0|0|0|N|u0|1||N|0|0|1.0",
    }
    statuses = {"unreachable": "ERROR_nodedown", "offline": "ERROR_nodeoffline"}
    lines = ["default|u0|preferred||", "", *(f"{name}|{numbers[state]}" for name, state in NODES.items()), ""]
    for one in instances(NODES, mirrored=True):
        status, template = statuses.get(NODES[one.primary], "running"), "drbd" if one.secondary else "ext"
        lines.append(f"{one.name}|{MEMORY}|{DISK}|2|{status}|Y|{one.primary}|{one.secondary}|{template}||1|-|N")
    (folder / "cluster.data").write_text("\n".join([*lines, "", ""]))
    yield {"source": {"type": "ganeti_text", "path": str(folder / "cluster.data")}}


@contextlib.contextmanager
def iallocator(folder, _monkeypatch):
    live = {"total_memory": 65536, "reserved_memory": 1024, "free_memory": 60000, "total_disk": 2097152, "free_disk": 2000000}
    live |= {"total_cpus": 16, "reserved_cpus": 1, "total_spindles": 1, "free_spindles": 0}
    silent = {"offline": False, "drained": False, "group": "u0"}
    of_state = {
        "up": silent | live,
        "drained": silent | live | {"drained": True},
        "offline": silent | {"offline": True},
        "unreachable": silent,
    }
    message = {
        "version": 2,
        "nodegroups": {"u0": {"name": "default", "alloc_policy": "preferred", "networks": [], "tags": []}},
        "enabled_hypervisors": ["xen-pvm"],
        "nodes": {name: of_state[state] for name, state in NODES.items()},
        "instances": {
            one.name: {"memory": MEMORY, "disk_space_total": DISK, "vcpus": 2, "disks": [{"size": DISK}]}
            | {"disk_template": "drbd" if one.secondary else "ext", "nodes": [*filter(None, (one.primary, one.secondary))]}
            for one in instances(NODES, mirrored=True)
        },
        "request": {},
    }
    (folder / "message.json").write_text(json.dumps(message))
    yield {"source": {"type": "iallocator", "path": str(folder / "message.json")}}


def without(*states: str) -> dict[str, str]:
    return {name: state for name, state in NODES.items() if state not in states}


def machines(states: t.Mapping[str, str], **silent: bool) -> ProxmoxCluster:
    of_state = {"up": {}, "drained": {"maintenance": True}, "unreachable": silent}
    guests = [Guest(100 + number, one.primary, one.name, memory=2) for number, one in enumerate(instances(states, mirrored=False))]
    return ProxmoxCluster({name: Machine(**of_state[state]) for name, state in states.items()}, guests)


@contextlib.contextmanager
def proxmox(_folder, _monkeypatch, **silent: bool):
    with serving_proxmox(machines(without("offline"), **silent)) as (url, ca_path):
        access = {"token_id": "auditor@pve!bareon", "token_secret": "s3cret"}
        yield {"source": {"type": "proxmox", "url": url, "ca_path": ca_path, **access}}


@contextlib.contextmanager
def libvirt(folder, monkeypatch):
    states = without("offline", "drained")
    guests = instances(states, mirrored=False)
    install_virsh(folder)
    monkeypatch.setenv("PATH", str(folder))
    identity = "82aa395b-d9be-4335-8dab-479c871bae23"
    for name in (name for name, state in states.items() if state == "up"):
        own = {f"{name[-1] * 8}-7452-4b32-bd5d-{number:012}": one.name for number, one in enumerate(guests) if one.primary == name}
        usual = node()
        (folder / name).write_text(
            json.dumps(
                {
                    "nodeinfo": usual["nodeinfo"],
                    "nodememstats": usual["nodememstats"],
                    "freepages --all": usual["freepages"],
                    "capabilities": usual["capabilities"],
                    "domcapabilities": usual["domcapabilities"],
                    "net-list --name": "default\n",
                    "list --all --with-snapshot --uuid": "",
                    "domstats --state --balloon --block": "".join(f"Domain: '{name}'\n  state.state=1\n" for name in own.values()),
                    "list --all --uuid": "\n".join(own),
                    "pool-list --uuid": identity,
                    f"pool-dumpxml {identity}": pool("vms", kind="netfs", source=NFS),
                    f"vol-list {identity} --details": "".join(f" {one} /images/{one} file 1.00 GiB 1.00 GiB\n" for one in own.values()),
                }
                | {f"dumpxml {uuid}": domain(one, devices=disk(f"/images/{one}"), uuid=uuid) for uuid, one in own.items()}
            )
        )
    yield {"source": {"type": "libvirt", "uris": {name: f"test:///{name}" for name in states}}}


@contextlib.contextmanager
def inline(_folder, _monkeypatch):
    usual = {"total_memory": 65536, "total_disk": 2097152, "total_cpus": 16}
    yield {
        "cluster": {
            "nodes": [{"name": name, "state": state, **usual} for name, state in NODES.items()],
            "instances": [
                {"name": one.name, "memory": MEMORY, "disk": DISK, "vcpus": 2, "primary": one.primary}
                | ({"secondary": one.secondary, "disk_template": "drbd"} if one.secondary else {"disk_template": "ext"})
                for one in instances(NODES, mirrored=True)
            ],
        }
    }


SOURCES: dict[str, t.Any] = {
    "inline": inline,
    "rapi": rapi,
    "rapi's documents": recorded,
    "text": text,
    "iallocator": iallocator,
    "proxmox, off": functools.partial(proxmox, online=False),
    "proxmox, away": functools.partial(proxmox, away=True),
    "libvirt": libvirt,
}
TELLS = {"proxmox, off": without("offline"), "proxmox, away": without("offline"), "libvirt": without("offline", "drained")}
"""The nodes of a source that has not all of NODES."""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Return what reads a cluster from a source."""

    def from_source(name: str):
        with SOURCES[name](tmp_path, monkeypatch) as arguments:
            return load_any_cluster(arguments, str)

    return from_source


NEW = {"memory": 1024, "disk": 2048, "vcpus": 1}


def new(template: str, **more: t.Any) -> dict[str, t.Any]:
    return {"instances": [{**NEW, "name": f"new{number}", "disk_template": template} for number in range(3)], **more}


def noted(loaded: Loaded, answer: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return an answer with the notes that its door adds."""
    return with_notes(loaded.cluster, answer | {"summary": ""})


ACTIONS: dict[str, t.Callable[..., t.Any]] = {
    "info": lambda loaded: report(loaded.cluster, ScoreMode.HTOOLS),
    "place": lambda loaded: noted(loaded, place(loaded, new("ext"))),
    "place mirrored": lambda loaded: noted(loaded, place(loaded, new("drbd"))),
    "make room": lambda loaded: noted(loaded, place(loaded, new("ext", make_room=True))),
    "balance": lambda loaded: run_balance(loaded, {"workers": 1}, solve_each),
    "evacuate": lambda loaded: noted(loaded, run_evacuate(loaded, {})),
    "evacuate all": lambda loaded: noted(
        loaded, run_evacuate(loaded, {"nodes": [node.name for node in loaded.cluster.nodes if not node.name.startswith("up")]})
    ),
    "maintenance": lambda loaded: run_maintenance(loaded, {}),
    "maintenance of all": lambda loaded: run_maintenance(loaded, {"nodes": [node.name for node in loaded.cluster.nodes]}),
    "redistribute": lambda loaded: run_redistribute(loaded, {}),
    "compress": lambda loaded: run_compress(loaded, {}),
    "squeeze": lambda loaded: run_squeeze(loaded, {}),
    "capacity": lambda loaded: run_capacity(loaded, {"spec": {**NEW, "disk_template": "ext"}}),
    "follow": lambda loaded: (
        run_follow(loaded, {"urgent_polls": 1}, Record(), datetime(2026, 3, 2, tzinfo=timezone.utc), solve_each).answer
    ),
}
EMPTIES = {"balance", "evacuate", "evacuate all", "redistribute", "follow"}
"""Actions after which nothing that can leave is left on a node that is drained or marked offline."""


@pytest.mark.parametrize("source", SOURCES)
def test_states_are_read(read, source):
    cluster = read(source).cluster
    states = TELLS.get(source, NODES)
    assert {node.name: str(node.state) for node in cluster.nodes} == states
    # What is on a node of libvirt that does not answer is not known.
    known = [name for name in states if name != "silent" or source != "libvirt"]
    assert sorted(one.primary for one in cluster.instances) == sorted([*known, *known])


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("source", SOURCES)
def test_states_are_kept(read, source, action):
    loaded = read(source)
    states = {node.name: str(node.state) for node in loaded.cluster.nodes}
    answer = ACTIONS[action](loaded)
    # Who is brought back after maintenance comes to nodes that were drained for it.
    takes = {"up", "drained"} if action == "maintenance of all" else {"up"}
    for step in found_in(answer, "kind", "from", "to", "online"):
        assert "silent" not in {*step["from"], *step["to"]}, step
        assert {states[name] for name in set(step["to"]) - set(step["from"])} <= takes, step
        assert step["online"] == (states[step["from"][0]] != "offline"), step
        assert "--ignore-consistency" not in step["command"] or not step["online"], step
    for one in found_in(answer, "group", "nodes", "score"):
        assert {states[name] for name in one["nodes"]} <= {"up"}, one
    if action == "info":
        assert [problem["node"] for problem in answer["problems"] if problem["kind"] == "unreachable"] == ["silent"]
        return
    assert [note for note in answer["notes"] if note.startswith("silent ")], "it is named"
    assert any(line.startswith("silent ") for line in answer["summary"].splitlines())
    if action in EMPTIES:
        places = {one.name: [name for name in (one.primary, one.secondary) if name] for one in loaded.cluster.instances}
        for move in [move for plan in found_in(answer, "moves", "stages") for move in plan["moves"]]:
            places[move["instance"]] = move["to"]
        held = {one.name for one in loaded.cluster.instances if "silent" in (one.primary, one.secondary)}
        assert {name for name, nodes in places.items() if states[nodes[0]] != "up"} <= held
        assert len(held) < len(places)
