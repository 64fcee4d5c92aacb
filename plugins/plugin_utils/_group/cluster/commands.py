# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of steps, in the words of what runs the cluster. They are for people: drivers build their own of kind, instance and node."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from .model import Instance, Manager


class StepKind(StrEnum):
    """What one step of a move does."""

    MIGRATE = "migrate"
    """A running instance changes its primary without being stopped."""
    FAILOVER = "failover"
    """One that is stopped, cannot be moved live, or whose primary is marked offline, changes its primary."""
    REPLACE_DISKS = "replace_disks"
    """The disks are copied to a new secondary."""


@dataclass(frozen=True)
class Command:
    """A step that an instance takes to a node; from an `online` one, or one that is marked offline."""

    kind: StepKind
    instance: Instance
    node: str
    mirrored: bool
    online: bool


def command_of(manager: Manager, command: Command) -> str:
    """Return the command of a step."""
    return _WRITERS[manager](command)


def ganeti_command(kind: StepKind, instance: str, node: str, *, mirrored: bool, online: bool) -> str:
    """Return the gnt-instance command of a step."""
    name = shlex.quote(instance)
    if kind == StepKind.REPLACE_DISKS:
        return f"gnt-instance replace-disks -n {shlex.quote(node)} {name}"
    verb = "migrate -f" if kind == StepKind.MIGRATE else "failover -f" if online else "failover -f --ignore-consistency"
    # A mirrored instance can only go to its secondary.
    target = "" if mirrored else f" -n {shlex.quote(node)}"
    return f"gnt-instance {verb}{target} {name}"


def _ganeti(command: Command) -> str:
    return ganeti_command(command.kind, command.instance.name, command.node, mirrored=command.mirrored, online=command.online)


def _proxmox(command: Command) -> str:
    """Return `qm migrate` or `pct migrate`, or what asks HA for a guest under HA."""
    guest, node = command.instance, shlex.quote(command.node)
    kind, _colon, number = guest.sid.partition(":")
    if not number:
        return ""
    if guest.under_ha:
        return f"ha-manager {'relocate' if kind == 'ct' else 'migrate'} {guest.sid} {node}"
    if kind == "ct":
        return f"pct migrate {number} {node}{' --restart' if guest.runs else ''}"
    local = " --with-local-disks" if guest.takes_disk_along and guest.runs else ""
    return f"qm migrate {number} {node}{' --online' if guest.runs else ''}{local}"


def _libvirt(command: Command) -> str:
    how = "--live" if command.kind == StepKind.MIGRATE else "--offline"
    uri = shlex.quote(f"qemu+ssh://{command.node}/system")
    return f"virsh migrate {how} --persistent --undefinesource {shlex.quote(command.instance.name)} {uri}"


_WRITERS: Mapping[Manager, Callable[[Command], str]] = {
    Manager.GANETI: _ganeti,
    Manager.PROXMOX: _proxmox,
    Manager.LIBVIRT: _libvirt,
}
