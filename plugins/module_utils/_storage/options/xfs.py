# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What mkfs.xfs may be given: mkfs.xfs(8)."""

from __future__ import annotations

from .programs import DRY_RUN, FORCE, LABEL, NO_FILES, OTHER_DEVICE, QUIET, UUID, WHOLE_DEVICE, Program, Refused
from .values import TRUTH, Keys, alike, one_of, size, whole

_SIZE = size("bsekKmMgGtTpP", "4096, 64k or 16m")
_BLOCKS_OF_512 = whole(0, 2**31)
_SWITCH = TRUTH.or_none()

PROGRAM = Program(
    "mkfs.xfs",
    {
        "-b": Keys({"size": _SIZE}),
        "-d": Keys(
            {
                "agcount": whole(1, 1_000_000),
                "agsize": _SIZE,
                **alike(_BLOCKS_OF_512, "sunit", "swidth"),
                "su": _SIZE,
                "sw": whole(0, 10_000),
                "noalign": _SWITCH,
                "concurrency": whole(0, 100_000).or_none(),
                **alike(_SWITCH, "rtinherit", "daxinherit"),
                "projinherit": whole(0, 2**32 - 1),
                **alike(_BLOCKS_OF_512, "extszinherit", "cowextsize"),
                "sectsize": _SIZE,
            },
            refused={"file": "that makes a file", "name": OTHER_DEVICE, "size": WHOLE_DEVICE},
        ),
        "-i": Keys(
            {
                "size": _SIZE,
                "perblock": whole(2, 64),
                "maxpct": whole(0, 100),
                "attr": whole(0, 2),
                **alike(_SWITCH, "align", "projid32bit", "sparse", "nrext64", "exchange"),
            }
        ),
        "-K": None,
        "-l": Keys(
            {
                "agnum": whole(0, 1_000_000),
                "internal": one_of("1").or_none(),
                "size": _SIZE,
                "version": whole(1, 2),
                "sunit": _BLOCKS_OF_512,
                "su": _SIZE,
                "sectsize": _SIZE,
                "lazy-count": _SWITCH,
                "concurrency": whole(0, 100_000).or_none(),
            },
            refused={"logdev": OTHER_DEVICE, "name": OTHER_DEVICE, "file": "that makes a file"},
        ),
        "-m": Keys(
            {**alike(_SWITCH, "autofsck", "bigtime", "crc", "finobt", "inobtcount", "metadir", "reflink", "rmapbt")},
            refused={"uuid": UUID},
        ),
        "-n": Keys({"size": _SIZE, "version": one_of("2", "ci"), "ftype": _SWITCH, "parent": _SWITCH}),
        "-s": Keys({"size": _SIZE}),
    },
    {
        "-c": Refused(NO_FILES, with_value=True),
        "-f": Refused(FORCE),
        "-L": Refused(LABEL, with_value=True),
        "-N": Refused(DRY_RUN),
        "-p": Refused(NO_FILES, with_value=True),
        "-q": Refused(QUIET),
        "-r": Refused(f"a realtime section lies on another device; {OTHER_DEVICE}", with_value=True),
        "-V": Refused(DRY_RUN),
    },
)
