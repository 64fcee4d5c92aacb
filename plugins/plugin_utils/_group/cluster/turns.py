# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose turn to move is first, and whose last, as the options `move_first` and `move_last` say."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from ....module_utils._data.errors import Mistakes
from .model import Cluster, Turn
from .only import Selected, select

OPTIONS = {"move_first": Turn.FIRST, "move_last": Turn.LAST}


def with_turns(cluster: Cluster, arguments: Mapping[str, t.Any]) -> Cluster:
    """Return the cluster with the turns of the selected instances. Raises InputError for words that select nothing, or both."""
    mistakes = Mistakes()
    selected: dict[Turn, Selected] = {turn: select(cluster, arguments.get(option), option, mistakes) for option, turn in OPTIONS.items()}
    mistakes.check()
    if not any(selected.values()):
        return cluster
    both = sorted(selected[Turn.FIRST] & selected[Turn.LAST])
    if both:
        mistakes.add("move_last", f"selects {_listed(both)}, which move_first selects, too; an instance has one turn")
    mistakes.check()
    turns = {name: turn for turn, names in selected.items() for name in names}
    instances = tuple(dataclasses.replace(one, turn=turns[one.name]) if one.name in turns else one for one in cluster.instances)
    return dataclasses.replace(cluster, instances=instances)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
