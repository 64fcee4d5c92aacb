# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of the guests of a Proxmox VE cluster, and of their nodes, when rules are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .....module_utils._data.containers import Values
from .config import Config


@dataclass(frozen=True)
class Guests:
    """Facts of the guests by number: their names here, values of `/cluster/resources` and their configurations; and nodes."""

    names: Mapping[int, str]
    values: Mapping[int, Values]
    configs: Mapping[int, Config | None]
    online: tuple[str, ...]
    """The nodes that take guests."""
    reached: Mapping[str, frozenset[str]]
    """The storages of each node that are for disks."""
    offered: Mapping[str, frozenset[str]]
    """Those that are for anything."""
    shared: frozenset[str]
    """The storages that are the same on every node."""
    replicas: Mapping[int, tuple[str, ...]]
    """The nodes that guests are replicated to."""

    def of(self, resources: str) -> tuple[str, ...]:
        """Return the guests that a list such as `vm:100,ct:200` names, as far as they are known."""
        names = {str(number): name for number, name in self.names.items()}
        numbers = [part.strip().rpartition(":")[2] for part in resources.split(",")]
        return tuple(names[number] for number in numbers if number in names)
