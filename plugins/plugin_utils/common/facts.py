# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of hosts are data: none of them may have the name of a variable that a play or a role reads as an option.

Ansible makes a variable of each fact, and a fact outranks role defaults and the inventory.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterator, Mapping

from .errors import InputError, Mistake

DOCUMENTED = frozenset({"bareon_hardware", "bareon_node"})
"""The facts that modules of the collection return."""

_PREFIXES = ("bareon_", "disk_layout_", "__disk_layout_", "group_moves_", "__group_moves_", "follow_")
"""What the names of options, and of results that plays and roles register, begin with."""
_ANSIBLE = "ansible_"
"""Ansible lists facts without it, and makes variables of them with it."""
_MOST_CHARACTERS = 80


def refuse_facts(host: str, facts: t.Any, options: Collection[str] = ()) -> None:
    """Raise InputError for facts with reserved names: those of `options`, and those with a prefix of the collection."""
    if not isinstance(facts, Mapping):
        raise InputError([Mistake(host, "its facts are no mapping")])
    found = list(_reserved(facts, options))
    if found:
        raise InputError(
            Mistake(f"{host}.ansible_facts.{shortened(key)}", "is the name of a variable of the operator, which no fact may have")
            for key in found
        )


def refuse_undocumented(host: str, result: Mapping[str, t.Any], documented: Collection[str]) -> None:
    """Raise InputError for facts in a module's result that the module does not return."""
    facts = result.get("ansible_facts", {})
    if not isinstance(facts, Mapping):
        raise InputError([Mistake(f"{host}.ansible_facts", "is no mapping; the answer of the host is not that of the module")])
    foreign = [key for key in facts if key not in documented]
    if foreign:
        raise InputError(
            Mistake(f"{host}.ansible_facts.{shortened(key)}", "is no fact of the module; the answer of the host is not that of the module")
            for key in foreign
        )


def _reserved(facts: Mapping[t.Any, t.Any], options: Collection[str]) -> Iterator[str]:
    for key in facts:
        name = str(key).removeprefix(_ANSIBLE)
        if name not in DOCUMENTED and (name in options or name.startswith(_PREFIXES)):
            yield str(key)


def shortened(key: t.Any) -> str:
    """Return a name that a host has made up, so that a message can show it."""
    text = ascii(str(key))[1:-1]
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
