# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Folders with one file for each host: plans, and facts in whatever form they were kept. Files are read one at a time, when asked for.

plans = Folder("plans", Path("plans"))
plans.read("node1")
"""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake
from ..known_hardware import FACT

# A cache of facts puts the version of what it writes before the name of the host.
_NAME = re.compile(r"(?P<cache>s\d+_)?(?P<host>.+?)(?:\.json)?")
_PAYLOAD = "__payload__"


class Folder:
    """The files of hosts in a folder; `option` is what the user calls it. Raises InputError when it cannot be read."""

    def __init__(self, option: str, folder: Path) -> None:
        self._option = option
        try:
            names = sorted(path.name for path in folder.iterdir() if not path.name.startswith(".") and path.is_file())
        except OSError as error:
            raise InputError([Mistake(option, f"{folder} cannot be read: {error.strerror}")]) from None
        except ValueError as error:
            raise InputError([Mistake(option, f"is no path: {error}")]) from None
        self._files = {name.removesuffix(".json"): folder / name for name in names}
        # A cache's own file is newer than one that another version of Ansible left for the same host.
        self._files |= {found["host"]: folder / name for name in names if (found := _NAME.fullmatch(name)) and found["cache"]}

    @property
    def hosts(self) -> Collection[str]:
        """Return all hosts that have a file, by name."""
        return sorted(self._files)

    def read(self, host: str) -> t.Any:
        """Return what the file of a host holds, or None where there is no file."""
        path = self._files.get(host)
        if path is None:
            return None
        try:
            return json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise InputError([Mistake(f"{self._option}.{host}", f"{path} cannot be read as JSON: {error}")]) from None


def by_host(option: str, given: t.Any) -> tuple[Collection[str], Callable[[str], t.Any]]:
    """Return the hosts of a folder or a mapping, and what gives the data of one, None for others. Raises InputError."""
    if isinstance(given, str):
        folder = Folder(option, Path.cwd() / Path(given).expanduser())
        return folder.hosts, folder.read
    if isinstance(given, Mapping):
        return given.keys(), given.get
    raise InputError([Mistake(option, "must be a mapping by host, or the path of a folder with a file for each host")])


def split_by_plan(asked: Collection[str], planned: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the hosts with a plan and those without. Raises InputError when none has one."""
    known = set(planned)
    with_plan = [host for host in asked if host in known]
    if not with_plan:
        raise InputError([Mistake("plans", "contain none of the hosts" if known else "are empty")])
    return with_plan, [host for host in asked if host not in known]


def facts_in(kept: t.Any) -> t.Any:
    """Return the hardware in what was kept of a host: a cache's entry, the result of disk_facts, or the hardware itself."""
    if isinstance(kept, Mapping) and isinstance(kept.get(_PAYLOAD), str):
        try:
            kept = json.loads(kept[_PAYLOAD])
        except (ValueError, RecursionError):
            return kept
    if isinstance(kept, Mapping) and isinstance(kept.get("ansible_facts"), Mapping):
        kept = kept["ansible_facts"]
    return kept.get(FACT) if isinstance(kept, Mapping) and "disks" not in kept else kept
