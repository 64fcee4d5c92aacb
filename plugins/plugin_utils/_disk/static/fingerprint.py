# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The identity of a disk: a plan made for one machine's disks must not be carried out on others."""

from __future__ import annotations

import hashlib
import json

from ..model import Disk, Hardware

_DIGEST_BYTES = 16


def fingerprint(hardware: Hardware) -> str:
    """Return 32 hexadecimal digits that change when a disk is exchanged, added, removed or has another size.

    The order of the disks and their changing names (`/dev/sdX`) do not matter.
    """
    identities = sorted(json.dumps(_identity(disk)) for disk in hardware.disks)
    return hashlib.blake2b("\n".join(identities).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _identity(disk: Disk) -> list[str | int]:
    facts = disk.facts
    return [
        disk.id,
        str(facts.get("wwn") or ""),
        str(facts.get("serial") or ""),
        int(facts.get("size_bytes") or disk.size * 1024**2),
        disk.logical_block,
    ]
