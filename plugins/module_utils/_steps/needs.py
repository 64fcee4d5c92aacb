# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What steps need of a host: tools, with the packages that have them, and abilities of the kernel."""

from __future__ import annotations

import typing as t
from collections.abc import Callable

from .machine import Machine


class Tool(t.NamedTuple):
    """A program, and the packages that have it, Debian's and Red Hat's; `name` is what messages call it (empty: the program)."""

    program: str
    debian: str
    red_hat: str
    name: str = ""

    @property
    def refusal(self) -> str:
        """What to say where it is missing."""
        package = f"package {self.debian}" if self.debian == self.red_hat else f"package {self.debian} on Debian, {self.red_hat} on Red Hat"
        return f"there is no {self.name or self.program} on this host: install the {package}"


class Ability(t.NamedTuple):
    """Something that a kernel can do or not: the module that has it, whether a host has it now, and what to say where it cannot."""

    module: str
    is_there: Callable[[Machine], bool]
    refusal: str

    def can_come(self, machine: Machine) -> bool:
        """Return whether the kernel can load the module."""
        outcome = machine.run(["modprobe", "--dry-run", self.module])
        return outcome is not None and outcome.code == 0


def listed_ability(module: str, file: str, ending: str, needed_for: str) -> Ability:
    """Return the ability that a kernel has when a line of this file ends so."""
    return Ability(
        module,
        lambda machine: any(line.endswith(ending) for line in (machine.read(file) or "").splitlines()),
        f"this kernel does not support {needed_for}; a container gets them from the machine that it runs on",
    )


DEVICE_MAPPER = listed_ability("dm_mod", "/proc/misc", "device-mapper", "logical volumes and LUKS containers (device-mapper)")
