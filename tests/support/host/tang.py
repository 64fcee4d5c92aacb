# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Tang server: its keys, and the program that answers one connection on its standard input and output."""

from __future__ import annotations

import contextlib
import json
import socketserver
import subprocess
import threading
import typing as t
from pathlib import Path

TANGD = Path("/usr/libexec/tangd")
KEYGEN = Path("/usr/libexec/tangd-keygen")


def new_keys(folder: Path) -> str:
    """Make the keys of a server in a folder, and return the thumbprint of the one that it signs with; hidden ones are old."""
    folder.mkdir(exist_ok=True)
    subprocess.run([KEYGEN, folder], check=True, capture_output=True)
    shown = (file for file in folder.glob("*.jwk") if not file.name.startswith("."))
    files = (file for file in shown if "verify" in json.loads(file.read_text())["key_ops"])
    return next(
        subprocess.run(["jose", "jwk", "thp", "-i", file], stdout=subprocess.PIPE, text=True, check=True).stdout.strip() for file in files
    )


@contextlib.contextmanager
def serving(folder: Path) -> t.Iterator[str]:
    """Give the URL of a server on loopback that has its keys in a folder."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            subprocess.run([TANGD, folder], stdin=self.request, stdout=self.request, stderr=subprocess.DEVNULL, check=False, timeout=60)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
