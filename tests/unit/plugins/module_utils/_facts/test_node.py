# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server's CPUs, NUMA nodes, GPUs and network cards, of a sysfs written into a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import LocalHost
from ansible_collections.bareon.allocator.plugins.module_utils._facts.node import NETWORK, NODES, PCI, read_node


class Folder(LocalHost):
    """A real file system, the root of which is a folder."""

    def __init__(self, root):
        super().__init__()
        object.__setattr__(self, "root", root)

    def read(self, path):
        return super().read(f"{self.root}{path}")

    def names(self, path):
        return super().names(f"{self.root}{path}")

    def resolve(self, path):
        found = super().resolve(f"{self.root}{path}")
        return found.removeprefix(str(self.root)) if found else None


def write(folder: Path, files):
    for path, text in files.items():
        target = Path(f"{folder}{path}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + "\n", encoding="utf-8")


def pci(address, kind, vendor, device, node="0", **more):
    files = {"class": kind, "vendor": f"0x{vendor}", "device": f"0x{device}", "numa_node": node, **more}
    return {f"{PCI}/{address}/{name}": text for name, text in files.items()}


def link(folder, path, target):
    place = Path(f"{folder}{path}")
    place.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(f"{folder}{target}", place)


def interface(folder, name, address, **files):
    write(folder, {f"{NETWORK}/{name}/{key}": text for key, text in {"type": "1", "address": "08:c0:eb:00:00:01", **files}.items()})
    if address:
        link(folder, f"{NETWORK}/{name}/device", f"{PCI}/{address}")


@pytest.fixture
def server(tmp_path):
    write(
        tmp_path,
        {
            "/sys/devices/system/cpu/online": "0-7,16",
            "/proc/meminfo": "MemTotal:       16384000 kB",
            f"{NODES}/node0/cpulist": "0-3,16",
            f"{NODES}/node0/meminfo": "Node 0 MemTotal:        8192000 kB\nNode 0 MemFree: 1 kB",
            f"{NODES}/node10/cpulist": "",
            f"{NODES}/node10/meminfo": "Node 10 MemTotal:        1024 kB",
            f"{NODES}/node2/cpulist": "4-7",
            f"{NODES}/node2/meminfo": "",
            f"{NODES}/has_cpu": "0-1",
            **pci("0000:3b:00.0", "0x030200", "10de", "2330", "1"),
            **pci("0000:03:00.0", "0x030000", "1a03", "2000"),
            **pci("0000:c1:00.0", "0x038000", "1002", "740f", "-1"),
            **pci("0000:d1:00.0", "0x120000", "8086", "0b69"),
            **pci("0000:1a:00.0", "0x020000", "15b3", "101d", "1", sriov_totalvfs="127"),
            **pci("0000:1a:00.2", "0x020000", "15b3", "101e", "1"),
            **pci("0000:05:00.0", "0x020700", "15b3", "101b"),
            **pci("0000:3b:00.4", "0x030200", "10de", "2330", "1"),
        },
    )
    write(tmp_path, {f"{PCI}/0000:1a:00.2/physfn/vendor": "0x15b3", f"{PCI}/0000:3b:00.4/physfn/vendor": "0x10de"})
    interface(tmp_path, "ens1f0np0", "0000:1a:00.0", speed="100000")
    interface(tmp_path, "ens1f0v0", "0000:1a:00.2", speed="100000")
    interface(tmp_path, "ib0", "0000:05:00.0", type="32", speed="-1")
    interface(tmp_path, "wlan0", "0000:05:00.0", type="801")
    interface(tmp_path, "lo", None, type="772")
    interface(tmp_path, "br0", None, speed="1000")
    return Folder(tmp_path)


def test_cpus_memory_and_nodes_in_their_order(server):
    found = read_node(server)
    assert (found["cpus"], found["memory"]) == (9, 16000)
    assert found["numa"] == [{"cpus": "0-3,16", "memory": 8000}, {"cpus": "4-7", "memory": 0}, {"cpus": "", "memory": 1}]


def test_gpus_are_those_that_compute(server):
    assert read_node(server)["gpus"] == [
        {"address": "0000:3b:00.0", "vendor": "10de", "device": "2330", "numa_node": 1},
        {"address": "0000:c1:00.0", "vendor": "1002", "device": "740f", "numa_node": None},
        {"address": "0000:d1:00.0", "vendor": "8086", "device": "0b69", "numa_node": 0},
    ]


def test_network_cards_are_the_physical_functions(server):
    ethernet, infiniband = read_node(server)["nics"]
    assert ethernet == {
        "name": "ens1f0np0",
        "address": "0000:1a:00.0",
        "vendor": "15b3",
        "device": "101d",
        "numa_node": 1,
        "mac": "08:c0:eb:00:00:01",
        "speed": 100000,
        "vfs": 127,
    }
    assert (infiniband["name"], infiniband["speed"], infiniband["vfs"]) == ("ib0", None, 0)


def test_a_host_that_shows_nothing_has_nothing(tmp_path):
    assert read_node(Folder(tmp_path)) == {"cpus": None, "memory": None, "numa": [], "gpus": [], "nics": []}


def test_this_machine_can_be_read():
    found = read_node(LocalHost())
    assert found["cpus"] is None or found["cpus"] >= 1
    assert all(gpu["address"] for gpu in found["gpus"])
