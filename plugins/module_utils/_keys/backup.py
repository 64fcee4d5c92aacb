# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The headers of containers as bytes, for a copy elsewhere: without its header nothing opens a container."""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable

from .._steps.machine import Machine, StepFailed
from .changes import Container

_IN_MEMORY = "/run"
"""Where the copy lies until it is read: a file system in memory, so that no old header stays on a disk."""


def headers_of(containers: Iterable[Container], machine: Machine) -> dict[str, str]:
    """Return the headers by the names of containers, compressed, in letters; raises StepFailed."""
    return {container.name: base64.b64encode(zlib.compress(_header(container, machine), 1)).decode() for container in containers}


def _header(container: Container, machine: Machine) -> bytes:
    folder = tempfile.mkdtemp(prefix="bareon-header-", dir=_IN_MEMORY if os.path.isdir(_IN_MEMORY) else None)
    try:
        file = os.path.join(folder, "header")
        machine.change(["cryptsetup", "luksHeaderBackup", container.device, "--header-backup-file", file])
        with open(file, "rb") as copy:
            return copy.read()
    except OSError as error:
        raise StepFailed(f"the copy of the header of {container.name} cannot be read: {error.strerror}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
