# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which amounts one consumer may have of an inventory (seed 002): from min_unit to max_unit, and min_unit or a multiple of step_size.

Stated once for Python and once for SQL.
"""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from ..._common.libraries import np, npt


@t.overload
def allows_piece(amount: int, min_unit: int, max_unit: int, step_size: int) -> bool: ...


@t.overload
def allows_piece(
    amount: int, min_unit: npt.NDArray[np.int64], max_unit: npt.NDArray[np.int64], step_size: npt.NDArray[np.int64] | int
) -> npt.NDArray[np.bool_]: ...


def allows_piece(amount: int, min_unit: t.Any, max_unit: t.Any, step_size: t.Any) -> t.Any:
    """Return whether an inventory, or where each of many as parallel columns, allows one consumer exactly this amount."""
    return (min_unit <= amount) & (amount <= max_unit) & ((amount == min_unit) | (amount % step_size == 0))


def sql_allows_piece(of: str, amount: str) -> str:
    """Return the condition that the row `of` of inventories allows `amount`, an expression; that it is not above max_unit is left out.

    `inventories.most` is the least of max_unit and what is free, and has an index.
    """
    return f"{of}.min_unit <= {amount} AND ({of}.min_unit = {amount} OR {amount} % {of}.step_size = 0)"
