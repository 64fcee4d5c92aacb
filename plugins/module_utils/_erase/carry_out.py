# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Erases one disk: from where an earlier run was cut off, to the record of what was done and what was read afterwards."""

from __future__ import annotations

import time
import typing as t
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from .._facts.host import Host
from .._facts.select import Disk
from .._steps.machine import LONG_PATIENCE, CommandFailed, Machine, StepFailed
from .._storage.units import MIB, in_mib
from . import samples
from .medium import CHUNK, LocalMedium, Medium
from .plan import Target
from .record import Progress, Record, Records
from .ways import AUTO, CRYPTO, DISCARD, SANITIZE, ZERO, State

_SAVED_EVERY = 1024 * MIB
_LOOKS_EVERY = 5.0
"""Seconds."""
_PATIENCE = 4 * LONG_PATIENCE
_BOOT = "/proc/sys/kernel/random/boot_id"
_WRITTEN_SECTORS = 6
"""The column of /sys/class/block/NAME/stat with how many sectors were written since the start of the system."""

Open = Callable[[str, int, bool], AbstractContextManager[Medium]]


class Stopped(StepFailed):
    """A signal asked to stop; what was done is kept."""

    def __init__(self) -> None:
        super().__init__("stopped by a signal; the same task goes on from here")


@dataclass(frozen=True)
class Workplace:
    """What an erasure works with: the machine, the records, how a disk is opened, and the clock."""

    machine: Machine
    records: Records
    stop_asked: Callable[[], bool] = lambda: False
    open: Open = LocalMedium
    pause: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time


def finished(place: Workplace, disk: Disk, method: str) -> t.Optional[Progress]:
    """Return the progress of an earlier erasure that still stands; None for none. Reads all of the disk where nothing else tells.

    An erasure stands where nothing was written since, or where the disk still reads zero from end to end. Raises StepFailed.
    """
    progress = _progress_of(place, disk)
    methods = (ZERO, SANITIZE, CRYPTO) if method == AUTO else (method,)
    if progress is None or not progress.record.ended or progress.record.method not in methods:
        return None
    if progress.untouched and progress.untouched == _written(place.machine, disk.device.name):
        return progress
    if progress.record.method not in (ZERO, DISCARD):
        return None
    try:
        with place.open(str(disk.device.dev), disk.device.size, False) as medium:
            return progress if _first_data(place, medium) is None else None
    except OSError as error:
        raise StepFailed(f"cannot read {disk.device.dev}: {error.strerror or error}") from error


def erase(place: Workplace, target: Target) -> Record:
    """Erase a disk, and return the record; raises StepFailed and Stopped, after which a later run goes on."""
    disk = target.disk
    node = str(disk.device.dev)
    try:
        progress = _begun(place, target)
        verified, checked = _by_command(place, target, progress) if target.way.command else _by_writing(place, target, progress)
    except OSError as error:
        raise StepFailed(f"cannot erase {node}: {error.strerror or error}") from error
    record = replace(progress.record, ended=_time(place), verified=verified, checked=checked)
    place.machine.settle()
    place.records.save(Progress(record, untouched=_written(place.machine, disk.device.name)))
    return record


def _progress_of(place: Workplace, disk: Disk) -> t.Optional[Progress]:
    return place.records.load(disk.id, _column(disk, "serial"), disk.device.size)


def _begun(place: Workplace, target: Target) -> Progress:
    """Return the progress of a run that was cut off, if it was on the same way, else a new one, which is kept first."""
    disk = target.disk
    found = _progress_of(place, disk)
    if found is not None and not found.record.ended and found.record.way == target.way.name:
        return found
    wwn, model = _column(disk, "wwn"), " ".join(_column(disk, "model").split())
    way, size = target.way, disk.device.size
    record = Record(disk.id, _column(disk, "serial"), wwn, model, size, way.method, way.name, way.level, _time(place))
    # Opened for writing, for the kernel refuses that while something has come into use.
    with place.open(str(disk.device.dev), size, True) as medium:
        begun = Progress(record, samples=samples.take(medium) if target.way.command else {})
    place.records.save(begun)
    return begun


