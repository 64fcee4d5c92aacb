# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for Ignition and Butane. Ignition itself looks at it in tests/peers."""

from __future__ import annotations

import re
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._storage.unit_file import unit_name
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import ignition
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import data_plan, profile_plan, whole_plan

Plain = dict[str, t.Any]

# How Butane's keys are called in Ignition, after its specification.
BUTANE_KEYS = {
    **{"wipe_table": "wipeTable", "start_mib": "startMiB", "size_mib": "sizeMiB", "type_guid": "typeGuid"},
    **{"wipe_partition_entry": "wipePartitionEntry", "wipe_filesystem": "wipeFilesystem", "wipe_volume": "wipeVolume"},
    **{"mount_options": "mountOptions", "key_file": "keyFile"},
    **{
        key: key
        for key in (
            *("disks", "raid", "luks", "filesystems", "device", "partitions", "number", "label", "guid", "name", "level", "devices"),
            *("options", "format", "path", "clevis", "tpm2", "source"),
        )
    },
}


def config(plan: Plain, *, lossy: bool = False, key_file: str | None = None, tpm2: bool = True) -> Plain:
    return t.cast("Plain", write_plan(ignition.TARGET, plan, None, lossy=lossy, key_file=key_file, tpm2=tpm2).value)


def butane(plan: Plain, variant: str) -> Plain:
    made = write_plan(ignition.BUTANE_TARGET, plan, None, lossy=False, variant=variant, key_file=None, tpm2=True)
    return t.cast("Plain", made.value)


def as_ignition(value: t.Any) -> t.Any:
    """Return a part of a Butane configuration as Butane would write it; KeyError for a key that it does not know."""
    if isinstance(value, list):
        return [as_ignition(item) for item in value]
    if isinstance(value, dict):
        return {BUTANE_KEYS[key]: as_ignition(item) for key, item in value.items() if key != "with_mount_unit"}
    return value


def test_partitions_are_where_they_are_in_the_plan() -> None:
    plan = data_plan()
    made = {
        (disk["device"], part["number"], part["startMiB"], part["sizeMiB"], part["guid"], part["typeGuid"])
        for disk in config(plan)["storage"]["disks"]
        for part in disk["partitions"]
    }
    assert made == {
        (disk["name"], part["count"], part["begin"], part["end"] - part["begin"], part["uuid"], part["guid"])
        for disk in plan["schema"]["parteds"]
        for part in disk["partitions"]
    }


def test_what_is_mounted_has_a_unit_and_lies_on_what_is_made() -> None:
    made = config(data_plan())
    storage = made["storage"]
    devices = {f"/dev/disk/by-partuuid/{part['guid']}" for disk in storage["disks"] for part in disk["partitions"]}
    devices |= {f"/dev/md/{array['name']}" for array in storage["raid"]}
    assert all(set(array["devices"]) <= devices for array in storage["raid"])
    assert {container["device"] for container in storage["luks"]} <= devices
    devices |= {f"/dev/disk/by-id/dm-name-{container['name']}" for container in storage["luks"]}
    assert {entry["device"] for entry in storage["filesystems"]} <= devices
    units = {unit["name"]: unit["contents"] for unit in made["systemd"]["units"]}
    mounts = {re.search("Where=(.*)", text)[1]: text for name, text in units.items() if name.endswith(".mount")}  # type: ignore[index]
    assert set(mounts) == {entry["path"] for entry in storage["filesystems"] if entry.get("path")}
    assert "Options=nodev,noexec" in mounts["/var/log"]
    assert "var-log.mount" in units
    (swap,) = (text for name, text in units.items() if name.endswith(".swap"))
    assert next(entry["device"] for entry in storage["filesystems"] if entry["format"] == "swap") in swap


@pytest.mark.parametrize("variant", ["fcos", "flatcar"])
def test_butane_says_the_same(variant: str) -> None:
    made = butane(data_plan(), variant)
    assert (made["variant"], made["version"]) == (variant, ignition.BUTANE[variant])
    assert as_ignition(made["storage"]) == config(data_plan())["storage"]
    mounted = {entry["device"] for entry in made["storage"]["filesystems"] if entry.get("with_mount_unit")}
    assert mounted == {entry["device"] for entry in made["storage"]["filesystems"] if entry.get("path") or entry["format"] == "swap"}


def test_lvm_and_boot_partitions_are_losses_and_data_volumes_none() -> None:
    with pytest.raises(InputError) as caught:
        config(whole_plan())
    assert {mistake.place for mistake in caught.value.mistakes} == {"os", "root", "home", "esp", "boot"}
    left = config(whole_plan(), lossy=True)["storage"]
    assert "filesystems" not in left
    assert [array["name"] for array in left["raid"]] == ["boot", "mirror"]
    with pytest.raises(InputError, match="Ignition cannot make LVM"):
        config(profile_plan("kvm-host"))


def test_a_key_of_luks() -> None:
    (container,) = config(data_plan(), key_file="https://example.com/key", tpm2=False)["storage"]["luks"]
    assert (container["keyFile"], "clevis" in container) == ({"source": "https://example.com/key"}, False)


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("/", "-"),
        ("/var/lib/data", "var-lib-data"),
        ("/srv/my-data", "srv-my\\x2ddata"),
        ("/.hidden", "\\x2ehidden"),
        ("/dev/disk/by-partuuid/a1", "dev-disk-by\\x2dpartuuid-a1"),
        ("/a b/", "a\\x20b"),
    ],
)
def test_names_of_units_are_systemds(path: str, unit: str) -> None:
    """The expected names are what `systemd-escape --path` printed."""
    assert unit_name(path) == unit
