# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes clusters by seed, as htools' text and as IAllocator messages, with nothing of the code under test.

    gencluster.py --nodes 100 --groups 2 --seed 1 --out FILE [--template drbd|ext|plain|mixed] ...

Clusters are unbalanced on purpose: nodes draw instances with weights of Exp(1) ** skew. The same arguments give the same
cluster. With `odd`, some instances are forthcoming, some nodes have exclusive storage, no disk, or faster CPUs.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import typing as t

HARDWARE = [  # memory MiB, disk MiB, cores, spindles
    (65536, 2097152, 16, 4),
    (98304, 3145728, 24, 6),
    (131072, 4194304, 32, 8),
]
MEMORIES = [1024, 2048, 2048, 4096, 4096, 8192]
DISKS = [10240, 20480, 40960, 61440, 102400]
POLICY = "1024,1,10240,1,1,1|512,1,1024,1,1,1;16384,8,524288,16,8,12|drbd,plain,diskless,file,sharedfile,blockdev,rbd,ext|4.0|32.0"
TEMPLATES = {"drbd": ["drbd"], "ext": ["ext"], "plain": ["plain"], "mixed": ["drbd", "drbd", "drbd", "ext", "plain"]}
NODE_MEMORY = 1024
FULLEST_DISK = 0.97
MOST_FAILURES = 200_000


class GeneratedCluster:
    """Groups, nodes and instances as dictionaries, and how to write them."""

    def __init__(self) -> None:
        self.groups: list[dict[str, t.Any]] = []
        self.nodes: list[dict[str, t.Any]] = []
        self.instances: list[dict[str, t.Any]] = []
        self.tags: list[str] = []
        self.policies: list[str] = []

    def text(self) -> str:
        """Return htools' text format."""
        sections = (
            [f"{group['name']}|{group['uuid']}|{group['policy']}||" for group in self.groups],
            [_node_line(node) for node in self.nodes],
            [_instance_line(instance) for instance in self.instances],
            self.tags,
            self.policies,
        )
        return "\n".join("".join(f"{line}\n" for line in section) for section in sections)

    def ialloc(self, request: dict[str, t.Any]) -> str:
        """Return an IAllocator message with this request."""
        policies = dict(_policy_json(line) for line in self.policies)
        message = {
            "version": 2,
            "cluster_name": "test",
            "cluster_tags": self.tags,
            "enabled_hypervisors": ["xen-pvm"],
            "ipolicy": policies[""],
            "nodegroups": {
                group["uuid"]: {
                    "name": group["name"],
                    "alloc_policy": group["policy"],
                    "networks": [],
                    "ipolicy": policies[group["name"]],
                    "tags": [],
                }
                for group in self.groups
            },
            "nodes": {node["name"]: _node_json(node) for node in self.nodes},
            "instances": {instance["name"]: _instance_json(instance) for instance in self.instances},
            "request": request,
        }
        return json.dumps(message, indent=1, sort_keys=True)


def _node_line(node: dict[str, t.Any]) -> str:
    role = "Y" if node["offline"] else "M" if node["master"] else "N"
    columns = (
        *(node["name"], node["tmem"], node["nmem"], node["fmem"], node["tdsk"], node["fdsk"], node["tcpu"], role, node["group"]),
        *(node["spindles"], ",".join(node["tags"]), "Y" if node["excl"] else "N", node["fspindles"], node["ncpu"], node["speed"]),
    )
    return "|".join(map(str, columns))


def _instance_line(instance: dict[str, t.Any]) -> str:
    columns = (
        *(instance["name"], instance["mem"], instance["dsk"], instance["vcpus"], instance["status"]),
        *("Y" if instance["ab"] else "N", instance["pnode"], instance["snode"] or "", instance["dt"], ",".join(instance["tags"])),
        *(instance["su"], "-" if instance["spindles"] is None else instance["spindles"], "Y" if instance["forthcoming"] else "N"),
    )
    return "|".join(map(str, columns))


def _spec_json(spec: str) -> dict[str, int]:
    names = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use")
    return dict(zip(names, map(int, spec.split(","))))


def _policy_json(line: str) -> tuple[str, dict[str, t.Any]]:
    owner, standard, intervals, templates, vcpu_ratio, spindle_ratio = line.split("|")
    specs = [_spec_json(spec) for spec in intervals.split(";")]
    return owner, {
        "std": _spec_json(standard),
        "minmax": [{"min": low, "max": high} for low, high in zip(specs[::2], specs[1::2])],
        "disk-templates": templates.split(","),
        "vcpu-ratio": float(vcpu_ratio),
        "spindle-ratio": float(spindle_ratio),
    }


