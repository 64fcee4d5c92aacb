# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The initramfs of a system: how it is made so that it finds what root lies on, and what the system lacks for that."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping

from ..storage.initramfs import DRACUT, INITRAMFS_TOOLS, InitramfsTool
from ..storage.unlock import PASSPHRASE, TANG, TPM2, methods_of_root
from .step import BootStep, write_step
from .system import System, has, kernels, version_of

Schema = Mapping[str, t.Any]

START_DELAY = "rootdelay=180"
"""A word of the kernel's command line for Debian's initramfs, where root lies on arrays.

It starts an array without a member after two thirds of that time, and needs the rest for what is on it: LUKS is opened a round later. It
counts from its own start, so that where disks take more than its usual 30 s to appear both fall into one round, and it gives up.
"""

_DRACUT_FILE = "/etc/dracut.conf.d/90-disks-of-root.conf"
_DRACUT_LINES = 'hostonly="yes"\nhostonly_cmdline="yes"'
"""Without them dracut's initramfs opens and assembles nothing that the kernel's command line does not name, and nothing puts it there."""


def find_tool(system: System) -> t.Optional[InitramfsTool]:
    """Return the program that makes the initramfs of this system."""
    return next((tool for tool in INITRAMFS_TOOLS if has(system, tool.program)), None)


def needs_delay(schema: Schema, tool: InitramfsTool) -> bool:
    """Return whether a start has to be told to wait longer for an array that lacks a member."""
    return bool(schema.get("mds")) and tool.by_kernel


def preparing_steps(schema: Schema, tool: InitramfsTool) -> Iterator[BootStep]:
    """Give the step that has dracut look for what root lies on."""
    if tool == DRACUT and any(schema.get(kind) for kind in ("luks", "mds", "lvs")):
        yield write_step("have the initramfs open and assemble what root lies on", _DRACUT_FILE, _DRACUT_LINES)


def initramfs_steps(tool: InitramfsTool, system: System) -> Iterator[BootStep]:
    """Give the steps that make the initramfs of every kernel."""
    if not tool.by_kernel:
        yield BootStep("make the initramfs", tool.command)
        return
    for version in map(version_of, kernels(system)):
        mode = "-u" if has(system, f"boot/initrd.img-{version}") else "-c"
        yield BootStep(f"make the initramfs of {version}", (tool.name, mode, "-k", version))


def lacks(schema: Schema, system: System, tool: t.Optional[InitramfsTool]) -> Iterator[str]:
    """Give what the system lacks for an initramfs, a sentence each."""
    if tool is None:
        yield f"found none of {', '.join(one.name for one in INITRAMFS_TOOLS[:-1])} and {INITRAMFS_TOOLS[-1].name} in {system.place}"
        return
    for kind, (file, package) in tool.needs.items():
        if schema.get(kind) and not has(system, file):
            yield f"there is no {file} in {system.place}, without which the system does not find its disks: install {package} in it"
    yield from _unopened(methods_of_root(schema), system, tool)


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
