# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ignition, FAI's setup-storage and systemd-repart make plans in a machine; what disk_facts reads there then is the plan.

What each is known to do otherwise stands in its test.

All tests share one machine, which is emulated and slow; each begins with empty disks.
"""

from __future__ import annotations

import json
import shlex
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.compare import compare
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import fai, ignition, repart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, machine
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

Plain = dict[str, t.Any]

IMAGE = Path(__file__).parents[2] / ".build" / "installers" / "trixie"
GIB = 1024**3
DISKS = [Disk("FIRST", 10 * GIB), Disk("SECOND", 10 * GIB), Disk("SCSI", 12 * GIB, bus="scsi")]
# What Ignition brings into the initramfs of its systems: the program, and a rule by which systemd sees what LUKS has opened.
IGNITION = "/usr/lib/dracut/modules.d/30ignition"
CLEAN = """
grep -E '^/dev/(vd[b-z]|sd|md|mapper|dm)' /proc/mounts | cut -d ' ' -f 2 | xargs --no-run-if-empty --max-args 1 umount
swapoff -a; vgchange -an; for name in $(dmsetup ls --target crypt | sed -n 's/\t.*//p'); do cryptsetup close $name; done
mdadm --stop --scan
for disk in "$@"; do
    for part in $disk-part*; do [ ! -e $part ] || wipefs -aqf $part; done
    sgdisk --zap-all $disk >/dev/null
