# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cluster tags that steer htools: which instance and node tags mean exclusion, migration and location.

The tag names are those of the htools(1) manual page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

EXCLUSION = "htools:iextags:"
MIGRATION = "htools:migration:"
ALLOW_MIGRATION = "htools:allowmigration:"
LOCATION = "htools:nlocation:"
DESIRED_LOCATION = "htools:desiredlocation:"
STANDBY = "htools:standby:"


@dataclass(frozen=True)
class TagRules:
    """What the cluster's tags say about the others.

    `exclusion` and `desired` are prefixes of instance tags, `migration` and `location` prefixes of node tags;
    `allowed` holds (from, to): a node with the migration tag `to` takes instances from nodes with the migration tag `from`.
    """

    exclusion: tuple[str, ...] = ()
    migration: tuple[str, ...] = ()
    allowed: tuple[tuple[str, str], ...] = ()
    location: tuple[str, ...] = ()
    desired: tuple[str, ...] = ()


def read_rules(cluster_tags: Sequence[str]) -> TagRules:
    """Return the rules that the cluster's tags lay down; tags of other meaning are ignored."""
    return TagRules(
        exclusion=tuple(filter(None, _after(cluster_tags, EXCLUSION))),
        migration=tuple(f"{name}:" for name in _after(cluster_tags, MIGRATION)),
        allowed=tuple(_pair(rest) for rest in _after(cluster_tags, ALLOW_MIGRATION) if rest.count("::") == 1),
        location=tuple(f"{name}:" for name in _after(cluster_tags, LOCATION)),
        desired=tuple(filter(None, _after(cluster_tags, DESIRED_LOCATION))),
    )


def chosen(tags: Sequence[str], prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags that start with one of the prefixes, each once, in their order."""
    if not tags or not prefixes:
        return ()
    return tuple(dict.fromkeys(tag for tag in tags if tag.startswith(prefixes)))


def received(node_tags: Sequence[str], rules: TagRules) -> frozenset[str]:
    """Return the migration tags a node accepts: its own, and those that its own are allowed to receive (one step)."""
    own = frozenset(chosen(node_tags, rules.migration))
    return own | {origin for origin, target in rules.allowed if target in own}


def _after(tags: Sequence[str], prefix: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag[len(prefix) :] for tag in tags if tag.startswith(prefix)))


def _pair(text: str) -> tuple[str, str]:
    origin, _separator, target = text.partition("::")
    return origin, target
