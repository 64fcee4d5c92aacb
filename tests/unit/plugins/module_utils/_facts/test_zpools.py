# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is told of ZFS pools, and that nobody is asked for any where no disk has a device of one."""

from __future__ import annotations

import yaml
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Filesystem, Tree
from ansible_collections.bareon.allocator.plugins.module_utils._facts.zpools import describe_zpools
from ansible_collections.bareon.allocator.plugins.modules import disk_facts
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import new_host

STATUS = "config:\n\n\tNAME\n\ttank  ONLINE\n\t  /dev/sda1  ONLINE\n\tcache\n\t  /dev/sdb1  ONLINE\n\nerrors: none\n"
ANSWERS = {
    "zpool list -H -o name,guid,health": "tank\t7\tONLINE\n",
    "zpool status tank": STATUS,
    "zfs get -r -H -p -s local -o name,property,value all tank": "tank/home\tquota\t5\n",
    "zfs list -r -H -t filesystem,volume -o name,mounted,mountpoint tank": "tank\tno\tnone\ntank/home\tyes\t/home\n",
}


def tree(kind: str) -> Tree:
    devices = dict(new_host().present().tree.devices)
    name = next(iter(devices))
    devices[name] = devices[name].__class__(**{**vars(devices[name]), "filesystem": Filesystem(kind, "7", "tank")})
    return Tree(devices)


def test_pools_are_told_with_what_they_lie_on_and_what_is_in_them() -> None:
    (tank,) = describe_zpools(RecordingMachine(ANSWERS), tree("zfs_member")) or []
    assert tank == {
        "name": "tank",
        "guid": "7",
        "health": "ONLINE",
        "vdevs": [
            {"name": "/dev/sda1", "part": "data", "devices": ["/dev/sda1"]},
            {"name": "/dev/sdb1", "part": "cache", "devices": ["/dev/sdb1"]},
        ],
        "datasets": [
            {"name": "tank", "mounted": False, "mountpoint": "none", "properties": {}},
            {"name": "tank/home", "mounted": True, "mountpoint": "/home", "properties": {"quota": "5"}},
        ],
    }
    told = yaml.safe_load(disk_facts.RETURN)["ansible_facts"]["contains"]["bareon_hardware"]["contains"]["zpools"]["contains"]
    assert set(told) == set(tank)
    for key in ("vdevs", "datasets"):
        assert set(told[key]["contains"]) == set(tank[key][0])


def test_nothing_is_told_where_there_is_no_pool_or_no_answer() -> None:
    machine = RecordingMachine(ANSWERS)
    assert describe_zpools(machine, tree("ext4")) is None
    assert machine.commands == []
    assert describe_zpools(RecordingMachine(), tree("zfs_member")) is None
