# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the steps on filesystems, their subvolumes, and swap. Nothing is forced: what a filesystem is made on was cleared before."""

from __future__ import annotations

from .._facts.signatures import parse_probe, probe_command
from .._storage.btrfs import TOP_LEVEL, list_commands, make_options, read_subvolumes
from .._storage.ext4 import OFFSET, SIZE, as_first, parse_superblock
from .._storage.filesystems import FILESYSTEMS, SWAP, Growth, fill
from .kinds import CreateSubvolumes, GrowFilesystem, LimitSubvolumes, MakeFilesystem, MakeSwap, RestoreSuperblock
from .machine import LONG_PATIENCE, Machine, StepFailed

_MOUNTED = 'set -e; mount -o nosuid,nodev,noexec{} -- "$1" "$2"; shift; at="$1"; shift; {}; umount "$at"'
_IN_A_MOUNT_OF_ITS_OWN = _MOUNTED.format("", '"$@" || { umount "$at"; exit 1; }')
"""A shell's words, run in a mount namespace: were it killed, no mount would stay."""

_EACH_DEVICE = (
    'set -e; shown="$(btrfs filesystem show --raw "$1")"; '
    'ids="$(printf "%s\\n" "$shown" | sed -n "s/^[[:space:]]*devid *\\([0-9]*\\) .*/\\1/p")"; '
    'for id in $ids; do btrfs filesystem resize "$id:max" "$1"; done'
)
"""A shell's words that have a mounted Btrfs take the whole of each of its devices."""

_LISTED = "; ".join(" ".join(command) for command in list_commands('"$at"'))
_CREATING = 'umask 022; for name; do mkdir -p "$(dirname "$at/$name")"; btrfs subvolume create "$at/$name" >&2; done'
_LIMITING = 'btrfs quota enable "$at"; while [ $# -gt 1 ]; do btrfs qgroup limit "$2" "$at/$1"; shift 2; done'
_AND_LIST = f'; btrfs filesystem sync "$at" >&2; set +e; {_LISTED}; set -e'
_SUBVOLUMES_CREATED = _MOUNTED.format(f",{TOP_LEVEL}", _CREATING + _AND_LIST)
_SUBVOLUMES_LIMITED = _MOUNTED.format(f",{TOP_LEVEL}", _LIMITING + _AND_LIST)

_EMPTY_FOLDER = "/mnt"
"""What is mounted over, where nobody else sees it: every system has it, and nothing need be written to make it."""


def make_filesystem(step: MakeFilesystem, machine: Machine) -> None:
    """Make the filesystem, and see that it is there with its identity."""
    row = FILESYSTEMS[step.type]
    options = (*make_options(step.level), *step.options) if step.more else step.options
    if step.more:
        _forget_devices(machine)
    machine.change([*row.make_command(step.device, step.uuid, step.label, options), *step.more], patience=LONG_PATIENCE)
    for device in (step.device, *step.more):
        _check(machine, device, step.type, step.uuid, step.label)


def _forget_devices(machine: Machine) -> None:
    """Have the kernel look anew which devices are of one btrfs: it goes on knowing those of one with this UUID that is no more.

    Kernels before 5.0 cannot forget any.
    """
    for command in (("btrfs", "device", "scan", "--forget"), ("btrfs", "device", "scan")):
        machine.run(command)


def make_swap(step: MakeSwap, machine: Machine) -> None:
    """Make swap, and see that it is there with its identity; it is not switched on."""
    machine.change(FILESYSTEMS[SWAP].make_command(step.device, step.uuid, step.label, step.options), patience=LONG_PATIENCE)
    _check(machine, step.device, SWAP, step.uuid, step.label)


def grow_filesystem(step: GrowFilesystem, machine: Machine) -> None:
    """Let the filesystem take its whole device: where it is mounted, or mounted for it after a check.

    Where that does not work it grows unmounted. Of an ext4 this is no journal's matter: a power cut can leave what e2fsck -p does not mend.
    The kernel lets few containers grow one that is mounted.
    """
    growth = FILESYSTEMS[step.type].growth
    if growth is None or not (growth.mounted or step.mountpoint is None):
        raise StepFailed(f"the {step.type} on {step.device} cannot be grown{' while it is mounted' if growth else ''}")
    if step.mountpoint is None and growth.check:
        _look_through(step.device, growth, machine)
    if not growth.mounted:
        machine.change(fill(growth.unmounted, device=step.device), patience=LONG_PATIENCE)
        return
    place = step.mountpoint or _EMPTY_FOLDER
    growing = fill(growth.mounted, device=step.device, mountpoint=place)
    if step.several:
        growing = ["sh", "-c", _EACH_DEVICE, "sh", place]
    apart = ["unshare", "--mount", "--", "sh", "-c", _IN_A_MOUNT_OF_ITS_OWN, "sh", step.device, place]
    try:
        machine.change(growing if step.mountpoint else [*apart, *growing], patience=LONG_PATIENCE)
    except StepFailed:
        if step.mountpoint or not growth.unmounted:
            raise
        # It was mounted since the check.
        _look_through(step.device, growth, machine)
        machine.change(fill(growth.unmounted, device=step.device), patience=LONG_PATIENCE)


