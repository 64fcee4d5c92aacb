# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Proxmox VE cluster from end to end, as the guide says: read, balance, move, against a stand-in of the published API."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import yaml
from ansible_collections.bareon.allocator.tests.support.group.proxmox_standin import Cluster, Guest, Machine, serving, small_cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(folder, cluster, plays):
    """Run a playbook against a cluster; return the exit code and what was printed."""
    with serving(cluster) as (url, ca_path):
        variables = {"pve_url": url, "pve_ca": ca_path, "pve_token_id": "mover@pve!bareon", "pve_token_secret": "m0ve"}
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        (folder / "play.yml").write_text(yaml.safe_dump(plays, sort_keys=False))
        (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": {"localhost": local}, "vars": variables}}))
        ran = subprocess.run(
            [sys.executable, "-m", "ansible", "playbook", "-vv", "-i", "inventory.yml", "play.yml"],
            cwd=folder,
            env=os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"), "ANSIBLE_NOCOLOR": "1"},
            capture_output=True,
            text=True,
            timeout=300,
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


def test_a_machine_is_moved_live(tmp_path):
    cluster = small_cluster()
    code, said = run(tmp_path, cluster, plays("100-web0", "pve1", "pve2"))
    assert code == 0, said
    assert (cluster.guests[100].node, cluster.started) == ("pve2", [(100, "pve2")])


def test_a_container_is_restarted_whatever_options_machines_have(tmp_path):
    cluster = small_cluster()
    code, said = run(tmp_path, cluster, plays("200-dns", "pve2", "pve3", "failover", group_moves_proxmox_options=["with-local-disks=1"]))
    assert code == 0, said
    assert cluster.guests[200].node == "pve3"


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


class Patient(Cluster):
    """Its tasks end when somebody asks for one of them."""

    def _task_status(self, *asked):
        self._pending = [(0.0, happen) for _when, happen in self._pending]
        self._advance()
        return super()._task_status(*asked)


def test_a_migration_that_goes_on_already_is_not_begun_again(tmp_path):
    cluster = Patient({"pve1": Machine(), "pve2": Machine()}, [Guest(100, "pve1", "web0")], task_seconds=3600.0)
    headers = {"Authorization": "PVEAPIToken=mover@pve!bareon=m0ve"}
    cluster.answer("POST", "/nodes/pve1/qemu/100/migrate", {"target": "pve2", "online": "1"}, headers)
    code, said = run(tmp_path, cluster, plays("100-web0", "pve1", "pve2"))
    assert code == 0, said
    assert (cluster.guests[100].node, cluster.started) == ("pve2", [(100, "pve2")])


def guide_blocks(name):
    """Return the playbooks of the guide."""
    text = (ROOT / "docs" / name).read_text()
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def test_the_guide_balances_a_cluster_and_a_second_run_changes_nothing(tmp_path):
    (play,) = guide_blocks("proxmox.md")
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


def test_a_token_that_may_only_read_moves_nothing(tmp_path):
    cluster = small_cluster()
    cluster.tokens["mover@pve!bareon"] = ("m0ve", cluster.tokens["auditor@pve!bareon"][1])
    code, said = run(tmp_path, cluster, plays("100-web0", "pve1", "pve2"))
    assert code == 2
    assert "403" in said
    assert cluster.started == []
