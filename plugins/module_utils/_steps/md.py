# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the steps on md arrays.

New arrays are built up as md wants it, in the background: with --assume-clean parity would be wrong, and mirrors would answer with one
half or the other where nothing was written yet.
"""

from __future__ import annotations

import typing as t

from .._facts.stacks import Array, detail_command, members_of, parse_array
from .kinds import AddMembers, CreateArray, GrowArray, ReAddMembers, StartArray, StopArray, WidenArray
from .machine import LONG_PATIENCE, Machine, StepFailed

_ANY_HOST = "--homehost=any"
"""Recorded in the array: it comes back under its own name whatever the host is called by then."""


def create_array(step: CreateArray, machine: Machine) -> None:
    """Create the array and compare it with what was wanted. Its name, level and identity are in the superblocks."""
    machine.change(create_command(step))
    machine.settle()
    machine.wait_for([step.device])
    _check(machine, step.device, step.uuid, step.level)


def create_command(step: CreateArray) -> list[str]:
    """Return the command that creates an array; what it asks is answered by --run, for its members are cleared."""
    metadata = [] if step.metadata == "default" else [f"--metadata={step.metadata}"]
    bitmap = [] if step.level == "raid0" else ["--bitmap=internal"]
    spares = [f"--spare-devices={len(step.spares)}"] if step.spares else []
    identity = [f"--name={step.title}", f"--uuid={colons(step.uuid)}", _ANY_HOST]
    counts = [f"--raid-devices={len(step.members)}", *spares]
    return [
        "mdadm",
        "--create",
        step.device,
        "--run",
        *identity,
        f"--level={step.level}",
        *metadata,
        *bitmap,
        *counts,
        *step.members,
        *step.spares,
    ]


def add_members(step: AddMembers, machine: Machine) -> None:
    """Add the members, and see that the array has them."""
    machine.change(["mdadm", "--manage", step.device, "--add", *step.members])
    _check_members(machine, step.device, step.members)


def re_add_members(step: ReAddMembers, machine: Machine) -> None:
    """Re-add the members, and see that the array has them. Unlike --add this never makes a new member of one that md does not know."""
    machine.change(["mdadm", "--manage", step.device, "--re-add", *step.members])
    _check_members(machine, step.device, step.members)


def widen_array(step: WidenArray, machine: Machine) -> None:
    """Add the members and give them places of their own, and see that the array has them."""
    machine.change(["mdadm", "--grow", step.device, f"--raid-devices={step.count}", "--add", *step.members])
    _check_members(machine, step.device, step.members)


def grow_array(step: GrowArray, machine: Machine) -> None:
    """Let the array take all of its members. md does not do that while it builds up, which can take hours."""
    # Code 1: there was nothing to wait for.
    machine.change(["mdadm", "--wait", step.device], patience=LONG_PATIENCE, accepted=(0, 1))
    machine.change(["mdadm", "--grow", step.device, "--size=max"])
    machine.settle()


def _check_members(machine: Machine, device: str, members: tuple[str, ...]) -> None:
    machine.settle()
    outcome = machine.run(detail_command(device))
    there = members_of(outcome.stdout) if outcome is not None and outcome.code == 0 else ()
    lacking = [member for member in members if (machine.resolve(member) or member) not in there and member not in there]
    if lacking:
        raise StepFailed(f"{device} has {', '.join(there) or 'no members'}, but not {', '.join(lacking)}")


def start_array(step: StartArray, machine: Machine) -> None:
    """Assemble the array, which mdadm refuses when members that it had are missing."""
    identity = [f"--uuid={colons(step.uuid)}", _ANY_HOST]
    machine.change(["mdadm", "--assemble", step.device, *identity, *step.members])
    machine.settle()
    machine.wait_for([step.device])
    _check(machine, step.device, step.uuid, None)


def stop_array(step: StopArray, machine: Machine) -> None:
    """Stop the array; its superblocks stay as they are."""
    machine.change(["mdadm", "--stop", step.device])
    machine.settle()


def colons(uuid: str) -> str:
    """Return a UUID as mdadm writes it: four groups of eight digits."""
    digits = uuid.replace("-", "")
    return ":".join(digits[start : start + 8] for start in range(0, 32, 8))


def _check(machine: Machine, device: str, uuid: str, level: t.Optional[str]) -> None:
    array = _read(machine, device)
    if array is None:
        raise StepFailed(f"{device} cannot be read back with mdadm --detail")
    if array.uuid != uuid or (level is not None and array.level != level):
        raise StepFailed(f"{device} is {array.level} with the UUID {array.uuid} instead of {level or 'an array'} with {uuid}")


def _read(machine: Machine, device: str) -> t.Optional[Array]:
    outcome = machine.run(detail_command(device))
    return parse_array(outcome.stdout) if outcome is not None and outcome.code == 0 else None
