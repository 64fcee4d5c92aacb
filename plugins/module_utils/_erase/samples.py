# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Samples of a disk, by which what it reads like is compared: with what it held before, and with what was left behind.

A sample of one byte again and again says nothing, because an erased disk may read so too; only the others are compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from .._storage.samples import SAMPLE, spread
from .medium import Medium

_SAMPLES = 1024
_DIGEST_BYTES = 16


def take(medium: Medium) -> dict[int, str]:
    """Return digests of samples, evenly over the disk with both of its ends, by where they begin; raises OSError."""
    found = {}
    last = (medium.size - SAMPLE) // SAMPLE * SAMPLE
    for start in sorted({0, max(0, last), *spread(medium.size, _SAMPLES)}):
        content = medium.read(start, SAMPLE)
        if content != content[:1] * len(content):
            found[start] = hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()
    return found


def survivors(before: Mapping[int, str], medium: Medium) -> tuple[int, ...]:
    """Return where samples are as they were; raises OSError."""
    after = take(medium)
    return tuple(start for start, digest in before.items() if after.get(start) == digest)
