# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""URLs of servers' resources, made in one place: whatever a part holds, it stays one part.

join_url("https://cluster:5080", "2", "instances", "web1")      # https://cluster:5080/2/instances/web1
join_url("", "nodes", "a/../b")                                 # /nodes/a%2F..%2Fb
"""

from __future__ import annotations

import typing as t
from urllib.parse import quote, urlencode

_WALKING = ("", ".", "..")
"""Parts that lead elsewhere: servers and libraries take them for steps in a tree, quoted or not."""


def join_url(base: str, *parts: t.Any, **query: t.Any) -> str:
    """Return the URL of a resource below `base`, each part quoted, with a query if any.

    Raises ValueError for an empty part, `.` and `..`.
    """
    texts = [str(part) for part in parts]
    for text in texts:
        if text in _WALKING:
            raise ValueError(f"{text!r} cannot be a part of a URL's path")
    path = "".join(f"/{quote(text, safe='')}" for text in texts)
    return base.rstrip("/") + path + (f"?{urlencode(query)}" if query else "")
