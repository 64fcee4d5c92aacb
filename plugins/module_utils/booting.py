# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes a system that lies in a folder start from its disks: its initramfs, and GRUB on every disk that carries a part for it.

All commands run in the system itself, in a mount namespace of their own, so that nothing stays mounted however they end. What a start
follows from is remembered in the system: when it is the same, there is nothing to do.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import typing as t
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field

from .steps.machine import LONG_PATIENCE, Machine, StepFailed
from .storage.boot_loader import Legs, legs_of
from .storage.unlock import PASSPHRASE, TANG, TPM2, methods_of_root

STAMP = "var/lib/bareon.allocator/boot.json"
"""Where in the system is written what it was made to start from, last."""

_READ_AT_START = ("etc/fstab", "etc/crypttab", "etc/mdadm/mdadm.conf", "etc/mdadm.conf", "etc/default/grub")
_EFI_NAMES = {"x86_64": ("x86_64-efi", "BOOTX64.EFI"), "aarch64": ("arm64-efi", "BOOTAA64.EFI")}
_BIOS = "i386-pc"

_INSIDE = (
    'set -e; root="$1"; esp="$2"; at="$3"; shift 3; '
    'for one in dev proc sys run; do mkdir -p "$root/$one"; mount --rbind "/$one" "$root/$one"; done; '
    '[ -z "$esp" ] || { mkdir -p "$root$at"; mount -o umask=0077 -- "$esp" "$root$at"; }; '
    'chroot "$root" "$@"; sync'
)
"""A shell's words, run in a mount namespace: the system's folder, an ESP and where it is mounted (or nothing), a command."""


@dataclass(frozen=True)
class InitramfsTool:
    """A program that makes an initramfs: where it is, the command, and the file without which something is not prepared, by what.

    Without a `command` it is Debian's, which is told of every kernel, and whether that has an initramfs already.
    """

    program: str
    command: tuple[str, ...]
    needs: Mapping[str, tuple[str, str]]
    opens: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The file without which what it makes does not open LUKS by a method, and what has it."""


_INITRAMFS_TOOLS = (
    InitramfsTool(
        "usr/sbin/update-initramfs",
        (),
        {
            "luks": ("usr/share/initramfs-tools/hooks/cryptroot", "package cryptsetup-initramfs"),
            "mds": ("usr/share/initramfs-tools/hooks/mdadm", "package mdadm"),
            "lvs": ("usr/share/initramfs-tools/hooks/lvm2", "package lvm2"),
            "thin_pools": ("usr/share/initramfs-tools/hooks/thin-provisioning-tools", "package thin-provisioning-tools"),
            "caches": ("usr/share/initramfs-tools/hooks/thin-provisioning-tools", "package thin-provisioning-tools"),
        },
        {TANG: ("usr/share/initramfs-tools/hooks/clevis", "package clevis-initramfs")},
    ),
    InitramfsTool(
        "usr/bin/dracut",
        ("dracut", "--regenerate-all", "--force"),
        {
            "luks": ("usr/sbin/cryptsetup", "package cryptsetup"),
            "mds": ("usr/sbin/mdadm", "package mdadm"),
            "lvs": ("usr/sbin/lvm", "package lvm2"),
            "thin_pools": ("usr/sbin/thin_check", "package device-mapper-persistent-data, or thin-provisioning-tools"),
            "caches": ("usr/sbin/cache_check", "package device-mapper-persistent-data, or thin-provisioning-tools"),
        },
        {
            TANG: ("usr/bin/clevis", "package clevis-dracut"),
            TPM2: ("usr/bin/systemd-cryptenroll", "systemd's cryptsetup"),
        },
    ),
    InitramfsTool(
        "usr/bin/mkinitcpio",
        ("mkinitcpio", "-P"),
        {
            "luks": ("usr/bin/cryptsetup", "package cryptsetup, and its hook in /etc/mkinitcpio.conf"),
            "mds": ("usr/bin/mdadm", "package mdadm, and its hook in /etc/mkinitcpio.conf"),
            "lvs": ("usr/bin/lvm", "package lvm2, and its hook in /etc/mkinitcpio.conf"),
            "thin_pools": ("usr/bin/thin_check", "package thin-provisioning-tools"),
            "caches": ("usr/bin/cache_check", "package thin-provisioning-tools"),
        },
        {TPM2: ("usr/bin/systemd-cryptenroll", "systemd, and the hook sd-encrypt in /etc/mkinitcpio.conf")},
    ),
)


_PATIENCE_FILE = "/etc/default/grub.d/90-root-on-arrays.cfg"
_PATIENCE = 'case "$GRUB_CMDLINE_LINUX" in *rootdelay=*) ;; *) GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX rootdelay=180" ;; esac'
"""A line of Debian's settings for GRUB, which leaves alone what the user has set.

