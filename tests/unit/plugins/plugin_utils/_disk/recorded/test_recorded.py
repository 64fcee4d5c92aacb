# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hardware from what others recorded: what they tell is in it, under the names that disk_facts finds; what they do not tell is told."""

from __future__ import annotations

import copy
import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.recorded import ansible_devices, ironic, lsblk, lshw, maas, redfish
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.recorded.machine import Recorded, to_hardware
from ansible_collections.bareon.allocator.tests.support.disk.planned import make_plan
from hypothesis import given, settings
from hypothesis import strategies as st

Plain = dict[str, t.Any]

DATA = Path(__file__).parents[4] / "data"
READERS: dict[str, t.Callable[[t.Any], Recorded]] = {
    "ansible_devices": ansible_devices.read,
    "ironic": ironic.read,
    "lsblk": lsblk.read,
    "lshw": lshw.read,
    "maas": maas.read,
    "redfish": redfish.read,
}
WWN = "/dev/disk/by-id/wwn-0x"
EUI = "/dev/disk/by-id/nvme-eui.0025385b91b00001"


def sample(source: str) -> t.Any:
    return json.loads((DATA / "recorded" / f"{source}.json").read_text(encoding="utf-8"))


def hardware(source: str, **better: t.Any) -> tuple[Plain, str]:
    facts, warnings = to_hardware(READERS[source](sample(source)), **better)
    return facts, "\n".join(warnings)


def told(facts: Plain, *keys: str) -> list[tuple[t.Any, ...]]:
    return [tuple(disk.get(key) for key in keys) for disk in facts["disks"]]


@pytest.mark.parametrize("source", READERS)
def test_what_is_recorded_can_be_planned(source: str) -> None:
    facts, warnings = hardware(source, firmware="uefi", ram=4096)
    assert (facts["firmware"], facts["ram"]) == ("uefi", 4096)
    assert warnings, "no source tells all"
    plan = make_plan([{"id": "data", "type": "partitions", "min_size": 1024, "mount": "/srv"}], facts)
    in_use = {disk["id"] for disk in facts["disks"] if disk.get("in_use")}
    assert {disk["disk_id"] for disk in plan["disks"]} == {disk["id"] for disk in facts["disks"]} - in_use
    assert {disk["disk_id"] for disk in plan["left_out_disks"]} == in_use


def test_ironic() -> None:
    facts, warnings = hardware("ironic")
    assert (facts["ram"], facts["firmware"]) == (196608, "uefi")
    assert told(facts, "id", "type", "size", "transport") == [
        ("/dev/disk/by-id/nvme-eui.01000000000000005cd2e4a1b2c3d451", "ssd", 1526185, "nvme"),
        (f"{WWN}5002538f42900001", "ssd", 457862, None),
        # What a controller extends is what udev names the disk by.
        (f"{WWN}6d0946600a1b2c002f3e4d5c6b7a8990", "hdd", 17166336, None),
    ]
    assert warnings == "Ironic's inspection does not say whether disks are in use and what is on the disks"
    assert to_hardware(ironic.read(sample("ironic")["inventory"])) == to_hardware(ironic.read(sample("ironic")))


def test_maas() -> None:
    facts, warnings = hardware("maas")
    assert (facts["ram"], facts["firmware"]) == (65536, "uefi")
    assert told(facts, "id", "type", "logical_block") == [
        (EUI, "ssd", 4096),
        (f"{WWN}5000c500a1b2c3d4", "hdd", 512),
        ("/dev/sdb", "hdd", 512),
    ]
    assert "MAAS gives /dev/sdb no durable name" in warnings
    assert "MAAS does not say whether /dev/sdb rotates" in warnings


def test_redfish_shows_volumes_instead_of_their_drives() -> None:
    facts, warnings = hardware("redfish")
    assert (facts["ram"], facts["firmware"]) == (131072, "uefi")
    assert told(facts, "id", "type", "serial") == [
        (EUI, "ssd", "S64FNE0R000001"),
        (f"{WWN}600508b1001c4d5e6f708192a3b4c5d6", "hdd", None),
    ]
    assert "2 drives are hidden behind volumes of a controller" in warnings
    drives, _warnings = to_hardware(redfish.read(sample("redfish")["drives"]))
    assert [disk["id"] for disk in drives["disks"]] == [EUI, f"{WWN}5000c500a1b2c3d4", f"{WWN}5000c500a1b2c3d8"]


