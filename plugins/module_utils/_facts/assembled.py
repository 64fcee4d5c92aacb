# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adds facts of LVM, md and LUKS that the kernel does not have: names, groups, headers, and arrays and groups that do not run."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable
from dataclasses import replace

from .._storage.raid import WRITE_MOSTLY, is_write_mostly, read_options
from .._storage.units import KIB
from . import stacks
from .host import Host, Outcome
from .lsblk import to_integer
from .luks_header import read_luks2
from .reader import Notes
from .signatures import SECTOR, Signature
from .stacks import Array, Legs, LogicalVolume, Luks
from .tree import Device, Tree

_MAPPER_UUID = re.compile(r"^LVM-[A-Za-z0-9]{32}(?P<volume>[A-Za-z0-9]{32})")
_GROUP_SEPARATOR = re.compile(r"(?<!-)-(?!-)")


def read_stacks(host: Host, tree: Tree, disks: Iterable[str], notes: Notes) -> Tree:
    """Return the tree with what is known of the stacks on the disks of these names; read_contents has to have run before."""
    disks = tuple(disks)
    for add in (_add_arrays, _add_luks, _add_volumes):
        tree = add(host, tree, _on_disks(tree, disks), notes)
    return tree


def _on_disks(tree: Tree, disks: Iterable[str]) -> tuple[Device, ...]:
    found = (device for name in disks for device in (tree.devices[name], *tree.descendants(name)))
    return tuple({device.name: device for device in found}.values())


def _members(devices: Iterable[Device], kind: str) -> tuple[tuple[Device, Signature], ...]:
    return tuple((device, signature) for device in devices for signature in device.signatures if signature.type == kind)


def split_mapper_name(name: str) -> tuple[t.Optional[str], str]:
    """Return group and volume of a device-mapper name such as `vg0-a--b`, in which a dash of a name is doubled."""
    parts = _GROUP_SEPARATOR.split(name, maxsplit=1)
    if len(parts) == 1:
        return None, name
    return parts[0].replace("--", "-"), parts[1].replace("--", "-")


def volume_uuid(mapper_uuid: str) -> t.Optional[str]:
    """Return a logical volume's UUID as LVM writes it from its device-mapper UUID, which is the group's and the volume's without dashes."""
    match = _MAPPER_UUID.match(mapper_uuid)
    if match is None:
        return None
    digits = match["volume"]
    return "-".join([digits[:6], *(digits[start : start + 4] for start in range(6, 26, 4)), digits[26:]])


def _add_arrays(host: Host, tree: Tree, devices: tuple[Device, ...], notes: Notes) -> Tree:
    changed = [
        _running_array(host, tree, device) for device in devices if device.running and (device.kind.startswith("raid") or device.inactive)
    ]
    stopped: dict[str, list[tuple[Device, Signature]]] = {}
    for device, signature in _members(devices, "linux_raid_member"):
        if not any(child.kind.startswith(("raid", "linear", "md")) for child in tree.children(device.name)):
            stopped.setdefault(signature.uuid or device.name, []).append((device, signature))
    for uuid, members in stopped.items():
        first, signature = members[0]
        array = _array(host.run(stacks.examine_command(first.dev))) if first.dev is not None else None
        if array is None:
            notes.append(f"{_node(first)}: mdadm is missing or failed: the level of its array is unknown")
        changed.append(_stopped_array(uuid, tuple(member.name for member, _signature in members), array, signature))
    return tree.with_devices(changed)


def _running_array(host: Host, tree: Tree, device: Device) -> Device:
    array = _array(host.run(stacks.detail_command(t.cast(str, device.dev))))
    options = read_options(lambda file: host.read(f"/sys/block/{device.name}/md/{file}"))
    slow = [name for name in device.parents if is_write_mostly(host.read(f"/sys/block/{device.name}/md/dev-{name}/state"))]
    nodes = sorted(tree.devices[name].dev or f"/dev/{name}" for name in slow if name in tree.devices)
    device = replace(device, details={**options.given(), **({WRITE_MOSTLY: nodes} if nodes else {})})
    if array is not None:
        slots = array.devices or None
        title, legs = array.name or device.title, _legs(host, device)
        return replace(device, title=title, uuid=array.uuid, metadata=array.metadata, slots=slots, legs=legs)
    members = [tree.devices[parent] for parent in device.parents if parent in tree.devices]
    known = next((signature for _member, signature in _members(members, "linux_raid_member")), None)
    return device if known is None else replace(device, title=known.label or device.title, uuid=known.uuid)


def _legs(host: Host, device: Device) -> t.Optional[Legs]:
    """Return the region that an array takes of its members; None where the kernel does not show it, as for some levels."""
    folder = f"/sys/block/{device.name}/md"
    used = to_integer((host.read(f"{folder}/component_size") or "").strip())
    begins = [to_integer((host.read(f"{folder}/dev-{name}/offset") or "").strip()) for name in device.parents]
    known = [begin for begin in begins if begin is not None]
    return Legs(used * KIB, max(known) * SECTOR) if used and known and len(known) == len(begins) else None


