# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Models straight from plain data, without the parser: for tests of the solvers alone."""

from __future__ import annotations

import json
import pathlib

from ansible_collections.bareon.allocator.plugins.module_utils._storage.raid import RaidLevel
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import (
    Disk,
    ExistingSpace,
    Firmware,
    Hardware,
    Schema,
    Space,
    SpaceType,
)

CASES = json.loads((pathlib.Path(__file__).parents[2] / "unit" / "data" / "disk" / "cases.json").read_text())


def hardware_of(*sizes: int, blocks: int = 512, existing: dict[int, list[tuple[str, int, int]]] | None = None) -> Hardware:
    """Return a machine with disks d0, d1, ... of these sizes (MiB)."""
    there = {disk: tuple(ExistingSpace(*space) for space in spaces) for disk, spaces in (existing or {}).items()}
    disks = [Disk(f"d{at}", size, logical_block=blocks, existing=there.get(at, ())) for at, size in enumerate(sizes)]
    return Hardware(tuple(disks), 4096, Firmware.UEFI)


def schema_of(hardware: Hardware, *entries: dict) -> Schema:
    """Return the schema of plain entries; `disks` and `best_with_disks` are lists of ids (or a list of lists: tiers)."""
    positions = {disk.id: at for at, disk in enumerate(hardware.disks)}
    groups = {_member(member): entry["id"] for entry in entries for member in entry.get("contains", [])}
    spaces = tuple(_space(entry, at, positions, groups) for at, entry in enumerate(entries))
    return Schema(spaces, flat=any(space.type is SpaceType.LOGICAL_VOLUME and space.volume_group is None for space in spaces))


def case_models(case: dict) -> tuple[Hardware, Schema]:
    """Return machine and schema of one of CASES, with its expressions replaced by their known values."""
    info = case["hw_info"]
    disks = tuple(Disk(disk["id"], disk["size"], type=disk["type"], logical_block=disk["logical_block"]) for disk in info["disks"])
    hardware = Hardware(disks, info["ram"], Firmware(info["firmware"]))
    entries = []
    for entry in case["dynamic_schema"]:
        known = {key: value for key, value in entry.items() if not (isinstance(value, str) and value.startswith("yaql="))}
        entries.append({**known, **case["resolved"].get(entry["id"], {})})
    return hardware, schema_of(hardware, *entries)


def _member(member: str | dict) -> str:
    return member["id"] if isinstance(member, dict) else member


def _space(entry: dict, at: int, positions: dict[str, int], groups: dict[str, str]) -> Space:
    allowed = entry.get("disks", list(positions))
    tiers = entry.get("best_with_disks") or []
    tiers = [tiers] if tiers and isinstance(tiers[0], str) else tiers
    legs = entry.get("legs", 0)
    return Space(
        id=entry["id"],
        type=SpaceType(entry["type"]),
        place=f"schema[{at}]",
        min_size=entry.get("size", entry.get("min_size", 0)),
        max_size=entry.get("size", entry.get("max_size")),
        weight=entry.get("weight", 1.0),
        allowed=frozenset(positions[disk] for disk in allowed),
        preferred_disks=tuple(frozenset(positions[disk] for disk in tier) for tier in tiers),
        volume_group=groups.get(entry["id"]) if entry["type"] == "lv" else None,
        contains=tuple(_member(member) for member in entry.get("contains", [])),
        level=RaidLevel(entry["level"]) if "level" in entry else None,
        legs=len(allowed) if legs == "all" else legs,
        spares=entry.get("spares", 0),
        apart_from=tuple(entry.get("apart_from", ())),
        together_with=tuple(entry.get("together_with", ())),
        per_disk=entry.get("per_disk", False),
        max_pvs=entry.get("max_pvs"),
        extent_size=entry.get("extent_size", 4),
        boot=entry.get("boot", False),
        encrypt=entry.get("encrypt", False),
        keep_data=entry.get("keep_data", False),
        mount=entry.get("mount"),
    )
