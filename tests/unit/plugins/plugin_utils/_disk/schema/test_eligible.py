# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disks a plan may use: each kind that it leaves alone, with its reason, until it is asked for."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.module_utils._storage.derived import table_uuid
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.html import FleetHost, fleet_page
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.svg import svg
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.eligible import parse_eligible

Plain = dict[str, t.Any]

GOOD: Plain = {"id": "good", "type": "ssd", "size": 50_000, "transport": "sata", "wwn": "0x5000000000000001"}
MOUNTED = [{"number": 1, "start": 1, "size": 100, "mountpoints": ["/", "/boot"]}]
ALL: Plain = {"id": "all", "type": "partitions", "mount": "/srv"}
KINDS = {
    "in_use": ({"in_use": True, "partitions": MOUNTED}, "is in use (mounted at / and /boot)"),
    "removable": ({"removable": True}, "is removable"),
    "usb": ({"transport": "usb"}, "is on USB"),
    "sd_card": ({"transport": "mmc", "removable": True}, "is an SD card"),
    "zoned": ({"zoned": True}, "is written in zones"),
    "iscsi": ({"transport": "iscsi"}, "is behind iSCSI"),
    "fc": ({"transport": "fc", "multipath": True}, "is behind Fibre Channel"),
}
NEVER = [
    ({"read_only": True}, "is read-only"),
    ({"holders": [{"type": "mpath", "dev": "/dev/mapper/mpatha"}]}, "is a path of the multipath device /dev/mapper/mpatha"),
    (
        {"wwn": GOOD["wwn"].upper(), "size": GOOD["size"]},
        "is a second path to good, or a disk with the same identity (both have the wwn 0X5000000000000001)",
    ),
]


def other(**facts: t.Any) -> Plain:
    return {"id": "other", "type": "ssd", "size": 40_000, "transport": "sata", **facts}


def plan(*disks: Plain, schema: t.Sequence[Plain] = (ALL,), eligible: t.Sequence[str] = ()) -> Plain:
    return Planner(list(schema), eligible=parse_eligible(list(eligible))).plan({"disks": [GOOD, *disks]})


def used(planned: Plain) -> list[str]:
    return [disk["disk_id"] for disk in planned["disks"]]


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_that_have_to_be_asked_for(kind: str) -> None:
    facts, reason = KINDS[kind]
    planned = plan(other(**facts))
    assert used(planned) == ["good"]
    assert planned["left_out_disks"] == [{"disk_id": "other", "size": 40_000, "reason": reason, "kinds": [kind]}]
    asked = plan(other(**facts), eligible=[kind])
    assert sorted(used(asked)) == ["good", "other"]
    assert asked["left_out_disks"] == []


@pytest.mark.parametrize(("facts", "reason"), NEVER)
def test_what_can_never_be_used(facts: Plain, reason: str) -> None:
    planned = plan(other(**facts), eligible=list(KINDS))
    assert used(planned) == ["good"]
    assert [(disk["reason"], disk["kinds"]) for disk in planned["left_out_disks"]] == [(reason, [])]


def test_disks_of_one_name_and_other_sizes_are_two() -> None:
    assert len(used(plan(other(wwn=GOOD["wwn"])))) == 2


def test_the_multipath_device_is_used_rather_than_its_paths() -> None:
    multipath = {"id": "mpatha", "type": "hdd", "size": 50_000, "transport": "sas", "multipath": True, "wwn": GOOD["wwn"]}
    assert used(plan(multipath)) == ["mpatha"]


def test_a_disk_that_is_mounted_without_a_partition_is_named_with_its_place() -> None:
    [left_out] = plan(other(in_use=True, mountpoints=["/srv"]))["left_out_disks"]
    assert left_out["reason"] == "is in use (mounted at /srv)"


def test_all_kinds_of_a_disk_have_to_be_asked_for() -> None:
    facts = other(transport="usb", in_use=True, holders=[{"name": "data", "active": True}])
    [left_out] = plan(facts, eligible=["usb"])["left_out_disks"]
    assert (left_out["reason"], left_out["kinds"]) == ("is in use (data is active)", ["in_use"])
    [left_out] = plan(facts)["left_out_disks"]
    assert (left_out["reason"], left_out["kinds"]) == ("is in use (data is active) and is on USB", ["in_use", "usb"])


def test_mount_points_that_are_no_list_are_passed_over() -> None:
    [left_out] = plan(other(in_use=True, mountpoints=7))["left_out_disks"]
    assert left_out["reason"] == "is in use"


