# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stands in for ssh where a machine is a User Mode Linux: the last argument is a command, which the machine's agent runs.

A copy of this file lies beside the socket `agent` and the folder `commands`, which the machine sees.
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
from pathlib import Path


def main() -> int:
    here = Path(__file__).parent
    if not (here / "agent").exists():
        print("the machine is off", file=sys.stderr)
        return 255
    place = Path(tempfile.mkdtemp(dir=here / "commands"))
    try:
        (place / "command").write_text(sys.argv[-1], encoding="utf-8")
        with open(place / "in", "wb") as given:
            shutil.copyfileobj(sys.stdin.buffer, given)
        for name in ("out", "err"):
            (place / name).touch()
        with socket.socket(socket.AF_UNIX) as agent:
            agent.connect(str(here / "agent"))
            agent.sendall(f"{place.name}\n".encode())
            if not agent.recv(1):
                print("the power was cut", file=sys.stderr)
                return 255
        for name, stream in (("out", sys.stdout.buffer), ("err", sys.stderr.buffer)):
            with open(place / name, "rb") as written:
                shutil.copyfileobj(written, stream)
        return int((place / "rc").read_text(encoding="ascii"))
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
