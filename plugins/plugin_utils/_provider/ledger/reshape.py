# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reshape: give inventories another form and move what is allotted of them, in one step that nobody sees half done.

For example when a host's CPUs become those of its NUMA nodes. As in OpenStack Placement, the providers have their old inventories
together with the new ones while the allocations move, and only the new ones after.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ....module_utils._data.errors import NoSolution, suggest
from ..._common.libraries import sa
from ..world.model import Inventory
from .claim_plan import Claim, Claimed
from .claims import describe_claims, guard_consumers, plan_claims, settle, with_room
from .expired import are_used_by, read_expired
from .guards import guard_providers
from .import_world import ensure_names
from .providers import write_inventories
from .quotas import refuse_beyond_quotas
from .read import read_guarded, read_providers, read_some_names
from .stored import StoredProvider
from .tables import resource_classes


@dataclass(frozen=True)
class Reshaped:
    """What the claims changed, and the inventories before and after of each provider that was reshaped, by UUID."""

    claimed: Claimed
    before: Mapping[str, Mapping[str, Inventory]]
    after: Mapping[str, Mapping[str, Inventory]]

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return self.claimed.changed or self.before != self.after


def reshape(
    connection: sa.Connection,
    inventories: Mapping[str, Mapping[str, Inventory]],
    claims: Collection[Claim],
    generations: Mapping[str, int],
) -> Reshaped:
    """Give each provider (by UUID or name) exactly these inventories, and carry the claims out.

    Raises ClaimRefused, StillInUse for a class that goes while a consumer that is not among the claims uses it, GenerationMoved,
    LostRace.
    """
    stored = read_providers(connection, inventories)
    unknown = sorted(inventories.keys() - stored.keys())
    if unknown:
        known = read_some_names(connection)
        says = "; ".join(f"there is no provider {reference}{suggest(reference, known)}" for reference in unknown)
        raise NoSolution(says, {"unknown_providers": unknown})
    plan = plan_claims(connection, claims, generations)
    ensure_names(connection, resource_classes, {name for wanted in inventories.values() for name in wanted})
    dropped = {
        (provider.id, name) for reference, provider in stored.items() for name in provider.inventories.keys() - inventories[reference]
    }
    numbers = {number for number, _name in dropped}
    expired = read_expired(connection, plan.now, numbers) if numbers else []
    plan = with_room(connection, plan.with_ended(are_used_by(expired, dropped)))
    refuse_beyond_quotas(connection, plan.growth_of_projects, plan.now)
    consumers = guard_consumers(connection, plan.needed, plan.now)
    differing = {provider.id for name, provider in stored.items() if _present(provider) != inventories[name]}
    guard_providers(connection, {**{number: plan.expected.get(number) for number in differing}, **plan.providers})
    widened = [
        (provider, {**_present(provider), **inventories[name]}) for name, provider in read_providers(connection, inventories).items()
    ]
    write_inventories(connection, widened)
    guarded = read_guarded(connection, {*plan.providers, *differing})
    reshaped = {
        (provider.id, resource_class)
        for name, provider in stored.items()
        for resource_class, inventory in inventories[name].items()
        if _present(provider).get(resource_class) != inventory
    }
    settle(connection, plan, consumers, guarded, reshaped)
    write_inventories(connection, [(provider, inventories[name]) for name, provider in read_providers(connection, inventories).items()])
    uuids = {**plan.uuids, **{provider.id: provider.uuid for provider in stored.values()}}
    names = {**plan.names, **{provider.id: provider.name for provider in stored.values()}}
    claimed = describe_claims(replace(plan, uuids=uuids, names=names), guarded)
    before = {provider.uuid: _present(provider) for provider in stored.values()}
    return Reshaped(claimed, before, {stored[name].uuid: wanted for name, wanted in inventories.items()})


def _present(provider: StoredProvider) -> dict[str, Inventory]:
    return {name: stock.inventory for name, stock in provider.inventories.items()}