Its initramfs starts an array without a member after two thirds of that time, and needs the rest for what is on it: LUKS is opened a round
later. It counts from its own start, so that where disks take more than its usual 30 s to appear both fall into one round, and it gives up.
"""


@dataclass(frozen=True)
class BootStep:
    """One thing to do: `says` in words, `command` inside of the system, with the ESP that is mounted for it (empty: none)."""

    says: str
    command: tuple[str, ...]
    esp: str = ""


@dataclass(frozen=True)
class BootPlan:
    """What is to be done, none when the system is made to start so already; `stamp` is what is remembered of it."""

    steps: tuple[BootStep, ...]
    stamp: str
    place: str


def plan_boot(schema: Mapping[str, t.Any], root: str, machine: Machine, processor: str) -> tuple[BootPlan, tuple[str, ...]]:
    """Return what is to be done for the system in `root`, and every reason why it cannot be."""
    legs, here = legs_of(schema), _Folder(root, machine)
    tool = next((tool for tool in _INITRAMFS_TOOLS if here.has(tool.program)), None)
    grub = next((name for name in ("grub-install", "grub2-install") if here.has(f"usr/sbin/{name}") or here.has(f"usr/bin/{name}")), None)
    refusals = tuple(_lacks(schema, legs, here, tool, grub, processor))
    if tool is None or grub is None or refusals:
        return BootPlan((), "", legs.esp_place), refusals
    waiting = tuple(_waiting_steps(schema, tool))
    steps = (*waiting, *_initramfs_steps(tool, here), *_grub_steps(legs, grub, processor))
    waits = [step.says for step in waiting]
    stamp = _stamp(here, {"legs": asdict(legs), "initramfs": tool.program, "grub": grub, "processor": processor, "waits": waits})
    done = (machine.read(f"{here.root}/{STAMP}") or "") == stamp
    return BootPlan(() if done else steps, stamp, legs.esp_place), ()


def make_bootable(plan: BootPlan, root: str, machine: Machine, write: Callable[[str, str], None]) -> None:
    """Carry the plan out, and remember it with `write` (a path and a text) when all is done; raises StepFailed."""
    folder = root.rstrip("/")
    for step in plan.steps:
        inside = ["unshare", "--mount", "--", "sh", "-c", _INSIDE, "sh", folder or "/", step.esp, plan.place, *step.command]
        try:
            machine.change(inside, patience=LONG_PATIENCE)
        except StepFailed as error:
            raise StepFailed(f"Could not {step.says}: {error}") from error
    if plan.steps:
        write(f"{folder}/{STAMP}", plan.stamp)


@dataclass(frozen=True)
class _Folder:
    """A system in a folder of the host."""

    path: str
    machine: Machine

    @property
    def root(self) -> str:
        return self.path.rstrip("/")

    def has(self, file: str) -> bool:
        folder, _slash, name = file.rpartition("/")
        return name in self.machine.names(f"{self.root}/{folder}")

    def kernels(self) -> tuple[str, ...]:
        return tuple(name for name in self.machine.names(f"{self.root}/boot") if name.startswith(("vmlinuz-", "Image-")))


def _lacks(
    schema: Mapping[str, t.Any], legs: Legs, here: _Folder, tool: t.Optional[InitramfsTool], grub: t.Optional[str], processor: str
) -> Iterator[str]:
    """Give what the system lacks to start, a sentence each."""
    if not legs.bios and not legs.esps:
        yield "the layout has neither a BIOS boot partition nor an EFI system partition: set boot on the space that the system starts from"
    if not here.kernels():
        yield f"there is no kernel in {here.root}/boot: was a system unpacked there?"
    if tool is None:
        yield f"found none of update-initramfs, dracut and mkinitcpio in {here.root}"
    for kind, (file, package) in tool.needs.items() if tool is not None else ():
        if schema.get(kind) and not here.has(file):
            yield f"there is no {file} in {here.root}, without which the system does not find its disks: install {package} in it"
    if tool is not None:
        yield from _unopened(methods_of_root(schema), here, tool)
    if grub is None:
        yield f"there is no grub-install in {here.root}: install GRUB in it (on Debian grub2-common, grub-pc-bin, grub-efi-amd64-bin)"
    targets = ([_BIOS] if legs.bios else []) + ([_efi(processor)[0]] if legs.esps else [])
    for target in targets:
        if grub is not None and not here.has(f"usr/lib/grub/{target}"):
            yield f"GRUB in {here.root} has nothing for {target}: install its package"


def _unopened(methods: frozenset[str], here: _Folder, tool: InitramfsTool) -> Iterator[str]:
    """Say it where root is to be opened by a TPM or a server, the initramfs does neither, and nobody is expected to type a passphrase."""
    wanted = [method for method in (TPM2, TANG) if method in methods]
    if not wanted or PASSPHRASE in methods or any(method in tool.opens and here.has(tool.opens[method][0]) for method in wanted):
        return
    able = [f"{tool.opens[method][1]} in it, for {method}" for method in wanted if method in tool.opens]
    program = tool.program.rpartition("/")[2]
    what = f"the root file system is to be opened by {' or '.join(wanted)}, which what {program} makes in {here.root}"
    if able:
        yield f"{what} does not: install {' or '.join(able)}"
    else:
        yield f"{what} cannot do: list a passphrase in unlock, or have dracut in it"


def _efi(processor: str) -> tuple[str, str]:
    return _EFI_NAMES.get(processor, (f"{processor}-efi", ""))


def _initramfs_steps(tool: InitramfsTool, here: _Folder) -> Iterator[BootStep]:
    if tool.command:
        yield BootStep("make the initramfs", tool.command)
        return
    for kernel in here.kernels():
        version = kernel.partition("-")[2]
        mode = "-u" if here.has(f"boot/initrd.img-{version}") else "-c"
        yield BootStep(f"make the initramfs of {version}", ("update-initramfs", mode, "-k", version))


def _waiting_steps(schema: Mapping[str, t.Any], tool: InitramfsTool) -> Iterator[BootStep]:
    """Give the step that leaves a start from an array that lacks a member its time, where the initramfs is Debian's."""
    if schema.get("mds") and not tool.command:
        words = 'mkdir -p "${1%/*}"; printf "%s\\n" "$2" >"$1"'
        yield BootStep(
            "leave a start from arrays that lack a member 180 s (rootdelay)", ("sh", "-c", words, "sh", _PATIENCE_FILE, _PATIENCE)
        )


