# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd-boot: with the kernels and their initramfs on every EFI system partition, by `bootctl` and `kernel-install`.

What the distribution has among the plugins of kernel-install says where an initramfs comes from: made by dracut and mkinitcpio there and
then, or taken from /boot.
"""

from __future__ import annotations

from collections.abc import Iterator

from .._schema.starting import Legs
from .._storage.fstab import read_entries
from .._storage.options.words import words_of
from .step import BootStep, write_step
from .system import System, has, kernels, version_of

_LOADERS = {"x86_64": "systemd-bootx64.efi", "aarch64": "systemd-bootaa64.efi"}
_FOLDER = "usr/lib/systemd/boot/efi"
_CMDLINES = ("etc/kernel/cmdline", "usr/lib/kernel/cmdline")
_OF_ROOT = ("root=", "rootflags=", "rootfstype=")

_INSTALL = (
    'set -e; at="$1"; shift; export SYSTEMD_ESP_PATH="$at" SYSTEMD_XBOOTLDR_PATH="$at"; bootctl --no-variables install; '
    'for version; do kernel-install add "$version" "/boot/vmlinuz-$version"; '
    'grep -q "^initrd" "$at"/loader/entries/*"$version"*.conf || { echo "the entry of $version has no initramfs" >&2; exit 1; }; done'
)
"""A shell's words: where the ESP is mounted, and the versions of kernels.

Both variables say where the entries go; left to themselves the programs may take /boot, which the firmware cannot read.
"""


def is_there(system: System, processor: str) -> bool:
    """Return whether a system has systemd-boot."""
    return has(system, f"{_FOLDER}/{_loader(processor)}")


def lacks(legs: Legs, system: System) -> Iterator[str]:
    """Give what a system with systemd-boot lacks to start, a sentence each."""
    if not legs.esps:
        yield f"there is systemd-boot in {system.place}, which starts by UEFI only: install GRUB in it"
    for program in ("bootctl", "kernel-install"):
        if not has(system, f"usr/bin/{program}"):
            yield f"there is no usr/bin/{program} in {system.place}, which systemd-boot is installed with: install it"


def command_line(system: System) -> str:
    """Return the kernel's command line: what the system has, with its own root instead of that of the image, as its fstab has it."""
    present = next(filter(None, map(system.read, _CMDLINES)), "").split()
    kept = [word for word in present if not word.startswith(_OF_ROOT) and word not in ("ro", "rw")]
    return " ".join([*_root(system), "ro", *kept])


def steps(legs: Legs, system: System, words: str) -> Iterator[BootStep]:
    """Give the steps that install it with this command line of the kernel."""
    versions = tuple(map(version_of, kernels(system)))
    yield write_step("write the command line of the kernel", f"/{_CMDLINES[0]}", words)
    for esp in legs.esps:
        yield BootStep(f"install systemd-boot and the kernels on {esp}", ("sh", "-c", _INSTALL, "sh", legs.esp_place, *versions), esp)


def _root(system: System) -> Iterator[str]:
    entry = next((entry for entry in read_entries(system.read("etc/fstab")) if entry.path == "/"), None)
    if entry is not None:
        yield f"root={entry.src}"
        flags = [option for option in words_of(entry.opts) if option.startswith("subvol")]
        yield from [f"rootflags={','.join(flags)}"] if flags else []


def _loader(processor: str) -> str:
    return _LOADERS.get(processor, f"systemd-boot{processor}.efi")
