# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Identities that follow from the plan, so that a run that was cut off recognises its own work.

A partition's final PARTUUID is the schema's, or follows from disk and space; all that lies on partitions derives its own from theirs.
"""

from __future__ import annotations

import re
import uuid

_NAMESPACE = uuid.UUID("b1a7a7f8-3c1b-5d0e-9a53-4a0c52d1a6c4")
_VERSION_5 = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE)


def is_derived(identity: str) -> bool:
    """Return whether a UUID may follow from a plan: it has version 5, which no mkfs gives by chance."""
    return _VERSION_5.fullmatch(identity) is not None


def partition_uuid(disk_id: str, space: str) -> str:
    """Return the final PARTUUID of a space's partition for which the schema has none."""
    return _derive("partition", disk_id, space)


def unfinished_uuid(final: str) -> str:
    """Return the PARTUUID that a partition has as long as not all on it is complete."""
    return _derive("unfinished", final)


def condemned_uuid(final: str) -> str:
    """Return the PARTUUID that a partition gets before it is made again: nothing on it is destroyed yet, but is soon."""
    return _derive("condemned", final)


def table_uuid(disk_id: str) -> str:
    """Return the GUID of a disk's partition table."""
    return _derive("table", disk_id)


def array_uuid(members: tuple[str, ...]) -> str:
    """Return the UUID of the md array on partitions with these final PARTUUIDs."""
    return _derive("array", *members)


def container_uuid(below: str) -> str:
    """Return the UUID of the LUKS container on what has the identity `below`."""
    return _derive("luks", below)


def volume_identity(group: str, name: str, below: str) -> str:
    """Return what stands for a logical volume's identity: LVM gives it a UUID by chance. `below` is that of its group's first partition."""
    return _derive("volume", group, name, below)


def filesystem_uuid(fs_type: str, below: str) -> str:
    """Return the UUID of the filesystem on what has the identity `below`, as blkid shows it: FAT has a serial number of 32 bits only."""
    derived = _derive("filesystem", below)
    return f"{derived[:4]}-{derived[4:8]}".upper() if fs_type == "vfat" else derived


def _derive(*parts: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\0".join(part.lower() for part in parts)))
