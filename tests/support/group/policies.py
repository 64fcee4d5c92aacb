# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The policy that allows every size, and groups that have it."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster, Group, Policy, Spec, SpecInterval

OPEN = Policy(intervals=(SpecInterval(Spec(0, 0, 0, 0, 0, 0), Spec(99999, 99, 999999, 9, 9, 9)),))


def open_group(name: str, **fields: t.Any) -> Group:
    """Return a group that takes instances of any size."""
    return Group(name, f"uuid-{name}", **{"policy": OPEN, **fields})


def opened(cluster: Cluster) -> Cluster:
    """Return the cluster with all of its groups open to instances of any size."""
    return dataclasses.replace(cluster, groups=tuple(dataclasses.replace(group, policy=OPEN) for group in cluster.groups))
