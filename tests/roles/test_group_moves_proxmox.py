# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Proxmox VE cluster from end to end, as the guide says: read, balance, move, against a stand-in of the published API."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import yaml
from ansible_collections.bareon.allocator.tests.support.group.proxmox.cluster import Cluster, small_cluster
from ansible_collections.bareon.allocator.tests.support.group.proxmox.model import GIB, Guest, Machine
from ansible_collections.bareon.allocator.tests.support.group.proxmox.server import serving

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(folder, cluster, plays, *options):
    """Run a playbook against a cluster; return the exit code and what was printed."""
    with serving(cluster) as (url, ca_path):
        subprocess.run(
            [sys.executable, ROOT / "tests" / "standins" / "proxmox_node.py", "install", folder / "bin", url, ca_path], check=True
        )
        variables = {"pve_url": url, "pve_ca": ca_path, "pve_token_id": "mover@pve!bareon", "pve_token_secret": "m0ve"}
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        (folder / "play.yml").write_text(yaml.safe_dump(plays, sort_keys=False))
        (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": {"localhost": local}, "vars": variables}}))
        ran = subprocess.run(
            [sys.executable, "-m", "ansible", "playbook", "-vv", "-i", "inventory.yml", *options, "play.yml"],
            cwd=folder,
            env=os.environ
            | {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"), "ANSIBLE_NOCOLOR": "1"}
            | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    said = ran.stdout + ran.stderr
    assert "m0ve" not in said
    return ran.returncode, said


def plays(guest, source, target, kind="migrate", **more):
    """Return a playbook that carries one move out."""
    steps = [{"kind": kind, "from": [source], "to": [target], "node": target, "online": True, "command": ""}]
    plan = {"moves": [{"instance": guest, "from": [source], "to": [target], "steps": steps, "after": [], "data": 0}], "stages": [[0]]}
    variables = {
        "group_moves_plan": plan,
        "group_moves_driver": "proxmox",
        "group_moves_url": "{{ pve_url }}",
        "group_moves_ca_path": "{{ pve_ca }}",
        "group_moves_username": "{{ pve_token_id }}",
        "group_moves_password": "{{ pve_token_secret }}",
        "group_moves_poll": 1,
        "group_moves_timeout": 20,
    }
    return [{"hosts": "localhost", "gather_facts": False, "vars": variables | more, "roles": ["bareon.allocator.group_moves"]}]


def by_pvesh(plays):
    """Return a playbook that does the same by pvesh on a node."""
    for name in ("group_moves_url", "group_moves_ca_path", "group_moves_username", "group_moves_password"):
        del plays[0]["vars"][name]
    return plays


@pytest.mark.short
def test_a_machine_is_moved_live(tmp_path):
    cluster = small_cluster()
    code, said = run(tmp_path, cluster, plays("100-web0", "pve1", "pve2"))
    assert code == 0, said
    assert (cluster.guests[100].node, cluster.started) == ("pve2", [(100, "pve2")])


@pytest.mark.short
def test_a_container_is_restarted_whatever_options_machines_have(tmp_path):
    cluster = small_cluster()
    code, said = run(tmp_path, cluster, plays("200-dns", "pve2", "pve3", "failover", group_moves_proxmox_options=["with-local-disks=1"]))
    assert code == 0, said
    assert cluster.guests[200].node == "pve3"


@pytest.mark.short
def test_a_guest_under_ha_is_followed_until_it_is_there(tmp_path):
    cluster = small_cluster(ha_seconds=3.0)
    cluster.guests[100].ha = "started"
    code, said = run(tmp_path, cluster, plays("100-web0", "pve1", "pve2"))
    assert code == 0, said
    assert ("POST", "/cluster/ha/resources/{sid}/migrate") in cluster.calls
    assert (cluster.guests[100].node, cluster.started) == ("pve2", [(100, "pve2")])


def test_a_guest_that_ha_cannot_move_is_not_said_to_be_moved(tmp_path):
    cluster = small_cluster()
    cluster.guests[100].ha, cluster.guests[100].fails = "started", "no space left"
    code, said = run(tmp_path, cluster, plays("100-web0", "pve1", "pve2"))
    assert code == 2
    assert "no space left" in said
    assert "1 of 1 moves are done" not in said


def test_pvesh_follows_a_guest_under_ha_until_it_is_there(tmp_path):
    cluster = small_cluster(ha_seconds=3.0)
    cluster.guests[100].ha = "started"
    code, said = run(tmp_path, cluster, by_pvesh(plays("100-web0", "pve1", "pve2")))
    assert code == 0, said
    assert ("POST", "/cluster/ha/resources/{sid}/migrate") in cluster.calls
    assert (cluster.guests[100].node, cluster.started) == ("pve2", [(100, "pve2")])


def test_pvesh_tells_how_a_migration_by_ha_has_failed(tmp_path):
    cluster = small_cluster()
    cluster.guests[100].ha, cluster.guests[100].fails = "started", "no space left"
    code, said = run(tmp_path, cluster, by_pvesh(plays("100-web0", "pve1", "pve2")))
    assert code == 2
    assert "no space left" in said
    assert "1 of 1 moves are done" not in said


def test_pvesh_restarts_containers_whatever_options_machines_have(tmp_path):
    cluster = small_cluster()
    options = ["with-local-disks=1"]
    code, said = run(tmp_path, cluster, by_pvesh(plays("200-dns", "pve2", "pve3", "failover", group_moves_proxmox_options=options)))
    assert code == 0, said
    assert cluster.guests[200].node == "pve3"


class Patient(Cluster):
    """Its tasks end when somebody asks for one of them."""

    def _task_status(self, *asked):
        self.clock.hurry()
        return super()._task_status(*asked)


def test_a_migration_that_goes_on_already_is_not_begun_again(tmp_path):
    cluster = Patient({"pve1": Machine(), "pve2": Machine()}, [Guest(100, "pve1", "web0")], task_seconds=3600.0)
    headers = {"Authorization": "PVEAPIToken=mover@pve!bareon=m0ve"}
    cluster.answer("POST", "/nodes/pve1/qemu/100/migrate", {"target": "pve2", "online": "1"}, headers)
    code, said = run(tmp_path, cluster, plays("100-web0", "pve1", "pve2"))
    assert code == 0, said
    assert (cluster.guests[100].node, cluster.started) == ("pve2", [(100, "pve2")])


def test_pvesh_begins_a_migration_that_goes_on_already_not_again(tmp_path):
    cluster = Cluster({"pve1": Machine(), "pve2": Machine()}, [Guest(100, "pve1", "web0")], task_seconds=8.0)
    headers = {"Authorization": "PVEAPIToken=mover@pve!bareon=m0ve"}
    cluster.answer("POST", "/nodes/pve1/qemu/100/migrate", {"target": "pve2", "online": "1"}, headers)
    code, said = run(tmp_path, cluster, by_pvesh(plays("100-web0", "pve1", "pve2")))
    assert code == 0, said
    assert (cluster.guests[100].node, cluster.started) == ("pve2", [(100, "pve2")])


def storages(**fills):
    """Return storages of 1000 GiB by name, with how full they are in GiB."""
    return {name: {"shared": 1, "used": used * GIB, "avail": (1000 - used) * GIB} for name, used in fills.items()}


def full_storage(**options):
    """Return two nodes with one storage that is nearly full, and another that is empty."""
    machines = {name: Machine(storages=storages(slow=900, fast=100)) for name in ("pve1", "pve2")}
    guests = [
        Guest(100 + number, "pve1", f"vm{number}", config={"scsi0": f"slow:vm-{100 + number}-disk-0,size=200G"}) for number in range(4)
    ]
    guests += [Guest(200, "pve2", "ct", kind="lxc", status="stopped", config={"rootfs": "slow:vm-200-disk-0,size=50G"})]
    return Cluster(machines, guests, task_seconds=0.1, **options)


def guide_blocks(name):
    """Return the playbooks of the guide."""
    text = (ROOT / "docs" / name).read_text()
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


@pytest.mark.short
def test_the_guide_balances_a_cluster_and_a_second_run_changes_nothing(tmp_path):
    play = guide_blocks("proxmox.md")[0]
    cluster = small_cluster(task_seconds=0.1, ha_seconds=0.1)
    cluster.guests[100].ha = "started"
    cluster.guests[101].tags = cluster.guests[102].tags = "plb_anti_affinity_web"
    play[0]["vars"]["group_moves_poll"] = 1
    code, said = run(tmp_path, cluster, play)
    assert code == 0, said
    homes = [guest.node for guest in cluster.guests.values()]
    assert max(homes.count(node) for node in set(homes)) <= 3, "of seven guests on three nodes"
    assert cluster.guests[101].node != cluster.guests[102].node
    moved = list(cluster.started)
    assert len(moved) == len({guest for guest, _target in moved}), "nobody moved twice"
    code, said = run(tmp_path, cluster, play)
    assert code == 0, said
    assert cluster.started == moved


def storage_play(**more):
    """Return the guide's playbook that evens storages."""
    _first, play, *_others = guide_blocks("proxmox.md")
    play[0]["vars"] |= {"group_moves_poll": 1} | more
    return play


@pytest.mark.parametrize("way", [lambda play: play, by_pvesh], ids=["api", "pvesh"])
def test_disks_move_to_the_storage_that_has_room_and_a_second_run_changes_nothing(tmp_path, way):
    cluster = full_storage()
    cluster.guests[101].ha = "started"
    code, said = run(tmp_path, cluster, way(storage_play()), "--check")
    assert code == 0, said
    assert cluster.started == [], "nothing moves in check mode"
    assert re.search(r"vm\d move_disk scsi0 to fast", said), said
    code, said = run(tmp_path, cluster, way(storage_play()))
    assert code == 0, said
    assert len(cluster.started) == 2, said
    assert {target for _guest, target in cluster.started} == {"fast"}
    assert not any("unused0" in guest.config for guest in cluster.guests.values()), "what a disk leaves is deleted"
    assert {guest.node for guest in cluster.guests.values()} == {"pve1", "pve2"}
    moved = list(cluster.started)
    code, said = run(tmp_path, cluster, way(storage_play()))
    assert code == 0, said
    assert cluster.started == moved


@pytest.mark.parametrize("way", [lambda play: play, by_pvesh], ids=["api", "pvesh"])
def test_a_disk_that_could_not_be_moved_is_told_and_tried_again(tmp_path, way):
    cluster = full_storage()
    for guest in cluster.guests.values():
        guest.fails = "no space left"
    code, said = run(tmp_path, cluster, way(storage_play()))
    assert code == 2
    assert re.search(r"move_disk scsi0 to fast failed: .*no space left", said), said
    for guest in cluster.guests.values():
        guest.fails = ""
    code, said = run(tmp_path, cluster, way(storage_play()))
    assert code == 0, said
    assert sum(guest.config.get("scsi0", "").startswith("fast:") for guest in cluster.guests.values()) == 2


def test_a_volume_of_a_container_that_is_stopped_is_moved(tmp_path):
    cluster = full_storage()
    steps = {"kind": "move_disk", "from": ["pve2"], "to": ["pve2"], "node": "pve2"}
    disk = {"disk": "rootfs", "from_storage": "slow", "to_storage": "fast"}
    play = plays("200-ct", "pve2", "pve2")
    play[0]["vars"]["group_moves_plan"] = {
        "moves": [{"instance": "200-ct", "from": ["pve2"], "to": ["pve2"], **disk, "steps": [steps | disk], "after": [], "data": 0}],
        "stages": [[0]],
    }
    code, said = run(tmp_path, cluster, play)
    assert code == 0, said
    assert cluster.guests[200].config["rootfs"].startswith("fast:")
    assert ("POST", "/nodes/{node}/lxc/{vmid}/move_volume") in cluster.calls


def test_a_node_is_maintained_as_the_guide_says(tmp_path):
    cluster = small_cluster(task_seconds=0.1, ha_seconds=1.0)
    cluster.guests[100].ha = cluster.guests[101].ha = "started"
    play = guide_blocks("proxmox.md")[2]
    play[0]["hosts"] = "localhost"
    play[0]["vars"] |= {"group_moves_poll": 1, "node": "pve1"}
    code, said = run(tmp_path, cluster, play, "--check")
    assert code == 0, said
    assert (cluster.maintained, cluster.started) == ([], []), "nothing happens in check mode"
    begin = [{**play[0], "tasks": play[0]["tasks"][:4]}]
    code, said = run(tmp_path, cluster, begin)
    assert code == 0, said
    assert cluster.maintained == [("enable", "pve1")]
    assert not [guest.vmid for guest in cluster.guests.values() if guest.node == "pve1"]
    assert len(cluster.started) == len({guest for guest, _target in cluster.started}) == 6, "HA moved its own, the plan the others"
    code, said = run(tmp_path, cluster, play)
    assert code == 0, said
    assert cluster.maintained == [("enable", "pve1"), ("disable", "pve1")]


def rolling(folder, cluster, **more):
    """Return the guide's playbook that maintains all nodes, with work that writes down who runs where meanwhile."""
    play = guide_blocks("proxmox.md")[3]
    play[0]["hosts"] = "localhost"
    play[0]["tasks"][0]["vars"] |= {"group_moves_poll": 1} | more
    ask = "pvesh get /cluster/resources --type vm --output-format json"
    line = "{{ [group_moves_set, seen.stdout | from_json] | to_json }}"
    work = [
        {"command": ask, "register": "seen", "changed_when": False, "check_mode": False},
        {"lineinfile": {"path": "{{ playbook_dir }}/seen", "create": True, "line": line}},
    ]
    (folder / "work.yml").write_text(yaml.safe_dump(work))
    return play


def test_every_node_is_maintained_with_nobody_on_it_and_all_return(tmp_path):
    guests = [Guest(100, "pve1", "web", ha="started"), Guest(101, "pve1", "db")]
    guests += [Guest(200, "pve2", "dns", kind="lxc", config={"rootfs": "ceph:vm-200-disk-0,size=8G"})]
    cluster = Cluster({f"pve{number}": Machine() for number in (1, 2, 3)}, guests, task_seconds=0.1, ha_seconds=0.3)
    homes = {guest.vmid: guest.node for guest in cluster.guests.values()}
    code, said = run(tmp_path, cluster, rolling(tmp_path, cluster), "--check")
    assert code == 0, said
    assert (cluster.maintained, cluster.started) == ([], []), "nothing happens in check mode"
    (tmp_path / "seen").unlink(missing_ok=True)
    code, said = run(tmp_path, cluster, rolling(tmp_path, cluster))
    assert code == 0, said
    worked = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
    assert sorted(node for nodes, _guests in worked for node in nodes) == ["pve1", "pve2", "pve3"]
    assert max(len(nodes) for nodes, _guests in worked) == 2, "as many as the guide lets be down"
    for nodes, guests in worked:
        assert not [guest["vmid"] for guest in guests if guest["node"] in nodes], nodes
    for node in cluster.machines:
        assert [what for what, which in cluster.maintained if which == node] == ["enable", "disable"]
    cluster.clock.settle()
    assert {guest.vmid: guest.node for guest in cluster.guests.values()} == homes


def test_rolling_maintenance_begins_nothing_where_a_guest_has_to_stay(tmp_path):
    cluster = small_cluster(task_seconds=0.1)
    cluster.guests[103].config = {"scsi0": "local-lvm:vm-103-disk-0,size=10G"}
    code, said = run(tmp_path, cluster, rolling(tmp_path, cluster))
    assert code == 2
    assert "pve1 103-web3 its disks are on this node only. Nothing was begun." in said
    assert (cluster.maintained, cluster.started) == ([], [])
    code, said = run(tmp_path, cluster, rolling(tmp_path, cluster, group_moves_stay=True, group_moves_nodes=["pve1"]))
    assert code == 0, said
    assert cluster.guests[103].node == "pve1", "down with its node"


@pytest.mark.short
def test_a_token_that_may_only_read_moves_nothing(tmp_path):
    cluster = small_cluster()
    cluster.tokens["mover@pve!bareon"] = ("m0ve", cluster.tokens["auditor@pve!bareon"][1])
    code, said = run(tmp_path, cluster, plays("100-web0", "pve1", "pve2"))
    assert code == 2
    assert "403" in said
    assert cluster.started == []
