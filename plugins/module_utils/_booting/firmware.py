# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The boot entries of a UEFI firmware: one for each EFI system partition of a layout, and none of ours for partitions that are gone.

Entries are read as `efibootmgr` shows them, of any version: a line `Boot0001* LABEL<tab>HD(1,GPT,PARTUUID,...)/...` for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .._steps.machine import Machine, StepFailed
from .step import BootStep

LABEL = "bareon "
"""What labels of our entries begin with; the first block of the partition's UUID follows."""

EFIVARS = "/sys/firmware/efi/efivars"

_READ = ("efibootmgr", "--verbose")
_ENTRY = re.compile(r"Boot(?P<number>[0-9A-F]{4})[* ] (?P<label>[^\t]*?)(?:\t(?P<path>.*))?")
_ORDER = re.compile(r"BootOrder: (?P<numbers>[0-9A-F,]+)")
_PARTITION = re.compile(r"HD\(\d+,GPT,(?P<uuid>[0-9a-f-]{36})", re.IGNORECASE)
_LOADERS = {"x86_64": r"\EFI\BOOT\BOOTX64.EFI", "aarch64": r"\EFI\BOOT\BOOTAA64.EFI"}
_APPEND = (
    'set -e; label="$1"; loader="$2"; disk="$3"; part="$4"; shift 4; '
    "numbers() { efibootmgr | sed -n 's/^Boot\\([0-9A-F]\\{4\\}\\)[* ].*/\\1/p'; }; "
    'before=$(numbers); order=$(efibootmgr | sed -n "s/^BootOrder: //p"); '
    'efibootmgr --quiet --create-only --disk "$disk" --part "$part" --label "$label" --loader "$loader"; '
    'for new in $(numbers); do case " $(echo $before) " in *" $new "*) ;; *) made=$new ;; esac; done; '
    'efibootmgr --quiet --bootorder "${order:+$order,}$made"'
)
"""A shell's words: an entry comes to the end of the order, for a machine that starts from the network first has to do so still."""


@dataclass(frozen=True)
class Entry:
    """A boot entry: its number of four hexadecimal digits, and the PARTUUID of what it starts from, in small letters (empty: no GPT)."""

    number: str
    label: str
    uuid: str

    @property
    def is_ours(self) -> bool:
        """Whether this module made it."""
        return self.label.startswith(LABEL)


@dataclass(frozen=True)
class Partition:
    """An EFI system partition: the disk, its number there, its PARTUUID in small letters, and its own device."""

    disk: str
    number: int
    uuid: str
    device: str


def read_entries(said: str) -> tuple[Entry, ...]:
    """Return the entries that efibootmgr lists."""
    return tuple(
        Entry(entry["number"], entry["label"], found["uuid"].lower() if found else "")
        for entry in filter(None, map(_ENTRY.fullmatch, said.splitlines()))
        for found in [_PARTITION.search(entry["path"] or "")]
    )


def steps(partitions: Sequence[Partition], processor: str, machine: Machine) -> Iterator[BootStep]:
    """Yield the steps that mend the entries of this host's firmware, none where they are right; raises StepFailed."""
    if not machine.names(EFIVARS):
        raise StepFailed(f"firmware_entries: this host was not started by UEFI ({EFIVARS} is empty), so that it has no boot entries")
    if processor not in _LOADERS:
        raise StepFailed(f"firmware_entries: the name of the boot loader for {processor} is not known; it is for {', '.join(_LOADERS)}")
    outcome = machine.run(_READ)
    if outcome is None or outcome.code != 0:
        says = outcome.stderr.strip() if outcome is not None else "there is no efibootmgr on this host: install it"
        raise StepFailed(f"firmware_entries: the boot entries of the firmware cannot be read: {says}")
    entries, wanted = read_entries(outcome.stdout), {partition.uuid: partition for partition in partitions}
    present = {entry.uuid for entry in entries}
    for uuid, partition in wanted.items():
        if uuid not in present:
            command = ("sh", "-c", _APPEND, "sh", f"{LABEL}{uuid[:8]}", _LOADERS[processor], partition.disk, str(partition.number))
            yield BootStep(f"add a boot entry for the EFI system partition {uuid} on {partition.disk}", command, on_host=True)
    for entry in entries:
        if entry.is_ours and entry.uuid not in wanted:
            says = f"remove the boot entry {entry.number} ({entry.label}), whose partition is not of the layout"
            yield BootStep(says, ("efibootmgr", "--quiet", "--bootnum", entry.number, "--delete-bootnum"), on_host=True)
