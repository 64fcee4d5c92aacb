# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for Warewulf, by a JSON Schema of its structs; numbers and order are the plan's."""

from __future__ import annotations

import json
import pathlib
import typing as t

import jsonschema
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import warewulf
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Written, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import (
    data_plan,
    hardware,
    make_plan,
    profile_plan,
    profiles_of_all_targets,
    whole_plan,
)

Plain = dict[str, t.Any]

SCHEMA = json.loads((pathlib.Path(__file__).parents[4] / "data" / "installer" / "warewulf.json").read_text(encoding="utf-8"))
SCRATCH = {"id": "scratch", "type": "partition", "size": 2000, "fs_type": "xfs", "mount": "/scratch", "mount_options": "noatime"}
SWAP = {"id": "paging", "type": "partition", "size": 512, "fs_type": "swap"}


def written(plan: Plain, *, lossy: bool = False, wipe: bool = False) -> Written:
    made = write_plan(warewulf.TARGET, plan, None, lossy=lossy, wipe=wipe)
    jsonschema.validate(made.value, SCHEMA)
    return made


def test_partitions_and_file_systems_are_those_of_the_plan() -> None:
    plan = make_plan([SCRATCH, SWAP], hardware([("ssd", 10)]))
    (disk,) = plan["schema"]["parteds"]
    made = written(plan)
    assert made.warnings == ()
    partitions = made.value["disks"][disk["name"]]["partitions"]
    assert [(int(one["number"]), int(one["size_mib"]), one["guid"]) for one in partitions.values()] == [
        (part["count"], part["end"] - part["begin"], part["uuid"]) for part in disk["partitions"]
    ]
    scratch, paging = (made.value["filesystems"][f"/dev/disk/by-partuuid/{part['uuid']}"] for part in disk["partitions"])
    assert scratch == {"format": "xfs", "path": "/scratch", "mount_options": "noatime"}
    assert paging == {"format": "swap"}


def test_nothing_is_wiped_at_each_start_unless_asked_for() -> None:
    plan = make_plan([SCRATCH], hardware([("ssd", 10)]))
    assert "wipe_table" not in str(written(plan).value)
    assert "wipe_filesystem" not in str(written(plan).value)
    made = written(plan, wipe=True)
    assert all(disk["wipe_table"] for disk in made.value["disks"].values())
    assert all(one["wipe_filesystem"] for one in made.value["filesystems"].values())
    assert made.warnings == ("Warewulf: each start of the node wipes these disks",)


def test_arrays_and_luks_are_lost_by_their_spaces_and_data_are_not_kept() -> None:
    with pytest.raises(InputError) as error:
        written(data_plan())
    assert {mistake.place for mistake in error.value.mistakes} == {"pair", "secret"}
    kept = make_plan([SCRATCH], hardware([("ssd", 10)]))
    kept["schema"]["parteds"][0]["partitions"][0]["keep_data"] = True
    with pytest.raises(InputError, match="scratch: its data must be kept"):
        written(kept, lossy=True)


def test_a_gap_before_a_partition_is_a_loss() -> None:
    plan = make_plan([SCRATCH, SWAP], hardware([("ssd", 10)]))
    for key in ("begin", "end"):
        plan["schema"]["parteds"][0]["partitions"][1][key] += 10
    with pytest.raises(InputError, match="paging: Warewulf puts it at 2001 MiB"):
        written(plan)


def test_two_partitions_of_a_disk_with_one_label_are_an_error() -> None:
    plan = make_plan([SCRATCH, SWAP], hardware([("ssd", 10)]))
    for part in plan["schema"]["parteds"][0]["partitions"]:
        part["partition_label"] = "same"
    with pytest.raises(InputError, match="same is there twice"):
        written(plan, lossy=True)


@pytest.mark.parametrize("plan", [*(profile_plan(name) for name in profiles_of_all_targets()), data_plan(), whole_plan()])
def test_every_plan_is_written_with_its_losses(plan: Plain) -> None:
    assert written(plan, lossy=True).value["disks"].keys() == {disk["name"] for disk in plan["schema"]["parteds"]}
