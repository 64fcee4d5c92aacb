# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What group_balance is asked: its arguments, read and checked; every mistake at once."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...common.errors import Mistakes
from ...common.units import parse_mib
from ..balance.hbal import HbalOptions
from ..balance.search import Aims
from ..cluster.load_input import read_loads
from ..cluster.loads import with_loads
from ..cluster.model import Cluster
from ..metrics.score import ScoreMode
from ..neighbourhood.moves import MoveOptions
from ..neighbourhood.price import Tariff
from .place import group_named

_LEAST = {"max_moves": 0, "max_moves_at_node": 1, "max_groups": 1, "min_gain": 0, "data_price": 0, "move_price": 0, "time_limit": 0}
_ONLY_WITH_SCORE = ("max_data", "data_price", "move_price", "pareto")


class Mode(StrEnum):
    """Whose way of balancing: the collection's own, or hbal's."""

    SCORE = "score"
    HTOOLS = "htools"


@dataclass(frozen=True)
class Request:
    """What is wanted; `groups` None is the worst ones that can be improved, `most_groups` of them."""

    cluster: Cluster
    groups: tuple[int, ...] | None
    most_groups: int
    aims: Aims | HbalOptions
    score: ScoreMode
    most_at_node: int | None
    seconds: float | None
    pareto: bool


def read_request(cluster: Cluster, arguments: Mapping[str, t.Any]) -> Request:
    """Return the request that arguments of group_balance make of a cluster. Raises InputError with all mistakes."""
    mistakes = Mistakes()
    mode = Mode(arguments.get("mode", Mode.SCORE))
    for name, least in (
        ("max_moves", 0),
        ("max_moves_at_node", 1),
        ("max_groups", 1),
        ("min_gain", 0),
        ("data_price", 0),
        ("move_price", 0),
    ):
        if arguments.get(name) is not None and arguments[name] < least:
            mistakes.add(name, f"is {arguments[name]}; must be {least} or more")
    for name in _ONLY_WITH_SCORE:
        if mode == Mode.HTOOLS and arguments.get(name):
            mistakes.add(name, "is nothing that hbal knows; it needs mode: score")
    if mode == Mode.HTOOLS and arguments.get("score") == ScoreMode.CAPACITY:
        mistakes.add("score", "is capacity, which hbal does not know; it needs mode: score")
    groups = _groups(cluster, arguments.get("groups"), mistakes)
    cluster = with_loads(
        cluster,
        read_loads(arguments, "load", [instance.name for instance in cluster.instances], "instance", mistakes),
        read_loads(arguments, "node_load", [node.name for node in cluster.nodes], "node", mistakes),
    )
    most_data = _mib(arguments, mistakes)
    mistakes.check()
    return Request(
        cluster=cluster,
        groups=groups,
        most_groups=arguments.get("max_groups") or 1,
        aims=_hbal_options(arguments) if mode == Mode.HTOOLS else _aims(arguments, most_data),
        score=ScoreMode(arguments.get("score") or ScoreMode.HTOOLS),
        most_at_node=arguments.get("max_moves_at_node"),
        seconds=arguments.get("time_limit"),
        pareto=bool(arguments.get("pareto")),
    )


def _aims(arguments: Mapping[str, t.Any], most_data: int | None) -> Aims:
    usual = Aims()
    return Aims(
        score=ScoreMode(arguments.get("score") or ScoreMode.HTOOLS),
        tariff=Tariff(
            data=_or_else(arguments.get("data_price"), usual.tariff.data),
            primary=_or_else(arguments.get("move_price"), usual.tariff.primary),
            most_data=most_data,
            most_moves=arguments.get("max_moves"),
        ),
        min_gain=_or_else(arguments.get("min_gain"), usual.min_gain),
        moves=_moves(arguments),
        evacuation_only=bool(arguments.get("evacuation")),
    )


def _hbal_options(arguments: Mapping[str, t.Any]) -> HbalOptions:
    """Return hbal's options; a least gain that is asked for holds at every score, as it was meant to."""
    given = arguments.get("min_gain")
    gain = {} if given is None else {"min_gain": given, "min_gain_limit": float("inf")}
    return HbalOptions(
        moves=_moves(arguments),
        evacuation_only=bool(arguments.get("evacuation")),
        max_moves=arguments.get("max_moves"),
        **gain,
    )


def _moves(arguments: Mapping[str, t.Any]) -> MoveOptions:
    return MoveOptions(disk_moves=arguments.get("disk_moves", True), instance_moves=arguments.get("instance_moves", True))


def _or_else(value: float | None, usual: float) -> float:
    return usual if value is None else value


def _groups(cluster: Cluster, names: Sequence[t.Any] | None, mistakes: Mistakes) -> tuple[int, ...] | None:
    if names is None:
        return None
    found = [group_named(cluster, name, f"groups[{position}]", mistakes) for position, name in enumerate(names)]
    if not found:
        mistakes.add("groups", "is empty; name groups, or leave it out for the worst that can be improved")
    return tuple(dict.fromkeys(group for group in found if group is not None))


def _mib(arguments: Mapping[str, t.Any], mistakes: Mistakes) -> int | None:
    given = arguments.get("max_data")
    if given is None:
        return None
    try:
        return int(parse_mib(str(given)))
    except ValueError as error:
        mistakes.add("max_data", str(error))
        return None
