# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What devices, mount points, labels, volumes and the like may be called: each function returns what is wrong with a name, or None.

Names become words of commands, lines of files and paths. None begins with a dash, has control characters, blanks or marks that turn the
direction of writing, or is longer than the tools and the kernel take.
"""

from __future__ import annotations

import re
import typing as t

from .options.values import shown

Says = t.Optional[str]

_LONGEST_PATH, _LONGEST_PART = 4095, 255
_LVM = r"[A-Za-z0-9+_.][A-Za-z0-9+_.-]{0,126}"
_LVM_OWN = re.compile(
    r"(snapshot|pvmove).*|.*_(cdata|cmeta|corig|cvol|mimage|mlog|pmspare|rimage|rmeta|tdata|tmeta|vdata|vorigin|wcorig).*"
)
"""Names that LVM gives to parts of volumes and takes from nobody (lvm(8), "VALID NAMES")."""
_LONGEST_MAPPING = 127
_MAPPING = r"[A-Za-z0-9+_.:=@][A-Za-z0-9+_.#:=@-]{0,126}"
LONGEST_ARRAY = 32
_ARRAY = rf"/dev/(md/[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{LONGEST_ARRAY - 1}}}|md[0-9]{{1,3}})"
_GUID = r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
_FAT_SERIAL = r"[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}"
_USUAL_DEVICE = re.compile(r"/dev(/[A-Za-z0-9_:+=@-][A-Za-z0-9_.:+=@-]{0,200}){1,10}")
"""What hosts call nearly all devices: a name of this form needs no closer look."""
_NOT_IN_FAT = frozenset('*?.,;:/\\|+=<>[]"')

LVM_WANTED = "must be a name that LVM accepts (letters, digits and +_.-, not beginning with a dash)"
GUID_WANTED = "must be a GUID such as 0fc63daf-8483-4772-8e79-3d69d8477de4"


def why_no_text(text: str) -> Says:
    """A text that is shown, and that no tool but partition tables and drawings get."""
    if not _is_line(text) or len(text) > _LONGEST_PART:
        return f"must be text of one line of at most {_LONGEST_PART} characters that does not begin with a dash, not {shown(text)}"
    return None


def _is_line(text: str) -> bool:
    return text.isprintable() and not text.startswith("-")


def why_no_device(text: str) -> Says:
    """A device node, or a link of udev's to one."""
    if _USUAL_DEVICE.fullmatch(text):
        return None
    parts = text.split("/")
    if not text.startswith("/dev/") or not _is_path(text) or " " in text or text.endswith("/") or "//" in text or {".", ".."} & set(parts):
        return f"must be a device such as /dev/disk/by-id/wwn-0x5000c500a1b2c3d4, not {shown(text)}"
    return None


def why_no_disk_id(text: str) -> Says:
    """What facts call a disk: a device, or text where there is no link."""
    return why_no_device(text) if text.startswith("/") else why_no_text(text)


def why_no_mount(text: str) -> Says:
    """A mount point."""
    if not text.startswith("/") or not _is_path(text) or {".", ".."} & set(text.split("/")):
        return f"must be an absolute path without '.', '..' and what cannot be printed, not {shown(text)}"
    return None


def why_no_file(text: str) -> Says:
    """The path of a file on a host."""
    if why_no_mount(text) is not None or " " in text or text.endswith("/"):
        return f"must be an absolute path without blanks, such as /etc/keys/data.key, not {shown(text)}"
    return None


def _is_path(text: str) -> bool:
    parts = [part.encode(errors="replace") for part in text.split("/")]
    return text.isprintable() and max(map(len, parts)) <= _LONGEST_PART and sum(map(len, parts)) + len(parts) <= _LONGEST_PATH


def why_no_lvm_name(text: str) -> Says:
    """The name of a volume group, a volume, a thin pool or a cache."""
    if re.fullmatch(_LVM, text) is None or text in (".", ".."):
        return f"{LVM_WANTED}, not {shown(text)}"
    if _LVM_OWN.fullmatch(text):
        return f"must be a name that LVM does not give to parts of volumes itself, not {shown(text)}"
    return None


def why_no_mapper_node(node: str) -> Says:
    """The node of a volume, which holds the names of its group and its own."""
    if len(node.rsplit("/", 1)[-1]) > _LONGEST_MAPPING:
        return f"is too long: with that of its group, and dashes doubled, it has more than the {_LONGEST_MAPPING} characters of a mapping"
    return None


def why_no_mapping(text: str) -> Says:
    """The name that a LUKS container is opened as."""
    if re.fullmatch(_MAPPING, text) is None or text in (".", "..", "control"):
        return f"must be a device-mapper name of letters, digits and #+-.:=@_, not beginning with a dash or #, not {shown(text)}"
    return None


def why_no_array(text: str) -> Says:
    """The device of an md array."""
    if re.fullmatch(_ARRAY, text) is None:
        return f"must be /dev/md/NAME with at most {LONGEST_ARRAY} letters, digits, dots, dashes and underscores, not {shown(text)}"
    return None


def guid_of(text: str) -> t.Optional[str]:
    """Return a GUID in its usual spelling; None for what is none."""
    return text.lower() if re.fullmatch(_GUID, text) else None


def uuid_of(fs_type: str, text: str) -> t.Optional[str]:
    """Return the UUID of a file system as blkid shows it; None for what is none. That of FAT is a serial number of 32 bits."""
    if fs_type == "vfat":
        return text.upper() if re.fullmatch(_FAT_SERIAL, text) else None
    return guid_of(text)


def why_no_uuid(fs_type: str, text: str) -> Says:
    """The UUID of a file system."""
    if uuid_of(fs_type, text) is not None:
        return None
    return f"must be a serial number such as 1A2B-3C4D, not {shown(text)}" if fs_type == "vfat" else f"{GUID_WANTED}, not {shown(text)}"


def why_no_label(fs_type: str, text: str, longest: int) -> Says:
    """Return what is wrong with a label of a file system whose program takes `longest` bytes."""
    if not _is_line(text):
        return f"must be text of one line that does not begin with a dash, not {shown(text)}"
    if len(text.encode(errors="replace")) > longest:
        return f"{text!r} is too long: a label of {fs_type} has at most {longest} bytes"
    if fs_type == "vfat" and _NOT_IN_FAT & set(text):
        return f"{shown(text)} has {' '.join(sorted(_NOT_IN_FAT & set(text)))}, which labels of vfat cannot have"
    return None
