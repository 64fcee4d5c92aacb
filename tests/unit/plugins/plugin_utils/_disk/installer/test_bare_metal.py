# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for Ironic and Metal3; Ironic's own code reads it in tests/peers."""

from __future__ import annotations

import typing as t

import jsonschema
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import bare_metal
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Target, Written, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan, profile_plan, profiles_of_all_targets

Plain = dict[str, t.Any]

TWO = hardware([("ssd", 48), ("ssd", 48)])
FOUR = hardware([("ssd", 48)] * 4)
ROOT = {"id": "root", "type": "raid", "level": "raid1", "fs_type": "ext4", "mount": "/"}
WHOLE = {"id": "root", "type": "partition", "fs_type": "ext4", "mount": "/"}
TARGETS = [bare_metal.IRONIC, bare_metal.METAL3]
HINT = {
    "type": "object",
    "properties": {"wwn": {"type": "string"}, "deviceName": {"type": "string", "pattern": "^/dev/"}},
    "minProperties": 1,
    "additionalProperties": False,
}
VOLUME = {
    "type": "object",
    "properties": {
        "level": {"enum": ["0", "1", "1+0"]},
        "sizeGibibytes": {"type": "integer", "minimum": 0},
        "physicalDisks": {"type": "array", "minItems": 2, "items": HINT},
    },
    "required": ["level"],
    "additionalProperties": False,
}
HOST = {
    "type": "object",
    "properties": {
        "rootDeviceHints": HINT,
        "raid": {
            "type": "object",
            "properties": {"softwareRAIDVolumes": {"type": "array", "maxItems": 2, "items": VOLUME}},
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
"""What we write of a BareMetalHost's spec, by the CustomResourceDefinition of baremetal-operator: names, types, levels and counts."""


def written(target: Target, schema: list[Plain], facts: Plain | None = None, *, lossy: bool = False) -> Written:
    return write_plan(target, make_plan(schema, facts or TWO), None, lossy=lossy)


def refused(target: Target, schema: list[Plain], facts: Plain | None = None, *, lossy: bool = False) -> set[str]:
    with pytest.raises(InputError) as error:
        written(target, schema, facts, lossy=lossy)
    return {mistake.place for mistake in error.value.mistakes}


def disks(facts: Plain) -> list[str]:
    return [disk["id"].partition("wwn-")[2] for disk in facts["disks"]]


def test_an_image_on_one_disk_is_a_hint() -> None:
    one = hardware([("ssd", 48)])
    (wwn,) = disks(one)
    assert written(bare_metal.IRONIC, [WHOLE], one).value == {"properties": {"root_device": {"wwn": wwn}}}
    assert written(bare_metal.METAL3, [WHOLE], one).value == {"rootDeviceHints": {"wwn": wwn}}


def test_an_image_on_a_mirror_is_the_first_array() -> None:
    ironic = written(bare_metal.IRONIC, [{**ROOT, "size": "10 GiB"}, {"id": "data", "type": "raid", "level": "raid0"}])
    first, second = ironic.value["target_raid_config"]["logical_disks"]
    assert (first["raid_level"], first["size_gb"], first["is_root_volume"]) == ("1", 10, True)
    assert (second["raid_level"], second["size_gb"], "is_root_volume" in second) == ("0", "MAX", False)
    assert [hint["wwn"] for hint in first["physical_disks"]] == disks(TWO)
    metal3 = written(bare_metal.METAL3, [ROOT]).value
    assert metal3 == {"raid": {"softwareRAIDVolumes": [{"level": "1", "physicalDisks": [{"wwn": wwn} for wwn in disks(TWO)]}]}}


@pytest.mark.parametrize("target", TARGETS)
def test_what_an_image_has_no_room_for_is_lost_by_its_name(target: Target) -> None:
    schema = [
        {**WHOLE, "size": 9000, "disks": [TWO["disks"][0]["id"]]},
        {"id": "data", "type": "partition", "fs_type": "xfs", "mount": "/srv"},
    ]
    assert refused(target, schema) == {"data"}
    made = written(target, schema, lossy=True)
    assert [says for says in made.warnings if " data: " in says]
    assert written(target, [WHOLE], hardware([("ssd", 48)])).warnings == (f"{target.name}: the file system at / is that of the image",)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("schema", "facts", "place"),
    [
        ([{"id": "data", "type": "partition"}], TWO, TWO["disks"][0]["id"]),
        ([{**ROOT, "level": "raid0"}], TWO, "root"),
        ([{"id": "os", "type": "vg", "contains": ["root"]}, {"id": "root", "type": "lv", "mount": "/", "fs_type": "ext4"}], TWO, "root"),
        ([WHOLE], {"disks": [{"id": "/dev/disk/by-id/ata-DISK_1", "size": 20480}]}, "/dev/disk/by-id/ata-DISK_1"),
    ],
)
def test_what_cannot_be_left_out_is_an_error_even_when_lossy(target: Target, schema: list[Plain], facts: Plain, place: str) -> None:
    assert place in refused(target, schema, facts, lossy=True)


def test_metal3_refuses_levels_and_numbers_that_ironic_takes() -> None:
    arrays = [
        {**ROOT, "legs": 4, "size": "8 GiB"},
        {"id": "data", "type": "raid", "level": "raid5", "legs": 4, "size": "9 GiB"},
        {"id": "more", "type": "raid", "level": "raid0", "legs": 4},
    ]
    made = written(bare_metal.IRONIC, arrays, FOUR).value["target_raid_config"]["logical_disks"]
    assert [array["raid_level"] for array in made] == ["1", "5", "0"]
    assert refused(bare_metal.METAL3, arrays, FOUR) == {"data", "more"}


def test_disks_are_found_by_path_where_they_have_no_wwn() -> None:
    path = "/dev/disk/by-path/pci-0000:00:17.0-ata-1"
    facts = {"disks": [{"id": path, "path": path, "size": 20480}]}
    assert written(bare_metal.IRONIC, [WHOLE], facts).value == {"properties": {"root_device": {"by_path": path}}}
    assert written(bare_metal.METAL3, [WHOLE], facts).value == {"rootDeviceHints": {"deviceName": path}}
    eui = {"disks": [{"id": "/dev/disk/by-id/nvme-eui.0025388b71b04b3e", "size": 20480}]}
    assert written(bare_metal.METAL3, [WHOLE], eui).value == {"rootDeviceHints": {"wwn": "eui.0025388b71b04b3e"}}


@pytest.mark.parametrize("profile", profiles_of_all_targets())
def test_every_profile_names_the_disk_of_its_system(profile: str) -> None:
    plan = profile_plan(profile)
    jsonschema.validate(write_plan(bare_metal.METAL3, plan, None, lossy=True).value, HOST)
    ironic = write_plan(bare_metal.IRONIC, plan, None, lossy=True)
    assert ("root_device" in ironic.value["properties"]) != ("target_raid_config" in ironic.value)
    assert any(" root: " in says for says in ironic.warnings)
