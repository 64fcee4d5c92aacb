# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One door to clusters for the actions on groups: the sources of the room `group`, and the ledger of the room `provider`."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from .._common.libraries import refuse_missing
from .._group.arguments import SourceType
from .._group.cluster.only import restrict_to
from .._group.cluster.tolerate import with_tolerance
from .._group.cluster.turns import with_turns
from .._group.plan.kept import ReadableText
from .._group.plan.links import journals_in, with_links
from .._group.sources.load import check_source, load_cluster
from .._group.sources.loaded import Loaded
from .._group.sources.prometheus import with_prometheus
from .states import journals_in_ledger


def load_any_cluster(arguments: Mapping[str, t.Any], resolve: Callable[[str], str]) -> Loaded:
    """Return what load_cluster returns, or the cluster in a ledger. Raises InputError and Unavailable.

    Only `only` moves there, `move_first` and `move_last` say in which order, `tolerate` may fail at once, and links take
    what the journals of `link_journals` and `link_ledger` say, or `link_rate`.
    """
    loaded = _load(arguments, resolve)
    movable = restrict_to(with_prometheus(loaded.cluster, arguments.get("prometheus")), arguments.get("only"))
    tolerant = with_turns(with_tolerance(movable, arguments.get("tolerate")), arguments)
    return dataclasses.replace(loaded, cluster=with_links(tolerant, arguments.get("link_rate"), _journals(arguments, resolve)))


def _journals(arguments: Mapping[str, t.Any], resolve: Callable[[str], str]) -> Iterable[ReadableText]:
    path, state = arguments.get("link_journals"), arguments.get("link_ledger")
    if path is not None:
        yield from journals_in(Path(resolve(str(path))))
    if state is not None:
        yield from journals_in_ledger(state)


def _load(arguments: Mapping[str, t.Any], resolve: Callable[[str], str]) -> Loaded:
    source = arguments.get("source")
    if source is None or source["type"] != SourceType.LEDGER:
        return load_cluster(arguments, resolve)
    check_source(source)
    # Only users of a ledger need SQLAlchemy, which takes longer to load than most clusters.
    from .ledger_cluster import read_cluster

    refuse_missing("ledger")
    return Loaded(read_cluster(source.get("database"), source.get("aggregates")), {})
