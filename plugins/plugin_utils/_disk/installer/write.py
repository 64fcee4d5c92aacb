# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan and a target -> what the target reads, and warnings: the one way that all targets share."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ....module_utils._data.containers import read_all
from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.kinds import Truth, shown
from ....module_utils._schema.model import Layout
from ....module_utils._schema.static import read_layout
from .durable import unstable_disks, with_durable_names
from .losses import Losses
from .words import unusual_metadata

CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")
"""What a text of one line does not have."""
_SECRETS = frozenset({"passphrase"})
_TEXTS = _SECRETS | {"key_file", "password_file", "disk"}


class Written(t.NamedTuple):
    """What a target reads, as text or plain data, and warnings: what was lost, and what is to be known."""

    value: t.Any
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Target:
    """An installer and its writer; whether it can keep contents of a disk, make Btrfs on several devices, thin pools, ZFS pools."""

    name: str
    write: Callable[..., t.Any]
    keeps_data: bool = False
    spreads: bool = False
    thin: bool = False
    zfs: bool = False


def write_plan(target: Target, plan: t.Any, hardware: t.Any, *, lossy: t.Any, **options: t.Any) -> Written:
    """Return a plan, or an explicit static schema, in the words of a target; `options` are the target's own.

    `lossy` says whether what the target cannot say is left out with a warning; it is read strictly, as the text `false` must lose nothing.
    Raises InputError with all that is wrong with the plan, or else with all that the target cannot say.
    """
    losses = Losses(target.name, lossy=read_all(Truth(words=True), lossy, "lossy"))
    options = _read_options(options)
    layout = _layout(plan, hardware)
    if not target.keeps_data:
        for space in layout.kept():
            losses.refuse(space, f"its data must be kept, but {target.name} starts with empty disks here")
    for filesystem in layout.filesystems if not target.spreads else ():
        if filesystem.more:
            losses.refuse(filesystem.space, f"{target.name} makes no Btrfs on several disks here; plan a raid with fs_type: btrfs instead")
    for pool in layout.pools if not target.thin else ():
        losses.refuse(pool.space, f"{target.name} makes no thin pools here; plan what is in it as lv instead")
    for cache in layout.caches:
        says = f"{target.name} makes no caches of LVM here; install without {cache.space}, and let disk_layout add it afterwards"
        losses.refuse(cache.space, says)
    for zpool in layout.zpools if not target.zfs else ():
        losses.refuse(zpool.space, f"{target.name} gets no ZFS pools here; have disk_layout make it after the installation")
    for group in layout.groups:
        metadata = unusual_metadata(group)
        if metadata and not group.keep_data:
            losses.lose(group.space, f"{target.name} makes physical volumes with the defaults of LVM, not with {metadata}")
    for array in layout.arrays:
        if array.write_mostly and not array.keep_data:
            losses.lose(array.space, f"{target.name} makes arrays without write-mostly members; disk_layout sets that on a running one")
    for device in unstable_disks(layout):
        losses.note(f"{device} is a name that may change at the next boot; hardware with links would give a durable one")
    value = target.write(layout, losses, **options)
    return Written(value, losses.check())


def _read_options(options: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the options of a target; those that are texts may be left out, or else are of one line."""
    mistakes = Mistakes()
    for name in sorted(_TEXTS & options.keys()):
        value = options[name]
        if value is not None and (not isinstance(value, str) or not value or CONTROL.search(value)):
            mistakes.add(name, f"is {shown(value) if name not in _SECRETS else 'something else'}; must be text of one line")
    mistakes.check()
    return dict(options)


def _layout(plan: t.Any, hardware: t.Any) -> Layout:
    if not isinstance(plan, Mapping):
        raise InputError([Mistake("plan", "must be a plan of disk_plan, or its schema")])
    schema, place = (plan["schema"], "plan.schema") if "schema" in plan else (plan, "schema")
    mistakes = Mistakes()
    layout = read_layout(schema, place, mistakes)
    mistakes.check()
    if not layout.disks:
        raise InputError([Mistake("plan", "makes nothing on any disk")])
    return with_durable_names(layout, hardware)
