# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for curtin is what its documentation asks for: by a JSON Schema of its actions, and by the references between them."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import jsonschema
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import curtin
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import data_plan, profile_plan, profiles_of_all_targets, whole_plan

Plain = dict[str, t.Any]

MIB = 1024**2
SCHEMA = json.loads((Path(__file__).parents[4] / "data" / "installer" / "curtin_storage.schema.json").read_text(encoding="utf-8"))
# What an action refers to, and what it may find there.
REFERENCES = {
    "partition": {"device": {"disk"}},
    "raid": {"devices": {"partition"}, "spare_devices": {"partition"}},
    "dm_crypt": {"volume": {"partition", "raid", "lvm_partition"}},
    "lvm_volgroup": {"devices": {"partition", "raid", "dm_crypt"}},
    "lvm_partition": {"volgroup": {"lvm_volgroup"}},
    "format": {"volume": {"partition", "raid", "dm_crypt", "lvm_partition"}},
    "mount": {"device": {"format"}},
}


def storage(plan: Plain, key_file: str | None = "/run/key", version: str = "2") -> Plain:
    made = write_plan(curtin.TARGET, plan, None, lossy=False, key_file=key_file, version=version)
    boots = [
        part["space_id"]
        for disk in plan.get("schema", plan)["parteds"]
        for part in disk["partitions"]
        if "legacy_boot" in part.get("flags", ())
    ]
    told = [] if version == "2" else ["curtin's version 1 gives partitions UUIDs of its own, not those of the plan"]
    told += [f"{space}: curtin sets no flag legacy_boot, which GRUB does without" for space in dict.fromkeys(boots)]
    assert made.warnings == tuple(f"curtin: {says}" for says in told)
    assert made.value["version"] == int(version)
    return t.cast("Plain", made.value)


def placed(actions: list[Plain]) -> list[Plain]:
    """Return partitions of version 1 with the places where curtin puts them: behind the one before on the disk, from 1 MiB on."""
    ends: dict[str, int] = {}
    found = []
    for action in actions:
        assert not {"offset", "uuid", "partition_type"} & set(action), "version 1 does not look at these"
        begin = MIB if action["number"] == 1 else ends[action["device"]]
        ends[action["device"]] = begin + action["size"]
        found.append({**action, "offset": begin, "uuid": None})
    return found


def check(plan: Plain, made: Plain) -> None:
    """Hold the configuration against the schema, its own references and the plan."""
    jsonschema.validate(made, SCHEMA)
    kinds: dict[str, str] = {}
    for action in made["config"]:
        for key, allowed in REFERENCES.get(action["type"], {}).items():
            names = action.get(key, [])
            for name in [names] if isinstance(names, str) else names:
                assert kinds[name] in allowed, f"{action} refers to what does not come before it"
        assert action["id"] not in kinds
        kinds[action["id"]] = action["type"]
    by_kind = {kind: [action for action in made["config"] if action["type"] == kind] for kind in kinds.values()}
    exact = made["version"] == 2
    actions = by_kind["partition"] if exact else placed(by_kind["partition"])
    parts = {(part["offset"], part["size"], part["number"], part["uuid"]) for part in actions}
    planned = [part for disk in plan["schema"]["parteds"] for part in disk["partitions"]]
    assert len(actions) == len(planned)
    assert {part[:3] for part in parts} == {(part["begin"] * MIB, (part["end"] - part["begin"]) * MIB, part["count"]) for part in planned}
    assert {part[3] for part in parts} == ({part["uuid"] for part in planned} if exact else {None})
    volumes = {(volume["volgroup"], volume["name"]): volume["size"] for volume in by_kind.get("lvm_partition", [])}
    assert volumes == {(f"vg-{volume['vgname']}", volume["name"]): volume["size"] * MIB for volume in plan["schema"]["lvs"]}
    mounts = [action["path"] for action in by_kind.get("mount", [])]
    assert sorted(mounts) == sorted("none" if entry["fs_type"] == "swap" else entry["mount"] for entry in used(plan))
    for at, mount in enumerate(mounts):
        assert not any(mount.startswith(f"{later.rstrip('/')}/") for later in mounts[at + 1 :] if later != mount), "parents come first"


