# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for systemd-repart, which itself looks at it in tests/peers."""

from __future__ import annotations

import configparser
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import repart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import data_plan, whole_plan

Plain = dict[str, t.Any]

MIB = 1024**2
DISKS = [disk["disk_id"] for disk in data_plan()["disks"]]


def files(plan: Plain, disk: str | None, *, lossy: bool = False) -> dict[str, str]:
    return t.cast("dict[str, str]", write_plan(repart.TARGET, plan, None, lossy=lossy, disk=disk, encrypt="tpm2").value)


def section(text: str) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    assert parser.sections() == ["Partition"]
    return dict(parser["Partition"])


def test_each_partition_has_a_file_in_its_order() -> None:
    made = files(data_plan(), DISKS[0], lossy=True)
    assert list(made) == sorted(made)
    planned = next(disk["partitions"] for disk in data_plan()["schema"]["parteds"] if disk["disk_id"] == DISKS[0])
    for text, part in zip(made.values(), planned, strict=True):
        found = section(text)
        size = str((part["end"] - part["begin"]) * MIB)
        assert (found["Type"], found["UUID"], found["SizeMinBytes"], found["SizeMaxBytes"]) == (part["guid"], part["uuid"], size, size)
    logs, data, paging, secret, pair, plain, spare = map(section, made.values())
    assert (logs["Format"], logs["MountPoint"]) == ("ext4", "/var/log:nodev,noexec")
    assert (data["Format"], data["Label"]) == ("xfs", "data")
    assert (paging["Format"], "MountPoint" in paging) == ("swap", False)
    assert (secret["Format"], secret["Encrypt"]) == ("ext4", "tpm2")
    assert "Format" not in pair
    assert "Format" not in plain
    assert (spare["Format"], "MountPoint" in spare) == ("ext4", False)


def test_arrays_options_and_the_choice_of_a_disk_are_told() -> None:
    with pytest.raises(InputError) as caught:
        files(data_plan(), DISKS[0])
    assert {mistake.place for mistake in caught.value.mistakes} == {"data", "pair"}
    with pytest.raises(InputError, match="disk: systemd-repart knows one disk; choose one of"):
        files(data_plan(), None, lossy=True)
    with pytest.raises(InputError, match="disk: the plan makes nothing on sdx"):
        files(data_plan(), "sdx", lossy=True)
    assert len(files(whole_plan(), whole_plan()["disks"][1]["disk_id"], lossy=True)) == 3


def _with(plan: Plain, device: str, **keys: t.Any) -> Plain:
    """Return a plan with other keys for the file system on one device."""
    schema = plan["schema"]
    assert any(fs["device"] == device for fs in schema["fss"])
    return {**plan, "schema": {**schema, "fss": [{**fs, **keys} if fs["device"] == device else fs for fs in schema["fss"]]}}


def _labelled() -> tuple[Plain, str, str]:
    """Return a plan of one data file system with a label, its device, and its disk."""
    plan = data_plan()
    fs = next(fs for fs in plan["schema"]["fss"] if fs.get("fs_label") == "data")
    disk = next(disk for disk in plan["schema"]["parteds"] if any(part["name"] == fs["device"] for part in disk["partitions"]))
    return plan, fs["device"], disk["disk_id"]


def test_a_file_system_with_a_label_is_made_and_names_its_partition() -> None:
    plan, device, disk = _labelled()
    partition = next(section(text) for text in files(plan, disk, lossy=True).values() if "Label=data\n" in text)
    assert (partition["Format"], partition["Label"]) == ("xfs", "data")
    parteds = [
        {**one, "partitions": [{**part, "partition_label": "bulk"} if part["name"] == device else part for part in one["partitions"]]}
        for one in plan["schema"]["parteds"]
    ]
    renamed = {**plan, "schema": {**plan["schema"], "parteds": parteds}}
    written = write_plan(repart.TARGET, renamed, None, lossy=True, disk=disk, encrypt="tpm2")
    assert any("names a partition as its file system, data, not bulk" in str(loss) for loss in written.warnings)
    assert any(section(text).get("Format") == "xfs" for text in t.cast("dict[str, str]", written.value).values())


def test_a_file_system_that_repart_cannot_make_is_left_out() -> None:
    plan, device, disk = _labelled()
    other = _with(plan, device, fs_type="f2fs", fs_options="")
    with pytest.raises(InputError, match="systemd-repart cannot make f2fs"):
        files(other, disk)
    assert not any(section(text).get("Format") == "f2fs" for text in files(other, disk, lossy=True).values())
