# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Three nodes of a real libvirt, Debian's, with machines of QEMU that are paused: read, emptied, balanced, silent.

`make test-libvirt` installs what is missing, and runs this as root. Each node is a libvirtd in namespaces of its own; their network is a
loopback that nobody else has, which live migrations go over.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NODES = ("n1", "n2", "n3")
DISK = (
    "<disk type='file' device='disk'><driver name='qemu' type='{kind}' cache='none'/>"
    "<source file='{path}'/><target dev='vda' bus='virtio'/></disk>"
)
DOMAIN = (
    "<domain type='qemu'><name>{name}</name><memory unit='MiB'>{memory}</memory><vcpu>1</vcpu>"
    "<metadata><b:tags xmlns:b='https://github.com/bareon/allocator'>{tags}</b:tags></metadata>"
    "<os><type arch='x86_64' machine='{machine}'>hvm</type></os><features><acpi/></features>"
    "<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>{devices}<memballoon model='none'/></devices></domain>"
)
WAIT = 60


class Bed:
    """The nodes, in a folder."""

    def __init__(self, folder):
        self.folder = folder
        for tool in ("libvirtd", "virsh", "qemu-img", "qemu-system-x86_64"):
            assert shutil.which(tool), f"no {tool}; make test-libvirt installs it"
        # The one program that is ended ends them all.
        namespaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        with (folder / "log").open("wb") as log:
            command = [*namespaces, HERE / "first-process", folder, *NODES]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for node in NODES:
            self.wait_for(node)
            self.virsh(node, "pool-define-as", "shared", "dir", "--target", str(folder / "shared"))
            self.virsh(node, "pool-define-as", "images", "dir", "--target", str(folder / node / "images"))
            self.virsh(node, "pool-start", "shared")
            self.virsh(node, "pool-start", "images")

    def end(self):
        # unshare ignores a gentler signal while it waits.
        self.process.kill()
        self.process.wait()

    def uri(self, node):
        return f"qemu+unix:///system?socket={self.folder}/{node}/libvirt-sock"

    def wait_for(self, node):
        for _second in range(WAIT):
            if subprocess.run(["virsh", "-c", self.uri(node), "nodeinfo"], capture_output=True, check=False).returncode == 0:
                return
            time.sleep(1)
        raise AssertionError((self.folder / node / "libvirtd.log").read_text()[-2000:])

    def virsh(self, node, *words):
        done = subprocess.run(["virsh", "-q", "-c", self.uri(node), *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def add(self, node, name, *, memory=256, devices="", tags="", machine="pc", runs=True):
        file = self.folder / f"{name}.xml"
        file.write_text(DOMAIN.format(name=name, memory=memory, devices=devices, tags=tags, machine=machine))
        self.virsh(node, "define", str(file))
        if runs:
            self.virsh(node, "start", name, "--paused")

    def where(self):
        """Return the nodes that have each domain, by libvirt's own word."""
        found = {}
        for node in NODES:
            for name in self.virsh(node, "list", "--all", "--name").split():
                found.setdefault(name, []).append(node)
        return found

    def processes(self):
        """Return how many processes of QEMU each machine has, on all nodes together."""
        found = {}
        for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = file.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"qemu-system-x86_64") and str(self.folder).encode() in b" ".join(words) + self.folder_of(file):
                name = words[words.index(b"-name") + 1].decode().split(",")[0].removeprefix("guest=")
                found[name] = found.get(name, 0) + 1
        return found

    def folder_of(self, file):
        """Return the folders that a process has mounted, which tell machines of this bed from others."""
        try:
            return (file.parent / "mountinfo").read_bytes()
        except OSError:
            return b""

    def play(self, tasks, **variables):
        """Run tasks on the controller, and return what they register as `result`."""
        out = self.folder / "out.json"
        out.unlink(missing_ok=True)
        save = {"ansible.builtin.copy": {"content": "{{ result | to_json }}", "dest": str(out), "mode": "0600"}}
        common = {
            "ansible_python_interpreter": sys.executable,
            "source": {"type": "libvirt", "uris": {node: self.uri(node) for node in NODES}, "shared_pools": ["shared"], "timeout": 60},
            "group_moves_driver": "virsh",
            "group_moves_hosts": dict.fromkeys(NODES, "localhost"),
            "group_moves_virsh_uri": self.uri("{node}"),
            "group_moves_virsh_target": self.uri("{node}"),
            # The folder stands for a file system that libvirt would know to be shared, and the nodes have no names to look up.
            "group_moves_virsh_options": ["--unsafe", "--migrateuri", "tcp://127.0.0.1"],
            "group_moves_journals": str(self.folder / "journals"),
            "group_moves_poll": 1,
        }
        play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": common | variables, "tasks": [*tasks, save]}
        (self.folder / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False))
        environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"), "ANSIBLE_LOCALHOST_WARNING": "0"}
        command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "play.yml"]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(out.read_text())


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    assert os.geteuid() == 0, "namespaces need root"
    found = Bed(tmp_path_factory.mktemp("libvirt"))
    try:
        (found.folder / "shared" / "web.img").write_bytes(b"\0" * (16 << 20))
        (found.folder / "n1" / "images" / "cold.img").write_bytes(b"\0" * (8 << 20))
        web, cold = found.folder / "shared" / "web.img", found.folder / "n1" / "images" / "cold.img"
        found.virsh("n1", "vol-create-as", "shared", "idle.qcow2", "32M", "--format", "qcow2")
        found.add("n1", "web", memory=512, devices=DISK.format(kind="raw", path=web), tags="gold rack:1")
        found.add("n1", "db", memory=512, machine="q35")
        found.add("n1", "mail")
        found.add("n1", "queue")
        found.add("n1", "idle", devices=DISK.format(kind="qcow2", path=found.folder / "shared" / "idle.qcow2"), runs=False)
        found.add("n1", "cold", devices=DISK.format(kind="raw", path=cold), runs=False)
        yield found
    finally:
        found.end()


