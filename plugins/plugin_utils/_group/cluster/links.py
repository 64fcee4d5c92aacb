# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the links of nodes take, by which the time of a plan is estimated."""

from __future__ import annotations

import dataclasses
import typing as t

from ....module_utils._data.errors import InputError, Mistake
from ....module_utils._data.kinds import Size
from .model import Cluster


def with_link_rate(cluster: Cluster, rate: t.Any) -> Cluster:
    """Return a cluster whose links take `rate` a second, a size. Raises InputError."""
    if rate is None:
        return cluster
    try:
        per_second = float(Size(float).read(rate))
    except ValueError as error:
        raise InputError([Mistake("link_rate", str(error))]) from None
    if per_second <= 0:
        raise InputError([Mistake("link_rate", f"is {rate}; must be more than 0, such as 110 MiB for 1 Gbit/s")])
    return dataclasses.replace(cluster, link_rate=per_second)
