# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options and the label of a space's file system: they are of the words that its program and mount may be given."""

from __future__ import annotations

from ....module_utils._data.errors import Mistakes
from ....module_utils._storage.filesystems import FILESYSTEMS, made_on, read_make_options
from ....module_utils._storage.names import why_no_label
from ....module_utils._storage.options.mounts import mistakes_in
from ..model import SpaceType
from .entry import Entry


def check_options(entry: Entry, mistakes: Mistakes) -> None:
    """Note each word of a space's options that is refused, with what to use instead, and a label that its file system cannot have."""
    values, place = entry.values, entry.place
    fs_type = made_on(values["fs_type"] or ("vfat" if entry.type is SpaceType.ESP else None), values["mount"])
    label, make, mount = (values[key] for key in ("fs_label", "fs_options", "mount_options"))
    if fs_type is None:
        return
    if label is not None:
        says = why_no_label(fs_type, label, FILESYSTEMS[fs_type].label_length)
        if says is not None:
            mistakes.add(f"{place}.fs_label", says)
    _words, refused = read_make_options(fs_type, make or "", several=entry.type is SpaceType.BTRFS)
    for says in refused:
        mistakes.add(f"{place}.fs_options", says)
    for says in mistakes_in(fs_type, mount or ""):
        mistakes.add(f"{place}.mount_options", says)
    for at, subvolume in enumerate(values["subvolumes"]):
        where = f"{place}.subvolumes[{at}].mount_options"
        for says in mistakes_in(fs_type, subvolume["mount_options"] or "") if not mistakes.has(where) else ():
            mistakes.add(where, says)
