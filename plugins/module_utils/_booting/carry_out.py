# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries a plan out in the system itself, in a mount namespace of its own, so that nothing stays mounted however it ends."""

from __future__ import annotations

import os
from collections.abc import Callable

from .._steps.machine import LONG_PATIENCE, Machine, StepFailed
from .plan import STAMP, BootPlan

_INSIDE = (
    'set -e; root="$1"; esp="$2"; at="$3"; shift 3; '
    'for one in dev proc sys run; do mkdir -p "$root/$one"; mount --rbind "/$one" "$root/$one"; done; '
    '[ -z "$esp" ] || { mkdir -p "$root$at"; mount -o umask=0077 -- "$esp" "$root$at"; }; '
    'chroot "$root" "$@"; sync'
)
"""A shell's words, run in a mount namespace: the system's folder, an ESP and where it is mounted (or nothing), a command."""


def make_bootable(plan: BootPlan, root: str, machine: Machine, write: Callable[[str, str], None]) -> None:
    """Carry the plan out, and remember it with `write` (a path and a text) when all is done; raises StepFailed."""
    folder = root.rstrip("/")
    for step in plan.steps:
        inside = ["unshare", "--mount", "--", "sh", "-c", _INSIDE, "sh", folder or "/", step.esp, plan.place, *step.command]
        try:
            machine.change(step.command if step.on_host else inside, patience=LONG_PATIENCE)
        except StepFailed as error:
            raise StepFailed(f"Could not {step.says}: {error}") from error
    if plan.steps:
        write(f"{folder}/{STAMP}", plan.stamp)


def processor() -> str:
    """Return the processor of this host, in the kernel's words."""
    return os.uname().machine