def _by_command(place: Workplace, target: Target, progress: Progress) -> tuple[bool, str]:
    """Have a disk erase itself, wait for the end, and return whether what is read proves it, and what was read.

    Raises StepFailed where the disk has kept its data.
    """
    node = target.found.node
    progress = _commanded(place, target, progress)
    with place.open(node, target.disk.device.size, False) as medium:
        left = samples.survivors(progress.samples, medium)
    if left:
        place.records.save(replace(progress, commanded=False))
        raise StepFailed(f"{node} reports that it is erased, but reads as before at {in_mib(left[0])}; erase it by zero, or destroy it")
    return True, f"the disk reports success, and no sample reads as one of the {len(progress.samples)} with data did before"


def _commanded(place: Workplace, target: Target, progress: Progress) -> Progress:
    """Return the progress when the disk has erased itself."""
    way, machine, name = target.way, place.machine, target.disk.device.name
    if way.status is None:
        # The disk is not held meanwhile: nvme-cli fails where it cannot have the kernel read the table again.
        machine.change(way.command, patience=_PATIENCE)
        return progress
    state = way.status(machine) if progress.commanded else State.NONE
    # What was written after the end of an earlier operation is not erased by it.
    is_over = state is State.DONE and not (progress.untouched and progress.untouched == _written(machine, name))
    if is_over or state in (State.NONE, State.FAILED):
        try:
            machine.change(way.command, patience=_PATIENCE)
        except CommandFailed:
            # A power cut may have come between the command and the note: then the disk goes on, and takes no other.
            if way.status(machine) is not State.ACTIVE:
                raise
        progress = replace(progress, commanded=True, untouched=_written(machine, name))
        place.records.save(progress)
    while (state := way.status(machine)) is State.ACTIVE:
        if place.stop_asked():
            raise Stopped
        place.pause(_LOOKS_EVERY)
    if state is not State.DONE:
        raise StepFailed(f"{target.found.node} reports that its sanitize operation {'failed' if state is State.FAILED else 'did not run'}")
    return progress


def _by_writing(place: Workplace, target: Target, progress: Progress) -> tuple[bool, str]:
    """Write all of a disk from where an earlier run has come, and return whether it reads zero, and what was read.

    What an earlier run wrote may have been written over since: then all is written again. Raises StepFailed where the disk keeps data.
    """
    with place.open(target.found.node, target.disk.device.size, True) as medium:
        # Discards are quick, and what is read afterwards does not show which blocks were written again since.
        for start in (0,) if target.way.method == DISCARD else dict.fromkeys((progress.position, 0)):
            _write(place, target, medium, replace(progress, position=start))
            at = _first_data(place, medium)
            if at is None:
                return True, f"all {in_mib(medium.size)} read back as zero"
            if target.way.method == DISCARD:
                return False, f"reads other than zero at {in_mib(at)}: the disk does not promise what discarded blocks read like"
            place.records.save(replace(progress, position=0))
    raise StepFailed(f"{target.found.node} does not read back as zero at {in_mib(at or 0)}; if that happens again, destroy the disk")


def _write(place: Workplace, target: Target, medium: Medium, progress: Progress) -> None:
    write = medium.discard if target.way.method == DISCARD else medium.zero
    for start in range(progress.position, medium.size, _SAVED_EVERY):
        end = min(start + _SAVED_EVERY, medium.size)
        for each in range(start, end, CHUNK):
            if place.stop_asked():
                raise Stopped
            write(each, min(CHUNK, end - each))
        medium.flush()
        place.records.save(replace(progress, position=end))


def _first_data(place: Workplace, medium: Medium) -> t.Optional[int]:
    """Return where the first chunk begins that is not all zero; None for a disk that reads zero from end to end."""
    zeros = bytes(CHUNK)
    for start in range(0, medium.size, CHUNK):
        if place.stop_asked():
            raise Stopped
        content = medium.read(start, min(CHUNK, medium.size - start))
        if content != zeros[: len(content)]:
            return start
    return None


def _written(host: Host, name: str) -> str:
    """Return what changes with every write to a disk: the start of the system, and how many sectors were written since."""
    boot, columns = host.read(_BOOT), (host.read(f"/sys/class/block/{name}/stat") or "").split()
    return f"{boot} {columns[_WRITTEN_SECTORS]}" if boot and len(columns) > _WRITTEN_SECTORS else ""


def _column(disk: Disk, name: str) -> str:
    return str(disk.source.row.get(name) or "")


def _time(place: Workplace) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(place.now()))
