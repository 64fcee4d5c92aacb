# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All profiles on all machines, and docs/profile_matrix.md, the page that is made of it.

Run with the collection on the path to write the page: PYTHONPATH=.venv/collections .venv/bin/python tests/support/disk/matrix.py
"""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.module_utils._data.units import format_mib
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.picture import describe_disk, picture
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, parse_idle, read_profile
from ansible_collections.bareon.allocator.tests.support.disk.machines import MACHINES, Machine
from ansible_collections.bareon.allocator.tests.support.disk.planned import profiles

PAGE = Path(__file__).resolve().parents[3] / "docs" / "profile_matrix.md"
ROOT, BOOT = "/", "/boot"
FIRMWARE = {"uefi": frozenset({"esp", "efi"}), "bios": frozenset({"bios_grub"})}

Plain = Mapping[str, t.Any]


@dataclass(frozen=True)
class Cell:
    """One profile on one machine: its plan, or why there is none."""

    profile: str
    machine: Machine
    plan: Plain | None
    refused: str = ""

    def on(self, *spaces: str) -> set[str]:
        """Return the disks (ids) that carry one of the spaces."""
        disks = self.plan["disks"] if self.plan is not None else ()
        return {disk["disk_id"] for disk in disks if any(space["space_id"] in spaces for space in disk["spaces"])}

    def system(self) -> dict[str, set[str]]:
        """Return the spaces that carry the root file system and /boot, with the disks of each."""
        assert self.plan is not None
        group = next(volume["vgname"] for volume in self.plan["schema"]["lvs"] if volume["space_id"] == "root")
        members = next(vg["pvnames"] for vg in self.plan["schema"]["vgs"] if vg["name"] == group)
        arrays = [array["space_id"] for array in self.plan["schema"]["mds"] if array["name"] in members]
        return {name: self.on(name) for name in (*(arrays or [group]), "boot")}

    def facts(self, disk_id: str) -> Plain:
        """Return what is known of a disk."""
        return next(disk for disk in self.machine.hardware["disks"] if disk["id"] == disk_id)


@functools.cache
def planner(profile: str) -> Planner:
    """Return the planner of a profile, as the action has it."""
    content = read_profile(PROFILES / f"{profile}.yml")
    return Planner(content["schema"], idle=parse_idle(content.get("idle")))


@functools.cache
def cell(profile: str, machine: str) -> Cell:
    """Plan one machine."""
    known = MACHINES[machine]
    try:
        return Cell(profile, known, planner(profile).plan(known.hardware))
    except NoSolution as error:
        return Cell(profile, known, None, str(error).splitlines()[0])
    except InputError as error:
        return Cell(profile, known, None, str(error.mistakes[0].says))


def cells() -> Iterator[Cell]:
    """Give the whole matrix, profile by profile."""
    for profile in profiles():
        for machine in MACHINES:
            yield cell(profile, machine)


def page() -> str:
    """Return docs/profile_matrix.md."""
    return "\n".join([*_introduction(), *_overview(), *(line for profile in profiles() for line in _section(profile)), ""])


def _introduction() -> Iterator[str]:
    yield f"""<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<!-- Made by `make guide` from what the planner says; a test compares. -->

# Profiles, one by one

What each of the {len(profiles())} [profiles](profiles.md) asks for, and what it makes of {len(MACHINES)} machines. On all of them a
system whose disk has a twin is mirrored, with what the firmware needs on both disks; no array and no volume group mixes kinds of disks,
but for caches; and no disk is used that is in use, read-only, zoned, removable, on USB, an SD card, a path of a multipath device, or
behind iSCSI or Fibre Channel.

## At a glance

