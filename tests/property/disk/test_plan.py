# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans from plain data to the explicit static schema: whatever is planned could be made, object by object."""

from __future__ import annotations

import typing as t

from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

Plain = dict[str, t.Any]
EXTENT, LUKS_HEAD, PV_HEAD = 4, 16, 1
SSDS = 'yaql=$.disks.where($.type = "ssd")'
QUERIES = st.sampled_from([None, None, SSDS, "yaql=$.disks.limit(2)", [SSDS, "yaql=$.disks"]])


@st.composite
def machines(draw: st.DrawFn) -> Plain:
    disks = [
        {
            "id": draw(st.sampled_from(["/dev/disk/by-id/wwn-{}", "/dev/nvme{}n1", "sd{}"])).format(number),
            "type": draw(st.sampled_from(["ssd", "hdd"])),
            "size": draw(st.integers(600, 20_000)),
            "logical_block": draw(st.sampled_from([512, 4096])),
        }
        for number in range(draw(st.integers(1, 5)))
    ]
    return {"ram": draw(st.integers(100, 9_000)), "firmware": draw(st.sampled_from(["uefi", "bios", None])), "disks": disks}


@st.composite
def bounds(draw: st.DrawFn) -> Plain:
    least, more = draw(st.integers(0, 600)), draw(st.integers(1, 5_000))
    kind = draw(st.sampled_from(["none", "min", "both", "size", "percent"]))
    return {
        "none": {},
        "min": {"min_size": least},
        "both": {"min_size": least, "max_size": least + more},
        "size": {"size": least + 20},
        "percent": {"max_size": f"{draw(st.integers(5, 60))} %"},
    }[kind]


@st.composite
def schemas(draw: st.DrawFn) -> list[Plain]:
    """Groups with volumes, partitions of all kinds, arrays: one of each prefix, as many as drawn."""
    entries: list[Plain] = []
    for number in range(draw(st.integers(0, 2))):
        volumes = [f"lv{number}{volume}" for volume in range(draw(st.integers(0, 3)))]
        entries.append({"id": f"vg{number}", "type": "vg", "contains": volumes, "best_with_disks": draw(QUERIES)})
        entries += [{"id": name, "type": "lv", "weight": draw(st.sampled_from([0, 1, 2, 0.5])), **draw(bounds())} for name in volumes]
        if draw(st.booleans()):
            inside = {f"thin{number}{volume}": draw(st.integers(10, 400)) for volume in range(draw(st.integers(0, 2)))}
            keys = draw(st.sampled_from([{}, {"overcommit": 3}, {"chunk_size": 1}, {"metadata_size": 9}]))
            pool = {"id": f"pool{number}", "type": "thin_pool", "min_size": draw(st.integers(0, 200)), "contains": [*inside], **keys}
            volumes.append(pool["id"])
            entries += [pool, *({"id": name, "type": "thin", "size": size} for name, size in inside.items())]
    for number in range(draw(st.integers(0 if entries else 1, 3))):
        kind = draw(st.sampled_from(["partition", "partitions", "raid", "per_disk", "count", "btrfs", "zpool"]))
        entry = {"id": f"p{number}", "type": "partition" if kind in ("per_disk", "count") else kind, **draw(bounds())}
        arrays = st.sampled_from([{"level": "raid0"}, {"level": "raid1"}, {"level": "raid1", "spares": 1}])
        if kind in ("btrfs", "zpool"):
            # What is too small for one is refused as a mistake.
            entry = {"id": entry["id"], "type": kind, "min_size": entry.get("min_size", 0)}
        extra = {
            "raid": draw(arrays),
            "zpool": {"vdev": draw(st.sampled_from(["mirror", "stripe"]))},
            "btrfs": {"level": draw(st.sampled_from(["raid0", "raid1"]))},
            "per_disk": {"per_disk": True},
            "count": {"count": 2},
        }.get(kind, {})
        entries.append({**entry, **extra, "best_with_disks": draw(QUERIES)})
    # What has no room for the header of LUKS is refused as a mistake.
    entries[-1]["encrypt"] = draw(st.booleans()) and entries[-1].get("max_size") not in range(LUKS_HEAD + 1)
    entries[-1]["boot"] = draw(st.booleans())
    for entry in entries:
        if entry["type"] in ("btrfs", "zpool"):
            entry.pop("encrypt", None)
            entry.pop("boot" if entry["type"] == "zpool" else "", None)
        elif entry["type"] not in ("vg", "thin_pool", "thin"):
            entry["fs_type"] = draw(st.sampled_from([None, "ext4", "swap"]))
    return [{key: value for key, value in entry.items() if value is not None} for entry in entries]


