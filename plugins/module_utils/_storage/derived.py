# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Identities that follow from the plan, so that a run that was cut off recognises its own work.

A partition's final PARTUUID is the schema's, or follows from disk and space; all that lies on partitions derives its own from theirs.

**Salt.** The id of a disk with a WWN or a serial number is that of one disk in the world, and all follows from it alone. Other ids
(by-path, drive-scsi1, a virtual disk without a serial number) are the same on many hosts. Without a salt the same plan would give all these
hosts the same GUIDs and UUIDs, and a disk that is attached to another host for a rescue would be a twin of that host's own.

- The salt is 12 hexadecimal digits. On a new table it follows from the host: its firmware's UUID and its machine-id. So two looks before
  the first write, as in check mode and the run, give the same identities. Firmware whose maker left a placeholder has no identity, and an
  image gives all hosts that start from it one machine-id: there the id of this boot, which the kernel draws, stands in for the firmware.
- The salt is stored on the disk: it is the beginning of the GUID of the table, and the rest of that GUID follows from salt and disk. This
  is both the mark by which a table is known as ours, and the place from which every later run takes the salt, on whatever host, and
  whatever became of the machine-id. The GUID reaches the disk in the first write of the table, or no identity does: a cut at any moment
  leaves either nothing that has to be recognised, or the salt.
- In a table that somebody else has made and that stays, the GUID of that table is the salt of what is added to it.
- Tables and partitions that were made without a salt are recognised, and go on without one.
"""

from __future__ import annotations

import re
import typing as t
import uuid

from .identity import is_own_uuid

_NAMESPACE = uuid.UUID("b1a7a7f8-3c1b-5d0e-9a53-4a0c52d1a6c4")
_VERSION_5 = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE)
_SALT_DIGITS = 12
_CUSTOM = "8"
"""The version of a UUID whose bits mean what its maker likes (RFC 9562)."""


def is_derived(identity: str) -> bool:
    """Return whether a UUID may follow from a plan: it has version 5, which no mkfs gives by chance."""
    return _VERSION_5.fullmatch(identity) is not None


def host_salt(firmware: t.Optional[str], machine: t.Optional[str], boot: t.Optional[str] = None) -> str:
    """Return the salt that follows from a host's firmware UUID, machine-id and id of this boot; empty where it has none of them.

    The id of the boot counts only where the firmware's UUID is not that of one host alone.
    """
    own = firmware if firmware and is_own_uuid(firmware) else boot
    known = [identity.strip().lower() for identity in (own, machine) if identity and is_own_uuid(identity)]
    return uuid.UUID(_derive("host", *known)).hex[:_SALT_DIGITS] if known else ""


def partition_uuid(disk_id: str, space: str, salt: str = "") -> str:
    """Return the final PARTUUID of a space's partition for which the schema has none."""
    return _derive("partition", disk_id, space, *([salt] if salt else []))


def unfinished_uuid(final: str) -> str:
    """Return the PARTUUID that a partition has as long as not all on it is complete."""
    return _derive("unfinished", final)


def condemned_uuid(final: str) -> str:
    """Return the PARTUUID that a partition gets before it is made again: nothing on it is destroyed yet, but is soon."""
    return _derive("condemned", final)


def removed_uuid(disk_id: str, table: str, start: int) -> str:
    """Return the PARTUUID that a partition gets before it is removed from a disk's table with this GUID; it begins at a byte of the disk.

    A copy of the disk has the same table, but another id: there the mark permits nothing.
    """
    return _derive("removed", disk_id, table, str(start))


def receiving_uuid(final: str) -> str:
    """Return the PARTUUID of a partition onto which the contents of another disk are moved: nothing on it is ever made again."""
    return _derive("receiving", final)


def table_uuid(disk_id: str, salt: str = "") -> str:
    """Return the GUID of a disk's partition table. It begins with the salt."""
    if not salt:
        return _derive("table", disk_id)
    checked = uuid.UUID(_derive("table", disk_id, salt)).hex
    return str(uuid.UUID(salt + _CUSTOM + checked[_SALT_DIGITS + 1 :]))


def salt_of_table(disk_id: str, guid: t.Optional[str]) -> t.Optional[str]:
    """Return the salt in the GUID of a disk's table, empty for one that was made without; None for a table that no plan made."""
    if guid is None:
        return None
    plain = guid.lower()
    return next((salt for salt in ("", plain.replace("-", "")[:_SALT_DIGITS]) if _is_table(disk_id, salt, plain)), None)


def _is_table(disk_id: str, salt: str, guid: str) -> bool:
    is_salt = len(salt) in (0, _SALT_DIGITS) and all(digit in "0123456789abcdef" for digit in salt)
    return is_salt and guid == table_uuid(disk_id, salt)


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
    # What no file can hold, half of a surrogate pair, is refused where it stands in a schema, by its place.
    text = "\0".join(part.lower() for part in parts)
    return str(uuid.uuid5(_NAMESPACE, text.encode("utf-8", "backslashreplace").decode()))