def test_lshw() -> None:
    facts, warnings = hardware("lshw")
    assert (facts["ram"], facts["firmware"]) == (65536, "uefi")
    assert told(facts, "id", "type", "physical_block", "serial") == [
        (EUI, "ssd", 512, "S64FNE0R000001"),
        ("/dev/sda", "hdd", 4096, "WS20AAAA"),
    ]
    assert "lshw gives no size for /dev/vda, which is left out" in warnings
    assert "lshw gives /dev/sda no durable name" in warnings


def test_ansible_devices() -> None:
    facts, warnings = hardware("ansible_devices")
    assert facts["ram"] == 32051
    # Sectors are of 512 bytes, whatever the disk's are.
    assert told(facts, "id", "type", "size") == [(EUI, "ssd", 915715), (f"{WWN}5000c500a1b2c3d4", "hdd", 3815447)]
    assert [(part["number"], part["start"], part["size"]) for part in facts["disks"][1]["partitions"]] == [(1, 1, 512), (2, 513, 20480)]
    assert "how the machine boots" in warnings


@pytest.mark.parametrize("name", ["lsblk-O.vm.bookworm", "lsblk-O.vm.trixie", "lsblk-O.vm.after-storage"])
def test_lsblk_of_real_machines(name: str) -> None:
    facts, warnings = to_hardware(lsblk.read(json.loads((DATA / "hardware" / f"{name}.json").read_text(encoding="utf-8"))))
    disks = {disk["dev"]: disk for disk in facts["disks"]}
    assert disks["/dev/sda"]["id"] == f"{WWN}5000c500a1b2c3d4"
    assert disks["/dev/vda"]["in_use"] is True
    assert all(disk["size_bytes"] % (1024**2) == 0 for disk in disks.values())
    assert "without -b" not in warnings


def test_lsblk_without_bytes_gives_the_least_that_its_text_can_stand_for() -> None:
    data = {"blockdevices": [{"name": "sda", "type": "disk", "size": "447.1G", "rota": "0", "wwn": "0x5002538f42900001"}]}
    facts, warnings = to_hardware(lsblk.read(data))
    assert facts["disks"][0]["size"] == int(447.05 * 1024)
    assert any("without -b" in warning for warning in warnings)
    data["blockdevices"][0]["size"] = "large"
    with pytest.raises(InputError, match=r"blockdevices\[0\].size: is 'large'; must be a number of bytes"):
        lsblk.read(data)


@pytest.mark.parametrize(
    ("wwn", "link"),
    [
        ("0x5000C500A1B2C3D4", f"{WWN}5000c500a1b2c3d4"),
        ("naa.5000c500a1b2c3d4", f"{WWN}5000c500a1b2c3d4"),
        ("eui.0025385b91b00001", EUI),
        ("nvme.1b36-4e564d45", "/dev/disk/by-id/nvme-nvme.1b36-4e564d45"),
        ("0x0000000000000000", "/dev/sda"),
        ("t10.ATA     disk", "/dev/sda"),
    ],
)
def test_world_wide_names_are_udevs_links(wwn: str, link: str) -> None:
    data = {"disks": [{"name": "/dev/sda", "size": 2**30, "wwn": wwn}]}
    assert to_hardware(ironic.read(data))[0]["disks"][0]["id"] == link


@pytest.mark.parametrize("source", READERS)
@pytest.mark.parametrize("wrong", [None, [], {}, "text", 7, {"disks": 3}, [[]], {"blockdevices": [{"name": 1}]}, {"devices": {"sda": {}}}])
def test_what_is_no_record_is_one_message(source: str, wrong: t.Any) -> None:
    with pytest.raises(InputError):
        to_hardware(READERS[source](wrong))


def places(value: t.Any, path: tuple[t.Any, ...] = ()) -> t.Iterator[tuple[t.Any, ...]]:
    """Give the path of every value in plain data."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        yield from places(item, (*path, key))


@pytest.mark.parametrize("source", READERS)
@settings(deadline=None, derandomize=True)
@given(data=st.data())
def test_damage_is_a_message_or_no_harm(source: str, data: st.DataObject) -> None:
    damaged = copy.deepcopy(sample(source))
    path = data.draw(st.sampled_from(list(places(damaged))))
    wrong = data.draw(
        st.sampled_from([None, [], {}, "", "x", -1, 1.5, True, 10**30, ["x"], {"x": 1}, [None], "1" * 5000, "\x00", "\ud800", 10**400])
    )
    if path:
        at = damaged
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = wrong
    else:
        damaged = wrong
    try:
        facts, _warnings = to_hardware(READERS[source](damaged))
    except InputError:
        return
    assert all(disk["size"] > 0 and disk["id"] for disk in facts["disks"])
