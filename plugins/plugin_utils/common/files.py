# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that a reader never finds half written."""

from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path


def replace_json(path: Path, told: t.Any) -> None:
    """Write data as JSON; what was there before stays until the new file is complete. Raises OSError."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft.open("w", encoding="utf-8") as file:
        json.dump(told, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
