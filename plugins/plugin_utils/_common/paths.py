# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which texts can be the path of a file: of any other, Python and the kernel raise errors of many types."""

from __future__ import annotations

import os

_LONGEST_NAME, _LONGEST_PATH = 255, 4095
"""Bytes that file systems and the kernel of Linux take."""


def why_no_path(path: str) -> str:
    """Return why a text cannot be the path of any file, empty if it can."""
    if "\0" in path:
        return "must be the path of a file, in which there is no character 0"
    try:
        letters = os.fsencode(path)
    except UnicodeEncodeError:
        return "must be the path of a file; it is no text"
    if len(letters) > _LONGEST_PATH or any(len(name) > _LONGEST_NAME for name in letters.split(b"/")):
        return f"must be the path of a file, with at most {_LONGEST_PATH} bytes, and at most {_LONGEST_NAME} in each name"
    return ""
