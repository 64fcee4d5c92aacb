# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers on this machine that answer badly, slowly, or with somebody else's address."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
import time

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources import server
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.rapi import fetch_rapi
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.server import Server, basic
from ansible_collections.bareon.allocator.tests.support.group.replay_server import recorded_answers, serving


@contextlib.contextmanager
def talking(says):
    """Yield the port of a server that calls `says` with each connection, once its request is read."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _address = listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    says(connection)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


@pytest.mark.parametrize(
    ("answer", "timeout", "says"),
    [
        ((500, "{}", 0), 60, "answers 500"),
        ((200, "<html>", 0), 60, "does not answer with JSON"),
        # Long enough for the answers before it, also where tests share a busy machine.
        ((200, "[]", 20), 10, "timed out"),
    ],
)
def test_bad_answers_are_one_sentence(answer, timeout, says):
    with serving(recorded_answers() | {"/2/nodes?bulk=1": answer}) as url, pytest.raises(Unavailable, match=says) as caught:
        fetch_rapi(Server(url, timeout=timeout))
    assert "/2/nodes?bulk=1" in str(caught.value)


def test_wrong_password_is_told_without_the_password():
    with serving(recorded_answers(), user="reader:secret") as url, pytest.raises(Unavailable, match="401") as caught:
        fetch_rapi(Server(url, "reader", "wrong-one"))
    assert "wrong-one" not in str(caught.value) + repr(Server(url, "reader", "wrong-one"))


def test_no_server_is_told():
    with serving({}) as url:
        pass
    with pytest.raises(Unavailable, match="cannot ask http://127.0.0.1"):
        fetch_rapi(Server(url))


@pytest.mark.parametrize("url", ["file:///etc/passwd", "cluster.example.com", "ftp://x"])
def test_only_web_addresses_are_asked(url):
    with pytest.raises(InputError, match="must start with https"):
        Server(url).get("/2/info")


@pytest.mark.parametrize(
    "url",
    ["https://reader:hush@cluster.example.com", "reader:hush@cluster.example.com", "https://[hush", "https://x:hush/", "https://x:-1"],
)
def test_user_in_an_address_is_refused_and_not_shown(url):
    with pytest.raises(InputError, match="without a user in it") as caught:
        Server(url).get("/2/info")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_timeouts_are_more_than_nothing(timeout):
    with pytest.raises(InputError, match="source.timeout"):
        Server("https://cluster.example.com", timeout=timeout).get("/2/info")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status):
    asked = []

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(dict(self.headers))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_arguments):
            """Keep quiet."""

    elsewhere = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
    there = f"http://user:hush@127.0.0.1:{elsewhere.server_port}/2/info?token=hush"

    def redirect(connection):
        connection.sendall(f"HTTP/1.1 {status} Elsewhere\r\nLocation: {there}\r\nContent-Length: 0\r\n\r\n".encode())

    with talking(redirect) as port, pytest.raises(Unavailable, match="redirects to http://127.0.0.1") as caught:
        Server(f"http://127.0.0.1:{port}", "reader", "secret").get("/2/info")
    elsewhere.shutdown()
    elsewhere.server_close()
    assert asked == []
    assert "hush" not in str(caught.value)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: ", HEAD + b'"'], ids=["status", "header", "body"])
def test_deadline_is_for_the_whole_answer(begin):
    def drip(connection):
        connection.sendall(begin)
        for _drop in range(60):
            time.sleep(0.1)
            connection.sendall(b"1")

    with talking(drip) as port:
        begun = time.monotonic()
        with pytest.raises(Unavailable, match=r"timed out, there is no complete answer after 0\.5 s"):
            Server(f"http://127.0.0.1:{port}", timeout=0.5).get("/2/info")
        assert time.monotonic() - begun < 3


def test_answer_that_breaks_off_is_none():
    with talking(lambda connection: connection.sendall(HEAD + b"{}")) as port, pytest.raises(Unavailable, match="IncompleteRead"):
        Server(f"http://127.0.0.1:{port}").get("/2/info")


@pytest.mark.parametrize("length", [b"Content-Length: 100000\r\n", b""], ids=["it says so", "it does not say so"])
def test_an_answer_of_any_length_is_not_kept_in_memory(monkeypatch, length):
    monkeypatch.setattr(server, "_LARGEST", 1000)

    def pour(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n" + b"1" * 100_000)

    with talking(pour) as port, pytest.raises(Unavailable, match="larger"):
        Server(f"http://127.0.0.1:{port}").get("/2/info")


def test_server_that_repeats_the_credentials_does_not_have_them_shown():
    token = basic("reader", "hush").split()[1]
    line = f"HTTP/1.1 500 hush {token}\r\nContent-Length: 0\r\n\r\n".encode()
    with talking(lambda connection: connection.sendall(line)) as port, pytest.raises(Unavailable, match="500") as caught:
        Server(f"http://127.0.0.1:{port}", "reader", "hush").get("/2/info")
    assert "hush" not in str(caught.value)
    assert token not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            '{"status": "error", "errorType": "bad_data", "error": "1:5: parse error:\\n unexpected end"}',
            ": 1:5: parse error: unexpected end",
        ),
        ('{"code": 400, "message": "Node is drained", "explain": "Bad request syntax"}', ": Node is drained"),
        ('{"error": "reader and hush"}', ": reader and ********"),
        (f'{{"error": "{"x" * 298}hush"}}', f": {'x' * 298}**"),
        ('{"error": {"code": 1}, "message": ""}', ""),
        ("<html>", ""),
        ("[" * 20_000, ""),
        ("", ""),
    ],
)
def test_reason_of_a_refusal_is_told(body, says):
    with serving({"/2/info": (400, body, 0)}) as url, pytest.raises(Unavailable) as caught:
        Server(url, "reader", "hush").get("/2/info")
    assert str(caught.value) == f"{url}/2/info answers 400 Bad Request{says}"


def test_a_refusal_without_end_is_told_without_its_reason():
    head = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 99\r\n\r\n"
    with talking(lambda connection: connection.sendall(head)) as port, pytest.raises(Unavailable, match="answers 400"):
        Server(f"http://127.0.0.1:{port}").get("/2/info")
