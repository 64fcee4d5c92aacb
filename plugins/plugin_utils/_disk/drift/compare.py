# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One host's facts against its plan: disks and their partitions, arrays, volumes and caches. Sizes are whole MiB."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._storage import cache, thin
from ....module_utils._storage.filesystems import SWAP
from ....module_utils._storage.lvm import mapper_node
from ....module_utils._storage.raid import WRITE_MOSTLY, array_options
from ....module_utils._storage.zfs import MEMBER
from ..static.host_files import SWAP_TARGET, below
from .findings import Finding, State
from .zpools import compare_zpools

Plain = Mapping[str, t.Any]


@dataclass(frozen=True)
class _Plan:
    """What a plan says of the devices it makes: what lies on each, by the device."""

    content: Mapping[str, str]
    filesystems: Mapping[str, Plain]


def compare(plan: Plain, facts: Plain, root: str = "/") -> list[Finding]:
    """Return all differences between a plan and the facts of its host; `root` is where the host mounts what the plan mounts at `/`.

    Raises KeyError, TypeError or AttributeError for data that are no plan or no facts.
    """
    schema = plan["schema"]
    known = _known(schema)
    present = {name: disk for disk in facts["disks"] for name in (*(disk.get("links") or ()), disk["id"])}
    planned = {_id_of(disk["disk_id"]): disk for disk in plan["disks"]}
    tables = {disk["disk_id"]: disk["partitions"] for disk in schema.get("parteds") or ()}
    found: list[Finding] = []
    for disk_id, disk in planned.items():
        there = present.get(disk_id)
        if there is None:
            found.append(Finding(disk_id, State.GONE, "the disk is gone"))
            continue
        found += _size(disk_id, "the disk", disk["size"], there["size"])
        if disk_id in tables:
            found += _partitions(disk_id, tables[disk_id], there, known, root)
    left_out = [disk["disk_id"] for disk in plan.get("left_out_disks") or ()]
    wanted = {id(present[disk_id]) for disk_id in (*planned, *left_out) if disk_id in present}
    found += [_new(_id_of(disk["id"]), disk["size"]) for disk in facts["disks"] if id(disk) not in wanted]
    return [*found, *_stacks(schema, facts, known, root), *compare_zpools(schema, facts)]


def _id_of(disk_id: t.Any) -> str:
    """Return the id; one of another kind can be compared, but not shown."""
    if not isinstance(disk_id, str):
        raise TypeError(f"{disk_id!r} is not the id of a disk")
    return disk_id


def _new(disk_id: str, size: t.Any) -> Finding:
    if not isinstance(size, int):
        raise TypeError(f"{size!r} is not the size of a disk")
    return Finding(disk_id, State.NEW, f"a disk of {size} MiB is new")


def _known(schema: Plain) -> _Plan:
    content = {
        device: "linux_raid_member" for array in schema.get("mds") or () for device in (*array["devices"], *(array.get("spares") or ()))
    }
    content |= {volume["name"]: "LVM2_member" for volume in schema.get("pvs") or ()}
    content |= {container["device"]: "crypto_LUKS" for container in schema.get("luks") or ()}
    vdevs = (vdev for pool in schema.get("zpools") or () for vdev in (*pool["vdevs"], *(pool.get("logs") or ())))
    # What blkid says of a cache or a spare differs.
    content |= {device: MEMBER for vdev in vdevs for device in vdev["devices"]}
    filesystems = {device: entry for entry in schema.get("fss") or () for device in entry.get("devices") or (entry["device"],)}
    return _Plan(content | {device: entry["fs_type"] for device, entry in filesystems.items()}, filesystems)


def _size(place: str, what: str, planned: int, present: int | None) -> Iterator[Finding]:
    """Compare the size of a whole disk, which could be used up to its end."""
    if present is not None and present > planned:
        yield Finding(place, State.COULD_GROW, f"{what} has {present - planned} MiB more than the plan knows")
    elif present is not None and present < planned:
        yield Finding(place, State.DIFFERS, f"{what} has {present} MiB, the plan {planned}")


def _made_size(place: str, what: str, planned: int, present: int | None) -> Iterator[Finding]:
    """Compare the size of what the plan makes: what is smaller can be made to grow to it."""
    if present is not None and present < planned:
        yield Finding(place, State.COULD_GROW, f"{what} has {present} MiB and could grow to {planned}")
    elif present is not None and present > planned:
        yield Finding(place, State.DIFFERS, f"{what} has {present} MiB, the plan {planned}")


