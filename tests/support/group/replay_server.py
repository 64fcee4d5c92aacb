# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small server on this machine that replays what Ganeti's remote API answered."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import pathlib
import threading
import time

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.rapi import RESOURCES

DATA = pathlib.Path(__file__).resolve().parents[2] / "unit" / "data" / "group" / "rapi"
RECORDED = {name: json.loads((DATA / f"{name}.json").read_text()) for name in RESOURCES}


@contextlib.contextmanager
def serving(answers, user=None):
    """Yield the URL of a server that answers paths with (status, body, seconds to wait)."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, body, wait = answers.get(self.path, (404, "{}", 0))
            token = base64.b64encode(user.encode()).decode() if user else None
            if token and self.headers.get("Authorization") != f"Basic {token}":
                status, body = 401, "{}"
            time.sleep(wait)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

        def log_message(self, *_arguments):
            """Keep quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def recorded_answers():
    return {path: (200, json.dumps(RECORDED[name]), 0) for name, path in RESOURCES.items()}