def test_what_a_plan_made_is_planned_again_while_it_is_in_use() -> None:
    planned = plan(other(in_use=True, partitions=MOUNTED, table_uuid=table_uuid("other").upper(), empty=False))
    assert sorted(used(planned)) == ["good", "other"]
    assert planned["warnings"] == []


def test_a_disk_with_data_to_keep_is_asked_for() -> None:
    kept = {"id": "data", "type": "partition", "keep_data": True, "mount": "/data"}
    disk = other(in_use=True, partitions=[{"number": 1, "name": "data", "start": 1, "size": 100, "mountpoints": ["/data"]}])
    assert sorted(used(plan(disk, schema=[kept, ALL]))) == ["good", "other"]
    assert used(plan(disk)) == ["good"]


def test_expressions_see_the_disks_that_are_used() -> None:
    space = {"id": "p", "type": "partition", "size": "yaql=$.disks.len()"}
    assert plan(other(transport="usb"), schema=[space])["disks"][0]["spaces"] == [{"space_id": "p", "size": 1}]


def test_a_disk_that_is_left_out_is_no_unknown_one() -> None:
    asked = {**ALL, "disks": ["other"]}
    with pytest.raises(InputError, match=r"schema\[0\].disks: other is on USB, so it is left out of plans; add usb to eligible to use it"):
        plan(other(transport="usb"), schema=[asked])
    assert used(plan(other(transport="usb"), schema=[{**ALL, "avoid_disks": ["other"]}])) == ["good"]
    assert used(plan(other(transport="usb"), schema=[{**ALL, "best_with_disks": ["other"]}])) == ["good"]


def test_the_plan_is_for_all_disks_of_the_machine() -> None:
    disks = [other(transport="usb")]
    assert plan(*disks)["fingerprint"] == plan(*disks, eligible=["usb"])["fingerprint"] != plan()["fingerprint"]


def test_a_machine_of_which_no_disk_may_be_used() -> None:
    facts = {"disks": [other(transport="usb"), {"id": "image", "size": 10, "read_only": True}]}
    with pytest.raises(InputError) as caught:
        Planner([ALL]).plan(facts)
    reasons = "no disk of this machine may be used: other is on USB; image is read-only"
    says = f"{reasons}. To plan with such disks, name their kind, as in eligible: [usb]"
    assert [str(mistake) for mistake in caught.value.mistakes] == [f"hardware.disks: {says}"]


def test_a_conflict_tells_of_disks_that_could_be_used() -> None:
    with pytest.raises(NoSolution) as caught:
        plan(other(transport="usb"), schema=[{**ALL, "min_size": 60_000}])
    assert caught.value.conflict["remedies"][-1] == "use other (39.1 GiB), too, which is on USB: eligible: [usb]"


def test_kinds_are_read_with_suggestions() -> None:
    assert parse_eligible(None) == frozenset()
    assert parse_eligible("usb") == {"usb"}
    with pytest.raises(InputError, match="sdcard"):
        parse_eligible(["sdcard"])


def test_what_is_there_is_told_where_something_new_is_planned() -> None:
    content = [{"type": "gpt", "label": None}, {"type": "ext4", "label": "data"}, {"type": "ext4", "label": "data"}]
    full, unknown = other(empty=False, content=content), other(empty=False)
    assert plan(full)["warnings"] == ["other is not empty, there is gpt and ext4 'data' on it; it stays until wipe names the disk"]
    assert plan(full, schema=[{**ALL, "disks": ["good"]}])["warnings"] == []
    assert plan(unknown)["warnings"] == []
    assert "2 partitions" in plan(other(empty=False, partitions=[MOUNTED[0], {**MOUNTED[0], "number": 2, "start": 200}]))["warnings"][0]


def test_table_and_pictures_name_the_disks_that_are_left_out() -> None:
    stick = other(transport="usb", dev="/dev/sdb", model="Ultra <Fit>")
    planned, hardware = plan(stick), {"disks": [{**GOOD, "dev": "/dev/sda"}, stick]}
    words = "sdb other (39.1 GiB, USB SSD Ultra <Fit>) is left out: it is on USB; eligible: [usb] takes it in"
    assert f"- {words}" in " ".join(summary(planned, hardware).split())
    assert words.replace("<", "&lt;").replace(">", "&gt;") in svg(planned, hardware)
    assert words.replace("<", "&lt;").replace(">", "&gt;") in fleet_page([FleetHost("one", planned, hardware)])
