# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every source gives: a cluster, and the request where the source carries one."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from ..cluster.model import Cluster


@dataclass(frozen=True)
class Loaded:
    """A cluster and, from an IAllocator message, its request as plain data (see iallocator.requested_instances), else nothing."""

    cluster: Cluster
    request: Mapping[str, t.Any]
