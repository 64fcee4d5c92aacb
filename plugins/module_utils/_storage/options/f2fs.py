# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What mkfs.f2fs may be given: mkfs.f2fs(8)."""

from __future__ import annotations

from .programs import DRY_RUN, FORCE, LABEL, OTHER_DEVICE, QUIET, UUID, Program, Refused
from .values import OWNER, TRUTH, Listed, Value, decimal, whole

_ENDINGS = Value("endings of file names, such as mp4,mkv", r"[A-Za-z0-9_]{1,8}(,[A-Za-z0-9_]{1,8}){0,63}")

PROGRAM = Program(
    "mkfs.f2fs",
    {
        "-a": TRUTH,
        "-C": Value("utf8 or utf8:strict", r"utf8(-12\.1(\.0)?)?(:strict)?"),
        "-E": _ENDINGS,
        "-e": _ENDINGS,
        "-i": None,
        "-m": None,
        "-O": Listed(
            (
                *("casefold", "compression", "encrypt", "extra_attr", "flexible_inline_xattr", "inode_checksum", "inode_crtime"),
                *("lost_found", "project_quota", "quota", "sb_checksum", "verity"),
            )
        ),
        "-o": decimal(1, 90),
        "-R": OWNER,
        "-r": None,
        "-s": whole(1, 65536),
        "-t": TRUTH,
        "-w": whole(512, 65536),
        "-z": whole(1, 65536),
    },
    {
        "-c": Refused(OTHER_DEVICE, with_value=True),
        "-d": Refused(QUIET, with_value=True),
        "-f": Refused(FORCE),
        "-g": Refused("give its options one by one, with -O", with_value=True),
        "-h": Refused(DRY_RUN),
        "-l": Refused(LABEL, with_value=True),
        "-q": Refused(QUIET),
        "-S": Refused("that makes a file"),
        "-T": Refused("files have the times at which they are made", with_value=True),
        "-U": Refused(UUID, with_value=True),
        "-V": Refused(DRY_RUN),
    },
)
