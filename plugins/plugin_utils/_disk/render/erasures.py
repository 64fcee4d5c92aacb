# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of erased disks as one page for an auditor. It loads nothing and runs nothing."""

from __future__ import annotations

import pathlib
import typing as t
from collections.abc import Sequence

from ....module_utils._data.containers import ListOf, MappingOf, Row, Table
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Text, Truth, Whole
from ....module_utils._data.units import MIB, format_mib
from ..._common.html import page_templates

TEMPLATES = pathlib.Path(__file__).parents[1] / "templates"

_TEXTS = ("disk", "serial", "model", "way", "level", "started", "ended", "checked")
_RECORD = Table(
    "a record",
    [
        *(Row(name, Text(), required=True) for name in _TEXTS),
        Row("size", Whole(0), required=True),
        Row("verified", Truth(), required=True),
    ],
    others=True,
)
_ERASURES = MappingOf(ListOf(_RECORD, "records"), "hosts")


def erasures_page(erasures: t.Any, title: str = "Erased disks") -> tuple[str, Sequence[str]]:
    """Return the page of records by host, as disk_erase returns them, and no warnings; raises InputError."""
    mistakes = Mistakes()
    found = _ERASURES.read_nested(erasures, "_input", mistakes)
    mistakes.check()
    rows = [(host, record, format_mib(record["size"] / MIB)) for host in sorted(found) for record in found[host]]
    unverified = sum(not record["verified"] for _host, record, _size in rows)
    page = page_templates(TEMPLATES).get_template("erasures.html.j2")
    return page.render(title=str(title), digest="", rows=rows, unverified=unverified), ()