def _node_json(node: dict[str, t.Any]) -> dict[str, t.Any]:
    data = {
        "offline": node["offline"],
        "drained": False,
        "group": node["group"],
        "vm_capable": True,
        "master_candidate": True,
        "master_capable": True,
        "tags": node["tags"],
        "primary_ip": "192.0.2.1",
        "secondary_ip": "198.51.100.1",
        "ndparams": {"exclusive_storage": node["excl"], "spindle_count": node["spindles"]},
    }
    report = {
        "total_memory": node["tmem"],
        "reserved_memory": node["nmem"],
        "free_memory": node["fmem"],
        "total_disk": node["tdsk"],
        "free_disk": node["fdsk"],
        "total_cpus": node["tcpu"],
        "reserved_cpus": node["ncpu"],
        "total_spindles": node["spindles"],
        "free_spindles": node["fspindles"],
    }
    return data if node["offline"] else data | report


def _instance_json(instance: dict[str, t.Any]) -> dict[str, t.Any]:
    disk = {"mode": "rw", "size": instance["dsk"]}
    if instance["spindles"] is not None:
        disk["spindles"] = instance["spindles"]
    return {
        "admin_state": "up" if instance["status"] == "running" else "down",
        "disk_space_total": instance["dsk"],
        "disk_template": instance["dt"],
        "disks": [disk],
        "memory": instance["mem"],
        "vcpus": instance["vcpus"],
        "spindle_use": instance["su"],
        "tags": instance["tags"],
        "forthcoming": instance["forthcoming"],
        "nics": [],
        "hypervisor": "xen-pvm",
        "os": "o",
        "nodes": [instance["pnode"], *([instance["snode"]] if instance["snode"] else [])],
    }