**2** + 12 stands for a system mirrored on two disks, and twelve disks more with something on them; 1 for a system on one disk; (60) for
sixty disks that stay idle; – for a machine that the profile refuses.
"""


def _overview() -> Iterator[str]:
    yield f"| machine | {' | '.join(profiles())} |"
    yield f"| --- |{' --- |' * len(profiles())}"
    for machine, known in MACHINES.items():
        yield f"| {known.about} | {' | '.join(_glance(cell(profile, machine)) for profile in profiles())} |"
    yield ""


def _glance(found: Cell) -> str:
    if found.plan is None:
        return "–"
    system = set().union(*found.system().values())
    more = found.on(*_other_spaces(found)) - system
    idle = sum(len(disks["disk_ids"]) for disks in found.plan["idle_disks"])
    words = [f"**{len(system)}**" if len(system) > 1 else "1", f"+ {len(more)}" if more else "", f"({idle})" if idle else ""]
    return " ".join(word for word in words if word)


def _section(profile: str) -> Iterator[str]:
    content = read_profile(PROFILES / f"{profile}.yml")
    yield f"## {profile}"
    yield ""
    yield str(content["description"]).strip()
    yield ""
    yield "| space | type | size | mount | why |"
    yield "| --- | --- | --- | --- | --- |"
    for space in content["schema"]:
        mount = "<br>".join(str(space[key]) for key in ("mount", "mount_options") if key in space)
        why = str(content["why"].get(space["id"], "")).strip()
        yield f"| {space['id']} | {_type(space)} | {_size(space)} | {mount or ('swap' if space.get('fs_type') == 'swap' else '')} | {why} |"
    yield ""
    yield "| machine | system | all else | idle |"
    yield "| --- | --- | --- | --- |"
    refused: dict[str, list[str]] = {}
    for machine, known in MACHINES.items():
        found = cell(profile, machine)
        if found.plan is None:
            refused.setdefault(_reason(found), []).append(known.about)
        else:
            yield f"| {known.about} | {_system(found)} | {'<br>'.join(_else(found))} | {'<br>'.join(_idle(found))} |"
    yield ""
    for reason, abouts in refused.items():
        yield f"* `{reason}`: {'; '.join(abouts)}"
    yield ""


def _type(space: Plain) -> str:
    level = str(space.get("level", ""))
    words = [level if level and not level.startswith("yaql") else f"{space['type']} by number of disks" if level else str(space["type"])]
    words += ["on every disk"] if space.get("per_disk") else []
    words += ["mirrored where it can be"] if "mirror" in space else []
    return ", ".join(words) + (f": {', '.join(space['contains'])}" if "contains" in space else "")


def _size(space: Plain) -> str:
    if "size" in space:
        return f"{_mib(space['size'])}"
    most = str(space.get("max_size", ""))
    least = f"{_mib(space['min_size'])} or more" if "min_size" in space else ""
    if most.startswith("yaql"):
        least += ", at most by RAM"
    elif most:
        least = f"{_mib(space['min_size'])} to {most}" if "min_size" in space else f"up to {most}"
    return (least or "by its contents") + (f", weight {space['weight']}" if "weight" in space else "")


def _mib(size: object) -> str:
    return format_mib(size) if isinstance(size, int) else str(size)


def _reason(found: Cell) -> str:
    """Return why there is no plan, with short names of disks."""
    text = found.refused
    for disk in found.machine.hardware["disks"]:
        text = text.replace(disk["id"], disk["dev"].removeprefix("/dev/"))
    return text


def _system(found: Cell) -> str:
    where = found.system()
    disks = _counted(found, set().union(*where.values()))
    return f"mirror on {disks}" if all(len(on) > 1 for on in where.values()) else disks


def _other_spaces(found: Cell) -> list[str]:
    assert found.plan is not None
    own = {*found.system(), *set().union(*FIRMWARE.values())}
    spaces = [space["space_id"] for disk in found.plan["disks"] for space in disk["spaces"]]
    return [name for name in dict.fromkeys(spaces) if name not in own]


def _else(found: Cell) -> Iterator[str]:
    assert found.plan is not None
    levels = {array["space_id"]: f" {array['level']}" for array in found.plan["schema"]["mds"]}
    for name in _other_spaces(found):
        yield f"{name}:{levels.get(name, '')} on {_counted(found, found.on(name))}"


def _idle(found: Cell) -> Iterator[str]:
    assert found.plan is not None
    for disks in picture(found.plan, found.machine.hardware).idle:
        kind = " ".join(word for word in (format_mib(disks.size), disks.description) if word)
        # One profile shows how the plan tells of them.
        yield f"{disks.count} × {kind}{f'<br>`- {disks.override}`' if found.profile == 'general' else ''}"


def _counted(found: Cell, disk_ids: Iterable[str]) -> str:
    """Return disks as how many there are of what."""
    kinds: dict[str, int] = {}
    for disk in found.machine.hardware["disks"]:
        if disk["id"] in disk_ids:
            words = f"{format_mib(disk['size'])} {describe_disk(disk)}"
            kinds[words] = kinds.get(words, 0) + 1
    return ", ".join(f"{count} × {words}" for words, count in kinds.items())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
