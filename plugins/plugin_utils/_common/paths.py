# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths on the controller: which texts can be one, and where the files of a user are.

Of a text that can be no path, Python and the kernel raise errors of many types.
"""

from __future__ import annotations

import os
from pathlib import Path

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


def user_folder(variable: str, below_home: str) -> Path | None:
    """Return the folder of the user that a variable such as XDG_STATE_HOME names, else one in the home; None if the home is not known.

    A path that is not absolute would be another folder wherever a job stands. The XDG Base Directory Specification has it ignored.
    """
    home = os.path.expanduser("~")
    found = [os.environ.get(variable, ""), os.path.join(home, below_home) if os.path.isabs(home) else ""]
    return next((Path(path) for path in found if os.path.isabs(path)), None)
