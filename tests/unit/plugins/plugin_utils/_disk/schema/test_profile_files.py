# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The profiles that come with the collection, planned on the machines of the sample fleet and on small virtual ones."""

from __future__ import annotations

import functools
import pathlib

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, merge

ROOT = pathlib.Path(__file__).parents[6]
NAMES = sorted(path.stem for path in PROFILES.glob("*.yml"))
EXTENT = 4


@functools.cache
def machines():
    """Return hardware by name: the sample fleet, and virtual machines of 8 GiB."""
    sample = yaml.safe_load((ROOT / "playbooks" / "inventory" / "sample.yml").read_text())
    hosts = sample["all"]["children"]["sample"]["hosts"]
    small = {"ram": 1024, "disks": [{"id": "vda", "dev": "/dev/vda", "size": 8192, "type": "hdd", "transport": "virtio"}]}
    return {
        **{name: variables["bareon_known_hardware"] for name, variables in hosts.items()},
        "vm-8g-uefi": {**small, "firmware": "uefi"},
        "vm-8g-bios": {**small, "firmware": "bios", "ram": 65536},
    }


@functools.cache
def profile(name):
    return yaml.safe_load((PROFILES / f"{name}.yml").read_text())


@functools.cache
def planned(name, machine):
    return Planner(profile(name)["schema"]).plan(machines()[machine])


ALL = frozenset(machines())
SMALL = {"vm-8g-uefi", "vm-8g-bios"}
ONE_DISK = {"web-1u", "nuc", *SMALL}
MACHINES = {
    "general": ALL,
    "cis-hardened": ALL,
    "web-vm": ALL,
    "database": ALL - ONE_DISK,
    "ceph-osd": {"app-mixed", "ceph-hdd", "jbod-60", "sas-4kn", "vm-virtio"},
    "ceph-osd-nvme": {"ceph-nvme", "nvme-1u", "gpu-node", "database", "hci-node", "web-1u"},
    "kvm-host": ALL - ONE_DISK - {"vm-virtio"},
    "lab-host": ALL - ONE_DISK - {"vm-virtio"},
    "kubernetes-node": ALL - SMALL,
    "elasticsearch-hot": ALL - SMALL,
    "elasticsearch-warm": ALL - ONE_DISK - {"vm-virtio"},
    "file-server": ALL - ONE_DISK - {"vm-virtio"},
    "hadoop-jbod": ALL - SMALL,
    "kafka-jbod": ALL - SMALL,
    "software-raid-boot": ALL - ONE_DISK,
}
"""Where each profile makes sense."""

PAIRS = [(name, machine) for name in NAMES for machine in sorted(MACHINES[name])]


def sizes(plan):
    """Return MiB by space: what lies on disks, and volumes."""
    found = {volume["space_id"]: volume["size"] for volume in plan["schema"]["lvs"]}
    for disk in plan["disks"]:
        for space in disk["spaces"]:
            found[space["space_id"]] = found.get(space["space_id"], 0) + space["size"]
    return found


def disks_of(plan, space_id):
    return [disk["disk_id"] for disk in plan["disks"] if any(space["space_id"] == space_id for space in disk["spaces"])]


def array(plan, space_id):
    return next(item for item in plan["schema"]["mds"] if item["space_id"] == space_id)


def type_of(machine, disk_id):
    return next(disk for disk in machines()[machine]["disks"] if disk["id"] == disk_id)


