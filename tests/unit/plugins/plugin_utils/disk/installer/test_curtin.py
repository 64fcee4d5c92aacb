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
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.installer import curtin
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.installer.write import write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import data_plan, profile_plan, profiles, whole_plan

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


def storage(plan: Plain, key_file: str | None = "/run/key") -> Plain:
    made = write_plan(curtin.TARGET, plan, None, lossy=False, key_file=key_file)
    assert made.warnings == ()
    return t.cast("Plain", made.value)


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
    parts = {(part["offset"], part["size"], part["number"], part["uuid"]) for part in by_kind["partition"]}
    planned = [part for disk in plan["schema"]["parteds"] for part in disk["partitions"]]
    assert parts == {(part["begin"] * MIB, (part["end"] - part["begin"]) * MIB, part["count"], part["uuid"]) for part in planned}
    volumes = {(volume["volgroup"], volume["name"]): volume["size"] for volume in by_kind.get("lvm_partition", [])}
    assert volumes == {(f"vg-{volume['vgname']}", volume["name"]): volume["size"] * MIB for volume in plan["schema"]["lvs"]}
    mounts = [action["path"] for action in by_kind.get("mount", [])]
    assert sorted(mounts) == sorted("none" if entry["fs_type"] == "swap" else entry["mount"] for entry in used(plan))
    for at, mount in enumerate(mounts):
        assert not any(mount.startswith(f"{later.rstrip('/')}/") for later in mounts[at + 1 :] if later != mount), "parents come first"


def used(plan: Plain) -> list[Plain]:
    return [entry for entry in plan["schema"]["fss"] if entry["mount"] != "none"]


@pytest.mark.parametrize("firmware", ["uefi", "bios"])
@pytest.mark.parametrize("profile", profiles())
def test_profiles_are_as_documented_and_as_planned(profile: str, firmware: str) -> None:
    plan = profile_plan(profile, firmware)
    check(plan, storage(plan))


@pytest.mark.parametrize("plan", [whole_plan("uefi"), whole_plan("bios"), data_plan()])
def test_luks_arrays_swap_and_labels(plan: Plain) -> None:
    made = storage(plan)
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
