# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to be done for a system to start, or every reason why it would not; what was done is remembered in the system.

What a start follows from is its tables, kernels, and disks: when they are the same, there is nothing to do.
"""

from __future__ import annotations

import hashlib
import json
import re
import typing as t
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from .._facts.signatures import parse_probe, probe_command
from .._schema.model import Layout
from .._schema.starting import Legs, legs_of
from .._steps.machine import Machine
from .._storage.gpt import ESP
from .._storage.initramfs import InitramfsTool
from . import esp_sync, firmware, grub, initramfs, systemd_boot
from .step import BootStep
from .system import Archive, Folder, System, kernels

STAMP = "var/lib/bareon.allocator/boot.json"
"""Where in the system is written what it was made to start from, last."""

PROCESSORS = ("x86_64", "aarch64")
"""Whose UEFI is known by the names of its boot loaders."""

_ESP_SYNC = "esp_sync"
"""What in the stamp may change without the rest: then only its steps run."""

_READ_AT_START = ("etc/fstab", "etc/crypttab", "etc/mdadm/mdadm.conf", "etc/mdadm.conf", "etc/default/grub")


@dataclass(frozen=True)
class BootPlan:
    """The steps to run, none when the system starts this way already; `stamp` identifies the plan for the next run."""

    steps: tuple[BootStep, ...]
    stamp: str
    place: str


@dataclass(frozen=True)
class Extras:
    """What is done beside a start: EFI system partitions that are kept alike, and entries in the firmware."""

    esp_sync: bool = True
    firmware_entries: bool = False


def plan_boot(layout: Layout, root: str, machine: Machine, processor: str, extras: Extras = Extras()) -> tuple[BootPlan, tuple[str, ...]]:
    """Return what is to be done for the system in `root`, and every reason why it cannot be; raises StepFailed for firmware entries."""
    legs, here = legs_of(layout), Folder(root, machine)
    tool, refusals = initramfs.find_tool(here), why_not(layout, here, processor)
    if tool is None or refusals:
        return BootPlan((), "", legs.esp_place), refusals
    steps, facts = _steps(layout, legs, here, tool, processor)
    # What the start follows from, as text: tables as the system reads them, kernels, and `more`.
    more = {"legs": asdict(legs), "initramfs": tool.program, "processor": processor, **facts}
    tables = {file: _digest(here.read(file)) for file in _READ_AT_START}
    start = {"tables": tables, "kernels": kernels(here), **more}
    esps = tuple(_esps(layout, legs, machine))
    copying = tuple(esp_sync.plan(legs.esp_place, {esp.device: esp.uuid for esp in esps}, here, extras.esp_sync))
    stamp = json.dumps({**start, **({_ESP_SYNC: _digest(repr(copying))} if copying else {})}, sort_keys=True)
    entries = tuple(firmware.steps(esps, processor, machine)) if extras.firmware_entries else ()
    return BootPlan((*_not_done(here.read(STAMP), stamp, steps, copying), *entries), stamp, legs.esp_place), ()


def _not_done(before: str, stamp: str, steps: tuple[BootStep, ...], copying: tuple[BootStep, ...]) -> tuple[BootStep, ...]:
    """Return the steps that the last run did not carry out, by its stamp."""
    try:
        done, wanted = json.loads(before or "{}"), json.loads(stamp)
    except ValueError:
        return (*steps, *copying)
    if not isinstance(done, dict):
        return (*steps, *copying)
    copied, copies = done.pop(_ESP_SYNC, None), wanted.pop(_ESP_SYNC, None)
    return (*(() if done == wanted else steps), *(() if copied == copies else copying))


def _esps(layout: Layout, legs: Legs, machine: Machine) -> Iterator[firmware.Partition]:
    """Yield the partitions among the EFI system partitions. One that was kept may have another PARTUUID than a new one would get."""
    for disk in layout.disks:
        for part in disk.partitions:
            if part.type == ESP and part.device in legs.esps:
                said = machine.run(probe_command(part.device))
                uuid = parse_probe(said.stdout).get("PART_ENTRY_UUID", part.uuid) if said is not None else part.uuid
                yield firmware.Partition(disk.device, part.number, uuid.lower(), part.device)


def why_not(layout: Layout, system: System, processor: str) -> tuple[str, ...]:
    """Return what a system lacks to start from the disks of a layout, a sentence each."""
    return tuple(_lacks(layout, legs_of(layout), system, processor))


def why_archive_not(layout: Layout, archive: Archive) -> tuple[str, ...]:
    """Return the same of an archive; for which processor it is, it need not say."""
    return min((why_not(layout, archive, processor) for processor in PROCESSORS), key=len)


def _lacks(layout: Layout, legs: Legs, system: System, processor: str) -> Iterator[str]:
    if not legs.bios and not legs.esps:
        yield "the layout has neither a BIOS boot partition nor an EFI system partition: set boot on the space that the system starts from"
    if not kernels(system):
        yield f"there is no kernel (vmlinuz-VERSION) in boot of {system.place}: is that the root file system of a whole system?"
    yield from initramfs.lacks(layout, system, initramfs.find_tool(system))
    if grub.find_grub(system) is not None:
        yield from grub.lacks(legs, system, processor)
    elif systemd_boot.is_there(system, processor):
        yield from systemd_boot.lacks(legs, system)
    else:
        packages = "on Debian grub2-common, grub-pc-bin, grub-efi-amd64-bin"
        yield f"there is no grub-install in {system.place}: install GRUB in it ({packages}), or for UEFI systemd-boot (systemd-boot-efi)"


def _steps(
    layout: Layout, legs: Legs, system: System, tool: InitramfsTool, processor: str
) -> tuple[tuple[BootStep, ...], Mapping[str, t.Any]]:
    """Return the steps, by GRUB where the system has it, and what they follow from."""
    installs_grub = grub.find_grub(system)
    prepared, made = tuple(initramfs.preparing_steps(layout, tool)), tuple(initramfs.initramfs_steps(tool, system))
    says = [step.says for step in prepared]
    if installs_grub is not None:
        return (*prepared, *made, *grub.steps(legs, installs_grub, processor)), {"grub": installs_grub, "prepared": says}
    words = systemd_boot.command_line(system)
    # The others than Debian's make it on every ESP, when kernel-install asks them to.
    return (*prepared, *(made if tool.by_kernel else ()), *systemd_boot.steps(legs, system, words)), {
        "systemd-boot": words,
        "prepared": says,
    }


def _digest(text: str) -> str:
    lines = (line for line in text.splitlines() if not re.fullmatch(r"\s*(#.*)?", line))
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