def test_every_profile_is_tested_on_five_shapes_or_more():
    assert set(NAMES) == set(MACHINES)
    assert all(len(names) >= 5 for names in MACHINES.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_profile_says_why(name):
    content = profile(name)
    assert set(content) - {"idle"} == {"description", "why", "schema"}
    assert content["description"].strip().endswith(".")
    spaces = {space["id"] for space in content["schema"]}
    assert set(content["why"]) <= spaces
    assert len(content["why"]) >= len(spaces) / 2


@pytest.mark.parametrize("name", NAMES)
def test_every_profile_cites_what_it_follows(name):
    cited = [word for text in profile(name)["why"].values() for word in text.split() if "https://" in word]
    assert cited
    assert all(word.lstrip("(").startswith("https://") for word in cited)


@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_plans_are_whole_and_within_bounds(name, machine):
    plan = planned(name, machine)
    found = sizes(plan)
    for disk in plan["disks"]:
        assert disk["unallocated"] >= 0
        assert sum(space["size"] for space in disk["spaces"]) + disk["unallocated"] in {disk["size"], disk["size"] - 2}
    for space in profile(name)["schema"]:
        if space["type"] == "lv" and space["id"] not in {left["id"] for left in plan["left_out"]}:
            assert space["id"] in found, space["id"]
            assert found[space["id"]] >= mib(space.get("min_size", 0))
            if not str(space.get("max_size", "yaql")).startswith("yaql"):
                assert found[space["id"]] <= mib(space["max_size"]) + EXTENT


def mib(size):
    number, _blank, unit = str(size).partition(" ")
    return float(number) * {"": 1, "MiB": 1, "GiB": 1024, "TiB": 1024**2}[unit]


@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_the_machine_can_start(name, machine):
    plan = planned(name, machine)
    needed = {"uefi": {"esp", "efi"}, "bios": {"bios_grub"}}[machines()[machine]["firmware"]]
    carriers = disks_of(plan, "boot")
    assert carriers
    for disk_id in carriers:
        assert any(disk_id in disks_of(plan, space_id) for space_id in needed)
    assert {"/", "/boot", "/var"} <= {filesystem["mount"] for filesystem in plan["schema"]["fss"]}


def test_general_leaves_all_disks_but_those_of_the_system_alone():
    for machine in sorted(ALL):
        plan = planned("general", machine)
        assert {disk["disk_id"] for disk in plan["disks"] if disk["spaces"]} == set(disks_of(plan, "boot"))


def test_the_wish_for_a_mirror_can_be_taken_back_or_made_a_demand():
    schema = profile("general")["schema"]
    alone = merge(schema, [{"id": "boot", "mirror": None}, {"id": "os", "mirror": None}])
    plan = Planner(alone).plan(machines()["nvme-1u"])
    assert len(disks_of(plan, "os")) == 1
    assert plan["warnings"] == []
    demanded = merge(schema, [{"id": "boot", "mirror": "required"}, {"id": "os", "mirror": "required"}])
    assert Planner(demanded).plan(machines()["nvme-1u"])["disks"] == planned("general", "nvme-1u")["disks"]
    with pytest.raises(NoSolution, match="boot needs disks of one transport"):
        Planner(demanded).plan(machines()["web-1u"])


def test_general_starts_from_an_ssd_where_there_is_one():
    for machine in ("app-mixed", "ceph-hdd", "jbod-60", "database"):
        for system in disks_of(planned("general", machine), "boot"):
            assert type_of(machine, system)["type"] == "ssd"
            built_in = [disk for disk in machines()[machine]["disks"] if disk["transport"] != "usb"]
            assert type_of(machine, system)["size"] == min(disk["size"] for disk in built_in if disk["type"] == "ssd")


def test_web_vm_uses_every_virtual_disk():
    assert all(disk["spaces"] for disk in planned("web-vm", "vm-virtio")["disks"])


def test_the_log_of_a_database_has_its_own_nvme_drives():
    plan = planned("database", "database")
    assert {type_of("database", disk)["model"] for disk in disks_of(plan, "wal")} == {"INTEL SSDPF21Q400GB"}
    assert {type_of("database", disk)["model"] for disk in disks_of(plan, "data")} == {"KIOXIA KCM61VUL3T20"}
    assert array(plan, "data")["level"] == "raid10"


def test_two_disks_make_a_database_a_mirror():
    assert array(planned("database", "nvme-1u"), "data")["level"] == "raid1"


def test_a_ceph_node_gives_every_hard_disk_to_an_osd():
    plan = planned("ceph-osd", "ceph-hdd")
    assert len(disks_of(plan, "osd")) == 12
    assert {type_of("ceph-hdd", disk)["type"] for disk in disks_of(plan, "osd")} == {"hdd"}
    assert {type_of("ceph-hdd", disk)["transport"] for disk in disks_of(plan, "ceph-db")} == {"nvme"}


def test_a_ceph_node_of_nvme_drives_uses_them_all():
    plan = planned("ceph-osd-nvme", "ceph-nvme")
    whole = {disk["disk_id"] for disk in plan["whole_disks"]}
    assert len(whole) == 22
    volumes = {group["space_id"]: disks_of(plan, group["space_id"]) for group in plan["schema"]["vgs"] if group["space_id"] != "os"}
    assert {len(disks) for disks in volumes.values()} == {1}
    assert sorted(disk for disks in volumes.values() for disk in disks) == sorted({disk["disk_id"] for disk in plan["disks"]} - whole)


@pytest.mark.parametrize("name", ["ceph-osd", "ceph-osd-nvme"])
def test_ceph_gets_whole_disks_and_volumes_but_no_partitions(name):
    for machine in sorted(MACHINES[name]):
        plan = planned(name, machine)
        with_table = {disk["disk_id"] for disk in plan["schema"]["parteds"]}
        whole = {(disk["disk_id"], disk["space_id"]) for disk in plan["whole_disks"]} if "whole_disks" in plan else set()
        assert whole == {(disk, space) for space in ("osd", "ceph-db") for disk in disks_of(plan, space)}
        assert not with_table & {disk for disk, _space in whole}
        assert whole or [volume for volume in plan["schema"]["lvs"] if volume["space_id"].startswith("osd")]


def test_guests_lie_on_striped_mirrors_of_equal_disks():
    plan = planned("kvm-host", "hci-node")
    assert array(plan, "mirror")["level"] == "raid10"
    assert len({type_of("hci-node", disk)["size"] for disk in disks_of(plan, "mirror")}) == 1


def test_a_kubernetes_node_leaves_disks_for_storage_drivers():
    plan = planned("kubernetes-node", "ceph-nvme")
    assert len(disks_of(plan, "containers")) == 1
    assert sum(not disk["spaces"] for disk in plan["disks"]) == 21
    assert not [filesystem for filesystem in plan["schema"]["fss"] if filesystem["fs_type"] == "swap"]


def test_hot_data_is_on_nvme_and_warm_data_on_hard_disks():
    hot, warm = planned("elasticsearch-hot", "ceph-hdd"), planned("elasticsearch-warm", "ceph-hdd")
    assert {type_of("ceph-hdd", disk)["transport"] for disk in disks_of(hot, "hot")} == {"nvme"}
    assert {type_of("ceph-hdd", disk)["type"] for disk in disks_of(warm, "warm")} == {"hdd"}
    assert array(warm, "warm")["level"] == "raid6"


@pytest.mark.parametrize(("name", "mount"), [("hadoop-jbod", "/data"), ("kafka-jbod", "/kafka")])
def test_every_data_disk_has_its_own_file_system(name, mount):
    plan = planned(name, "jbod-60")
    mounts = [filesystem["mount"] for filesystem in plan["schema"]["fss"] if filesystem["space_id"] == "data"]
    assert mounts == [f"{mount}{at}" for at in range(1, 61)]
    assert {array["space_id"] for array in plan["schema"]["mds"]} == {"boot", "os_mirror"}


def test_the_hardened_server_has_what_the_benchmarks_name():
    filesystems = {item["mount"]: item["fstab_options"].split(",") for item in planned("cis-hardened", "web-1u")["schema"]["fss"]}
    for mount in ("/tmp", "/var/tmp", "/var/log", "/var/log/audit"):
        assert {"nodev", "nosuid", "noexec"} <= set(filesystems[mount])
    for mount in ("/var", "/home"):
        assert {"nodev", "nosuid"} <= set(filesystems[mount])


def test_firmware_can_read_the_mirrored_esp():
    plan = planned("software-raid-boot", "app-mixed")
    assert array(plan, "efi")["metadata"] == array(plan, "boot")["metadata"] == "1.0"
    assert next(item for item in plan["schema"]["fss"] if item["mount"] == "/boot/efi")["device"] == array(plan, "efi")["name"]


@pytest.mark.parametrize("name", ["database", "kvm-host", "elasticsearch-warm", "software-raid-boot"])
def test_a_mirror_on_one_disk_is_refused(name):
    with pytest.raises(NoSolution, match="needs 2 disks"):
        planned(name, "web-1u")


def test_swap_follows_the_memory():
    for machine, expected in (("web-1u", 31859 // 2), ("bios-old", 16004 // 2), ("gpu-node", 4096)):
        assert sizes(planned("general", machine))["swap"] == pytest.approx(expected, abs=EXTENT)