def used(plan: Plain) -> list[Plain]:
    return [entry for entry in plan["schema"]["fss"] if entry["mount"] != "none"]


@pytest.mark.parametrize("version", curtin.VERSIONS)
@pytest.mark.parametrize("firmware", ["uefi", "bios"])
@pytest.mark.parametrize("profile", profiles_of_all_targets())
def test_profiles_are_as_documented_and_as_planned(profile: str, firmware: str, version: str) -> None:
    plan = profile_plan(profile, firmware)
    check(plan, storage(plan, version=version))


@pytest.mark.parametrize("version", curtin.VERSIONS)
@pytest.mark.parametrize("plan", [whole_plan("uefi"), whole_plan("bios"), data_plan()])
def test_luks_arrays_swap_and_labels(plan: Plain, version: str) -> None:
    made = storage(plan, version=version)
    check(plan, made)
    labels = {action["label"] for action in made["config"] if action["type"] == "format" and "label" in action}
    assert labels == {entry["fs_label"] for entry in plan["schema"]["fss"]} - {""}


@pytest.mark.parametrize(("firmware", "kind"), [("uefi", "partition"), ("bios", "disk")])
def test_grub_goes_where_the_firmware_looks(firmware: str, kind: str) -> None:
    grub = [action["type"] for action in storage(whole_plan(firmware))["config"] if action.get("grub_device")]
    assert grub == [kind] * (1 if firmware == "uefi" else 2)


def test_luks_needs_a_key() -> None:
    with pytest.raises(InputError, match="secret: LUKS needs a key in curtin; name a file with key_file"):
        storage(data_plan(), key_file=None)


PREP = "9e1a2d38-c612-4316-aa26-8b49521e5a8b"


def explicit(*partitions: Plain) -> Plain:
    """Return a static schema of one disk."""
    disk = "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"
    named = [{"name": f"{disk}-part{part['count']}", "space_id": f"p{part['count']}", **part} for part in partitions]
    return {"parteds": [{"disk_id": disk, "name": disk, "disk_size": 10000, "partitions": named}]}


@pytest.mark.parametrize(
    ("partitions", "says"),
    [
        ([{"count": 1, "begin": 2, "end": 10}], "p1: curtin's version 1 puts it at 1 MiB, not at 2"),
        (
            [{"count": 1, "begin": 1, "end": 10}, {"count": 2, "begin": 20, "end": 30}],
            "p2: curtin's version 1 puts it at 10 MiB, not at 20",
        ),
        ([{"count": 1, "begin": 1, "end": 10, "guid": PREP}], f"p1: its type is {PREP}; curtin's version 1 knows no such type"),
        ([{"count": 2, "begin": 1, "end": 10}], "p2: curtin's version 1 begins with partition 1, and this is 2"),
        (
            [{"count": 1, "begin": 1, "end": 10, "keep_data": True}, {"count": 3, "begin": 20, "end": 30}],
            "p3: curtin's version 1 puts it at 10 MiB, not at 20",
        ),
    ],
)
def test_places_and_types_that_version_1_cannot_say_are_losses_there_only(partitions: list[Plain], says: str) -> None:
    with pytest.raises(InputError) as caught:
        storage(explicit(*partitions), version="1")
    assert str(caught.value).startswith(says)
    made = storage(explicit(*partitions))
    jsonschema.validate(made, SCHEMA)
    found = [(action["offset"] // MIB, action["size"] // MIB) for action in made["config"] if action["type"] == "partition"]
    assert found == [(part["begin"], part["end"] - part["begin"]) for part in partitions]


def test_a_place_behind_what_is_kept_is_never_lost() -> None:
    plan = explicit({"count": 1, "begin": 1, "end": 10, "keep_data": True}, {"count": 2, "begin": 20, "end": 30})
    with pytest.raises(InputError, match="p2: curtin's version 1 puts it at 10 MiB"):
        write_plan(curtin.TARGET, plan, None, lossy=True, key_file=None, version="1")
