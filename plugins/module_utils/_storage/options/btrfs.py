# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What mkfs.btrfs may be given: mkfs.btrfs(8)."""

from __future__ import annotations

import dataclasses

from .programs import DRY_RUN, FORCE, LABEL, NO_FILES, QUIET, UUID, WHOLE_DEVICE, Program, Refused
from .values import POWER_SIZE, Listed, one_of

_LEVEL = "level says how data and metadata lie on several disks"
_PROFILE = one_of("single", "dup")

PROGRAM = Program(
    "mkfs.btrfs",
    {
        "-d": _PROFILE,
        "-K": None,
        "-M": None,
        "-m": _PROFILE,
        "-n": POWER_SIZE,
        "-O": Listed(
            (
                *("block-group-tree", "extref", "free-space-tree", "mixed-bg", "no-holes", "quota", "raid1c34", "skinny-metadata"),
                *("squota", "zoned"),
            ),
            off="^",
        ),
        "-R": Listed(("block-group-tree", "free-space-tree", "quota"), off="^"),
        "-s": POWER_SIZE,
        "--csum": one_of("crc32c", "xxhash", "sha256", "blake2"),
    },
    {
        "-A": Refused(WHOLE_DEVICE, with_value=True),
        "-b": Refused(WHOLE_DEVICE, with_value=True),
        "--device-uuid": Refused(UUID, with_value=True),
        "-f": Refused(FORCE),
        "--help": Refused(DRY_RUN),
        "-L": Refused(LABEL, with_value=True),
        "-l": Refused("it is -n today", with_value=True),
        "-q": Refused(QUIET),
        "-r": Refused(NO_FILES, with_value=True),
        "--shrink": Refused(NO_FILES),
        "-U": Refused(UUID, with_value=True),
        "-u": Refused("subvolumes are subvolumes", with_value=True),
        "-V": Refused(DRY_RUN),
        "-v": Refused(QUIET),
    },
    {
        "--data": "-d",
        "--nodiscard": "-K",
        "--mixed": "-M",
        "--metadata": "-m",
        "--nodesize": "-n",
        "--features": "-O",
        "--runtime-features": "-R",
        "--sectorsize": "-s",
        "--checksum": "--csum",
        "--alloc-start": "-A",
        "--byte-count": "-b",
        "--force": "-f",
        "--label": "-L",
        "--leafsize": "-l",
        "--quiet": "-q",
        "--rootdir": "-r",
        "--uuid": "-U",
        "--subvol": "-u",
        "--version": "-V",
        "--verbose": "-v",
    },
)
ON_SEVERAL = dataclasses.replace(
    PROGRAM,
    flags={flag: kind for flag, kind in PROGRAM.flags.items() if kind is not _PROFILE},
    refused={**PROGRAM.refused, "-d": Refused(_LEVEL, with_value=True), "-m": Refused(_LEVEL, with_value=True)},
)
"""The same for a Btrfs on several devices, whose `level` says how it lies on them."""
