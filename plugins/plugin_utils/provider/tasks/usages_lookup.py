# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lookup `usages`: from its terms to its result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ...common.errors import Mistakes, suggest
from ..ledger.open import load_world
from ..ledger.plain import plain_totals, plain_usages
from ..world.model import Provider
from ..world.parse import find_reference

Usages = Mapping[str, Mapping[str, int]]


def look_up_usages(references: Sequence[str], database: str | None) -> list[Usages]:
    """Return {class: {capacity, used, free}} of each provider; without references, that of all providers together.

    Raises InputError for unknown providers, Unavailable.
    """
    world = load_world(database)
    usages = plain_usages(world.providers, world.usages())
    if not references:
        return [plain_totals(usages)]
    return [usages[provider.uuid] for provider in _find_all(references, world.providers)]


def look_up_tree_usages(references: Sequence[str], database: str | None) -> list[Usages]:
    """Return the same as look_up_usages, but that of each provider together with all below it."""
    world = load_world(database)
    usages = plain_usages(world.providers, world.usages())
    if not references:
        return [plain_totals(usages)]
    children: dict[str | None, list[str]] = defaultdict(list)
    for provider in world.providers:
        children[provider.parent].append(provider.uuid)
    found = _find_all(references, world.providers)
    return [plain_totals({uuid: usages[uuid] for uuid in _subtree(provider.uuid, children)}) for provider in found]


def _find_all(references: Sequence[str], providers: Sequence[Provider]) -> list[Provider]:
    by_reference = {**{provider.name: provider for provider in providers}, **{provider.uuid: provider for provider in providers}}
    mistakes = Mistakes()
    found = []
    for reference in references:
        provider = find_reference(reference, by_reference)
        if provider is None:
            mistakes.add("usages", f"there is no provider {reference!r}{suggest(str(reference), by_reference)}")
        else:
            found.append(provider)
    mistakes.check()
    return found


def _subtree(root: str, children: Mapping[str | None, Sequence[str]]) -> list[str]:
    found = [root]
    for uuid in found:
        found.extend(children.get(uuid, ()))
    return found
