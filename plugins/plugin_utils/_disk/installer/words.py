# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of a layout as installers take them: names of partitions, and options, with no line that is there already."""

from __future__ import annotations

import shlex

from ....module_utils._schema.model import DesiredFilesystem, DesiredGroup, DesiredPartition, DesiredSubvolume, Layout
from ....module_utils._storage import gpt
from ....module_utils._storage.btrfs import mount_options
from ....module_utils._storage.filesystems import FILESYSTEMS, fill
from ....module_utils._storage.options.words import NOTHING, wanted_words
from ....module_utils._storage.units import MIB


def label_of(layout: Layout, partition: DesiredPartition) -> str:
    """Return the name of a partition in the table."""
    return partition.own_label or layout.title(partition)[: gpt.LONGEST_NAME]


def unusual_metadata(group: DesiredGroup) -> str:
    """Return what is unusual about the metadata of a group's physical volumes, in words that follow `with`; empty for nothing."""
    words: dict[str, None] = {}
    for volume in group.physical:
        if volume.metadata_size:
            words[f"{volume.metadata_size // MIB} MiB of metadata"] = None
        if volume.metadata_copies != 1:
            words[f"{volume.metadata_copies} copies of the metadata"] = None
    return " and ".join(words)


def mount_words(filesystem: DesiredFilesystem) -> str:
    """Return the options of the mount of a file system; empty where they are the usual ones."""
    words = wanted_words(filesystem.mount_options)
    return "" if words == NOTHING else words


def subvolume_words(filesystem: DesiredFilesystem, subvolume: DesiredSubvolume) -> str:
    """Return all that a subvolume is mounted with but for its name."""
    own, of_all = (wanted_words(one.mount_options) for one in (subvolume, filesystem))
    return mount_options(of_all, own, subvolume.name).rpartition("subvol=")[0].rstrip(",")


def make_words(filesystem: DesiredFilesystem) -> str:
    """Return the options of mkfs, with those that give a file system its UUID where the schema has one."""
    return " ".join([*_identity(filesystem), *([filesystem.make_text] if filesystem.make_text else [])])


def _identity(filesystem: DesiredFilesystem) -> list[str]:
    if not filesystem.uuid:
        return []
    uuid = filesystem.uuid
    _program, *words = FILESYSTEMS[filesystem.type].make
    # The words that do not depend on it are about what is printed, but for vfat, of which every target makes FAT32 as well.
    named = [at for at, word in enumerate(words) if "{" in word]
    return [shlex.quote(word) for at in named for word in fill(tuple(words[at - 1 : at + 1]), uuid=uuid, serial=uuid.replace("-", ""))]
