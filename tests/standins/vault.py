# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for the API of Vault's secrets engine KV, version 2, at the mount `secret`; it is no Vault, and keeps secrets in memory.

It refuses what Vault refuses, with its codes and words: no token or a wrong one, paths that the token's policy does not name, mounts that
there are not, paths of version 1 of the engine, a body without data, and a check-and-set of another version than the current one.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import typing as t
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

TOKEN = "hvs.CAESIStandIn0000"
POLICY = "secret/data/luks/"
"""What the paths begin with that the token may read and write."""

Answer = tuple[int, dict[str, t.Any]]


@dataclass
class Vault:
    """The secrets by path, each with all its versions; `meddle` is what somebody else writes before the next write."""

    secrets: dict[str, list[dict[str, t.Any]]] = field(default_factory=dict)
    meddle: dict[str, t.Any] | None = None
    sealed: bool = False
    url: str = ""

    def current(self, path: str) -> dict[str, t.Any]:
        """The newest version of a secret."""
        return self.secrets[path][-1]

    def answer(self, method: str, path: str, token: str | None, body: bytes) -> Answer:
        """Return the code and the body of an answer."""
        if self.sealed:
            return 503, {"errors": ["Vault is sealed"]}
        if token != TOKEN:
            return 403, {"errors": ["permission denied"]}
        mount, _slash, below = path.partition("/")
        if mount != "secret":
            return 404, {"errors": [f'no handler for route "{path}". route entry not found.']}
        if not below.startswith("data/"):
            return 404, {"errors": [], "warnings": ["Invalid path for a versioned K/V secrets engine. See the API docs"]}
        if not path.startswith(POLICY):
            return 403, {"errors": ["1 error occurred:\n\t* permission denied\n\n"]}
        return self._read(path) if method == "GET" else self._write(path, body)

    def _read(self, path: str) -> Answer:
        versions = self.secrets.get(path, [])
        if not versions:
            return 404, {"errors": []}
        return 200, {"data": {"data": versions[-1], "metadata": {"version": len(versions), "destroyed": False}}}

    def _write(self, path: str, body: bytes) -> Answer:
        try:
            given = json.loads(body)
        except ValueError:
            return 400, {"errors": ["failed to parse JSON input"]}
        if not isinstance(given, dict) or not isinstance(given.get("data"), dict):
            return 400, {"errors": ["no data provided"]}
        versions = self.secrets.setdefault(path, [])
        if self.meddle is not None:
            versions.append(self.meddle)
            self.meddle = None
        cas = (given.get("options") or {}).get("cas")
        if cas is not None and cas != len(versions):
            return 400, {"errors": ["check-and-set parameter did not match the current version"]}
        versions.append(given["data"])
        return 200, {"data": {"version": len(versions), "destroyed": False}}


@contextlib.contextmanager
def serving() -> Iterator[Vault]:
    """Give a stand-in that answers on a port of loopback until the end."""
    vault = Vault()

    class Handler(http.server.BaseHTTPRequestHandler):
        def respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            path = unquote(urlsplit(self.path).path).removeprefix("/v1/")
            code, said = vault.answer(self.command, path, self.headers.get("X-Vault-Token"), self.rfile.read(length))
            content = json.dumps(said).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = respond

        def log_message(self, *_given: t.Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        vault.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield vault
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
