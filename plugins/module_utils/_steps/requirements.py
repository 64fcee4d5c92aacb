# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host lacks for steps, asked for before anything is changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .machine import Machine
from .needs import Ability, Tool
from .step import Step

_ROOM = ["df", "--output=avail,itotal,iavail", "--block-size=1K", "/run"]
_NUMBERS = re.compile(r"^ *([0-9]{1,18}) +([0-9]{1,18}) +([0-9]{1,18})$", re.MULTILINE)
_LEAST_ROOM = 256
"""KiB: a few notes for each device."""


def missing(machine: Machine, steps: Iterable[Step]) -> tuple[str, ...]:
    """Return what the steps need and the host has not, a sentence each."""
    steps = tuple(steps)
    tools = sorted({tool for step in steps for tool in step.tools()})
    lacking = (ability for ability in _abilities_of(steps) if not ability.is_there(machine) and not ability.can_come(machine))
    return (*missing_tools(machine, tools), *(ability.refusal for ability in lacking), *(_lacks_room(machine) if steps else ()))


def _lacks_room(machine: Machine) -> Iterator[str]:
    """Give what is wrong with a full /run: udev cannot note what LVM and cryptsetup then wait for without end."""
    outcome = machine.run(_ROOM)
    found = _NUMBERS.search(outcome.stdout) if outcome is not None and outcome.code == 0 else None
    if found is not None:
        room, inodes, free = map(int, found.groups())
        if room < _LEAST_ROOM or (inodes and not free):
            yield "there is no room in /run, where udev and LVM keep notes of devices: remove what fills it"


def missing_tools(machine: Machine, tools: Iterable[Tool]) -> tuple[str, ...]:
    """Return a sentence for each of these tools that the host has not."""
    return tuple(tool.refusal for tool in tools if not machine.has(tool.program))


def load_abilities(machine: Machine, steps: Iterable[Step]) -> None:
    """Have the kernel load what the steps need and is not loaded: not every tool does that by itself."""
    for ability in _abilities_of(steps):
        if not ability.is_there(machine):
            machine.run(["modprobe", ability.module])


def _abilities_of(steps: Iterable[Step]) -> list[Ability]:
    return sorted({ability for step in steps for ability in step.abilities()}, key=lambda ability: ability.refusal.lower())
