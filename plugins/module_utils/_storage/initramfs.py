# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs that make an initramfs: where they are, their commands, and what each needs to prepare a start from what lies below root."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .unlock import TANG, TPM2


@dataclass(frozen=True)
class InitramfsTool:
    """A program that makes an initramfs: where it is, and the command that rebuilds those of all kernels of the running system.

    `needs` is by what a layout has the file without which that is not prepared, and what has it; `opens` the same by method of
    unlocking. With `by_kernel` a system in a folder has its initramfs made kernel by kernel, by whether there is one already.
    """

    program: str
    command: tuple[str, ...]
    needs: Mapping[str, tuple[str, str]]
    opens: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    by_kernel: bool = False

    @property
    def name(self) -> str:
        """Return what it is called."""
        return self.program.rpartition("/")[2]


UPDATE_INITRAMFS = InitramfsTool(
    "usr/sbin/update-initramfs",
    ("update-initramfs", "-u"),
    {
        "containers": ("usr/share/initramfs-tools/hooks/cryptroot", "package cryptsetup-initramfs"),
        "arrays": ("usr/share/initramfs-tools/hooks/mdadm", "package mdadm"),
        "volumes": ("usr/share/initramfs-tools/hooks/lvm2", "package lvm2"),
        "pools": ("usr/share/initramfs-tools/hooks/thin-provisioning-tools", "package thin-provisioning-tools"),
        "caches": ("usr/share/initramfs-tools/hooks/thin-provisioning-tools", "package thin-provisioning-tools"),
    },
    {TANG: ("usr/share/initramfs-tools/hooks/clevis", "package clevis-initramfs")},
    by_kernel=True,
)
DRACUT = InitramfsTool(
    "usr/bin/dracut",
    ("dracut", "--regenerate-all", "--force"),
    {
        "containers": ("usr/sbin/cryptsetup", "package cryptsetup"),
        "arrays": ("usr/sbin/mdadm", "package mdadm"),
        "volumes": ("usr/sbin/lvm", "package lvm2"),
        "pools": ("usr/sbin/thin_check", "package device-mapper-persistent-data, or thin-provisioning-tools"),
        "caches": ("usr/sbin/cache_check", "package device-mapper-persistent-data, or thin-provisioning-tools"),
    },
    {
        TANG: ("usr/bin/clevis", "package clevis-dracut"),
        TPM2: ("usr/bin/systemd-cryptenroll", "systemd's cryptsetup"),
    },
)
MKINITCPIO = InitramfsTool(
    "usr/bin/mkinitcpio",
    ("mkinitcpio", "-P"),
    {
        "containers": ("usr/bin/cryptsetup", "package cryptsetup, and its hook in /etc/mkinitcpio.conf"),
        "arrays": ("usr/bin/mdadm", "package mdadm, and its hook in /etc/mkinitcpio.conf"),
        "volumes": ("usr/bin/lvm", "package lvm2, and its hook in /etc/mkinitcpio.conf"),
        "pools": ("usr/bin/thin_check", "package thin-provisioning-tools"),
        "caches": ("usr/bin/cache_check", "package thin-provisioning-tools"),
    },
    {TPM2: ("usr/bin/systemd-cryptenroll", "systemd, and the hook sd-encrypt in /etc/mkinitcpio.conf")},
)

INITRAMFS_TOOLS = (UPDATE_INITRAMFS, DRACUT, MKINITCPIO)
"""Of several that are there the first one counts."""


def command_of(names: Iterable[str]) -> t.Optional[tuple[str, ...]]:
    """Return the command that rebuilds the initramfs on a host that has programs of these names; None if none of them makes one."""
    there = set(names)
    return next((tool.command for tool in INITRAMFS_TOOLS if tool.name in there), None)
