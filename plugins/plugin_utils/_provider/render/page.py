# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a ledger: room by class, racks, claims with owners and ends. It loads nothing; how it looks is the template's affair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..._common.html import page_templates, script_digest
from .overview import STEPS, Plain, overview

_TEMPLATES = Path(__file__).parents[1] / "templates"


def ledger_page(result: Plain, title: str = "Ledger", racks: Sequence[str] = ()) -> str:
    """Return the HTML page of what provider_info returned. Raises KeyError, TypeError or the like for other data."""
    shown = overview(result, racks)
    classes = [room.name for room in shown.rooms]
    templates = page_templates(_TEMPLATES)
    return templates.get_template("ledger.html.j2").render(
        title=title,
        shown=shown,
        steps=STEPS,
        choices={
            "racks": [(rack.number, rack.name or "none") for rack in shown.racks],
            "projects": [(number, name or "no project") for number, name in enumerate(shown.projects)],
            "users": [(number, name or "no user") for number, name in enumerate(shown.users)],
            "classes": list(enumerate(classes)),
        },
        numbers={name: number for number, name in enumerate(classes)},
        digest=script_digest(templates.get_template("ledger.js.j2").render()),
    )
