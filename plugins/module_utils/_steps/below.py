# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths of a system in a folder of this host: a link of that system leads to another place in the folder, never outside."""

from __future__ import annotations

import os

from .machine import StepFailed

_MOST_LINKS = 40
"""How many links the kernel follows in one path."""


def path_below(root: str, path: str) -> str:
    """Return where a path of the system in `root` lies on this host, with its links followed as that system does; raises StepFailed."""
    found, left, links = "", [part for part in path.split("/") if part], 0
    while left:
        part = left.pop(0)
        if part == "..":
            found = os.path.dirname(found)
            continue
        place = f"{root.rstrip('/')}{found}/{part}"
        if part == "." or not os.path.islink(place):
            found = found if part == "." else f"{found}/{part}"
            continue
        links += 1
        if links > _MOST_LINKS:
            raise StepFailed(f"{root.rstrip('/')}{path} leads through too many links")
        target = os.readlink(place)
        found = "" if target.startswith("/") else found
        left = [piece for piece in target.split("/") if piece] + left
    return f"{root.rstrip('/')}{found}" or "/"