class _Maker:
    """Draws one cluster; the order of draws decides what comes out."""

    def __init__(self, seed: str, n1ok: bool, down: float) -> None:
        self.random = random.Random(seed)
        self.n1ok = n1ok
        self.down = down
        self.cluster = GeneratedCluster()

    def add_groups(self, count: int, policies: list[str] | None, tags: list[str]) -> None:
        for number in range(count):
            name = f"group-{number + 1:02d}"
            policy = policies[number] if policies else "preferred"
            self.cluster.groups.append({"name": name, "uuid": f"uuid-{name}", "policy": policy})
        self.cluster.tags += tags
        self.cluster.policies = [f"{owner}|{POLICY}" for owner in ("", *(group["name"] for group in self.cluster.groups))]

    def add_nodes(self, count: int, skew: float, homogeneous: bool, located: bool) -> None:
        groups = self.cluster.groups
        for number in range(count):
            memory, disk, cores, spindles = HARDWARE[1] if homogeneous else self.random.choice(HARDWARE)
            self.cluster.nodes.append(
                {
                    "name": f"node-{number + 1:04d}.example.com",
                    "tmem": memory,
                    "nmem": NODE_MEMORY,
                    "tdsk": disk,
                    "tcpu": cores,
                    "spindles": spindles,
                    "fspindles": 0,
                    "excl": False,
                    "group": groups[number * len(groups) // count]["uuid"],
                    "offline": False,
                    "master": number == 0,
                    "ncpu": 1,
                    "speed": 1.0,
                    "tags": [f"rack:{number % 8}"] if located else [],
                    "_memory": 0,
                    "_disk": 0,
                    "_cpus": 1,
                    "_peers": {},
                    "_stopped": 0,
                    "_weight": self.random.expovariate(1.0) ** skew + 0.05,
                },
            )

    def add_instances(self, total: int, templates: list[str], memory_scale: float, tagged: bool, located: bool) -> None:
        groups = self.cluster.groups
        failures = 0
        while len(self.cluster.instances) < total and failures < MOST_FAILURES:
            group = groups[len(self.cluster.instances) * len(groups) // total]["uuid"]
            nodes = [node for node in self.cluster.nodes if node["group"] == group]
            if not self._try_instance(nodes, self.random.choice(templates), memory_scale):
                failures += 1
                continue
            instance = self.cluster.instances[-1]
            if tagged and self.random.random() < 0.3:
                instance["tags"].append(f"service:s{self.random.randrange(max(1, total // 8))}")
            if located and self.random.random() < 0.1:
                instance["tags"].append(f"rack:{self.random.randrange(8)}")

    def _try_instance(self, nodes: list[dict[str, t.Any]], template: str, memory_scale: float) -> bool:
        draw = self.random
        memory = max(512, int(draw.choice(MEMORIES) * memory_scale))
        disk = draw.choice(DISKS)
        cpus = draw.choice([1, 1, 2, 2, 4])
        weights = [node["_weight"] for node in nodes]
        primary = draw.choices(nodes, weights)[0]
        secondary = None
        while template == "drbd" and secondary in (None, primary):
            secondary = draw.choices(nodes, weights)[0]
        runs = draw.random() >= self.down
        if not self._fits(primary, secondary, memory, disk, cpus):
            return False
        primary["_memory"] += memory
        primary["_stopped"] += 0 if runs else memory
        primary["_cpus"] += cpus
        primary["_disk"] += 0 if template == "ext" else disk
        if secondary is not None:
            secondary["_disk"] += disk
            secondary["_peers"][primary["name"]] = secondary["_peers"].get(primary["name"], 0) + memory
        self.cluster.instances.append(
            {
                "name": f"inst-{len(self.cluster.instances) + 1:05d}.example.com",
                "mem": memory,
                "dsk": disk,
                "vcpus": cpus,
                "status": "running" if runs else "ADMIN_down",
                "ab": True,
                "pnode": primary["name"],
                "snode": secondary["name"] if secondary else None,
                "dt": template,
                "su": 1,
                "tags": [],
                "spindles": None,
                "forthcoming": False,
            },
        )
        return True

    def _fits(self, primary: dict[str, t.Any], secondary: dict[str, t.Any] | None, memory: int, disk: int, cpus: int) -> bool:
        if primary["_memory"] + memory >= primary["tmem"] - NODE_MEMORY or primary["_cpus"] + cpus > primary["tcpu"] * 4:
            return False
        if any(node["_disk"] + disk >= node["tdsk"] * FULLEST_DISK for node in (primary, secondary or primary)):
            return False
        if secondary is None or not self.n1ok:
            return True
        kept = secondary["_peers"].get(primary["name"], 0) + memory
        free = secondary["tmem"] - NODE_MEMORY - secondary["_memory"]
        primary_free = primary["tmem"] - NODE_MEMORY - primary["_memory"] - memory
        return max([kept, *secondary["_peers"].values()]) < free and max([0, *primary["_peers"].values()]) < primary_free

    def finish(self, offline: int, odd: bool) -> GeneratedCluster:
        for node in self.cluster.nodes:
            node["fmem"] = node["tmem"] - node["nmem"] - (node["_memory"] - node["_stopped"])
            node["fdsk"] = node["tdsk"] - node["_disk"]
        for node in self.random.sample(self.cluster.nodes[1:], offline):
            node["offline"] = True
        if odd:
            self._make_odd()
        return self.cluster

    def _make_odd(self) -> None:
        for number, node in enumerate(self.cluster.nodes):
            if number % 6 == 1:
                node["excl"], node["fspindles"] = True, self.random.randrange(node["spindles"] + 1)
            elif number % 6 == 2:
                node["tdsk"] = node["fdsk"] = 0
            elif number % 6 == 3:
                node["speed"] = self.random.choice([0.5, 1.3, 1.7])
            elif number % 6 == 4:
                node["fmem"] = max(0, node["fmem"] - self.random.randrange(4096))
        for number, instance in enumerate(self.cluster.instances):
            instance["spindles"] = 0 if instance["dt"] == "ext" else self.random.randrange(1, 3)
            instance["su"] = self.random.randrange(1, 4)
            instance["ab"] = number % 5 != 0
            instance["forthcoming"] = number % 7 == 0
            instance["status"] = self.random.choice([instance["status"], instance["status"], "ADMIN_offline", "ERROR_up"])


def generate(
    nodes: int = 40,
    groups: int = 1,
    per_node: int = 10,
    seed: int = 1,
    template: str = "drbd",
    skew: float = 1.0,
    down: float = 0.03,
    offline: int = 0,
    extags: bool = False,
    loctags: bool = False,
    homog: bool = False,
    memscale: float = 1.0,
    n1ok: bool = False,
    policies: list[str] | None = None,
    odd: bool = False,
) -> GeneratedCluster:
    """Return a cluster; `n1ok` keeps every node N+1, `memscale` fills memory, `policies` are the groups' alloc_policy."""
    arguments = (nodes, groups, per_node, seed, template, skew, down, offline, extags, loctags, homog, memscale, n1ok)
    maker = _Maker(str(arguments), n1ok, down)
    tags = ["htools:iextags:service"] if extags else []
    tags += ["htools:nlocation:rack", "htools:desiredlocation:rack"] if loctags else []
    maker.add_groups(groups, policies, tags)
    maker.add_nodes(nodes, skew, homog, loctags)
    maker.add_instances(nodes * per_node, TEMPLATES[template], memscale, extags, loctags)
    return maker.finish(offline, odd)


def main() -> None:
    """Write a cluster to files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind, default in (
        ("nodes", int, 40),
        ("groups", int, 1),
        ("per-node", int, 10),
        ("seed", int, 1),
        ("template", str, "drbd"),
        ("skew", float, 1.0),
        ("down", float, 0.03),
        ("offline", int, 0),
        ("memscale", float, 1.0),
    ):
        parser.add_argument(f"--{name}", type=kind, default=default)
    for name in ("extags", "loctags", "homog", "n1ok", "odd"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--ialloc-out", type=pathlib.Path)
    parser.add_argument("--request", default="{}", help="JSON request for --ialloc-out")
    arguments = vars(parser.parse_args())
    out, message, request = (arguments.pop(name) for name in ("out", "ialloc_out", "request"))
    cluster = generate(**arguments)
    if out:
        out.write_text(cluster.text())
    if message:
        message.write_text(cluster.ialloc(json.loads(request)))
    print(f"{len(cluster.nodes)} nodes, {len(cluster.instances)} instances")


if __name__ == "__main__":
    main()
