# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the corpus of cases expects of a plan beyond the rules that every plan keeps."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Allocation, Hardware, Schema

from .rules import on_disks, size_of

SILENT = {
    "feasible",
    "flat",
    "fully_used",
    "known_conflict",
    "lp_upper_bound",
    "note",
    "reference",
    "reference_allocated",
    "waste_max",
}
"""Words of the corpus that say nothing to check here: `allocated_at_least` is the number behind `fully_used`."""


def missed(case: dict, hardware: Hardware, schema: Schema, allocation: Allocation) -> list[str]:
    """Return the expectations of a case that its plan misses."""
    plan = _Plan(hardware, schema, allocation)
    return [f"{word}: {fault}" for word, wanted in case["expect"].items() if word not in SILENT for fault in getattr(plan, word)(wanted)]


class _Plan:
    """One method for every word of the corpus."""

    def __init__(self, hardware: Hardware, schema: Schema, allocation: Allocation) -> None:
        self._schema, self._allocation = schema, allocation
        names = [disk.id for disk in hardware.disks]
        self._on = {space.id: {names[disk] for disk in on_disks(allocation, at)} for at, space in enumerate(schema.spaces)}
        self._size = {space.id: size_of(schema, allocation, at) for at, space in enumerate(schema.spaces)}
        self._liked = {
            space.id: {names[disk] for tier in space.preferred_disks for disk in tier} for space in schema.spaces if space.preferred_disks
        }
        self._names = names

    def allocated_at_least(self, wanted: int) -> list[str]:
        used = sum(piece.size for piece in self._allocation.pieces)
        return [] if used >= wanted else [f"{used} < {wanted}"]

    def prefs_met(self, wanted: bool) -> list[str]:
        off = [name for name, liked in self._liked.items() if not self._on[name] <= liked]
        return [f"{name} on {self._on[name]}" for name in off] if wanted else []

    def off_pref_at_most(self, wanted: int) -> list[str]:
        pieces = [(self._schema.spaces[piece.space].id, self._names[piece.disk], piece.size) for piece in self._allocation.pieces]
        off = sum(size for name, disk, size in pieces if name in self._liked and disk not in self._liked[name])
        return [] if off <= wanted else [f"{off} > {wanted}"]

    def exact(self, wanted: dict[str, int]) -> list[str]:
        return [f"{name} {self._size[name]}, not {size}" for name, size in wanted.items() if not 0 <= self._size[name] - size < 4]

    def at_least(self, wanted: dict[str, int]) -> list[str]:
        return [f"{name} {self._size[name]} < {size}" for name, size in wanted.items() if self._size[name] < size]

    def ratio(self, wanted: list[tuple[str, str, float]]) -> list[str]:
        return [
            f"{first}/{second} is not {factor}"
            for first, second, factor in wanted
            if abs(self._size[first] - factor * self._size[second]) > 4 * (1 + factor)
        ]

    def max_spread(self, wanted: int) -> list[str]:
        spread = max(self._size.values()) - min(self._size.values())
        return [] if spread <= wanted else [str(spread)]

    def count_disks(self, wanted: dict[str, int]) -> list[str]:
        return [f"{name} on {self._on[name]}" for name, count in wanted.items() if len(self._on[name]) != count]

    legs = count_disks

    def on(self, wanted: dict[str, list[str]]) -> list[str]:
        return [f"{name} on {self._on[name]}" for name, disks in wanted.items() if self._on[name] != set(disks)]

    def esp_on(self, wanted: list[str]) -> list[str]:
        return self.on({"esp": wanted})

    def max_fragments(self, wanted: int) -> list[str]:
        return [] if len(self._allocation.pieces) <= wanted else [str(len(self._allocation.pieces))]
