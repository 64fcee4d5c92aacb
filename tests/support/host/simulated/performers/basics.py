# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the simulated tools of all technologies need: what they refuse, and devices that nothing uses."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterator, Mapping

from ansible_collections.bareon.allocator.plugins.module_utils._steps.step import Step
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import Block, Mark

Pieces = Iterator[None]
Performers = Mapping[type[Step], Callable[[SimulatedHost, t.Any], Pieces]]


class Refused(AssertionError):
    """A tool would have failed: the plan is wrong."""


def need(condition: object, says: str) -> None:
    if not condition:
        raise Refused(says)


def unused_block(host: SimulatedHost, node: str) -> Block:
    block = host.by_node(node)
    need(not host.users(block.name), f"{node} is in use by {host.users(block.name)}")
    return block


def clean_block(host: SimulatedHost, node: str) -> Block:
    block = unused_block(host, node)
    need(not host.media.signatures(block), f"{node} has {list(host.media.signatures(block))}")
    return block


def copy_range(host: SimulatedHost, source: Block, start: int, target: Block, begin: int, size: int) -> None:
    """Write what is on a part of a device onto a part of another one, through the keys of both."""
    ((disk, place),), ((to, at),) = Block("", "", "", source.part(start, size)).extents[0].places, target.part(begin, size)[0].places
    for offset, mark in list(host.media.marks.get(disk, {}).items()):
        if place <= offset < place + size and mark.keys[: len(source.keys)] == source.keys:
            there = Mark(mark.kind, mark.payload, (*target.keys, *mark.keys[len(source.keys) :]))
            host.media.replace(to, {**host.media.marks.get(to, {}), offset - place + at: there})