def module(name, **options):
    return {"name": name, f"bareon.allocator.{name}": {"source": "{{ source }}", **options}, "register": "result"}


MOVE = {
    "name": "Move",
    "ansible.builtin.include_role": {"name": "bareon.allocator.group_moves"},
    "vars": {"group_moves_plan": "{{ result.plan }}"},
}


def cluster(bed, **source):
    """Return the cluster as it is read, written out."""
    read = module("group_info", export=["cluster"])
    read["bareon.allocator.group_info"]["source"] = "{{ source | combine(more) }}"
    return bed.play([read], more=source)["cluster"]


def runs_once(bed):
    """Whether each machine that runs has one process, and each domain is on one node."""
    assert bed.processes() == dict.fromkeys(("web", "db", "mail", "queue"), 1)
    where = bed.where()
    assert all(len(nodes) == 1 for nodes in where.values()), where
    return {name: node for name, (node,) in where.items()}


def test_what_is_there_is_read(bed):
    read = cluster(bed)
    assert [(node["name"], node["state"]) for node in read["nodes"]] == [(node, "up") for node in NODES]
    assert all(node["total_cpus"] >= 1 and node["total_memory"] > node["node_memory"] > 0 for node in read["nodes"])
    guests = {guest["name"]: guest for guest in read["instances"]}
    assert {name: guest["status"] for name, guest in guests.items()} == {
        **dict.fromkeys(("web", "db", "mail", "queue"), "running"),
        **dict.fromkeys(("idle", "cold"), "ADMIN_down"),
    }
    web = guests["web"]
    assert (web["memory"], web["vcpus"], web["disk"], web["tags"]) == (512, 1, 16, ["gold", "rack:1"])
    assert (web["disk_template"], web["storage"]) == ("ext", {"type": "external", "pool": "shared"})
    assert (guests["cold"]["disk_template"], guests["cold"]["disk"]) == ("plain", 8)
    assert (guests["idle"]["disk_template"], guests["idle"]["disk"]) == ("ext", 32)
    assert not read["rules"]


def test_a_folder_that_nobody_calls_shared_is_none(bed):
    guests = {guest["name"]: guest for guest in cluster(bed, shared_pools=[])["instances"]}
    assert guests["web"]["disk_template"] == "plain"


def test_a_new_guest_finds_its_node(bed):
    new = {"name": "new", "memory": 256, "vcpus": 1, "disk": 16, "storage": {"type": "external", "pool": "shared"}}
    placed = bed.play([module("group_place", instances=[new])])
    (best, *_others) = placed["solutions"][0]["groups"]
    assert best["nodes"][0] in ("n2", "n3")


