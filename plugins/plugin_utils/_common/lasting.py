# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a file on the controller outlives the job that writes it: in a container, only a file on a volume does."""

from __future__ import annotations

import os
from pathlib import Path

from ...module_utils._storage.fstab import without_escapes

MARK_FILES = ("/run/.containerenv", "/.dockerenv")
MARK_VARIABLES = ("container", "KUBERNETES_SERVICE_HOST")
"""By what Podman, Docker, systemd-nspawn and Kubernetes mark their containers."""

_ARTIFACTS = "AWX_ISOLATED_DATA_DIR"
"""ansible-runner, and with it AWX, sets it to FOLDER/artifacts/NUMBER; all of FOLDER is made for one job."""

_MOUNTS = Path("/proc/self/mountinfo")
_LAYERS = frozenset({"overlay", "fuse.fuse-overlayfs", "aufs"})
"""The file systems that container engines stack on an image. They are thrown away with the container."""

_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


def container_mark() -> str:
    """Return the file or the variable by which this machine is known as a container; empty where it is none."""
    marks = [mark for mark in MARK_FILES if os.path.exists(mark)] + [name for name in MARK_VARIABLES if os.environ.get(name)]
    return marks[0] if marks else ""


def why_lost(path: Path, mounts: Path = _MOUNTS) -> str:
    """Return why a file would be gone with this job; empty where it stays, or where `mounts`, the kernel's table, does not tell."""
    mark = container_mark()
    if not mark:
        return ""
    real = Path(os.path.realpath(path))
    artifacts = os.environ.get(_ARTIFACTS)
    if artifacts and real.is_relative_to(Path(os.path.realpath(artifacts)).parent.parent):
        return f"is in the folder of this job ({_ARTIFACTS})"
    kind = _file_system(real, mounts)
    if kind in _LAYERS | _IN_MEMORY:
        return f"is in a container ({mark}), on {kind} and not on a volume"
    return ""


def loss_warnings(path: Path | str, option: str) -> list[str]:
    """Return the warning for a file or folder that later runs need and that would be gone with this job; `option` names its place."""
    why = why_lost(Path(path))
    return [f"{path} {why}, and will be gone when this job has ended; name a place on a volume with {option}"] if why else []


def _file_system(path: Path, mounts: Path) -> str:
    """Return the type of the file system that a path is on, by the kernel's table of mounts; empty where it cannot be read."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    found = ""
    deepest = Path("/")
    for line in lines:
        # man 5 proc: ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD ...] - TYPE SOURCE OPTIONS
        before, _separator, after = line.partition(" - ")
        point = Path(without_escapes(before.split(" ")[4]))
        # Of two mounts at one point the later covers the earlier.
        if path.is_relative_to(point) and point.is_relative_to(deepest):
            found, deepest = after.split(" ")[0], point
    return found
