# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why there is no plan, where that is clear from the schema and the disks alone."""

from __future__ import annotations

from collections.abc import Sequence

from ....module_utils._data.errors import NoSolution
from ....module_utils._data.units import with_percentage
from .entry import Entry
from .values import Bounds


def over_maximum(entry: Entry, bounds: Bounds) -> str:
    """Return by what a minimum is over its maximum."""
    least, most = _as_written(entry, bounds)
    return f"{least} is over max_size, which is {most}"


def _as_written(entry: Entry, bounds: Bounds) -> tuple[str, str]:
    """Return minimum and maximum in words."""
    least, most = (entry.values[key] for key in ("min_size", "max_size"))
    written = [with_percentage(mib or 0, amount.percentage) for mib, amount in ((bounds.least, least), (bounds.most, most))]
    return written[0], written[1]


def no_twins(entries: Sequence[Entry], on_one_drive: str = "") -> NoSolution:
    """Return why there is no plan where there are no disks alike, as is asked for; `on_one_drive` names those that fail together."""
    alike = "disks of one transport, kind, block size and, within 2 %, size"
    hint = f" ({on_one_drive})" if on_one_drive else ""
    said = [
        {"name": f"disks:{entry.id}", "says": f"{entry.id} needs {alike}, and among those that it may use there are not enough{hint}"}
        for entry in entries
    ]
    remedies = [
        f"let {entry.id} use disks that are alike, or ask for no {'mirror' if entry.values['mirror'] else 'alike'}" for entry in entries
    ]
    return NoSolution(f"No plan: {'; '.join(one['says'] for one in said)}", {"short": None, "constraints": said, "remedies": remedies})


def no_size_left(contradictions: Sequence[tuple[Entry, Bounds]]) -> NoSolution:
    """Return why there is no plan if minimums exceed maximums; with all numbers for the first."""
    lines = [f"{item.place}.min_size: {over_maximum(item, bounds)}" for item, bounds in contradictions]
    item, bounds = contradictions[0]
    least, most = _as_written(item, bounds)
    conflict = {
        "short": bounds.least - (bounds.most or 0),
        "constraints": [
            {"name": f"min:{item.id}", "says": f"{item.id} needs at least {least}"},
            {"name": f"max:{item.id}", "says": f"{item.id} may have at most {most}"},
        ],
        "remedies": [
            f"reduce the minimum of {item.id} from {least} to {bounds.most} MiB",
            f"raise the maximum of {item.id} from {most} to {bounds.least} MiB",
        ],
    }
    return NoSolution("\n".join(lines), conflict)
