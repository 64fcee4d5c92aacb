# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the clearing of devices that become ours: no signature of whatever was there before may come back to life."""

from __future__ import annotations

from .._facts.signatures import parse_signatures, signatures_command
from .._storage.units import MIB
from .kinds import ClearSignatures
from .machine import Machine, Region, StepFailed
from .partition_table import device_size, ends

_BLOCK = 4096
_COPIES = (1 * MIB, 2 * MIB, 4 * MIB, 64 * MIB, 256 * 1024**3)
"""Where copies lie that are in neither end: LUKS 2's second header (1, 2, 4 MiB at most), btrfs' superblocks (64 MiB, 256 GiB)."""


def clear_signatures(step: ClearSignatures, machine: Machine) -> None:
    """Clear the devices, which the kernel refuses while anything uses them, and see that nothing is left on any."""
    machine.change(["wipefs", "--all", "--quiet", *step.devices])
    for device in step.devices:
        machine.zero(device, cleared_regions(device_size(machine, device), step.head), exclusively=True)
    outcome = machine.run(signatures_command(*step.devices))
    left = parse_signatures(outcome.stdout) if outcome is not None and outcome.code == 0 else None
    if left is None or left:
        found = ", ".join(signature.type for signature in left or ())
        cleared = ", ".join(step.devices)
        raise StepFailed(f"{cleared} was cleared, but {f'still has {found}' if left else 'cannot be read back'}")


def cleared_regions(size: int, head: int = MIB) -> tuple[Region, ...]:
    """Return what is zeroed of a device of so many bytes: both ends, the first of `head` bytes, and the places of copies between them."""
    more = (Region(MIB, min(head, size) - MIB),) if min(head, size) > MIB else ()
    return (*ends(size), *more, *(Region(place, _BLOCK) for place in _COPIES if place + _BLOCK <= size - MIB))
