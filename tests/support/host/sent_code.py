# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What modules take on hosts, as Ansible would send it."""

from __future__ import annotations

import shutil
from pathlib import Path

import ansible

_PLUGINS = Path(__file__).parents[3] / "plugins"


def gather_code(folder: Path) -> Path:
    """Gather the modules, what they import, and what they import of Ansible; the folder goes into PYTHONPATH."""
    own = folder / "ansible_collections" / "bareon" / "allocator" / "plugins"
    for name in ("modules", "module_utils"):
        shutil.copytree(_PLUGINS / name, own / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        Path(ansible.__file__).parent / "module_utils",
        folder / "ansible" / "module_utils",
        ignore=shutil.ignore_patterns("__pycache__", "powershell", "csharp"),
    )
    (folder / "ansible" / "__init__.py").touch()
    return folder
