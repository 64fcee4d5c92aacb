# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans as files on the controller, one for each host: what would change in a folder, and the writing.

    files = plan_files(Path("layouts"), {"web1": plan})
    write(files)

A file is there whole or not at all, and one that would not change is not touched.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing as t
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...module_utils._data.containers import ListOf, Row, Table
from ...module_utils._data.errors import InputError, Mistake, Mistakes
from ...module_utils._data.kinds import Text, Whole
from ...module_utils._schema.table import STATIC
from .._common.files import replace_file, text_before
from .._common.lasting import loss_warnings

_DISK = Table("a disk", [Row("disk_id", Text(filled=True), required=True), Row("size", Whole(0), required=True)], others=True)
PLAN = Table("a plan", [Row("schema", STATIC, required=True), Row("disks", ListOf(_DISK, "disks"), required=True)], others=True)
"""What is read of a plan that was kept."""
OTHER_FORM = (KeyError, TypeError, AttributeError, ValueError)
"""What the reading of data that are no plan ends in, below what PLAN knows."""

_OPTION = "plans_to"
_ENCODER = json.JSONEncoder()
_OPENED = 3
"""So many levels of a plan have a line for each entry; what lies deeper stands in the line of its entry."""


@dataclasses.dataclass(frozen=True)
class PlanFile:
    """The file of a host: what it holds, None where there is none, and what it is to hold."""

    host: str
    path: Path
    before: str | None
    after: str

    @property
    def changes(self) -> bool:
        """Return whether it is to be written."""
        return self.before != self.after

    @property
    def digest(self) -> str:
        """Return the SHA-256 of what it is to hold, as `sha256sum` prints it."""
        return hashlib.sha256(self.after.encode()).hexdigest()


def plan_files(folder: Path, plans: Mapping[str, t.Any]) -> list[PlanFile]:
    """Return the file of each host. Raises InputError for hosts whose names can be no file's, and for what cannot be read."""
    mistakes = Mistakes()
    for host in plans:
        if "/" in host or "\0" in host or host.startswith("."):
            mistakes.add(_OPTION, f"the host {host!r} cannot have a file of its name; give it another name in the inventory")
    mistakes.check()
    try:
        return [_plan_file(folder / f"{host}.json", host, plan) for host, plan in plans.items()]
    except (OSError, ValueError) as error:
        raise _refused(error) from None


def write(files: Sequence[PlanFile]) -> None:
    """Write the files that change. Raises InputError when the folder or a file cannot be written."""
    try:
        for file in files:
            if file.changes:
                replace_file(file.path, file.after)
    except (OSError, ValueError) as error:
        raise _refused(error) from None


def to_plain(folder: Path, files: Sequence[PlanFile], warnings: Sequence[str]) -> dict[str, t.Any]:
    """Return what a task reports of files in a folder instead of the plans in them; `warnings` are of the plans."""
    return {
        "warnings": [*warnings, *loss_warnings(folder, _OPTION)],
        "digests": {file.host: file.digest for file in files},
        "written": [file.host for file in files if file.changes],
        "changed": any(file.changes for file in files),
    }


def difference(files: Sequence[PlanFile]) -> list[dict[str, str]]:
    """Return the files that change, before and after, as Ansible shows them."""
    return [
        {"before": file.before or "", "after": file.after, "before_header": str(file.path), "after_header": str(file.path)}
        for file in files
        if file.changes
    ]


def files_summary(folder: Path, files: Sequence[PlanFile]) -> str:
    """Return one sentence on how many files there are, and how many of them are new or other than they were."""
    new = sum(file.before is None for file in files)
    other = sum(file.changes for file in files) - new
    plans = "1 plan" if len(files) == 1 else f"{len(files)} plans"
    return f"{plans} in {folder}: {new} new, {other} changed, {len(files) - new - other} as they were"


def _plan_file(path: Path, host: str, plan: t.Any) -> PlanFile:
    return PlanFile(host, path, text_before(path), _lines(plan, _OPENED) + "\n")


def _lines(value: t.Any, opened: int, indent: str = "") -> str:
    """Return JSON with a line for each entry of the uppermost levels, so that differences can be read."""
    is_list = isinstance(value, list)
    if not opened or not value or not (is_list or isinstance(value, Mapping)):
        return _ENCODER.encode(value)
    deeper = indent + "  "
    if is_list:
        entries = [_lines(item, opened - 1, deeper) for item in value]
    else:
        entries = [f"{_ENCODER.encode(key)}: {_lines(item, opened - 1, deeper)}" for key, item in value.items()]
    first, last = "[]" if is_list else "{}"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(entries) + f"\n{indent}{last}"


def _refused(error: Exception) -> InputError:
    return InputError([Mistake(_OPTION, f"cannot be used: {error}")])
