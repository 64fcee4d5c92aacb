# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What mkfs.vfat may be given: mkfs.fat(8)."""

from __future__ import annotations

from .programs import DRY_RUN, FORCE, LABEL, NO_FILES, QUIET, UUID, WHOLE_DEVICE, Program, Refused
from .values import Value, one_of, whole

_BYTE = Value("a number of one byte, such as 0x80 or 128", r"0x[0-9A-Fa-f]{1,2}|[0-9]{1,3}")

PROGRAM = Program(
    "mkfs.vfat",
    {
        "-a": None,
        "-b": whole(1, 65534),
        "--codepage": whole(1, 65535),
        "-D": _BYTE,
        "-F": one_of("12", "16", "32"),
        "-f": whole(1, 4),
        "-g": Value("heads and sectors per track, such as 255/63", r"[0-9]{1,3}/[0-9]{1,3}"),
        "-h": whole(0, 2**32 - 1),
        "-M": _BYTE,
        "-R": whole(1, 65535),
        "-r": whole(1, 32767),
        "-S": one_of("512", "1024", "2048", "4096"),
        "-s": one_of("1", "2", "4", "8", "16", "32", "64", "128"),
    },
    {
        "-A": Refused("file systems are made for Linux"),
        "-C": Refused("that makes a file"),
        "-c": Refused("a check for bad blocks takes hours; run badblocks before"),
        "--help": Refused(DRY_RUN),
        "-I": Refused(FORCE),
        "-i": Refused(UUID, with_value=True),
        "--invariant": Refused(UUID),
        "-l": Refused(NO_FILES, with_value=True),
        "--mbr": Refused("a partition has no table of its own"),
        "-m": Refused(NO_FILES, with_value=True),
        "-n": Refused(LABEL, with_value=True),
        "--offset": Refused(WHOLE_DEVICE, with_value=True),
        "--variant": Refused("file systems are made for Linux", with_value=True),
        "-v": Refused(QUIET),
    },
)
