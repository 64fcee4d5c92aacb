# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The identity of a disk: a plan made for one machine's disks must not be carried out on others."""

from __future__ import annotations

import hashlib
import json

from ....module_utils._storage.identity import BY_PATH
from ..model import Disk, Hardware

_DIGEST_BYTES = 16


def fingerprint(hardware: Hardware) -> str:
    """Return 32 hexadecimal digits that change when a disk is exchanged, added, removed or has another size.

    A disk that is known by its slot (a link of by-path) may be exchanged for one of the same size.

    The order of the disks and their changing names (`/dev/sdX`) do not matter.
    """
    identities = sorted(json.dumps(_identity(disk)) for disk in hardware.disks)
    return hashlib.blake2b("\n".join(identities).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _identity(disk: Disk) -> list[str | int]:
    facts = disk.facts
    # A plan for a slot is for whatever disk of that size is in it.
    of_slot = disk.id.startswith(BY_PATH)
    return [
        disk.id,
        "" if of_slot else str(facts.get("wwn") or ""),
        "" if of_slot else str(facts.get("serial") or ""),
        int(facts.get("size_bytes") or disk.size * 1024**2),
        disk.logical_block,
    ]
