# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has become of plans: facts that are as planned, and facts with one thing changed, which is named with its place."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.compare import compare
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.report import drift
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.html import FleetHost, fleet_page
from ansible_collections.bareon.allocator.tests.support.disk.planned import data_plan, profile_plan, profiles_of_all_targets, whole_plan

Plain = dict[str, t.Any]
Change = t.Callable[[Plain], None]


def as_planned(plan: Plain) -> Plain:
    """Return facts of a host on which a plan was carried out."""
    static = plan["schema"]
    filesystems = {entry["device"]: entry for entry in static["fss"]}
    members = {device: "linux_raid_member" for array in static["mds"] for device in array["devices"]}
    members |= {volume["name"]: "LVM2_member" for volume in static["pvs"]} | {one["device"]: "crypto_LUKS" for one in static["luks"]}

    def content(device: str) -> Plain:
        entry = filesystems.get(device)
        if entry is None:
            return {"fs_type": members.get(device), "label": None, "mountpoints": []}
        mount = {"swap": ["[SWAP]"], "none": []}.get(entry["mount"], [entry["mount"]])
        return {"fs_type": entry["fs_type"], "label": entry["fs_label"] or None, "mountpoints": mount}

    tables = {table["disk_id"]: table["partitions"] for table in static["parteds"]}
    volumes = [
        {"type": "lvm", "name": one["name"], "volume_group": one["vgname"], "size": one["size"], **content(one["device"])}
        for one in static["lvs"]
    ]
    arrays = [
        {"type": one["level"], "name": one["name"].rsplit("/", 1)[-1], "members": one["devices"], **content(one["name"])}
        for one in static["mds"]
    ]
    opened = [{"type": "crypt", "name": one["name"], **content(f"/dev/mapper/{one['name']}")} for one in static["luks"]]
    disks = []
    for disk in plan["disks"]:
        parts = [
            {
                **{"number": part["count"], "uuid": part["uuid"], "type": part["guid"], "start": part["begin"]},
                **{"size": part["end"] - part["begin"], **content(part["name"])},
            }
            for part in tables.get(disk["disk_id"], [])
        ]
        holders = [*volumes, *arrays, *opened] if tables.get(disk["disk_id"]) else []
        disks.append({"id": disk["disk_id"], "links": [disk["disk_id"]], "size": disk["size"], "partitions": parts, "holders": holders})
    return {"disks": disks}


@pytest.mark.parametrize(
    "plan", [*(profile_plan(name) for name in profiles_of_all_targets()), data_plan(), whole_plan("uefi"), whole_plan("bios")]
)
def test_what_was_carried_out_is_alike(plan: Plain) -> None:
    assert compare(plan, as_planned(plan)) == []


def volume(facts: Plain, name: str) -> Plain:
    found = [holder for disk in facts["disks"] for holder in disk["holders"] if holder["name"] == name]
    return t.cast("Plain", found[0])


