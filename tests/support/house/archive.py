# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive that users install, built from the files of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def built_archive(folder: Path) -> Path:
    """Build the archive of the files that belong to the project into a folder, and return it."""
    tree = folder / "tree"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "-m", "ansible", "galaxy", "collection", "build", "--output-path", str(folder), str(tree)]
    environment = {**os.environ, "ANSIBLE_HOME": str(folder / "building")}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=120)
    return next(folder.glob("bareon-allocator-*.tar.gz"))
