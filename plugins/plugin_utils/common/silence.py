# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps C code from writing to the standard output that Ansible reads."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator

_ONE_AT_A_TIME = threading.RLock()


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Send what C code writes to standard output nowhere while the block runs.

    HiGHS 1.12 prints a line of its own even when it is told not to display anything, and Ansible reads our standard output.
    May be nested; threads wait for each other, because there is only one standard output.
    """
    with _ONE_AT_A_TIME:
        _flush()
        try:
            kept = os.dup(1)
        except OSError:
            # Standard output is closed: nothing can be spoilt.
            yield
            return
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)
            yield
        finally:
            _flush()
            os.dup2(kept, 1)
            os.close(kept)


def _flush() -> None:
    # C's own buffer: without this the text would come out after the block, when standard output is back in place.
    ctypes.CDLL(None).fflush(None)
