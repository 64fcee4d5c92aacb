# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What providers are asked to be, and what has become of them: what tasks hand to the ledger, and get back from it."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..world.model import Inventory
from ..world.names import provider_uuid
from .read import StoredProvider

ROOT = ""
"""As a parent: none."""


@dataclass(frozen=True)
class ProviderChange:
    """What a provider shall be; None leaves a part as it is, and is nothing where the provider is new.

    At least one of `uuid` and `name` is given; `parent` is a UUID, a name or ROOT. `generation` is the one the caller saw.
    `place` is where the caller wrote it.
    """

    place: str
    uuid: str | None = None
    name: str | None = None
    parent: str | None = None
    inventories: Mapping[str, Inventory] | None = None
    traits: frozenset[str] | None = None
    aggregates: frozenset[str] | None = None
    generation: int | None = None

    @property
    def reference(self) -> str:
        """What finds the provider in the ledger."""
        return t.cast("str", self.uuid or self.name)

    def place_of(self, part: str) -> str:
        """Return where the caller wrote a part of it."""
        return f"{self.place}.{part}" if self.place else part

    def uuid_among(self, stored: Mapping[str, StoredProvider]) -> str:
        """Return the provider's UUID: its own, the one it has in the ledger, or that of its name."""
        known = stored.get(self.reference)
        return known.uuid if known else self.uuid or provider_uuid(t.cast("str", self.name))


@dataclass(frozen=True)
class ProvidersChanged:
    """Providers before and after by UUID, those that are not there left out."""

    before: Mapping[str, StoredProvider]
    after: Mapping[str, StoredProvider]
    warnings: Sequence[str] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return self.before != self.after
