# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A way to a database server that fails on cue: it goes silent, or is cut, around the COMMIT that passes it."""

from __future__ import annotations

import contextlib
import re
import socket
import threading

COMMIT = re.compile(rb"COMMIT(?!TED)")


class Proxy:
    """Forwards connections to a server on loopback.

    `failure`: "mute" forwards nothing at all, not even the server's greeting; "silent" and "cut" are what happens at the COMMIT of a
    claim, `when` it is "before" (it never arrives), "in" (it arrives, and the answer does not) or "after" (the answer arrives, and
    nothing more).
    After `times` failures it forwards everything.
    """

    def __init__(self, port):
        self.server = port
        self.failure, self.when, self.times = None, "in", 0
        self._opened = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def fail(self, failure, when="in", times=1):
        self.failure, self.when, self.times = failure, when, times

    def heal(self):
        self.failure = None
        self._close_all()

    def close(self):
        self._listener.close()
        self._close_all()

    def _close_all(self):
        for each in self._opened:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._opened.clear()

    def _accept(self):
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return
            self._opened.append(client)
            if self.failure == "mute":
                continue
            server = socket.create_connection(("127.0.0.1", self.server))
            self._opened.append(server)
            way = _Way(self, client, server)
            threading.Thread(target=way.to_server, daemon=True).start()
            threading.Thread(target=way.to_client, daemon=True).start()


class _Way:
    """One connection; `state` says what is to come of it."""

    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.state, self.writes = "well", False

    def to_server(self):
        with contextlib.suppress(OSError):
            while data := self.client.recv(65536):
                self.writes = self.writes or b"INSERT INTO allocations" in data
                if self.writes and COMMIT.search(data) and self.proxy.times and self.proxy.failure in ("silent", "cut"):
                    self.proxy.times -= 1
                    self.state = self.proxy.when
                    if self.state == "before":
                        self._end()
                        return
                self.server.sendall(data)
                if self.state == "lost":
                    return
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_WR)

    def to_client(self):
        with contextlib.suppress(OSError):
            while data := self.server.recv(65536):
                if self.state == "in":
                    self._end()
                    return
                self.client.sendall(data)
                if self.state == "after":
                    self._end()
                    return
        with contextlib.suppress(OSError):
            self.client.shutdown(socket.SHUT_WR)

    def _end(self):
        self.state = "lost"
        if self.proxy.failure == "cut":
            for each in (self.client, self.server):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
