# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GRUB: into every disk for BIOS, into every EFI system partition for UEFI, and its menu."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator

from .._schema.starting import Legs
from .step import BootStep
from .system import System, has

_PROGRAMS = ("grub-install", "grub2-install")
_FOLDERS = ("usr/sbin", "usr/bin")
_BIOS = "i386-pc"
_EFI = {"x86_64": "x86_64-efi", "aarch64": "arm64-efi"}


def find_grub(system: System) -> t.Optional[str]:
    """Return what installs GRUB in this system."""
    return next((name for name in _PROGRAMS if any(has(system, f"{folder}/{name}") for folder in _FOLDERS)), None)


def lacks(legs: Legs, system: System, processor: str) -> Iterator[str]:
    """Give what the GRUB of a system lacks for these firmwares, a sentence each."""
    for target in ([_BIOS] if legs.bios else []) + ([_efi(processor)] if legs.esps else []):
        if not has(system, f"usr/lib/grub/{target}"):
            yield f"GRUB in {system.place} has nothing for {target}: install its package"


def steps(legs: Legs, grub: str, processor: str) -> Iterator[BootStep]:
    """Give the steps that install it."""
    folder = grub.partition("-")[0]
    for disk in legs.bios:
        yield BootStep(f"install GRUB for BIOS on {disk}", (grub, f"--target={_BIOS}", disk))
    # Under the name that every firmware looks for, for entries in a firmware's memory are lost with a board, or with a disk.
    efi = (grub, f"--target={_efi(processor)}", f"--efi-directory={legs.esp_place}", "--removable", "--no-nvram")
    for esp in legs.esps:
        yield BootStep(f"install GRUB for UEFI on {esp}", efi, esp)
    # Last, for what installs GRUB makes the folder that the menu lies in.
    yield BootStep("write the menu of GRUB", (f"{folder}-mkconfig", "-o", f"/boot/{folder}/grub.cfg"))


def _efi(processor: str) -> str:
    return _EFI.get(processor, f"{processor}-efi")
