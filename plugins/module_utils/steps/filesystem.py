# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the steps on filesystems and swap. Nothing is forced: what a filesystem is made on was cleared before."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..facts.signatures import parse_probe, probe_command
from .kinds import GrowFilesystem, MakeFilesystem, MakeSwap
from .machine import LONG_PATIENCE, Machine, StepFailed

_REPAIRED = (0, 1)
"""e2fsck's code 1: errors, all of them corrected."""

_IN_A_MOUNT_OF_ITS_OWN = 'set -e; mount -o nosuid,nodev,noexec -- "$1" "$2"; shift; at="$1"; shift; "$@"; umount "$at"'
"""A shell's words, run in a mount namespace: were it killed, no mount would stay."""

_EMPTY_FOLDER = "/mnt"
"""What is mounted over, where nobody else sees it: every system has it, and nothing need be written to make it."""


def make_filesystem(step: MakeFilesystem, machine: Machine) -> None:
    """Make the filesystem, and see that it is there with its identity."""
    machine.change(make_command(step), patience=LONG_PATIENCE)
    _check(machine, step.device, step.type, step.uuid, step.label)


def make_command(step: MakeFilesystem) -> list[str]:
    """Return the command that makes a filesystem; the user's options come last, so that they win."""
    identity = _IDENTITIES["ext4" if step.type.startswith("ext") else step.type](step)
    return [f"mkfs.{step.type}", *identity, *step.options, step.device]


def _ext(step: MakeFilesystem) -> list[str]:
    return ["-q", "-U", step.uuid, *(["-L", step.label] if step.label else [])]


def _xfs(step: MakeFilesystem) -> list[str]:
    return ["-q", "-m", f"uuid={step.uuid}", *(["-L", step.label] if step.label else [])]


def _btrfs(step: MakeFilesystem) -> list[str]:
    return ["-q", "-U", step.uuid, *(["-L", step.label] if step.label else [])]


def _vfat(step: MakeFilesystem) -> list[str]:
    return ["-F", "32", "-i", step.uuid.replace("-", ""), *(["-n", step.label] if step.label else [])]


_IDENTITIES: Mapping[str, Callable[[MakeFilesystem], list[str]]] = {"ext4": _ext, "xfs": _xfs, "btrfs": _btrfs, "vfat": _vfat}


def make_swap(step: MakeSwap, machine: Machine) -> None:
    """Make swap, and see that it is there with its identity; it is not switched on."""
    label = ["-L", step.label] if step.label else []
    machine.change(["mkswap", "-U", step.uuid, *label, *step.options, step.device], patience=LONG_PATIENCE)
    _check(machine, step.device, "swap", step.uuid, step.label)


def grow_filesystem(step: GrowFilesystem, machine: Machine) -> None:
    """Let the filesystem take its whole device, while it is mounted where it is.

    xfs and btrfs grow only when they are mounted; an ext that is not is checked first, as resize2fs asks for.
    """
    if step.type.startswith("ext"):
        if step.mountpoint is None:
            machine.change(["e2fsck", "-f", "-p", step.device], patience=LONG_PATIENCE, accepted=_REPAIRED)
        machine.change(["resize2fs", step.device], patience=LONG_PATIENCE)
        return
    place = step.mountpoint or _EMPTY_FOLDER
    growing = ["xfs_growfs", "-d", place] if step.type == "xfs" else ["btrfs", "filesystem", "resize", "max", place]
    apart = ["unshare", "--mount", "--", "sh", "-c", _IN_A_MOUNT_OF_ITS_OWN, "sh", step.device, place]
    machine.change(growing if step.mountpoint else [*apart, *growing], patience=LONG_PATIENCE)


def _check(machine: Machine, device: str, kind: str, uuid: str, label: str) -> None:
    """Compare what blkid reads from the device itself; FAT keeps labels in capitals."""
    outcome = machine.run(probe_command(device))
    found = parse_probe(outcome.stdout if outcome is not None else "")
    if (found.get("TYPE"), found.get("UUID", "").lower()) != (kind, uuid.lower()):
        raise StepFailed(f"{device} has {found.get('TYPE')} with the UUID {found.get('UUID')} on it instead of {kind} with {uuid}")
    if label and found.get("LABEL", "").lower() != label.lower():
        raise StepFailed(f"{device} has the label {found.get('LABEL')} instead of {label}")
