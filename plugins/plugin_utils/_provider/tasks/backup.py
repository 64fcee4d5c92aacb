# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tasks `provider_backup` and `provider_restore`: from their arguments to their results."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from ..ledger.backup import Contents, back_up, restore
from ..ledger.plain import Plain
from .provider import timeout_of


def run_provider_backup(arguments: Mapping[str, t.Any], *, dry_run: bool) -> Plain:
    """Write a ledger into a file. Raises InputError and Unavailable."""
    path = Path(arguments["path"]).expanduser().absolute()
    return _described(path, back_up(arguments["database"], path, timeout_of(arguments), dry_run=dry_run))


def run_provider_restore(arguments: Mapping[str, t.Any], *, dry_run: bool) -> Plain:
    """Make a ledger what a file holds. Raises InputError and Unavailable."""
    path = Path(arguments["path"]).expanduser().absolute()
    return _described(path, restore(arguments["database"], path, timeout_of(arguments), dry_run=dry_run))


def _described(path: Path, contents: Contents) -> Plain:
    findings = [asdict(finding) for finding in contents.findings]
    counts = {"providers": contents.providers, "consumers": contents.consumers}
    return {"changed": True, "path": str(path), **counts, "audit": findings}
