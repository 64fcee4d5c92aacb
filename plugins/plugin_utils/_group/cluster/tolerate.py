# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster of which more than one node may fail at once, as the option `tolerate` says."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping

from ....module_utils._data.errors import Mistakes
from .model import Cluster, Tolerance


def with_tolerance(cluster: Cluster, tolerate: Mapping[str, t.Any] | None) -> Cluster:
    """Return the cluster with what may fail at once. Raises InputError for numbers and tags that mean nothing."""
    given = {key: value for key, value in (tolerate or {}).items() if value is not None}
    if not given:
        return cluster
    mistakes = Mistakes()
    if given.get("nodes", 1) < 1:
        mistakes.add("tolerate.nodes", f"is {given['nodes']}; must be at least 1")
    if not 0 < given.get("percent", 1.0) <= 100:
        mistakes.add("tolerate.percent", f"is {given['percent']:g}; must be above 0 and at most 100")
    prefix = given.get("domain")
    if prefix is not None and not (prefix and any(tag.startswith(prefix) for node in cluster.nodes for tag in node.tags)):
        mistakes.add("tolerate.domain", f"is {prefix!r}; must be what tags of nodes begin with, and no node has such a tag")
    mistakes.check()
    return dataclasses.replace(cluster, tolerate=Tolerance(**given))