def test_a_balance_is_carried_out(bed):
    """Machines migrate live, and each of them runs once."""
    done = bed.play([module("group_balance", score="capacity"), MOVE])
    assert done["plan"]["moves"]
    assert {step["kind"] for move in done["plan"]["moves"] for step in move["steps"]} <= {"migrate", "failover"}
    where = runs_once(bed)
    assert {name: where[name] for name in (move["instance"] for move in done["plan"]["moves"])} == {
        move["instance"]: move["to"][0] for move in done["plan"]["moves"]
    }
    assert len(set(where.values())) > 1
    assert not bed.play([module("group_balance", score="capacity")])["plan"]["moves"]


def test_a_node_is_emptied(bed):
    """What runs is migrated, what is stopped is defined elsewhere, and what has a local disk stays, with its reason."""
    done = bed.play([module("group_evacuate", nodes=["n1"]), MOVE])
    assert [(one["instance"], one["reasons"] != []) for one in done["unplaced"]] == [("cold", True)]
    where = runs_once(bed)
    assert [name for name, node in where.items() if node == "n1"] == ["cold"]
    guests = {guest["name"]: guest for guest in cluster(bed)["instances"]}
    assert {name: guest["primary"] for name, guest in guests.items()} == where
    assert guests["idle"]["status"] == "ADMIN_down"


def test_snapshots_keep_a_guest(bed):
    bed.virsh(bed.where()["idle"][0], "snapshot-create-as", "idle", "before")
    try:
        assert [(rule["type"], rule["instances"], rule["reason"]) for rule in cluster(bed)["rules"]] == [("ignore", ["idle"], "snapshots")]
    finally:
        bed.virsh(bed.where()["idle"][0], "snapshot-delete", "idle", "before")


def test_a_definition_elsewhere_ties_a_guest(bed):
    (home,) = bed.where()["mail"]
    other = next(node for node in NODES if node != home)
    file = bed.folder / "mail-here.xml"
    file.write_text(bed.virsh(home, "dumpxml", "mail", "--inactive"))
    bed.virsh(other, "define", str(file))
    try:
        read = cluster(bed)
        assert [(guest["name"], guest["primary"]) for guest in read["instances"] if "mail" in guest["name"]] == [("mail", home)]
        assert [rule["reason"] for rule in read["rules"]] == ["twice"]
    finally:
        bed.virsh(other, "undefine", "mail")


def test_a_silent_node_is_left_alone(bed):
    """Its machines run on, and nothing is planned from it or to it."""
    pid = int((bed.folder / "n3" / "pid").read_text())
    outside = next(
        int(file.parent.name)
        for file in pathlib.Path("/proc").glob("[0-9]*/status")
        if is_process(file, pid) and str(bed.folder).encode() in bed.folder_of(file)
    )
    before = runs_once(bed)
    assert "n3" in before.values()
    os.kill(outside, signal.SIGKILL)
    try:
        read = cluster(bed)
        assert {node["name"]: node["state"] for node in read["nodes"]} == {"n1": "up", "n2": "up", "n3": "unreachable"}
        done = bed.play([module("group_evacuate", nodes=["n2"])])
        assert all(move["to"][0] == "n1" and move["from"][0] == "n2" for move in done["plan"]["moves"])
        told = bed.play([module("group_info")])
        assert any("n3" in problem["says"] for problem in told["problems"])
    finally:
        namespaces = ["nsenter", "--target", str(child_of(bed.process.pid)), "--net", "--mount", "--pid"]
        with (bed.folder / "log").open("ab") as log:
            again = subprocess.Popen([*namespaces, HERE / "node", bed.folder, "n3"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        bed.wait_for("n3")
    assert runs_once(bed) == before
    again.terminate()
    again.wait()


def is_process(file, pid):
    """Return whether a process has a number in the namespaces of the bed."""
    try:
        line = next(line for line in file.read_text().splitlines() if line.startswith("NSpid:"))
    except (OSError, StopIteration):
        return False
    return line.split()[-1] == str(pid) and len(line.split()) > 2


def child_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
