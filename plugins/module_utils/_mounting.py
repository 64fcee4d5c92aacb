# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mounts many file systems by their lines in fstab: what is to be done, and doing it."""

from __future__ import annotations

import os
import typing as t
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ._facts.mounts import parse_mounts
from ._steps.machine import LONG_PATIENCE, CommandFailed, Machine, StepFailed
from ._storage.fstab import Entry, has_entry, with_entries

_NEVER_CHECKED = "0"
"""The pass of what no start checks before it mounts it."""
_CHECKED = (0, 1)
"""Codes of fsck: no error, or all errors corrected."""


MOUNTINFO = "/proc/self/mountinfo"
_SYSTEMD = "/run/systemd"
_SYSTEMD_RUNS = "system"


@dataclass(frozen=True)
class MountPlan:
    """What is to be done: the text of fstab `before` and `after`, what is to be mounted, and what is mounted in another way, in order."""

    before: str
    after: str
    new: tuple[Entry, ...] = ()
    changed: tuple[Entry, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return self.before != self.after or bool(self.new)


def plan_mounts(entries: Sequence[Entry], fstab: t.Optional[str], mountinfo: str) -> MountPlan:
    """Return what is to be done for these entries, given the texts of fstab and of /proc/self/mountinfo. Pure.

    Without fstab (None) nothing is written into it, and what is mounted stays as it is.
    """
    mounted = {place for places in parse_mounts(mountinfo).targets.values() for place in places}
    there = [entry for entry in entries if os.path.normpath(entry.path) in mounted]
    new = tuple(entry for entry in entries if entry not in there)
    if fstab is None:
        return MountPlan("", "", new)
    return MountPlan(fstab, with_entries(fstab, entries), new, tuple(entry for entry in there if not has_entry(fstab, entry)))


def carry_out(plan: MountPlan, fstab: t.Optional[str], machine: Machine, write: Callable[[str], None]) -> None:
    """Write fstab (a path, or None) with `write`, reload systemd, and mount in order; raises StepFailed.

    systemd reloads first: by its old units it could unmount file systems that they do not expect.
    """
    if plan.after != plan.before:
        write(plan.after)
        if _SYSTEMD_RUNS in machine.names(_SYSTEMD):
            machine.change(["systemctl", "daemon-reload"])
    for entry in plan.new:
        try:
            os.makedirs(entry.path, exist_ok=True)
        except OSError as error:
            raise StepFailed(f"cannot make the mount point {entry.path}: {error.strerror}") from error
        _mount(entry, fstab, machine)
    for entry in plan.changed:
        machine.change(["mount", *_by(fstab), "-o", "remount", entry.path])
    left = plan_mounts((*plan.new, *plan.changed), None, machine.read(MOUNTINFO) or "")
    if left.new:
        raise StepFailed(f"not mounted, although mount reported no error: {', '.join(entry.path for entry in left.new)}")


def entry_of(given: t.Mapping[str, t.Any]) -> Entry:
    """Return the entry of a mapping of its fields."""
    return Entry(*(str(given[name]) for name in ("src", "path", "fstype", "opts", "dump", "passno")))


def _by(fstab: t.Optional[str]) -> list[str]:
    return ["--fstab", fstab] if fstab is not None else []


def _mount(entry: Entry, fstab: t.Optional[str], machine: Machine) -> None:
    """Mount; where that fails, check first what a start would check, correct what is safe to correct, and mount then.

    A power cut while an ext4 grows can leave its descriptors in the journal alone. Kernels look at them before they replay it.
    """
    in_full = ["-t", entry.fstype, "-o", entry.opts, entry.src]
    mounting = ["mount", *(_by(fstab) or in_full), entry.path]
    try:
        machine.change(mounting, patience=LONG_PATIENCE)
    except CommandFailed as error:
        if error.code is None or entry.passno == _NEVER_CHECKED:
            raise
        try:
            machine.change(["fsck", "-T", "-M", "-a", entry.src], patience=LONG_PATIENCE, accepted=_CHECKED)
        except CommandFailed as complaint:
            raise StepFailed(f"{error}; {complaint}") from error
        machine.change(mounting, patience=LONG_PATIENCE)
