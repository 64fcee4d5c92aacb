# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for systemd-repart, which itself looks at it in tests/peers."""

from __future__ import annotations

import configparser
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.installer import repart
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.installer.write import write_plan
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
