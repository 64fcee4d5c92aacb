# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that options of a layout use for nothing that it has: such an option would be left out in silence, or fail when all is made."""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ....module_utils._data.errors import suggest
from ....module_utils._schema.static import layout_of
from ....module_utils._storage.crypttab import why_no_key_file, why_no_options
from ....module_utils._storage.filesystems import NOT_MOUNTED, SWAP
from .host_files import ALL

Plain = Mapping[str, t.Any]

_ACCOUNTS = {"owner": "user", "group": "group"}


@dataclass(frozen=True)
class Named:
    """What options name: all but `mount_points` as for host_files; these have a `path`, and maybe an `owner` and a `group`."""

    nofail: tuple[str, ...] = ()
    key_files: Mapping[str, str] = field(default_factory=dict)
    mount_points: tuple[Plain, ...] = ()
    key_file: str = ""
    crypttab_options: str = ""


def unknown_names(schema: Plain, named: Named, accounts: str | None = None) -> list[str]:
    """Return a sentence for each name that nothing has, with what could be meant, and for what crypttab has no form for.

    `accounts` has a line `user NAME NUMBER` or `group NAME NUMBER` for each of `owner` and `group` that is known; None where the accounts
    are not known yet.
    """
    layout = layout_of(schema)
    used = layout.mounts()
    mounts = [mount.path for mount in used if mount.path != SWAP]
    containers = [name for container in layout.containers for name in (container.name, container.space)]
    spaces = [mount.filesystem.space for mount in used]
    swaps = [SWAP for mount in used if mount.path == SWAP]
    pools = [dataset.mount for pool in layout.zpools for dataset in (pool.root, *pool.datasets) if dataset.mount != NOT_MOUNTED]
    paths = [str(point["path"]) for point in named.mount_points if not _is_below(str(point["path"]), pools)]
    return [
        *_unknown("nofail", "mount point or space", named.nofail, [*mounts, *spaces, *containers, *swaps, ALL]),
        *_unknown("key_files", "encrypted container or space", named.key_files, containers),
        *_unknown("mount_points", "mount point", paths, mounts),
        *_unwritable(named),
        *(_unknown_accounts(named.mount_points, accounts) if accounts is not None else ()),
    ]


def _unknown(option: str, what: str, names: Iterable[str], known: Collection[str]) -> Iterator[str]:
    for name in names:
        if name not in known:
            there = ", ".join(sorted(set(known))) or "none"
            yield f"{option}: the layout has no {what} {name}{suggest(name, known) or f'; it has {there}'}"


def _unwritable(named: Named) -> Iterator[str]:
    paths = {f"key_files.{name}": path for name, path in named.key_files.items()} | {"luks_key_file": named.key_file}
    found = {option: why_no_key_file(path) for option, path in paths.items() if path}
    found["crypttab_options"] = why_no_options(named.crypttab_options)
    yield from (f"{option} {says}" for option, says in found.items() if says is not None)


def _is_below(path: str, pools: Iterable[str]) -> bool:
    """Return whether ZFS may mount something there: a dataset without a mount point of its own is mounted below what it lies in."""
    return any(f"{path}/".startswith(f"{pool.rstrip('/')}/") for pool in pools)


def _unknown_accounts(points: Iterable[Plain], accounts: str) -> Iterator[str]:
    known = {tuple(line.split()[:2]) for line in accounts.splitlines()}
    for point in points:
        for key, kind in _ACCOUNTS.items():
            name = str(point.get(key) or "")
            if name and not name.isdigit() and (kind, name) not in known:
                yield f"mount_points: there is no {kind} {name}, which is to be {key} of {point['path']}"
