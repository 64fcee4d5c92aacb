# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands by which ZFS pools are made, and what is not taken for granted."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.requirements import load_abilities, missing
from ansible_collections.bareon.allocator.plugins.module_utils._steps.step import Step
from ansible_collections.bareon.allocator.plugins.module_utils._steps.zfs import CreateDataset, CreateZpool, ExportZpool, SetProperties
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine

NAMES = (("/dev/sda1", "/dev/disk/by-id/wwn-a-part1"), ("/dev/sdb1", "/dev/disk/by-id/wwn-b-part1"))
PAIR = (("mirror", ("/dev/sda1", "/dev/sdb1")),)
LISTED = "zpool list -H -o name,guid,health"
TANK = "zfs get -H -p -o name,property,value all tank"
HOME = f"{TANK}/home"


def commands(step: Step, **answers: str) -> list[str]:
    machine = RecordingMachine(answers)
    step.run(machine)
    return [command for command in machine.commands if command not in (LISTED, TANK, HOME)]


def test_a_pool_is_made_by_lasting_names() -> None:
    step = CreateZpool("tank", PAIR, 12, (("mountpoint", "/tank"), ("recordsize", "1M")), NAMES)
    whole = {LISTED: "tank\t1\tONLINE\n", TANK: "tank\tmountpoint\t/tank\ntank\trecordsize\t1048576\n"}
    assert commands(step, **whole) == [
        "zpool create -o ashift=12 -O mountpoint=/tank -O recordsize=1M tank mirror /dev/disk/by-id/wwn-a-part1 /dev/disk/by-id/wwn-b-part1"
    ]
    assert step.devices == ("/dev/sda1", "/dev/sdb1")
    stripe = CreateZpool("tank", (("stripe", ("/dev/sda1", "/dev/sdb1")),), 9)
    assert commands(stripe, **whole) == ["zpool create -o ashift=9 tank /dev/sda1 /dev/sdb1"]


def test_datasets_are_made_and_set() -> None:
    there = {HOME: "tank/home\tquota\t1048576\ntank/home\tatime\toff\n"}
    properties = (("quota", "1048576"), ("atime", "off"))
    assert commands(CreateDataset("tank/home", properties), **there) == ["zfs create -o quota=1048576 -o atime=off tank/home"]
    assert commands(SetProperties("tank/home", properties), **there) == [
        "zfs set quota=1048576 tank/home",
        "zfs set atime=off tank/home",
    ]
    assert commands(ExportZpool("tank")) == ["zpool export tank"]


def test_what_came_of_it_is_looked_at() -> None:
    with pytest.raises(StepFailed, match="the ZFS pool tank is DEGRADED after it was made"):
        commands(CreateZpool("tank", PAIR, 12), **{LISTED: "tank\t1\tDEGRADED\n"})
    with pytest.raises(StepFailed, match="the ZFS pool tank is not there"):
        commands(CreateZpool("tank", PAIR, 12), **{LISTED: "other\t1\tONLINE\n"})
    with pytest.raises(StepFailed, match="compression of tank/home is gzip after it was set to gzip-6; write it in the schema as zfs get"):
        commands(SetProperties("tank/home", (("compression", "gzip-6"),)), **{HOME: "tank/home\tcompression\tgzip\n"})


def test_a_zfs_that_does_not_run_is_told_before_the_first_step() -> None:
    step, can_come = CreateZpool("tank", PAIR, 12), "modprobe --dry-run zfs"
    assert missing(RecordingMachine({LISTED: ""}), [step]) == ()
    assert missing(RecordingMachine({can_come: ""}), [step]) == ()
    (says,) = missing(RecordingMachine(), [step])
    assert "ZFS does not run on this host" in says
    (says,) = missing(RecordingMachine(tools=[]), [step])
    assert "there is no zpool on this host: install the package zfsutils-linux (of contrib) on Debian" in says
    for answers, loaded in (({LISTED: ""}, []), ({}, ["modprobe zfs"])):
        machine = RecordingMachine(answers)
        load_abilities(machine, [step])
        assert [event[1] for event in machine.events if event[1] != LISTED] == loaded
