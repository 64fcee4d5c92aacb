# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ganeti's hail and we choose the same places, and we find those that it misses; `make peers-ganeti` installs it and runs this.

Without it every test here fails: that nothing was compared must not look like agreement.
"""

from __future__ import annotations

import collections
import json
import pathlib
import re
import shutil
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.iallocator import parse_iallocator
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.iallocator import answer
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

PRINTED = 1e-8
HAIL = "/usr/lib/ganeti/iallocators/hail"
CLUSTERS = {
    "drbd": {"nodes": 40, "n1ok": True},
    "drbd, alike": {"nodes": 40, "n1ok": True, "homog": True, "memscale": 1.4},
    "drbd, 3 groups": {"nodes": 60, "groups": 3, "n1ok": True, "seed": 2},
    "plain": {"nodes": 40, "template": "plain", "n1ok": True},
    "shared": {"nodes": 20, "template": "ext", "n1ok": True, "seed": 4},
    "100 nodes": {"nodes": 100, "groups": 5, "n1ok": True, "seed": 3},
    "400 nodes": {"nodes": 400, "n1ok": True, "seed": 5},
}
UNCHECKED = {
    "mixed, tags": {"nodes": 40, "template": "mixed", "extags": True, "loctags": True},
    "mixed, tags, 3 groups": {"nodes": 60, "groups": 3, "template": "mixed", "extags": True, "loctags": True, "n1ok": True, "seed": 8},
    "offline, 2 groups": {"nodes": 40, "groups": 2, "offline": 3, "n1ok": True, "seed": 2},
}
"""Clusters with Difference.REFUSALS, so that hail is called with --no-capacity-checks."""
PATIENCE = 10.0
"""Seconds that hail is given where it would take minutes."""
SIZES = ((2048, 20480, 2), (8192, 102400, 4))


@pytest.fixture(scope="module", autouse=True)
def program():
    assert shutil.which(HAIL), f"{HAIL} is not installed; run `make peers-ganeti`"


def asked(template: str, memory: int, disk: int, cpus: int) -> dict:
    return {
        "type": "allocate",
        "name": "new.example.com",
        "required_nodes": 2 if template == "drbd" else 1,
        "disk_space_total": disk,
        "disks": [{"size": disk, "mode": "w"}],
        "nics": [],
        "vcpus": cpus,
        "memory": memory,
        "disk_template": template,
        "spindle_use": 1,
        "tags": ["service:s1"],
        "os": "linux",
        "hypervisor": "xen-pvm",
    }


def hail(path: pathlib.Path, message: str, *options: str) -> dict:
    path.write_text(message)
    return json.loads(subprocess.run([HAIL, *options, str(path)], capture_output=True, text=True, check=False, timeout=600).stdout)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [*CLUSTERS, *UNCHECKED])
def test_same_nodes_and_score(name, size, tmp_path):
    arguments = {**CLUSTERS, **UNCHECKED}[name]
    template = arguments.get("template", "drbd")
    message = generate(**arguments).ialloc(asked(template if template != "mixed" else "drbd", *size))
    theirs = hail(tmp_path / "message.json", message, *(["--no-capacity-checks"] if name in UNCHECKED else []))
    assert theirs["success"], theirs["info"]
    told = re.findall(r"Group (\S+) \(\w+\): score: ([\d.]+), .*? for node\(s\) (\S+)", theirs["info"].replace(", Group", "\nGroup"))
    ours = place(parse_iallocator(json.loads(message)), {})["solutions"][0]
    assert ours["groups"][0]["nodes"] == theirs["result"]
    scores = {found["group"]: found["score"] for found in ours["groups"]}
    assert scores == pytest.approx({group: float(score) for group, score, _nodes in told}, abs=PRINTED)


EVACUATED = {
    "drbd": {"nodes": 40, "n1ok": True},
    "drbd, tight": {"nodes": 20, "homog": True, "n1ok": True, "seed": 2},
    "drbd, 6 nodes": {"nodes": 6, "n1ok": True, "seed": 3},
    "shared": {"nodes": 20, "template": "ext", "seed": 4},
}


ROLES = {"primary-only": ["pnode"], "secondary-only": ["snode"], "all": ["pnode", "snode"]}
EVACUATIONS = [(name, mode) for name in EVACUATED for mode in ROLES if (name, mode) != ("shared", "secondary-only")]


@pytest.mark.parametrize(("name", "mode"), EVACUATIONS)
def test_evacuations_place_at_least_as_many(name, mode, tmp_path):
    cluster = generate(**EVACUATED[name])
    roles = ROLES[mode]

    def crowd(node: dict) -> int:
        return sum(node["name"] in [i[role] for role in roles] for i in cluster.instances)

    node = max(cluster.nodes, key=crowd)["name"]
    instances = [i["name"] for i in cluster.instances if node in [i[role] for role in roles]]
    message = cluster.ialloc({"type": "node-evacuate", "instances": instances, "evac_mode": mode})
    _moved, theirs_failed, _jobs = hail(tmp_path / "message.json", message)["result"]
    moved, failed, _our_jobs = answer(parse_iallocator(json.loads(message)), ScoreMode.HTOOLS)["result"]
    assert len(failed) <= len(theirs_failed)
    assert len(moved) + len(failed) == len(instances)


def packing(rooms: tuple[int, ...], sizes: tuple[int, ...]) -> dict:
    """Return a message that empties a node with instances of these sizes on shared storage; the other nodes have this room."""
    cluster = generate(nodes=len(rooms) + 1, template="ext", per_node=0, homog=True)
    message = json.loads(cluster.ialloc({"type": "node-evacuate", "instances": [], "evac_mode": "all"}))
    names = list(message["nodes"])
    for name, room in zip(names, (sum(sizes) + 1024, *rooms)):
        message["nodes"][name] |= {"total_memory": room + 1024, "reserved_memory": 1024, "free_memory": room}
    message["nodes"][names[0]]["free_memory"] -= sum(sizes)
    message["enabled_hypervisors"] = ["xen-pvm"]
    template = {
        "vcpus": 1,
        "disk_space_total": 1024,
        "disks": [{"size": 1024, "mode": "rw"}],
        "disk_template": "ext",
        "spindle_use": 1,
        "tags": [],
        "nics": [],
        "nodes": names[:1],
        "admin_state": "up",
    }
    message["instances"] = {f"i{number}": template | {"memory": size} for number, size in enumerate(sizes)}
    message["request"]["instances"] = list(message["instances"])
    return message


@pytest.mark.parametrize(
    ("rooms", "sizes"),
    [((6100, 9100), (2000, 3000, 4000, 6000)), ((6100, 6100), (2000, 2000, 2000, 6000))],
)
def test_an_exact_packing_that_hail_misses_is_found(rooms, sizes, tmp_path):
    message = packing(rooms, sizes)
    _moved, theirs_failed, _jobs = hail(tmp_path / "message.json", json.dumps(message))["result"]
    moved, failed, _our_jobs = answer(parse_iallocator(message), ScoreMode.HTOOLS)["result"]
    assert theirs_failed
    assert not failed
    used = {
        name: sum(message["instances"][instance]["memory"] for instance, _group, nodes in moved if nodes == [name])
        for name in message["nodes"]
    }
    assert all(used[name] <= message["nodes"][name]["free_memory"] for name in used)


def test_an_unhealthy_group_blocks_neither_others_nor_its_own_relief(tmp_path):
    """hail refuses to place anything anywhere, and to move away what causes the trouble."""
    cluster = generate(nodes=18, groups=3, seed=6)
    message = json.loads(cluster.ialloc(asked("drbd", 1024, 10240, 1)))
    ours = place(parse_iallocator(message), {})["solutions"][0]
    assert not hail(tmp_path / "message.json", json.dumps(message))["success"]
    assert ours["groups"]
    sick = cluster.groups[0]["uuid"]
    nodes = {node["name"]: node["group"] for node in cluster.nodes}
    moving = [i["name"] for i in cluster.instances if nodes[i["pnode"]] == sick][:5]
    request = {"type": "change-group", "instances": moving, "target_groups": []}
    theirs = hail(tmp_path / "message.json", cluster.ialloc(request))["result"]
    assert len(theirs[1]) == len(moving)
    assert len(answer(parse_iallocator(json.loads(cluster.ialloc(request))), ScoreMode.HTOOLS)["result"][0]) == len(moving)


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_node_whose_instances_have_mirrors_on_all_others_is_emptied(seed, tmp_path):
    """hail avoids every node that any of the instances has, and finds none left."""
    cluster = generate(nodes=6, n1ok=True, seed=seed)
    pairs = {node["name"]: [i for i in cluster.instances if node["name"] in (i["pnode"], i["snode"])] for node in cluster.nodes}
    instances = next(members for members in pairs.values() if len({node for i in members for node in (i["pnode"], i["snode"])}) == 6)
    message = cluster.ialloc({"type": "node-evacuate", "instances": [i["name"] for i in instances], "evac_mode": "all"})
    assert len(hail(tmp_path / "message.json", message)["result"][1]) == len(instances)
    assert len(answer(parse_iallocator(json.loads(message)), ScoreMode.HTOOLS)["result"][0]) == len(instances)


def test_a_cluster_that_is_not_redundant_takes_no_minutes(tmp_path):
    """hail looks for a pair after which the whole cluster would be redundant, of which there is none."""
    message = generate(nodes=40, template="mixed", extags=True, loctags=True).ialloc(asked("drbd", 2048, 20480, 2))
    path = tmp_path / "message.json"
    path.write_text(message)
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([HAIL, str(path)], capture_output=True, check=False, timeout=PATIENCE)
    started = time.process_time()
    assert answer(parse_iallocator(json.loads(message)), ScoreMode.HTOOLS)["success"]
    assert time.process_time() - started < PATIENCE / 10


QUARTER = 25600


def dedicated(sizes: dict[str, int]) -> dict:
    """Return a message with one group of exclusive storage in which each node has this many quarters taken."""

    def spec(quarters: int) -> dict:
        names = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use")
        return dict(zip(names, (1024 * quarters, quarters, QUARTER * quarters, 1, 1, 1)))

    policy = {
        "minmax": [{"min": spec(size), "max": spec(size)} for size in (1, 2, 4)],
        "std": spec(1),
        "disk-templates": ["plain"],
        "vcpu-ratio": 1.0,
        "spindle-ratio": 32.0,
    }
    nodes = {
        name: {
            "group": "u",
            "offline": False,
            "drained": False,
            "tags": [],
            "ndparams": {"exclusive_storage": True, "spindle_count": 4},
            "total_memory": 65536,
            "reserved_memory": 0,
            "free_memory": 65536,
            "total_disk": 4 * QUARTER,
            "free_disk": (4 - taken) * QUARTER,
            "total_cpus": 64,
            "reserved_cpus": 0,
            "total_spindles": 4,
            "free_spindles": 4 - taken,
        }
        for name, taken in sizes.items()
    }
    group = {"name": "dedicated", "alloc_policy": "preferred", "networks": [], "tags": [], "ipolicy": policy}
    return {
        "version": 2,
        "cluster_name": "c",
        "cluster_tags": [],
        "enabled_hypervisors": ["xen-pvm"],
        "ipolicy": policy,
        "nodegroups": {"u": group},
        "nodes": nodes,
        "instances": {},
    }


def part(name: str, quarters: int) -> dict:
    return asked("plain", 1024 * quarters, QUARTER * quarters, quarters) | {
        "name": name,
        "disks": [{"size": QUARTER * quarters, "mode": "w", "spindles": 1}],
        "tags": [],
    }


def test_what_fits_exactly_is_placed_where_the_design_says(tmp_path):
    """hail leaves a MiB on every node, so that a whole node can never be given away."""
    message = dedicated({"empty": 0, "half": 2, "three": 3})
    for quarters, expected in ((1, "three"), (2, "half"), (4, "empty")):
        message["request"] = part("new", quarters)
        assert answer(parse_iallocator(message), ScoreMode.HTOOLS)["result"] == [expected]
        assert hail(tmp_path / "message.json", json.dumps(message))["result"] != [expected]


def test_several_parts_in_one_request_do_not_share_the_same_room(tmp_path):
    """hail looks at the unchanged nodes for each instance of the request."""
    message = dedicated({"a": 0, "b": 0, "c": 1})
    wanted = [part(f"i{number}", 1) for number in range(5)]
    message["request"] = {"type": "multi-allocate", "instances": wanted, "group_name": "dedicated"}
    theirs = hail(tmp_path / "message.json", json.dumps(message))["result"][0]
    ours, failed = answer(parse_iallocator(message), ScoreMode.HTOOLS)["result"]
    room = {"a": 4, "b": 4, "c": 3}
    assert failed == []
    assert all(count <= room[name] for name, count in collections.Counter(nodes[0] for _name, nodes in ours).items())
    assert any(count > room[name] for name, count in collections.Counter(nodes[0] for _name, nodes in theirs).items())
