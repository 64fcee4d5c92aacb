# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all targets share: mistakes of a plan, data that are to be kept, names of disks, what is lost."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.installer import curtin, disko, fai, ignition, kickstart, repart
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.installer.write import Target, Written, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import data_plan, hardware, make_plan, profile_plan

Plain = dict[str, t.Any]

TARGETS: dict[str, tuple[Target, Plain]] = {
    "kickstart": (kickstart.TARGET, {"version": "Fedora", "passphrase": None}),
    "curtin": (curtin.TARGET, {"version": "2", "key_file": "/key"}),
    "ignition": (ignition.TARGET, {"key_file": None, "tpm2": True}),
    "butane": (ignition.BUTANE_TARGET, {"variant": "flatcar", "key_file": None, "tpm2": True}),
    "fai": (fai.TARGET, {"passphrase": None}),
    "repart": (repart.TARGET, {"disk": None, "encrypt": "key-file"}),
    "disko": (disko.TARGET, {"password_file": None}),
}


def written(target: str, plan: t.Any, *, facts: t.Any = None, lossy: t.Any = False) -> Written:
    chosen, options = TARGETS[target]
    return write_plan(chosen, plan, facts, lossy=lossy, **options)


def small_plan(**disk: t.Any) -> Plain:
    facts = hardware([("ssd", 10)])
    facts["disks"][0].update(disk)
    return make_plan([{"id": "data", "type": "partition", "fs_type": "xfs", "mount": "/srv"}], facts)


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_plan_gives_the_same_text_and_no_warning(target: str) -> None:
    first, second = written(target, small_plan()), written(target, small_plan())
    assert first == second
    assert first.warnings == ()
    assert first.value == written(target, small_plan()["schema"]).value, "the schema alone will do"


@pytest.mark.parametrize("target", TARGETS)
def test_every_mistake_of_a_plan_is_told_at_once(target: str) -> None:
    broken = copy.deepcopy(data_plan())
    broken["schema"]["fss"][0]["device"] = "/dev/nowhere"
    broken["schema"]["lvs"] = [{"name": "x", "vgname": "gone", "size": 4}]
    with pytest.raises(InputError) as caught:
        written(target, broken)
    assert {mistake.place for mistake in caught.value.mistakes} == {"plan.schema.fss[0].device", "plan.schema.lvs[0].vgname"}
    for nothing in (None, "text", {"schema": {}}, {"schema": {"parteds": "x"}}):
        with pytest.raises(InputError):
            written(target, nothing)


@pytest.mark.parametrize("target", ["kickstart", "fai", "repart", "disko"])
def test_data_that_are_to_be_kept_are_never_lost(target: str) -> None:
    plan = small_plan()
    plan["schema"]["parteds"][0]["partitions"][0]["keep_data"] = True
    for lossy in (False, True):
        with pytest.raises(InputError, match="data: its data are to be kept"):
            written(target, plan, lossy=lossy)


def test_curtin_and_ignition_keep_data() -> None:
    plan = small_plan()
    plan["schema"]["parteds"][0]["partitions"][0]["keep_data"] = True
    plan["schema"]["fss"][0]["keep_data"] = True
    actions = written("curtin", plan).value["config"]
    assert [action["preserve"] for action in actions if action["type"] in {"disk", "partition", "format"}] == [True, True, True]
    assert not any("wipe" in action for action in actions)
    storage = written("ignition", plan).value["storage"]
    assert storage["disks"][0]["wipeTable"] is False
    assert "wipePartitionEntry" not in storage["disks"][0]["partitions"][0]
    assert storage["filesystems"][0]["wipeFilesystem"] is False


@pytest.mark.parametrize("target", TARGETS)
def test_a_name_that_may_change_is_replaced_by_a_link_of_the_hardware_or_told(target: str) -> None:
    links = ["/dev/disk/by-path/pci-0000:00:17.0-ata-1", "/dev/disk/by-id/ata-DISK_1", "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"]
    plan = small_plan(id="/dev/sda")
    told = written(target, plan)
    assert any("/dev/sda is a name that may change" in warning for warning in told.warnings)
    durable = written(target, plan, facts={"disks": [{"id": "/dev/sda", "dev": "/dev/sda", "links": links}]})
    assert durable.warnings == ()
    assert "/dev/sda" not in str(durable.value)
    assert target == "repart" or "wwn-0x5000c500a1b2c3d4" in str(durable.value)


@pytest.mark.parametrize("target", TARGETS)
def test_a_loss_is_an_error_or_a_warning_of_the_same_space(target: str) -> None:
    plan = data_plan()
    try:
        written(target, plan)
        errors: set[str] = set()
    except InputError as error:
        errors = {mistake.place for mistake in error.mistakes if "with lossy: true" in mistake.says}
    if target == "repart":
        return
    warned = written(target, plan, lossy=True).warnings
    assert {warning.split(": ")[1] for warning in warned if warning.endswith("left out")} == errors


def test_lvm_is_beyond_ignition_and_repart() -> None:
    plan = profile_plan("general")
    for target in ("ignition", "repart"):
        with pytest.raises(InputError, match="LVM"):
            written(target, plan)


@pytest.mark.parametrize("no", ["false", "no", 0])
def test_lossy_as_text_loses_nothing_unless_it_says_yes(no: t.Any) -> None:
    with pytest.raises(InputError, match="LVM"):
        written("ignition", profile_plan("general"), lossy=no)
    with pytest.raises(InputError, match="lossy: .*must be true or false"):
        written("ignition", profile_plan("general"), lossy="perhaps")
