# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What must be true of a layout that was made: it is the plan, to the MiB and the extent. Reports are those of make_layout.py."""

from __future__ import annotations

import math
import typing as t

from ansible_collections.bareon.allocator.plugins.module_utils._storage import lvm, overhead, raid

MIB = 1024**2
FAT32_CLUSTERS = 65525

Plain = dict[str, t.Any]


def check_all(plan: Plain, report: Plain) -> None:
    assert report["failed"] is None
    schema = plan["schema"]
    check_partitions(schema, report)
    check_arrays(schema, report)
    check_containers(schema, report)
    check_groups(schema, report)
    check_fats(schema, report)


def check_partitions(schema: Plain, report: Plain) -> None:
    """Every partition lies where it was planned, as the kernel sees it, and sfdisk finds nothing wrong with the tables."""
    planned = {part["name"]: (part["begin"] * MIB, (part["end"] - part["begin"]) * MIB) for part in _partitions(schema)}
    made = {name: (facts["begin"], facts["size"]) for name, facts in report["partitions"].items()}
    assert made == planned
    for words in report["tables"].values():
        assert "No errors detected" in words


def check_arrays(schema: Plain, report: Plain) -> None:
    """An array holds what was planned, and less than a MiB per leg more."""
    for array in schema["mds"]:
        planned = array_size(schema, array)
        found = report["arrays"][array["name"]]["size"] / MIB
        assert planned <= found < planned + data_legs(array), array["name"]


def check_containers(schema: Plain, report: Plain) -> None:
    """The data of every LUKS container begin where it was planned: at a stripe's start on an array, else at 16 MiB."""
    for container in schema["luks"]:
        if container["device"] in report["containers"]:
            found = report["containers"][container["device"]]
            if container["device"] not in report["arrays"]:
                assert found["offset"] == overhead.LUKS_HEAD * MIB, container["name"]
            assert found["offset"] >= overhead.LUKS_HEAD * MIB
            assert found["size"] in (None, found["below"] - found["offset"])


def check_groups(schema: Plain, report: Plain) -> None:
    """Every volume has its size to the byte, every group has the extents that were counted on, not one more or less."""
    for volume in report["pvs"]:
        before = int(volume["pe_start"]) + report_offset(schema, report, volume["pv_name"])
        assert math.ceil(before / MIB) == planned_head(schema, volume["pv_name"]), volume["pv_name"]
        assert int(volume["pv_pe_count"]) == planned_extents(schema, volume["pv_name"]), volume["pv_name"]
    made = {group["vg_name"]: group for group in report["vgs"]}
    volumes = {(volume["vg_name"], volume["lv_name"]): int(volume["lv_size"]) for volume in report["lvs"]}
    pools = [pool for pool in schema.get("thin_pools", ()) if pool["vgname"] in made]
    planned = {(volume["vgname"], volume["name"]): volume["size"] * MIB for volume in schema["lvs"] if volume["vgname"] in made}
    inside = {(volume["vgname"], volume["name"]) for volume in schema["lvs"] if volume.get("pool")}
    planned |= {(pool["vgname"], pool["name"]): pool["size"] * MIB for pool in pools}
    assert volumes == planned
    for name, group in made.items():
        extents = sum(planned_extents(schema, device) for device in _devices(schema, name))
        extent = planned_extent(schema, name) * MIB
        taken = sum(size // extent for (owner, volume), size in planned.items() if owner == name and (owner, volume) not in inside)
        metadata = [pool["metadata_size"] * MIB // extent for pool in pools if pool["vgname"] == name]
        # LVM keeps one spare, for the largest of them.
        taken += sum(metadata) + max(metadata, default=0)
        taken += sum(planned_extents(schema, cache["device"]) for cache in schema.get("caches", ()) if cache["vgname"] == name)
        assert int(group["vg_extent_size"]) == extent
        assert (int(group["vg_extent_count"]), int(group["vg_free_count"])) == (extents, extents - taken), name


def check_fats(schema: Plain, report: Plain) -> None:
    """What should be FAT32 is that for firmware, too, which counts clusters, and does not reach beyond its partition."""
    sizes = {part["name"]: (part["end"] - part["begin"]) * MIB for part in _partitions(schema)}
    for device, fat in report["fats"].items():
        assert fat["old_table"] == 0
        assert fat["clusters"] >= FAT32_CLUSTERS, device
        assert device not in sizes or fat["end"] <= sizes[device]


def report_offset(schema: Plain, report: Plain, device: str) -> int:
    container = container_of(schema, device)
    return report["containers"][container["device"]]["offset"] if container else 0


def planned_extent(schema: Plain, group: str) -> int:
    """Return the MiB of an extent of a group."""
    return next((int(one.get("extent_size", lvm.EXTENT)) for one in schema["vgs"] if one["name"] == group), lvm.EXTENT)


def planned_extents(schema: Plain, device: str) -> int:
    """Return how many extents the planner counts on from a PV: a partition or an array, perhaps with LUKS between."""
    array = array_below(schema, device)
    container = container_of(schema, device)
    size = array_size(schema, array) if array else _size(schema, container["device"] if container else device)
    group = next(one["name"] for one in schema["vgs"] if device in one["pvnames"])
    return lvm.pv_extents(size, planned_head(schema, device), planned_extent(schema, group))


def planned_head(schema: Plain, device: str) -> int:
    """Return the MiB that the planner counts on before the first extent of a PV."""
    array = array_below(schema, device)
    encrypted = container_of(schema, device) is not None
    return overhead.array_pv_head(data_legs(array), encrypted) if array else overhead.pv_head(encrypted)


def container_of(schema: Plain, device: str) -> Plain | None:
    return next((container for container in schema["luks"] if f"/dev/mapper/{container['name']}" == device), None)


def array_below(schema: Plain, device: str) -> Plain | None:
    container = container_of(schema, device)
    return next((array for array in schema["mds"] if array["name"] == (container["device"] if container else device)), None)


def array_size(schema: Plain, array: Plain) -> int:
    """Return the MiB that the planner counts on from an array."""
    leg = min(_size(schema, device) for device in array["devices"])
    data = data_legs(array)
    return data * (leg - overhead.md_reserve(leg, array["metadata"], data))


def data_legs(array: Plain) -> int:
    return raid.data_legs(raid.RaidLevel(array["level"]), len(array["devices"]))


def _partitions(schema: Plain) -> t.Iterator[Plain]:
    for disk in schema["parteds"]:
        yield from disk["partitions"]


def _size(schema: Plain, name: str) -> int:
    return next(part["end"] - part["begin"] for part in _partitions(schema) if part["name"] == name)


def _devices(schema: Plain, group: str) -> list[str]:
    return next(entry["pvnames"] for entry in schema["vgs"] if entry["name"] == group)
