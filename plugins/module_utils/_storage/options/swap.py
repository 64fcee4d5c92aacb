# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What mkswap may be given: mkswap(8)."""

from __future__ import annotations

from .programs import DRY_RUN, FORCE, LABEL, QUIET, UUID, WHOLE_DEVICE, Program, Refused
from .values import one_of

PROGRAM = Program(
    "mkswap",
    {"-p": one_of("4096", "8192", "16384", "65536"), "-v": one_of("1")},
    {
        "-c": Refused("a check for bad blocks takes hours; run badblocks before"),
        "-e": Refused("swap is made for this machine", with_value=True),
        "-F": Refused("that makes a file"),
        "-f": Refused(FORCE),
        "-h": Refused(DRY_RUN),
        "-L": Refused(LABEL, with_value=True),
        "--lock": Refused("devices are locked as the layout is made"),
        "-o": Refused(WHOLE_DEVICE, with_value=True),
        "-q": Refused(QUIET),
        "-s": Refused(WHOLE_DEVICE, with_value=True),
        "-U": Refused(UUID, with_value=True),
        "-V": Refused(DRY_RUN),
        "--verbose": Refused(QUIET),
    },
    {
        "--check": "-c",
        "--pagesize": "-p",
        "--swapversion": "-v",
        "--endianness": "-e",
        "--file": "-F",
        "--force": "-f",
        "--help": "-h",
        "--label": "-L",
        "--offset": "-o",
        "--quiet": "-q",
        "--size": "-s",
        "--uuid": "-U",
        "--version": "-V",
    },
)