def _partitions(disk_id: str, planned: list[Plain], disk: Plain, known: _Plan, root: str) -> Iterator[Finding]:
    present = list(disk.get("partitions") or ())
    by_uuid = {str(part["uuid"]).lower(): part for part in present if part.get("uuid")}
    by_start = {part["start"]: part for part in present}
    seen = set()
    for part in planned:
        what = f"partition {part.get('count')} ({part.get('space_id') or part['name']})"
        there = by_uuid.get(str(part.get("uuid")).lower()) or by_start.get(part["begin"])
        if there is None:
            yield Finding(disk_id, State.DIFFERS, f"{what} is not there")
            continue
        seen.add(id(there))
        if there["start"] != part["begin"]:
            yield Finding(disk_id, State.DIFFERS, f"{what} begins at {there['start']} MiB, in the plan at {part['begin']}")
        yield from _made_size(disk_id, what, part["end"] - part["begin"], there["size"])
        if there.get("type") and part.get("guid") and str(there["type"]).lower() != str(part["guid"]).lower():
            yield Finding(disk_id, State.DIFFERS, f"{what} has type {there['type']}, in the plan {part['guid']}")
        yield from _content(disk_id, what, part["name"], there, known, root)
    for part in present:
        if id(part) not in seen:
            size = f"{part['size']} MiB at {part['start']}"
            yield Finding(disk_id, State.DIFFERS, f"partition {part.get('number')} of {size} is not in the plan")


def _content(place: str, what: str, device: str, there: Plain, known: _Plan, root: str) -> Iterator[Finding]:
    """Compare what lies on a device; facts without contents give no finding."""
    wanted = known.content.get(device)
    if wanted is not None and "fs_type" in there and there["fs_type"] != wanted:
        yield Finding(place, State.DIFFERS, f"{what} holds {there['fs_type'] or 'nothing'}, in the plan {wanted}")
    filesystem = known.filesystems.get(device)
    if filesystem is None:
        return
    label = filesystem.get("fs_label") or ""
    if label and "label" in there and there["label"] != label:
        yield Finding(place, State.DIFFERS, f"{what} has the label {there['label'] or '(none)'}, in the plan {label}")
    mounts = there.get("mountpoints") or []
    mount = filesystem.get("mount") or "none"
    target = SWAP_TARGET if mount == SWAP else below(root, mount)
    if mounts and mount != "none" and target not in mounts:
        yield Finding(place, State.DIFFERS, f"{what} is mounted at {', '.join(mounts)}, in the plan at {target}")
    for subvolume in filesystem.get("subvolumes") or ():
        mount = subvolume.get("mount") or "none"
        if mounts and mount != "none" and below(root, mount) not in mounts:
            yield Finding(place, State.DIFFERS, f"{what} is not mounted at {below(root, mount)}, as the plan has its {subvolume['name']}")


def _stacks(schema: Plain, facts: Plain, known: _Plan, root: str) -> Iterator[Finding]:
    """Compare arrays and volumes, where the facts have holders of disks at all."""
    listed = [disk["holders"] for disk in facts["disks"] if "holders" in disk]
    if not listed:
        return
    holders = [holder for those in listed for holder in those]
    yield from _volumes(schema, holders, known, root)
    yield from _arrays(schema, facts, holders, known, root)
    opened = {holder.get("name"): holder for holder in holders if holder.get("type") == "crypt" and holder.get("active", True)}
    for container in schema.get("luks") or ():
        if container["name"] in opened:
            device = f"/dev/mapper/{container['name']}"
            yield from _content(device, "the LUKS container", device, opened[container["name"]], known, root)