CHANGES: dict[str, tuple[Change, str, str]] = {
    "a disk is gone": (lambda facts: facts["disks"].pop(1), "gone", "the disk is gone"),
    "a disk is new": (lambda facts: facts["disks"].append({"id": "new", "size": 9, "holders": []}), "new", "a disk of 9 MiB is new"),
    "a disk grew": (lambda facts: facts["disks"][0].update(size=21000), "could_grow", "the disk has 520 MiB more than the plan knows"),
    "a disk shrank": (lambda facts: facts["disks"][0].update(size=20000), "differs", "the disk has 20000 MiB, the plan 20480"),
    "a partition is smaller": (
        lambda facts: facts["disks"][0]["partitions"][2].update(size=10000),
        "could_grow",
        "partition 3 (mirror) has 10000 MiB and could grow to 18942",
    ),
    "a partition is larger": (
        lambda facts: facts["disks"][0]["partitions"][0].update(size=600),
        "differs",
        "partition 1 (esp) has 600 MiB, the plan 512",
    ),
    "a partition moved": (
        lambda facts: facts["disks"][0]["partitions"][2].update(start=2000),
        "differs",
        "partition 3 (mirror) begins at 2000 MiB, in the plan at 1537",
    ),
    "a partition went": (lambda facts: facts["disks"][0]["partitions"].pop(), "differs", "partition 3 (mirror) is not there"),
    "a partition came": (
        lambda facts: facts["disks"][0]["partitions"].append({"number": 9, "start": 20000, "size": 5}),
        "differs",
        "partition 9 of 5 MiB at 20000 is not in the plan",
    ),
    "another content": (
        lambda facts: facts["disks"][0]["partitions"][0].update(fs_type="ext4"),
        "differs",
        "partition 1 (esp) holds ext4, in the plan vfat",
    ),
    "another type": (
        lambda facts: facts["disks"][0]["partitions"][1].update(type="0fc63daf-8483-4772-8e79-3d69d8477de4"),
        "differs",
        "partition 2 (boot) has type 0fc63daf-8483-4772-8e79-3d69d8477de4, in the plan a19d880f-05fc-4d3b-a006-743f0f84911e",
    ),
    "mounted elsewhere": (
        lambda facts: facts["disks"][0]["partitions"][0].update(mountpoints=["/mnt"]),
        "differs",
        "partition 1 (esp) is mounted at /mnt, in the plan at /boot/efi",
    ),
    "another label": (
        lambda facts: volume(facts, "root").update(label="old"),
        "differs",
        "the volume has the label old, in the plan root",
    ),
    "a volume is smaller": (
        lambda facts: volume(facts, "root").update(size=4000),
        "could_grow",
        "the volume has 4000 MiB and could grow to 4096",
    ),
    "an array lost a member": (lambda facts: volume(facts, "boot")["members"].pop(), "differs", "the array has 1 members, not 2"),
    "an array that holds something else": (
        lambda facts: volume(facts, "boot").update(fs_type="xfs"),
        "differs",
        "the array holds xfs, in the plan ext4",
    ),
    "an array that does not run": (
        lambda facts: volume(facts, "boot").update(active=False, fs_type=None),
        "differs",
        "the array is not running",
    ),
    "an opened container that holds nothing": (
        lambda facts: volume(facts, "os-crypt").update(fs_type=None),
        "differs",
        "the LUKS container holds nothing, in the plan LVM2_member",
    ),
    "another level": (lambda facts: volume(facts, "boot").update(type="raid0"), "differs", "the array is a raid0, in the plan a raid1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_one_change_is_found_by_its_name(change: str) -> None:
    apply, state, says = CHANGES[change]
    facts = as_planned(copy.deepcopy(whole_plan("uefi")))
    # Holders stand with every disk that they lie on; the list is that of the first, as the others would say the same.
    for disk in facts["disks"][1:]:
        disk["holders"] = []
    apply(facts)
    findings = compare(whole_plan("uefi"), facts)
    assert (state, says) in {(str(finding.state), finding.says) for finding in findings}
    if change not in {"a disk is gone"}:
        assert len(findings) == 1


def test_a_member_that_an_array_was_started_without_is_not_taken_for_the_array() -> None:
    plan = copy.deepcopy(whole_plan("uefi"))
    facts = as_planned(plan)
    (array,) = [one for one in plan["schema"]["mds"] if one["name"].endswith("/boot")]
    left_out = {**volume(facts, "boot"), "members": ["/dev/sdc2"], "active": False}
    array["devices"] = [*array["devices"], "/dev/sdc2"]
    for disk in facts["disks"]:
        disk["holders"].append(left_out)
    assert [(finding.place, finding.says) for finding in compare(plan, facts)] == [("/dev/md/boot", "the array has 2 members, not 3")]


def test_a_volume_that_is_not_active_is_not_looked_into() -> None:
    facts = as_planned(copy.deepcopy(whole_plan("uefi")))
    volume(facts, "root").update(active=False, fs_type=None, label=None, mountpoints=[])
    assert compare(whole_plan("uefi"), facts) == []


def test_a_volume_that_went_and_one_that_came() -> None:
    facts = as_planned(copy.deepcopy(whole_plan("uefi")))
    for disk in facts["disks"]:
        for holder in disk["holders"]:
            holder["name"] = "other" if holder["name"] == "home" else holder["name"]
    found = [(finding.place, finding.says) for finding in compare(whole_plan("uefi"), facts)]
    assert found == [("os/home", "the volume is not there"), ("os/other", "the volume is not in the plan")]


def test_what_facts_do_not_tell_is_not_compared_and_links_name_disks() -> None:
    facts = as_planned(copy.deepcopy(whole_plan("uefi")))
    for disk in facts["disks"]:
        disk.update(id=f"/dev/other{disk['size']}{disk['links'][0][-1]}")
        del disk["holders"]
        for part in disk["partitions"]:
            for key in ("fs_type", "label", "mountpoints", "type", "uuid"):
                del part[key]
    assert compare(whole_plan("uefi"), facts) == []


def test_the_root_of_a_system_that_is_being_installed() -> None:
    facts = as_planned(copy.deepcopy(data_plan()))
    # A holder stands with every disk that it lies on.
    mounted = {id(part): part for disk in facts["disks"] for part in [*disk["partitions"], *disk["holders"]] if part["mountpoints"]}
    for part in mounted.values():
        part["mountpoints"] = [f"/target{place}" if place.startswith("/") else place for place in part["mountpoints"]]
    assert compare(data_plan(), facts, "/target") == []
    assert compare(data_plan(), facts) != []


def test_a_fleet_is_counted_shown_and_drawn() -> None:
    plans = {"a": whole_plan("uefi"), "b": whole_plan("uefi"), "c": whole_plan("uefi")}
    facts = {host: as_planned(copy.deepcopy(plan)) for host, plan in plans.items()}
    facts["b"]["disks"].pop(1)
    facts["c"]["disks"][1]["size"] += 100
    result = drift(plans, plans.get, facts.get).to_plain()
    assert {host: found["state"] for host, found in result["hosts"].items()} == {"a": "alike", "b": "gone", "c": "could_grow"}
    assert result["counts"] == {"alike": 1, "could_grow": 1, "new": 0, "differs": 0, "gone": 1}
    lines = result["summary"].splitlines()
    assert " ".join(lines[:2]).split() == ["host", "state", "where", "what"]
    assert lines[-1] == "1 of 3 hosts are as planned"
    assert any(line.startswith("b ") and "the disk is gone" in below for line, below in zip(lines, lines[1:]))
    hosts = [FleetHost(name=name, plan=plan, failure=result["failures"].get(name)) for name, plan in plans.items()]
    page = fleet_page(hosts, "Drift")
    assert "<h2>Not as planned</h2>" in page
    assert "2 not as planned" in page
    assert "No plan" not in page
    assert "the disk is gone" in page
    assert "100 MiB more than the plan knows" in page


def test_a_host_that_nothing_is_known_of_is_left_out() -> None:
    plans = {"a": data_plan(), "b": data_plan()}
    result = drift(plans, plans.get, {"b": as_planned(data_plan())}.get).to_plain()
    assert result["left_out_hosts"] == ["a"]
    assert result["summary"] == "1 of 1 hosts are as planned, nothing is known about 1 more"


def test_sizes_that_people_write_as_text_are_compared_as_sizes() -> None:
    facts = as_planned(copy.deepcopy(data_plan()))
    for disk in facts["disks"]:
        disk["size"] = "10 GiB"
    found = drift(["a"], {"a": data_plan()}.get, {"a": facts}.get)
    assert found.findings == {"a": ()}


HOSTILE: dict[str, tuple[t.Any, t.Any, str]] = {
    "no plan": ({}, {"disks": []}, "plans.a.schema: is missing"),
    "text for a plan": ("x", {"disks": []}, "plans.a: "),
    "text for a size": ({**data_plan(), "disks": [{"disk_id": "a", "size": "x"}]}, {"disks": [{"id": "a", "size": 1}]}, "plans.a.disks[0]"),
    "no partitions": ({**data_plan(), "schema": {"parteds": [{"disk_id": "a"}, 3]}}, {"disks": []}, "plans.a.schema.parteds[1]"),
    "a number for disks": (data_plan(), {"disks": 3}, "hardware.a.disks"),
    "a list for facts": (data_plan(), [], "hardware.a"),
    "a disk without a size": (data_plan(), {"disks": [{"id": data_plan()["disks"][0]["disk_id"]}]}, "hardware.a.disks[0].size"),
    "a new disk of a size that is none": (data_plan(), {"disks": [{"id": "x", "size": "many"}]}, "hardware.a.disks[0].size"),
    "a size that is none": (
        data_plan(),
        {"disks": [{"id": data_plan()["disks"][0]["disk_id"], "size": "many"}]},
        "hardware.a.disks[0].size",
    ),
    "holders of another form": (data_plan(), {"disks": [{"id": "x", "size": 3, "holders": [3]}]}, "plans.a: cannot be compared"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_plan_and_what_are_no_facts_is_named_with_its_place(name: str) -> None:
    plan, facts, says = HOSTILE[name]
    plans, known = {"a": plan, "b": data_plan()}, {"a": facts, "b": as_planned(data_plan())}
    found = drift(plans, plans.get, known.get)
    assert list(found.unread) == ["a"]
    assert any(str(mistake).startswith(says) for mistake in found.unread["a"].mistakes), str(found.unread["a"])
    assert found.findings == {"b": ()}, "a fault of one host stays with this host"


def test_all_hosts_are_named_whose_data_cannot_be_used() -> None:
    plans: dict[str, t.Any] = {"a": {}, "b": whole_plan(), "c": "x", "d": data_plan(), "e": data_plan()}
    found = drift(plans, plans.get, {"a": {}, "b": {"disks": 3}, "c": {}, "d": as_planned(data_plan())}.get)
    assert {host: {mistake.place.split(".")[1] for mistake in error.mistakes} for host, error in found.unread.items()} == {
        host: {host} for host in "abc"
    }
    result = found.to_plain()
    assert (list(result["hosts"]), result["unread_hosts"], list(result["failures"]), result["left_out_hosts"]) == (
        ["d"],
        [*"abc"],
        [*"abc"],
        ["e"],
    )
    assert result["counts"]["alike"] == 1
    rows = [line.split()[:2] for line in result["summary"].splitlines() if not line.startswith(" ")]
    assert [row for row in rows if row[1:] == ["unread"]] == [[host, "unread"] for host in "abc"]
    assert result["summary"].endswith("1 of 4 hosts are as planned, 3 cannot be compared, nothing is known about 1 more")
    found.refuse_silence(must_all=False)
    with pytest.raises(InputError):
        found.refuse_silence(must_all=True)
