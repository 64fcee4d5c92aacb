# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks as loop devices on sparse files, of any size and sector size."""

from __future__ import annotations

import json
import subprocess
import sys
import typing as t
from pathlib import Path

MIB = 1024**2
MAKER = Path(__file__).parents[2] / "vm" / "make_layout.py"

Plain = dict[str, t.Any]


class Loops:
    """Makes disks and layouts on them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._devices: list[str] = []

    def hardware(self, sizes: t.Sequence[int], sector: int = 512, firmware: str = "uefi") -> Plain:
        """Return the facts of a machine with new disks of so many bytes each; `size` is in MiB, rounded down."""
        return {"ram": 8192, "firmware": firmware, "disks": [self._disk(size, sector) for size in sizes]}

    def _disk(self, size: int, sector: int) -> Plain:
        file = self._folder / f"disk{len(self._devices)}"
        with file.open("wb") as image:
            image.truncate(size)
        device = _run("losetup", "--find", "--show", f"--sector-size={sector}", str(file)).strip()
        self._devices.append(device)
        # Whoever had this device before may have left partitions behind.
        subprocess.run(["partx", "--delete", device], capture_output=True, check=False)
        return {
            "id": device,
            "path": device,
            "dev": device,
            "type": "hdd",
            "size": size // MIB,
            "logical_block": sector,
            "physical_block": sector,
        }

    def make(self, schema: Plain) -> Plain:
        """Make the layout, but for what needs md and device-mapper in the kernel, and return the report of make_layout.py."""
        output = subprocess.run(
            [sys.executable, str(MAKER)],
            input=json.dumps({"stacked": False, "schemas": [schema]}),
            capture_output=True,
            text=True,
            check=True,
        )
        return t.cast("Plain", json.loads(output.stdout)[0])

    def remove(self) -> None:
        for device in self._devices:
            for command in (["partx", "--delete", device], ["losetup", "--detach", device]):
                subprocess.run(command, capture_output=True, check=False)


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
