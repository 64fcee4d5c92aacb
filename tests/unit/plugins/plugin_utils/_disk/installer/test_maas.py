# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for MAAS: by a JSON Schema of its keys, and by a stand-in of its models, which refuses what they refuse.

The stand-in restates MAAS' get_storage_layout, PartitionTable, FilesystemGroup and VirtualBlockDevice.
"""

from __future__ import annotations

import json
import pathlib
import random
import typing as t

import jsonschema
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import maas
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Written, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import (
    data_plan,
    hardware,
    make_plan,
    profile_hardware,
    profile_plan,
    profiles_of_all_targets,
    whole_plan,
)

Plain = dict[str, t.Any]

SCHEMA = json.loads((pathlib.Path(__file__).parents[4] / "data" / "installer" / "maas.json").read_text(encoding="utf-8"))
MIB = 1024**2
STEP = 4 * MIB
ONE, TWO = hardware([("ssd", 48)]), hardware([("ssd", 48)] * 2)
ESP = {"id": "esp", "type": "esp", "size": 512, "mount": "/boot/efi"}
ROOT = {"id": "root", "type": "partition", "size": 9000, "fs_type": "ext4", "mount": "/"}
MIRROR = {"id": "root", "type": "raid", "level": "raid1", "fs_type": "ext4", "mount": "/"}


def size_of(text: str) -> int:
    """Return what MAAS reads, to the byte."""
    return int(float(text[:-1]) * {"M": 1000**2, "G": 1000**3, "T": 1000**4}[text[-1]])


class Refused(Exception):
    """MAAS would refuse it."""


def made_by_maas(answer: Plain, disks: Plain, *, by_bios: bool) -> dict[str, int]:
    """Return the sizes of all that MAAS makes, in bytes, by name; raises Refused as MAAS does, and for a size that it would change."""
    jsonschema.validate(answer, SCHEMA)
    sizes: dict[str, int] = {}
    formatted: set[str] = set()

    def put(name: str, size: int, entry: Plain) -> None:
        if name in sizes:
            raise Refused(f"{name} is there twice")
        sizes[name] = size
        if "fs" in entry:
            if entry["fs"] not in {"ext2", "ext4", "xfs", "btrfs", "vfat", "fat32", "swap"}:
                raise Refused(entry["fs"])
            formatted.add(name)

    for name, entry in answer["layout"].items():
        if entry["type"] == "disk":
            if name not in disks:
                raise Refused(f"the machine has no {name}")
            put(name, disks[name], entry)
            room = disks[name] - (5 + by_bios) * MIB
            for part in entry["partitions"]:
                size = size_of(part["size"])
                if size % STEP or size > room // STEP * STEP or size < STEP:
                    raise Refused(f"{part['name']}: {size} of {room}")
                room -= size
                put(part["name"], size, part)
    for name, entry in answer["layout"].items():
        if entry["type"] == "raid":
            members = [sizes[member] for member in entry["members"]]
            legs = {0: len(members), 1: 1, 5: len(members) - 1, 6: len(members) - 2, 10: len(members) / 2}[entry["level"]]
            put(name, int(min(members) * legs) - 128 * 1024, entry)
    for name, entry in answer["layout"].items():
        if entry["type"] == "lvm":
            room = (sum(sizes[member] for member in entry["members"]) // STEP - len(entry["members"])) * STEP
            put(name, room, entry)
            for volume in entry["volumes"]:
                size = size_of(volume["size"])
                if size % STEP or size > room or size < STEP:
                    raise Refused(f"{volume['name']}: {size} of {room}")
                room -= size
                put(volume["name"], size, volume)
    for mount in answer["mounts"].values():
        if mount["device"] not in formatted:
            raise Refused(f"{mount['device']} has no file system")
    return sizes


def written(schema: list[Plain], facts: Plain | None = None, *, lossy: bool = False) -> Written:
    facts = facts or ONE
    return write_plan(maas.TARGET, make_plan(schema, facts), facts, lossy=lossy, known=facts)


def refused(schema: list[Plain], facts: Plain | None = None, *, lossy: bool = False) -> set[str]:
    with pytest.raises(InputError) as error:
        written(schema, facts, lossy=lossy)
    return {mistake.place for mistake in error.value.mistakes}


def test_a_plan_that_leaves_room_is_written_to_the_byte_and_loses_nothing() -> None:
    made = written([ESP, ROOT, {"id": "swap", "type": "partition", "size": 1024, "fs_type": "swap"}])
    sizes = made_by_maas(made.value, {"sda": 48 * 1024 * MIB}, by_bios=False)
    assert [sizes[f"sda-part{number}"] // MIB for number in (1, 2, 3)] == [512, 9000, 1024]
    assert made.value["mounts"] == {
        "/boot/efi": {"device": "sda-part1"},
        "/": {"device": "sda-part2"},
        "swap-sda-part3": {"device": "sda-part3"},
    }
    assert made.warnings == ("MAAS: MAAS gives partitions UUIDs of its own, not those of the plan",)


@pytest.mark.parametrize("profile", profiles_of_all_targets())
@pytest.mark.parametrize("firmware", ["uefi", "bios"])
def test_maas_makes_every_profile_and_nothing_becomes_smaller_than_it_says(profile: str, firmware: str) -> None:
    plan, facts = profile_plan(profile, firmware), profile_hardware(profile, firmware)
    if profile == "software-raid-boot":
        with pytest.raises(InputError, match="efi: firmware could not read an ESP on an array"):
            write_plan(maas.TARGET, plan, facts, lossy=True, known=facts)
        return
    made = write_plan(maas.TARGET, plan, facts, lossy=True, known=facts)
    sizes = made_by_maas(
        made.value, {disk["dev"].removeprefix("/dev/"): disk["size"] * MIB for disk in facts["disks"]}, by_bios=firmware == "bios"
    )
    smaller = {warning.split(": ")[1] for warning in made.warnings if "so it gets" in warning}
    for volume in plan["schema"]["lvs"]:
        if volume["space_id"] not in smaller:
            assert sizes[volume["name"]] == volume["size"] * MIB
    lost = sum(volume["size"] * MIB - sizes[volume["name"]] for volume in plan["schema"]["lvs"])
    assert 0 <= lost <= 2 * STEP * max(1, len(plan["schema"]["pvs"])) * 2


@pytest.mark.parametrize("plan", [data_plan(), whole_plan("uefi"), whole_plan("bios")])
def test_what_lies_on_luks_is_lost_by_its_space(plan: Plain) -> None:
    facts = hardware([("ssd", 20)] * 2)
    made = write_plan(maas.TARGET, plan, facts, lossy=True, known=facts)
    made_by_maas(made.value, {"sda": 20480 * MIB, "sdb": 20480 * MIB}, by_bios="esp" not in str(plan["schema"]))
    lost = {warning.split(": ")[1] for warning in made.warnings if "LUKS" in warning}
    assert lost == ({"secret"} if "secret" in str(plan) else {"os", "root", "home"})


def test_a_full_disk_is_a_loss_of_the_largest_alone() -> None:
    schema = [ESP, ROOT, {"id": "data", "type": "partition", "fs_type": "xfs", "mount": "/srv"}]
    assert refused(schema) == {"data"}
    sizes = made_by_maas(written(schema, lossy=True).value, {"sda": 48 * 1024 * MIB}, by_bios=False)
    assert [sizes[f"sda-part{number}"] // MIB for number in (1, 2)] == [512, 9000]


@pytest.mark.parametrize(
    ("schema", "facts", "place"),
    [
        ([{**ROOT, "fs_label": "system"}], ONE, "root"),
        ([{**ROOT, "fs_options": "-m 1"}], ONE, "root"),
        ([{**ROOT, "fs_type": "ext3"}], ONE, "root"),
        ([{**MIRROR, "size": "8 GiB", "bitmap": "none"}], TWO, "root"),
        ([{**ROOT, "encrypt": True}], ONE, "root"),
    ],
)
def test_what_maas_cannot_say_is_a_loss_of_its_space(schema: list[Plain], facts: Plain, place: str) -> None:
    assert refused(schema, facts) == {place}
    jsonschema.validate(written(schema, facts, lossy=True).value, SCHEMA)


def test_disks_without_kernel_names_and_names_that_maas_does_not_take_are_errors_even_when_lossy() -> None:
    nameless = {"disks": [{"id": "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", "size": 20480}]}
    assert refused([ROOT], nameless, lossy=True) == {"/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"}
    group = [{"id": "a.b", "type": "vg", "contains": ["root"]}, {"id": "root", "type": "lv", "size": 900}]
    assert refused(group, lossy=True) == {"a.b"}
    twice = [{"id": "sda", "type": "vg", "contains": ["root"]}, {"id": "root", "type": "lv", "size": 900}]
    assert refused(twice, lossy=True) == {"sda"}


def test_an_array_has_its_members_and_spares_by_name() -> None:
    plan = make_plan([{**MIRROR, "size": "8 GiB", "legs": 3}], hardware([("ssd", 48)] * 3))
    array = plan["schema"]["mds"][0]
    array["spares"] = [array["devices"].pop()]
    made = write_plan(maas.TARGET, plan, None, lossy=False, known=hardware([("ssd", 48)] * 3)).value["layout"]["root"]
    assert made == {"type": "raid", "level": 1, "members": ["sda-part1", "sdb-part1"], "spares": ["sdc-part1"], "fs": "ext4"}


def test_sizes_are_read_to_the_byte() -> None:
    draw = random.Random(1)
    for size in [1, 10**6, 2**40, *(draw.randrange(1, 2 ** draw.randrange(2, 50)) for _draw in range(5000))]:
        assert size_of(maas.as_text(size)) == size


def test_the_stand_in_refuses_what_maas_refuses() -> None:
    answer = written([ESP, ROOT]).value
    disks = {"sda": 48 * 1024 * MIB}
    made_by_maas(answer, disks, by_bios=False)
    for change in (
        lambda each: each["layout"]["sda"].update(ptable="dos"),
        lambda each: each["layout"]["sda"]["partitions"][0].update(size="1"),
        lambda each: each["mounts"].update({"/srv": {"device": "nothing"}}),
        lambda each: each["layout"].update({"9": each["layout"]["sda"]}),
    ):
        damaged = json.loads(json.dumps(answer))
        change(damaged)
        with pytest.raises((Refused, KeyError, ValueError, jsonschema.ValidationError)):
            made_by_maas(damaged, disks, by_bios=False)
    with pytest.raises(Refused):
        made_by_maas(answer, {"sda": 9000 * MIB}, by_bios=False)