def faults(facts: Plain, schema: list[Plain], plan: Plain) -> list[str]:
    """Return what keeps the plan from being made as it is written, and every bound that it breaks."""
    static = plan["schema"]
    return [
        *_table_faults(facts, plan),
        *_volume_faults(static),
        *_array_faults(static),
        *_reference_faults(static),
        *_bound_faults(schema, plan),
        *_copy_faults(schema, plan),
    ]


def _table_faults(facts: Plain, plan: Plain) -> list[str]:
    found = []
    sizes = {disk["id"]: disk["size"] for disk in facts["disks"]}
    tables = {table["disk_id"]: table["partitions"] for table in plan["schema"]["parteds"]}
    for disk in plan["disks"]:
        rows, cursor = tables.get(disk["disk_id"], []), 1
        if [(row["space_id"], row["end"] - row["begin"]) for row in rows] != [
            (space["space_id"], space["size"]) for space in disk["spaces"]
        ]:
            found.append(f"{disk['disk_id']}: partitions and spaces differ")
        for number, row in enumerate(rows, start=1):
            if row["begin"] < cursor or row["end"] <= row["begin"] or row["count"] != number:
                found.append(f"{row['name']}: begins at {row['begin']} after {cursor}")
            cursor = row["end"]
        if cursor > sizes[disk["disk_id"]] - 1 and rows:
            found.append(f"{disk['disk_id']}: no room for the backup table")
        if disk["unallocated"] != sizes[disk["disk_id"]] - sum(space["size"] for space in disk["spaces"]) - (2 if rows else 0):
            found.append(f"{disk['disk_id']}: wrong count of what is left")
    uuids = [row["uuid"] for rows in tables.values() for row in rows]
    return found + (["identities repeat"] if len(set(uuids)) != len(uuids) else [])


def _device_sizes(static: Plain) -> dict[str, int]:
    sizes = {row["name"]: row["end"] - row["begin"] for table in static["parteds"] for row in table["partitions"]}
    for container in static["luks"]:
        if container["device"] in sizes:
            sizes[f"/dev/mapper/{container['name']}"] = sizes[container["device"]] - LUKS_HEAD
    return sizes


