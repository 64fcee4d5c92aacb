# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for Kickstart is what pykickstart reads, by the grammar of each version: sizes, disks, mounts, and what lies on what."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import kickstart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Written, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import (
    data_plan,
    hardware,
    make_plan,
    profile_plan,
    profiles_of_all_targets,
    whole_plan,
)
from pykickstart.parser import KickstartParser
from pykickstart.version import makeVersion

Plain = dict[str, t.Any]

GRAMMARS = {"RHEL7": ["RHEL7"], "RHEL8": ["RHEL8"], "RHEL9": ["RHEL9"], "RHEL10": ["RHEL10"], "Fedora": ["F40", "F42"]}


def written(plan: Plain, version: str = "RHEL9", *, lossy: bool = False, passphrase: str | None = "correct horse") -> Written:
    return write_plan(kickstart.TARGET, plan, None, lossy=lossy, version=version, passphrase=passphrase)


def parsed(text: str, grammar: str) -> t.Any:
    """Return what pykickstart makes of a text; it raises for each word that the grammar does not know."""
    handler = makeVersion(grammar)
    KickstartParser(handler).readKickstartFromString(text)
    return handler


def sizes_on_disks(plan: Plain, lost: t.Container[str]) -> list[tuple[str, int]]:
    # Of several ESPs the first is mounted, and Kickstart makes no file system that is not.
    unmounted = {entry["device"] for entry in plan["schema"]["fss"] if entry["mount"] == "none"}
    return sorted(
        (disk["name"].removeprefix("/dev/"), part["end"] - part["begin"])
        for disk in plan["schema"]["parteds"]
        for part in disk["partitions"]
        if part["space_id"] not in lost and part["name"] not in unmounted
    )


def check(plan: Plain, handler: t.Any, lost: t.Container[str] = ()) -> None:
    """Hold what Anaconda would make against the plan; `lost` are spaces that Kickstart has no words for."""
    assert sorted((part.disk, part.size) for part in handler.partition.partitions) == sizes_on_disks(plan, lost)
    volumes = {(volume.vgname, volume.name): volume.size for volume in handler.logvol.lvList}
    assert volumes == {
        (volume["vgname"], volume["name"]): volume["size"] for volume in plan["schema"]["lvs"] if volume["space_id"] not in lost
    }
    assert {group.vgname: len(group.physvols) for group in handler.volgroup.vgList} == {
        group["name"]: len(group["pvnames"]) for group in plan["schema"]["vgs"]
    }
    assert {(array.device, f"raid{array.level.lower().removeprefix('raid')}", len(array.members)) for array in handler.raid.raidList} == {
        (array["name"].rsplit("/", 1)[-1], array["level"], len(array["devices"])) for array in plan["schema"]["mds"]
    }
    made = [*handler.partition.partitions, *handler.raid.raidList, *handler.logvol.lvList]
    mounts = {thing.mountpoint: (thing.fstype or "", thing.fsopts or "defaults") for thing in made if thing.mountpoint.startswith("/")}
    planned = {entry["mount"]: entry for entry in plan["schema"]["fss"] if entry["mount"].startswith("/")}
    assert set(mounts) == set(planned)
    for mount, (kind, options) in mounts.items():
        assert kind == ("efi" if mount == "/boot/efi" else planned[mount]["fs_type"])
        assert options == planned[mount]["fstab_options"] or mount == "/boot/efi"
    assert sum(thing.mountpoint == "swap" for thing in made) == sum(entry["fs_type"] == "swap" for entry in plan["schema"]["fss"])
    names = [part.mountpoint for part in (*handler.partition.partitions, *handler.raid.raidList) if "." in part.mountpoint]
    used = [name for array in handler.raid.raidList for name in array.members] + [
        name for group in handler.volgroup.vgList for name in group.physvols
    ]
    assert sorted(names) == sorted(used), "every part of an array or group is made once and used once"
    drives = {disk["name"].removeprefix("/dev/") for disk in plan["schema"]["parteds"]}
    assert set(handler.ignoredisk.onlyuse) == set(handler.clearpart.drives) == drives


@pytest.mark.parametrize("firmware", ["uefi", "bios"])
@pytest.mark.parametrize("profile", profiles_of_all_targets())
def test_profiles_are_read_as_planned(profile: str, firmware: str) -> None:
    plan = profile_plan(profile, firmware)
    for version, grammars in GRAMMARS.items():
        made = written(plan, version, lossy=True)
        lost = {warning.split(": ")[1] for warning in made.warnings if "nothing uses" in warning}
        assert bool(lost) == (profile == "ceph-osd-nvme"), "only OSDs have volumes without a file system; whole disks are not in the schema"
        for grammar in grammars:
            check(plan, parsed(made.value, grammar), lost)


@pytest.mark.parametrize("version", GRAMMARS)
def test_luks_below_a_group_on_a_mirror(version: str) -> None:
    plan = whole_plan("bios")
    made = written(plan, version)
    for grammar in GRAMMARS[version]:
        handler = parsed(made.value, grammar)
        check(plan, handler)
        below = next(array for array in handler.raid.raidList if array.device == "mirror")
        assert (below.encrypted, below.passphrase) == (True, "correct horse")
        assert version == "RHEL7" or below.luks_version == "luks2"
        assert handler.bootloader.bootDrive == plan["schema"]["parteds"][0]["name"].removeprefix("/dev/")
        assert sum(part.mountpoint == "biosboot" for part in handler.partition.partitions) == 2
    assert any("LUKS1" in warning for warning in made.warnings) == (version == "RHEL7")


def test_what_has_no_words_is_named_with_its_reason() -> None:
    with pytest.raises(InputError) as caught:
        written(data_plan())
    places = {mistake.place: mistake.says for mistake in caught.value.mistakes}
    assert places["plain"] == "Kickstart makes no device that nothing uses; with lossy: true it is left out"
    assert "without a mount point" in places["spare-room"]
    assert places["pair"].startswith("Anaconda of RHEL9 cannot make btrfs")
    assert set(places) == {"plain", "spare-room", "pair"}
    lossy = written(data_plan(), lossy=True)
    assert {"Kickstart: plain: Kickstart makes no device that nothing uses; left out"} <= set(lossy.warnings)
    kept = {part.mountpoint for part in parsed(lossy.value, "RHEL9").partition.partitions}
    assert {"/var/log", "/srv", "swap", "/secret"} <= kept


def test_btrfs_has_a_command_of_its_own_in_fedora() -> None:
    schema = [{"id": "data", "type": "partition", "fs_type": "btrfs", "mount": "/data", "fs_label": "big data"}]
    plan = make_plan(schema, hardware([("ssd", 10)]))
    handler = parsed(written(plan, "Fedora").value, "F42")
    (volume,) = handler.btrfs.btrfsList
    assert (volume.mountpoint, volume.label, volume.devices) == ("/data", "big data", [handler.partition.partitions[0].mountpoint])


def test_labels_and_options_survive_quoting() -> None:
    schema = [{"id": "a", "type": "partition", "fs_type": "xfs", "mount": "/a$b", "fs_label": "it's", "fs_options": "-m crc=1 -i size=512"}]
    plan = make_plan(schema, hardware([("ssd", 10)]))
    (part,) = parsed(written(plan).value, "RHEL9").partition.partitions
    assert (part.mountpoint, part.label, part.mkfsopts) == ("/a$b", "it's", "-m crc=1 -i size=512")


def test_a_second_esp_is_lost_by_name() -> None:
    with pytest.raises(InputError, match=r"esp: Kickstart makes one ESP, not that on .*0001-part1 as well; a raid1 with boot"):
        written(whole_plan("uefi"))