def _stopped_array(uuid: str, members: tuple[str, ...], array: t.Optional[Array], signature: Signature) -> Device:
    kind, title = (array.level, array.name) if array is not None else ("raid", signature.label)
    metadata, slots = (array.metadata, array.devices or None) if array is not None else (None, None)
    return Device(f"md:{uuid}", None, kind, 0, members, title=title or signature.label, uuid=uuid, metadata=metadata, slots=slots)


def _array(outcome: t.Optional[Outcome]) -> t.Optional[Array]:
    return stacks.parse_array(outcome.stdout) if outcome is not None and outcome.code == 0 else None


def _add_luks(host: Host, tree: Tree, devices: tuple[Device, ...], notes: Notes) -> Tree:
    changed = []
    for device, signature in _members(devices, "crypto_LUKS"):
        opened = [child for child in tree.children(device.name) if child.kind == "crypt"]
        # Arrays with metadata at the end of their members (0.90, 1.0) show through: what is seen on the member is on the array.
        if not opened and any(other.type == "linux_raid_member" for other in device.signatures):
            continue
        header = _luks(host, device)
        if header is None:
            notes.append(f"{_node(device)}: cryptsetup is missing or failed: version, cipher and key slots of its LUKS header are unknown")
        closed = Device(f"luks:{device.name}", None, "crypt", 0, (device.name,), title=f"luks-{signature.uuid}")
        changed += [replace(child, luks=header, uuid=signature.uuid) for child in opened or [closed]]
    return tree.with_devices(changed)


def _luks(host: Host, device: Device) -> t.Optional[Luks]:
    node = device.dev
    if node is None:
        return None
    try:
        found = read_luks2(lambda start, length: host.read_bytes(node, start, length))
    except OSError:
        return None
    if found is not None:
        return found
    outcome = host.run(stacks.luks_command(node))
    return stacks.parse_luks(outcome.stdout) if outcome is not None and outcome.code == 0 else None


def _add_volumes(host: Host, tree: Tree, devices: tuple[Device, ...], notes: Notes) -> Tree:
    named = [_running_volume(device) for device in devices if device.kind == "lvm"]
    tree = tree.with_devices(named)
    members = _members(devices, "LVM2_member")
    if not members:
        return tree
    reports = [host.run(command) for command in (stacks.PHYSICAL_VOLUMES_COMMAND, stacks.LOGICAL_VOLUMES_COMMAND)]
    try:
        groups, volumes = (_report(outcome) for outcome in reports)
        physical, logical = stacks.parse_physical_volumes(groups), stacks.parse_logical_volumes(volumes)
    except (ValueError, KeyError):
        notes.append("pvs and lvs of lvm2 are missing or failed: volume groups and volumes that are not active are unknown")
        return tree
    nodes = {volume.device: tree.by_node(host.resolve(volume.device) or volume.device) for volume in physical}
    in_groups = [replace(device, group=volume.group) for volume in physical for device in [nodes[volume.device]] if device is not None]
    tree = tree.with_devices(in_groups)
    return tree.with_devices(_logical_volumes(tree, logical, {node: device.name for node, device in nodes.items() if device is not None}))


def _report(outcome: t.Optional[Outcome]) -> str:
    return outcome.stdout if outcome is not None and outcome.code == 0 else ""


def _running_volume(device: Device) -> Device:
    group, title = split_mapper_name(device.title or device.name)
    return replace(device, group=group, title=title, uuid=volume_uuid(device.uuid or ""))


def _logical_volumes(tree: Tree, volumes: tuple[LogicalVolume, ...], names: dict[str, str]) -> list[Device]:
    """Return the volumes that run with their identity, and those that do not as devices without a node."""
    found = []
    for volume in volumes:
        device = _running(tree, volume)
        parents = tuple(names[node] for node in stacks.physical_volumes_of(volume, volumes) if node in names)
        if device is not None:
            found.append(replace(device, group=volume.group, title=volume.name, uuid=volume.uuid, details=volume.details))
        elif parents and not volume.hidden:
            found.append(
                Device(
                    f"lv:{volume.uuid}",
                    None,
                    "lvm",
                    volume.size,
                    parents,
                    title=volume.name,
                    uuid=volume.uuid,
                    group=volume.group,
                    details=volume.details,
                )
            )
    return found


def _running(tree: Tree, volume: LogicalVolume) -> t.Optional[Device]:
    """Return the device of a volume that runs: that of its mapper name, unless it runs for another volume of the same name."""
    device = tree.by_node(volume.mapper_path)
    return device if device is not None and device.uuid in (None, volume.uuid) else None


def _node(device: Device) -> str:
    return device.dev or device.name