def _volume_faults(static: Plain) -> list[str]:
    found, sizes = [], _device_sizes(static)
    for group in static["vgs"]:
        volumes = [volume["size"] for volume in static["lvs"] if volume["vgname"] == group["name"] and "pool" not in volume]
        for pool in (pool for pool in static.get("thin_pools", ()) if pool["vgname"] == group["name"]):
            chunks = pool["size"] * 1024 / pool["chunk_size"]
            volumes += [pool["size"], pool["metadata_size"], pool["metadata_size"]]
            if pool["metadata_size"] < max(2, chunks * 64 / 1024**2):
                found.append(f"{pool['name']}: {pool['metadata_size']} MiB of metadata for {chunks} chunks")
        room = sum((sizes[device] - PV_HEAD) // EXTENT * EXTENT for device in group["pvnames"])
        if sum(volumes) > room or any(size % EXTENT for size in volumes):
            found.append(f"{group['name']}: volumes of {volumes} MiB, room for {room}")
    return found


def _array_faults(static: Plain) -> list[str]:
    sizes = _device_sizes(static)
    disk_of = {row["name"]: row["device"] for table in static["parteds"] for row in table["partitions"]}
    legs = {array["name"]: [*array["devices"], *array["spares"]] for array in static["mds"]}
    return [
        f"{array['name']}: legs {array['devices']}, spares {array['spares']}"
        for array in static["mds"]
        if len({sizes[leg] for leg in legs[array["name"]]}) != 1
        or len({disk_of[leg] for leg in legs[array["name"]]}) != len(legs[array["name"]])
        or len(array["devices"]) < 2
    ]


def _reference_faults(static: Plain) -> list[str]:
    made = {row["name"] for table in static["parteds"] for row in table["partitions"]}
    made |= {array["name"] for array in static["mds"]}
    made |= {f"/dev/mapper/{container['name']}" for container in static["luks"]}
    needed = [container["device"] for container in static["luks"]] + [volume["name"] for volume in static["pvs"]]
    needed += [device for group in static["vgs"] for device in group["pvnames"]] + [
        leg for array in static["mds"] for leg in (*array["devices"], *array["spares"])
    ]
    made_with_volumes = made | {volume["device"] for volume in static["lvs"]}
    missing = [device for device in needed if device not in made]
    return missing + [fs["device"] for fs in static["fss"] if fs["device"] not in made_with_volumes]


def _copies(entry: Plain) -> list[Plain]:
    return [{**entry, "id": f"{entry['id']}{number}"} for number in range(1, entry["count"] + 1)] if "count" in entry else [entry]


def _copy_faults(schema: list[Plain], plan: Plain) -> list[str]:
    found = []
    where = {(part["space_id"], disk["disk_id"]): part["size"] for disk in plan["disks"] for part in disk["spaces"]}
    for entry in schema:
        there = {at: size for at, size in where.items() if "count" in entry and at[0] in {copy["id"] for copy in _copies(entry)}}
        if len(set(there.values())) > 1 or len({disk for _name, disk in there}) < len(there):
            found.append(f"{entry['id']}: copies {there}")
    return found


def _room_of_zfs(leg: int) -> int:
    """Return the MiB of one device that ZFS gives out: without labels, in whole metaslabs of a sixteenth or so, less what it keeps free."""
    size, metaslab = leg - 5, 16
    while metaslab * 16 <= size and metaslab < 512:
        metaslab *= 2
    allocatable = size // metaslab * metaslab
    return allocatable - max(allocatable // 32, min(allocatable // 2, 128))


def _bound_faults(schema: list[Plain], plan: Plain) -> list[str]:
    found = []
    pieces: dict[str, list[int]] = {}
    for disk in plan["disks"]:
        for space in disk["spaces"]:
            pieces.setdefault(space["space_id"], []).append(space["size"])
    volumes = {volume["name"]: volume["size"] for volume in (*plan["schema"]["lvs"], *plan["schema"].get("thin_pools", ()))}
    for pool in (entry for entry in schema if entry["type"] == "thin_pool"):
        given_out = sum(volumes[name] for name in pool["contains"])
        if given_out > pool.get("overcommit", 1) * volumes[pool["id"]]:
            found.append(f"{pool['id']}: {given_out} given out of {volumes[pool['id']]}")
    for entry in (copy for wish in schema for copy in _copies(wish)):
        got = pieces.get(entry["id"], [])
        grain = EXTENT if entry["type"] in ("lv", "thin") else len(got) if entry.get("level") == "raid0" else 1
        amounts = {
            **dict.fromkeys(("lv", "thin", "thin_pool"), [volumes.get(entry["id"], 0)]),
            "vg": [],
            "zpool": [_room_of_zfs(got[0])] if got else [0],
            **dict.fromkeys(("raid", "btrfs"), [got[0] * (len(got) if entry.get("level") == "raid0" else 1)] if got else [0]),
        }.get(entry["type"], got if entry.get("per_disk") else [sum(got)])
        least, most = entry.get("size", entry.get("min_size", 0)), entry.get("size", entry.get("max_size"))
        for amount in amounts:
            if amount < least:
                found.append(f"{entry['id']}: {amount} is under {least}")
            if isinstance(most, int) and amount > max(
                most, -(-least // max(grain, 1)) * grain, 1 + LUKS_HEAD if entry.get("encrypt") else 1, grain
            ):
                found.append(f"{entry['id']}: {amount} is over {most}")
    return found


def plan_of(schema: list[Plain], facts: Plain, objective: Objective = Objective.FAIR, reserve: int = 0) -> tuple[Plain | None, Plain]:
    """Return the plan, or None, and the conflict."""
    try:
        return Planner(schema, objective, reserve).plan(facts), {}
    except NoSolution as error:
        return None, error.conflict


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(machines(), schemas(), st.sampled_from([0, 0, 50]))
def test_a_plan_can_be_made_as_it_is_written(facts: Plain, schema: list[Plain], reserve: int) -> None:
    plan, conflict = plan_of(schema, facts, reserve=reserve)
    if plan is None:
        assert conflict["constraints"]
    else:
        assert faults(facts, schema, plan) == []
        assert all(disk["unallocated"] >= reserve for disk in plan["disks"])


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(machines(), schemas())
def test_ordered_plans_can_be_made_as_well(facts: Plain, schema: list[Plain]) -> None:
    unknown = ("raid", "btrfs", "zpool", "thin_pool", "thin")
    known = [entry for entry in schema if entry["type"] not in unknown and not entry.get("per_disk") and "count" not in entry]
    ids = {entry["id"] for entry in known}
    known = [
        {**entry, "contains": [name for name in entry["contains"] if name in ids]} if "contains" in entry else entry for entry in known
    ]
    assume(known)
    plan, conflict = plan_of(known, facts, Objective.ORDERED)
    if plan is None:
        assert conflict["constraints"]
    else:
        assert faults(facts, known, plan) == []


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(machines(), schemas(), st.randoms(use_true_random=False))
def test_the_order_of_the_disks_does_not_matter(facts: Plain, schema: list[Plain], random: t.Any) -> None:
    shuffled = {**facts, "disks": random.sample(facts["disks"], len(facts["disks"]))}
    plan, conflict = plan_of(schema, facts)
    other_plan, other_conflict = plan_of(schema, shuffled)
    assert other_plan == plan
    assert other_conflict == conflict
