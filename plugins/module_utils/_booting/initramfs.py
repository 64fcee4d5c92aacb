# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The initramfs of a system: how it is made so that it finds what root lies on, and what the system lacks for that."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterator

from .._schema.model import Layout
from .._schema.starting import methods_of_root
from .._steps.machine import StepFailed
from .._storage.initramfs import DRACUT, INITRAMFS_TOOLS, UPDATE_INITRAMFS, InitramfsTool
from .._storage.unlock import PASSPHRASE, TANG, TPM2
from .step import BootStep, write_step
from .system import System, has, kernels, version_of

_ARRAYS_FILE = "/etc/initramfs-tools/scripts/local-block/arrays-without-a-member"
_ARRAYS_SCRIPT = """#!/bin/sh
# Starts arrays that lack a member, when the usual time for it has come, and in the same round opens what is on them.
PREREQ="mdadm"
case $1 in prereqs) echo "$PREREQ"; exit 0 ;; esac
. /scripts/functions
patience=30
[ "${ROOTDELAY:-0}" -le $patience ] || patience=$ROOTDELAY
[ "$(time_elapsed)" -ge $((patience * 2 / 3)) ] && [ ! -e /run/arrays-without-a-member ] || exit 0
: >/run/arrays-without-a-member
mdadm -q --run /dev/md?*
mdadm -q --assemble --scan --run
wait_for_udev 10
[ -x /scripts/local-top/cryptroot ] || exit 0
CRYPTROOT_STAGE=local-block
export CRYPTROOT_STAGE
exec /scripts/local-top/cryptroot"""
"""Debian's own scripts start such an array after their script for LUKS, which then has another round only if there is time left.

Where disks are slow to appear that time is over in the first round already, whatever `rootdelay` is, for all of them count by it.
"""

_OF_INITRAMFS = ("/", "/usr")
_PLAIN_DEVICE = re.compile(r"/dev/[A-Za-z0-9/_.:@=+-]+")
_DRACUT_FILE = "/etc/dracut.conf.d/90-disks-of-root.conf"
_DRACUT_LINES = 'hostonly="yes"\nhostonly_cmdline="yes"\nhostonly_default_device="no"'
"""Without the first two what dracut makes opens and assembles only what the kernel's command line names, and nothing names it there.

Without the last one it waits for all that is mounted, also for the EFI system partition of a disk that is gone: root is named instead.
"""


def find_tool(system: System) -> t.Optional[InitramfsTool]:
    """Return the program that makes the initramfs of this system."""
    return next((tool for tool in INITRAMFS_TOOLS if has(system, tool.program)), None)


def preparing_steps(layout: Layout, tool: InitramfsTool) -> Iterator[BootStep]:
    """Yield the steps that make the initramfs find the devices below root, also on arrays that lack a member."""
    if tool == DRACUT and (layout.containers or layout.arrays or layout.volumes):
        lines = "\n".join(
            [
                _DRACUT_LINES,
                *map(_dracut_line, [filesystem.device for filesystem in layout.filesystems if filesystem.mount in _OF_INITRAMFS]),
            ]
        )
        yield write_step("have the initramfs open and assemble what root lies on", _DRACUT_FILE, lines)
    if tool == UPDATE_INITRAMFS and layout.arrays:
        yield write_step("let degraded arrays start at boot", _ARRAYS_FILE, _ARRAYS_SCRIPT, "755")


def _dracut_line(device: str) -> str:
    """Return the line that names a device. dracut's settings are read by a shell; raises StepFailed for what it would not take as it is."""
    if _PLAIN_DEVICE.fullmatch(device) is None:
        raise StepFailed(f"{device!r} cannot be named in dracut's settings, which a shell reads; it may have letters, digits and +-._:@=")
    return f'add_device+=" {device} "'


def initramfs_steps(tool: InitramfsTool, system: System) -> Iterator[BootStep]:
    """Give the steps that make the initramfs of every kernel."""
    if not tool.by_kernel:
        yield BootStep("make the initramfs", tool.command)
        return
    for version in map(version_of, kernels(system)):
        mode = "-u" if has(system, f"boot/initrd.img-{version}") else "-c"
        yield BootStep(f"make the initramfs of {version}", (tool.name, mode, "-k", version))


def lacks(layout: Layout, system: System, tool: t.Optional[InitramfsTool]) -> Iterator[str]:
    """Give what the system lacks for an initramfs, a sentence each."""
    if tool is None:
        yield f"found none of {', '.join(one.name for one in INITRAMFS_TOOLS[:-1])} and {INITRAMFS_TOOLS[-1].name} in {system.place}"
        return
    for kind, (file, package) in tool.needs.items():
        if getattr(layout, kind) and not has(system, file):
            yield f"there is no {file} in {system.place}, without which the system does not find its disks: install {package} in it"
    yield from _unopened(methods_of_root(layout), system, tool)


def _unopened(methods: frozenset[str], system: System, tool: InitramfsTool) -> Iterator[str]:
    """Say it where root is to be opened by a TPM or a server, the initramfs does neither, and nobody is expected to type a passphrase."""
    wanted = [method for method in (TPM2, TANG) if method in methods]
    if not wanted or PASSPHRASE in methods or any(method in tool.opens and has(system, tool.opens[method][0]) for method in wanted):
        return
    able = [f"{tool.opens[method][1]} in it, for {method}" for method in wanted if method in tool.opens]
    what = f"the root file system is to be opened by {' or '.join(wanted)}, which what {tool.name} makes in {system.place}"
    if able:
        yield f"{what} does not: install {' or '.join(able)}"
    else:
        yield f"{what} cannot do: list a passphrase in unlock, or have dracut in it"