def _grub_steps(legs: Legs, grub: str, processor: str) -> Iterator[BootStep]:
    folder = grub.partition("-")[0]
    for disk in legs.bios:
        yield BootStep(f"install GRUB for BIOS on {disk}", (grub, f"--target={_BIOS}", disk))
    # Under the name that every firmware looks for, for entries in a firmware's memory are lost with a board, or with a disk.
    efi = (grub, f"--target={_efi(processor)[0]}", f"--efi-directory={legs.esp_place}", "--removable", "--no-nvram")
    for esp in legs.esps:
        yield BootStep(f"install GRUB for UEFI on {esp}", efi, esp)
    # Last, for what installs GRUB makes the folder that the menu lies in.
    yield BootStep("write the menu of GRUB", (f"{folder}-mkconfig", "-o", f"/boot/{folder}/grub.cfg"))


def _stamp(here: _Folder, more: Mapping[str, t.Any]) -> str:
    """Return what the start follows from, as text: tables as the system reads them, kernels, and `more`."""
    tables = {file: _digest(here.machine.read(f"{here.root}/{file}") or "") for file in _READ_AT_START}
    return json.dumps({"tables": tables, "kernels": here.kernels(), **more}, sort_keys=True)


def _digest(text: str) -> str:
    lines = (line for line in text.splitlines() if not re.fullmatch(r"\s*(#.*)?", line))
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def processor() -> str:
    """Return the processor of this host, in the kernel's words."""
    return os.uname().machine