def _look_through(device: str, growth: Growth, machine: Machine) -> None:
    """Check a filesystem that is not mounted; raises StepFailed where it has errors that need somebody to decide."""
    machine.change(fill(growth.check, device=device), patience=LONG_PATIENCE, accepted=growth.checked)


def restore_superblock(step: RestoreSuperblock, machine: Machine) -> None:
    """Write the copy in the place of the first superblock, have the filesystem checked, and see that the first one is whole.

    e2fsck by the copy itself (-b) would go by no mark of what was never written: room for inodes that still has what a disk had before.
    """
    growth = FILESYSTEMS[step.type].growth
    copy = machine.read_bytes(step.device, step.block * step.block_size, SIZE)
    found = parse_superblock(copy)
    if growth is None or found is None or not found.whole:
        raise StepFailed(f"the block {step.block} of {step.device} has no whole copy of the superblock of its {step.type}")
    writing = [
        "dd",
        f"of={step.device}",
        f"bs={SIZE}",
        f"seek={OFFSET // SIZE}",
        "count=1",
        "iflag=fullblock",
        "conv=notrunc,nocreat,fsync",
    ]
    machine.change(writing, given=as_first(copy))
    _look_through(step.device, growth, machine)
    first = parse_superblock(machine.read_bytes(step.device, OFFSET, SIZE))
    if first is None or not first.whole:
        raise StepFailed(f"the superblock of the {step.type} on {step.device} is not whole, although e2fsck did not complain")


def shrink_filesystem(device: str, kind: str, size: int, machine: Machine) -> None:
    """Let a filesystem that is not mounted, and can be made smaller, have no more than so many bytes; see that it has."""
    row = FILESYSTEMS[kind]
    if row.growth is None or not row.shrink:
        raise StepFailed(f"the {kind} on {device} cannot be shrunk")
    _look_through(device, row.growth, machine)
    if _size(machine, device, kind) > size:
        machine.change(fill(row.shrink, device=device, kib=str(size // 1024)), patience=LONG_PATIENCE)
    found = _size(machine, device, kind)
    if found > size:
        raise StepFailed(f"the {kind} on {device} has {found} bytes after it was made smaller, to {size}")


def _size(machine: Machine, device: str, kind: str) -> int:
    growth = FILESYSTEMS[kind].growth
    found = growth.measure.read(machine.change(fill(growth.measure.command, device=device, mountpoint=device))) if growth else None
    if found is None:
        raise StepFailed(f"the size of the {kind} on {device} cannot be read")
    return found


def create_subvolumes(step: CreateSubvolumes, machine: Machine) -> None:
    """Make the subvolumes, and see that they are there."""
    found = read_subvolumes(_in_a_mount(machine, _SUBVOLUMES_CREATED, step.device, *step.names))
    lacking = [name for name in step.names if name not in found]
    if lacking:
        raise StepFailed(f"{step.device} has no subvolume {', '.join(lacking)}, although btrfs did not complain")


def limit_subvolumes(step: LimitSubvolumes, machine: Machine) -> None:
    """Limit the subvolumes, and see that they are limited."""
    words = [word for name, limit in zip(step.names, step.limits) for word in (name, str(limit))]
    found = read_subvolumes(_in_a_mount(machine, _SUBVOLUMES_LIMITED, step.device, *words))
    for name, limit in zip(step.names, step.limits):
        if found.get(name) != limit:
            raise StepFailed(f"the subvolume {name} on {step.device} may refer to {found.get(name)} bytes instead of {limit}")


def _in_a_mount(machine: Machine, script: str, device: str, *words: str) -> str:
    return machine.change(["unshare", "--mount", "--", "sh", "-c", script, "sh", device, _EMPTY_FOLDER, *words])


def _check(machine: Machine, device: str, kind: str, uuid: str, label: str) -> None:
    """Compare what blkid reads from the device itself; FAT keeps labels in capitals."""
    outcome = machine.run(probe_command(device))
    found = parse_probe(outcome.stdout if outcome is not None else "")
    if (found.get("TYPE"), found.get("UUID", "").lower()) != (kind, uuid.lower()):
        raise StepFailed(f"{device} has {found.get('TYPE')} with the UUID {found.get('UUID')} on it instead of {kind} with {uuid}")
    if label and found.get("LABEL", "").lower() != label.lower():
        raise StepFailed(f"{device} has the label {found.get('LABEL')} instead of {label}")
