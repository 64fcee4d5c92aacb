# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Demands on thin pools: how much they may give out, and which data cannot be kept in their vg."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ....module_utils._data.errors import Mistakes
from ....module_utils._data.words import listed
from ..model import Space, SpaceType
from .entry import Entry


def check_kept(known: Sequence[Entry], groups: Mapping[str, str], mistakes: Mistakes) -> None:
    """Refuse kept data in a vg with a thin pool, whose data cannot be distinguished from those of its volumes."""
    thin = {groups[item.id]: item.id for item in known if item.type is SpaceType.THIN_POOL and item.id in groups}
    for item in known:
        group = groups.get(item.id, item.id)
        if item.values["keep_data"] and group in thin and item.type not in (SpaceType.THIN_POOL, SpaceType.THIN_VOLUME):
            says = f"the vg {group} has the thin pool {thin[group]}, and what is in such a vg cannot be planned around"
            mistakes.add(f"{item.place}.keep_data", f"{says}; what the same plan has made stays without it")


def check_pools(spaces: Sequence[Space], mistakes: Mistakes) -> None:
    """Note thin pools whose volumes come to more than is allowed."""
    for pool in spaces:
        inside = [space for space in spaces if space.thin_pool == pool.id]
        given_out = sum(space.min_size for space in inside)
        if pool.type is SpaceType.THIN_POOL and pool.max_size is not None and given_out > pool.overcommit * pool.max_size:
            times = math.ceil(given_out / pool.max_size * 100) / 100
            names = listed([space.id for space in inside])
            allowed = f"{pool.overcommit:g} times its size" if pool.overcommit != 1 else "its size"
            says = f"{names} come to {given_out} MiB, more than {allowed} of {pool.max_size} MiB"
            mistakes.add(f"{pool.place}.contains", f"{says}; make it larger, or allow that with overcommit: {times:g}")