done
udevadm settle; rm -rf /run/ignition* /tmp/fai /run/systemd/system/*.mount /run/systemd/system/*.swap; mkdir -p /run/ignition /tmp/fai
"""
# Keys are none of this: on an emulated processor each one that is made hard to guess takes a minute.
CRYPTSETUP = """#!/bin/sh
case "$1" in luksFormat|luksAddKey) set -- "$@" --pbkdf pbkdf2 --pbkdf-force-iterations 1000;; esac
exec /usr/sbin/cryptsetup "$@"
"""
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DATA: list[Plain] = [
    {"id": "logs", "type": "partition", "size": 1000, "fs_type": "ext4", "mount": "/logs", "mount_options": "nodev,noexec"},
    {"id": "data", "type": "partition", "size": 3001, "fs_type": "xfs", "mount": "/srv", "fs_label": "data"},
    {"id": "paging", "type": "partition", "size": 512, "fs_type": "swap", "fs_label": "paging"},
    {"id": "secret", "type": "partition", "size": 1000, "fs_type": "ext4", "mount": "/secret", "encrypt": True},
    {"id": "pair", "type": "raid", "level": "raid1", "legs": 2, "size": 1500, "fs_type": "btrfs", "mount": "/pair"},
    {"id": "plain", "type": "partition", "size": 700},
    {"id": "exchange", "type": "partition", "size": 600, "fs_type": "vfat", "fs_label": "SMALL", "mount": "/exchange"},
]
SYSTEM: list[Plain] = [
    {"id": "boot", "type": "raid", "level": "raid1", "legs": 2, "size": 1024, "fs_type": "ext4", "mount": "/boot", "boot": True},
    {"id": "mirror", "type": "raid", "level": "raid1", "legs": 2, "size": 6000},
    {"id": "os", "type": "vg", "contains": ["mirror", "root", "home"], "encrypt": True},
    {"id": "root", "type": "lv", "size": 4096, "fs_type": "ext4", "mount": "/", "fs_label": "root"},
    {"id": "home", "type": "lv", "size": 1024, "fs_type": "xfs", "mount": "/home", "mount_options": "nodev,nosuid"},
]
UUIDS = ("FAI: setup-storage gives partitions UUIDs of its own, not those of the plan",)
OPENED = "setup-storage chooses the name of the LUKS container, which is {name} in the plan"
WIDE: list[Plain] = [
    {"id": "esp", "type": "esp", "size": 512, "mount": "/boot/efi"},
    {"id": "data", "type": "vg", "contains": ["one", "two"]},
    {"id": "one", "type": "lv", "size": 20000, "fs_type": "ext4", "mount": "/"},
    {"id": "two", "type": "lv", "size": 4000, "fs_type": "xfs", "mount": "/two"},
]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[LayoutHost]:
    if not (IMAGE / "root.img").exists():
        pytest.fail("there is no machine to start; as root run: make test-installers")
    with machine(IMAGE, tmp_path_factory.mktemp("machine"), DISKS) as started:
        found = LayoutHost(started)
        found.prepare(tmp_path_factory.mktemp("code"))
        started.run("sh", "-c", "cat >/usr/local/sbin/cryptsetup; chmod +x /usr/local/sbin/cryptsetup", text=CRYPTSETUP)
        found.shell(f"cp {IGNITION}/*.rules /etc/udev/rules.d/; udevadm control --reload")
        yield found


def plan_anew(host: LayoutHost, schema: list[Plain], disks: t.Sequence[Disk], firmware: str = "bios") -> tuple[Plain, Plain]:
    """Empty all disks, and plan on some of them; return the plan and the hardware."""
    host.machine.run("bash", "-s", "--", *(disk.link for disk in DISKS), text=CLEAN)
    hardware = facts(host, disks) | {"firmware": firmware}
    assert all(not disk["partitions"] for disk in hardware["disks"])
    return Planner(schema, Objective.FAIR, 0).plan(hardware), hardware


def facts(host: LayoutHost, disks: t.Sequence[Disk]) -> Plain:
    found = host.facts()
    return {**found, "disks": [disk for disk in found["disks"] if disk["id"] in {one.link for one in disks}]}


def ignite(host: LayoutHost, plan: Plain) -> None:
    """Have Ignition make a plan, and start the units that it would leave on the system."""
    made = write_plan(ignition.TARGET, plan, None, lossy=False, key_file="data:,correct%20horse", tpm2=False)
    assert made.warnings == ()
    host.machine.run("sh", "-c", "cat >/root/config.ign", text=json.dumps(made.value))
    for stage in ("fetch", "disks"):
        command = f"{IGNITION}/ignition -platform file -root / -stage {stage} -log-to-stdout"
        done = host.machine.attempt("env", PATH, "IGNITION_CONFIG_FILE=/root/config.ign", *shlex.split(command))
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    units = made.value["systemd"]["units"]
    for unit in units:
        host.machine.run("sh", "-c", f"cat >{shlex.quote('/run/systemd/system/' + unit['name'])}", text=unit["contents"])
    host.machine.run("systemctl", "daemon-reload")
    host.machine.run("systemctl", "start", *(unit["name"] for unit in units))


def set_up_storage(host: LayoutHost, plan: Plain, hardware: Plain) -> tuple[str, ...]:
    """Have FAI make a plan; return the warnings of the filter."""
    made = write_plan(fai.TARGET, plan, hardware, lossy=False, passphrase="correct horse")
    host.machine.run("sh", "-c", "cat >/root/disk_config", text=made.value)
    names = " ".join(disk["dev"].rsplit("/", 1)[-1] for disk in hardware["disks"])
    done = host.machine.attempt("env", PATH, "LOGDIR=/tmp/fai", f"disklist={names}", "setup-storage", "-X", "-f", "/root/disk_config")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return made.warnings


def repartition(host: LayoutHost, plan: Plain, disk: Disk) -> None:
    """Have systemd-repart make the plan of a disk."""
    made = write_plan(repart.TARGET, plan, None, lossy=False, disk=None, encrypt="key-file")
    host.shell("rm -rf /root/repart.d; mkdir /root/repart.d; printf 'correct horse' >/root/key")
    for name, text in made.value.items():
        host.machine.run("sh", "-c", f"cat >/root/repart.d/{name}", text=text)
    command = "systemd-repart --dry-run=no --empty=force --definitions=/root/repart.d --key-file=/root/key"
    done = host.machine.attempt(*command.split(), disk.link)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    host.shell("udevadm settle")


def differences(host: LayoutHost, plan: Plain, disks: t.Sequence[Disk], root: str = "/") -> list[str]:
    return [finding.says for finding in compare(plan, facts(host, disks), root)]


def test_ignition_makes_the_plan_and_its_units_use_it(host: LayoutHost) -> None:
    plan, _hardware = plan_anew(host, DATA, DISKS[:2])
    ignite(host, plan)
    assert differences(host, plan, DISKS[:2]) == []
    mounted = host.shell(
        "findmnt --noheadings --output TARGET /srv; findmnt --noheadings --output TARGET /pair; swapon --noheadings --show=TYPE"
    )
    assert mounted.split() == ["/srv", "/pair", "partition"]
    assert "noexec" in host.shell("findmnt --noheadings --output OPTIONS /logs")


def test_ignition_keeps_what_is_to_be_kept(host: LayoutHost) -> None:
    schema: list[Plain] = [
        {"id": "kept", "type": "partition", "size": 2000, "fs_type": "xfs", "mount": "/kept", "disks": [DISKS[0].link]},
        {"id": "new", "type": "partition", "size": 3000, "fs_type": "ext4", "mount": "/new", "disks": [DISKS[0].link]},
    ]
    plan, _hardware = plan_anew(host, schema, DISKS[:1])
    ignite(host, plan)
    host.shell("echo precious >/kept/file; echo old >/new/file; umount /kept /new; rm -rf /run/ignition/*")
    schema[0]["keep_data"] = True
    again = Planner(schema, Objective.FAIR, 0).plan(facts(host, DISKS[:1]))
    ignite(host, again)
    assert host.shell("cat /kept/file; ls /new").split() == ["precious", "lost+found"]
    assert differences(host, again, DISKS[:1]) == []


def test_setup_storage_makes_partitions_an_array_and_luks(host: LayoutHost) -> None:
    plan, hardware = plan_anew(host, DATA, DISKS[:2])
    assert set_up_storage(host, plan, hardware) == (*UUIDS, "FAI: secret: " + OPENED.format(name="secret-crypt"))
    # Types of partitions follow from what it knows to be on them.
    assert differences(host, plan, DISKS[:2], "/target") == [
        "partition 4 (secret) has type 0fc63daf-8483-4772-8e79-3d69d8477de4, in the plan ca7d7ccb-63ed-4c53-861c-1742536059cc",
        "partition 7 (exchange) has type ebd0a0a2-b9e5-4433-87c0-68b6b72699c7, in the plan 0fc63daf-8483-4772-8e79-3d69d8477de4",
    ]


def test_setup_storage_makes_volumes_on_luks_on_mirrors(host: LayoutHost) -> None:
    plan, hardware = plan_anew(host, SYSTEM, DISKS[:2])
    assert set_up_storage(host, plan, hardware)[:2] == (*UUIDS, "FAI: os: " + OPENED.format(name="os-crypt"))
    assert differences(host, plan, DISKS[:2], "/target") == []


def test_setup_storage_makes_a_group_over_disks_of_two_kinds(host: LayoutHost) -> None:
    plan, hardware = plan_anew(host, WIDE, DISKS, "uefi")
    assert set_up_storage(host, plan, hardware) == UUIDS
    assert differences(host, plan, DISKS, "/target") == []


def test_repart_makes_partitions_with_what_lies_on_them(host: LayoutHost) -> None:
    plan, _hardware = plan_anew(host, [space for space in DATA if space["type"] == "partition"], DISKS[:1])
    repartition(host, plan, DISKS[0])
    assert differences(host, plan, DISKS[:1]) == []
