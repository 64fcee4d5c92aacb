# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the steps on filesystems and swap. Nothing is forced: what a filesystem is made on was cleared before."""

from __future__ import annotations

from ..facts.signatures import parse_probe, probe_command
from ..storage.filesystems import FILESYSTEMS, SWAP, fill
from .kinds import GrowFilesystem, MakeFilesystem, MakeSwap
from .machine import LONG_PATIENCE, Machine, StepFailed

_IN_A_MOUNT_OF_ITS_OWN = 'set -e; mount -o nosuid,nodev,noexec -- "$1" "$2"; shift; at="$1"; shift; "$@"; umount "$at"'
"""A shell's words, run in a mount namespace: were it killed, no mount would stay."""

_EMPTY_FOLDER = "/mnt"
"""What is mounted over, where nobody else sees it: every system has it, and nothing need be written to make it."""


def make_filesystem(step: MakeFilesystem, machine: Machine) -> None:
    """Make the filesystem, and see that it is there with its identity."""
    row = FILESYSTEMS[step.type]
    machine.change(row.make_command(step.device, step.uuid, step.label, step.options), patience=LONG_PATIENCE)
    _check(machine, step.device, step.type, step.uuid, step.label)


def make_swap(step: MakeSwap, machine: Machine) -> None:
    """Make swap, and see that it is there with its identity; it is not switched on."""
    machine.change(FILESYSTEMS[SWAP].make_command(step.device, step.uuid, step.label, step.options), patience=LONG_PATIENCE)
    _check(machine, step.device, SWAP, step.uuid, step.label)


def grow_filesystem(step: GrowFilesystem, machine: Machine) -> None:
    """Let the filesystem take its whole device: where it is mounted, else after a check, or mounted for it where only that works."""
    growth = FILESYSTEMS[step.type].growth
    if growth is None or not (growth.mounted or step.mountpoint is None):
        raise StepFailed(f"{step.type} does not grow{' while it is mounted' if growth else ''}, and {step.device} has one")
    if step.mountpoint is None and growth.unmounted:
        if growth.check:
            machine.change(fill(growth.check, device=step.device), patience=LONG_PATIENCE, accepted=growth.checked)
        machine.change(fill(growth.unmounted, device=step.device), patience=LONG_PATIENCE)
        return
    place = step.mountpoint or _EMPTY_FOLDER
    growing = fill(growth.mounted, device=step.device, mountpoint=place)
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