def _volumes(schema: Plain, holders: Sequence[Plain], known: _Plan, root: str) -> Iterator[Finding]:
    present = {(holder.get("volume_group"), holder.get("name")): holder for holder in holders if holder.get("type") == "lvm"}
    groups = {volume["vgname"] for volume in (*(schema.get("lvs") or ()), *(schema.get("thin_pools") or ()))}
    for pool in schema.get("thin_pools") or ():
        place = f"{pool['vgname']}/{pool['name']}"
        there = present.pop((pool["vgname"], pool["name"]), None)
        if there is None:
            yield Finding(place, State.DIFFERS, "the thin pool is not there")
        else:
            yield from _made_size(place, "the thin pool", pool["size"], there.get("size"))
    yield from _caches(schema, present)
    for volume in schema.get("lvs") or ():
        place = f"{volume['vgname']}/{volume['name']}"
        there = present.pop((volume["vgname"], volume["name"]), None)
        if there is None:
            yield Finding(place, State.DIFFERS, "the volume is not there")
            continue
        yield from _made_size(place, "the volume", volume["size"], there.get("size"))
        stripes = there.get("stripes")
        if volume.get("stripes") and stripes and stripes != volume["stripes"]:
            yield Finding(place, State.DIFFERS, f"the volume has {stripes} stripes, in the plan {volume['stripes']}")
        if there.get("active", True):
            yield from _content(place, "the volume", mapper_node(volume["vgname"], volume["name"]), there, known, root)
    for group, name in present:
        if group in groups and not (thin.is_part(str(name)) or cache.is_part(str(name))):
            yield Finding(f"{group}/{name}", State.DIFFERS, "the volume is not in the plan")


def _caches(schema: Plain, present: Mapping[tuple[t.Any, t.Any], Plain]) -> Iterator[Finding]:
    """Compare which active volumes have a cache; facts do not have its mode."""
    planned = {(one["vgname"], cache.volume_of(one["name"])): one for one in schema.get("caches") or ()}
    for where, one in planned.items():
        origin = present.get((one["vgname"], one["origin"]))
        if where not in present and origin is not None and origin.get("active", True):
            yield Finding(f"{one['vgname']}/{one['origin']}", State.DIFFERS, f"the volume is not cached by {one['name']}")
    groups = {group["name"] for group in schema.get("vgs") or ()}
    for group, name in present:
        if group in groups and cache.is_volume(str(name)) and (group, name) not in planned:
            yield Finding(f"{group}/{cache.name_of(str(name))}", State.DIFFERS, "the cache is not in the plan")


def _slow_members(array: Plain, there: Plain, schema: Plain, facts: Plain) -> str:
    """Return in what the write-mostly members of an array differ from those of the plan; partitions are known by their UUIDs."""
    if array.get(WRITE_MOSTLY) is None:
        return ""
    planned = {part["name"]: str(part.get("uuid")).lower() for disk in schema.get("parteds") or () for part in disk["partitions"]}
    present = {part.get("dev"): str(part.get("uuid")).lower() for disk in facts["disks"] for part in disk.get("partitions") or ()}
    wanted = {planned.get(device) for device in array[WRITE_MOSTLY]}
    found = {present.get(device) for device in there.get(WRITE_MOSTLY) or ()}
    return "" if wanted == found else f"the array has {len(found)} write-mostly members, in the plan {len(wanted)}, or others"


def _arrays(schema: Plain, facts: Plain, holders: Sequence[Plain], known: _Plan, root: str) -> Iterator[Finding]:
    arrays = [holder for holder in holders if str(holder.get("type")).startswith("raid")]
    # A member that an array was started without looks like a stopped array of the same name.
    running_last = sorted(arrays, key=lambda holder: bool(holder.get("active", True)))
    present = {str(holder.get("name")).rsplit("/", 1)[-1]: holder for holder in running_last}
    for array in schema.get("mds") or ():
        name = array["name"].rsplit("/", 1)[-1]
        # An array that was made elsewhere has the name of its home before its own.
        there = present.get(name) or next((one for key, one in present.items() if key.endswith(f":{name}")), None)
        if there is None:
            yield Finding(array["name"], State.DIFFERS, "the array is not there")
            continue
        wrong = _wrong_array(array, there) or _slow_members(array, there, schema, facts)
        if wrong:
            yield Finding(array["name"], State.DIFFERS, wrong)
        else:
            yield from _content(array["name"], "the array", array["name"], there, known, root)


def _wrong_array(planned: Plain, there: Plain) -> str:
    """Return what is wrong with an array as such; nothing when all is as planned."""
    members, wanted = len(there.get("members") or ()), len(planned["devices"]) + len(planned.get("spares") or ())
    if there["type"] != planned["level"]:
        return f"the array is a {there['type']}, in the plan a {planned['level']}"
    if members != wanted:
        return f"the array has {members} members, not {wanted}"
    for key, found, asked in array_options(planned).unlike(array_options(there)):
        return f"the array has the {key} {found}, in the plan {asked}"
    return "" if there.get("active", True) else "the array is not running"
