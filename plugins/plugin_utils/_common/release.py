# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""By what and when something was made, as a page says it that somebody files."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timezone
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
_DATE = re.compile(r"<dt>date</dt><dd>([0-9-]{10})</dd>")
_EPOCH = "SOURCE_DATE_EPOCH"
"""Seconds since 1970 that take the place of the clock, wherever the same input is to give the same bytes (reproducible-builds.org)."""


def collection_version(root: Path = _ROOT) -> str:
    """Return the version of the collection, from what Galaxy installs or from a checkout; empty where neither says it."""
    try:
        return str(json.loads((root / "MANIFEST.json").read_text(encoding="utf-8"))["collection_info"]["version"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    try:
        found = re.search(r"^version: (\S+)$", (root / "galaxy.yml").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return ""
    return found[1] if found else ""


def with_kept_date(page: str, before: str | None) -> str:
    """Return a page with the date of the one before, where nothing else on it has changed."""
    dated = _DATE.search(before or "")
    kept = page if dated is None else _DATE.sub(dated[0], page, count=1)
    return kept if kept == before else page


def date_of_now() -> str:
    """Return the day, in UTC; that of SOURCE_DATE_EPOCH where the environment has it."""
    epoch = os.environ.get(_EPOCH, "")
    moment = datetime.fromtimestamp(int(epoch), timezone.utc) if re.fullmatch(r"[0-9]{1,11}", epoch) else datetime.now(timezone.utc)
    return moment.date().isoformat()
