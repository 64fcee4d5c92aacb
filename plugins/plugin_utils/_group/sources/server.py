# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server that is asked for JSON over HTTP, with credentials that go to nobody else.

    Server("https://cluster.example.com:5080", "reader", "secret").get("/2/info")

A redirect is not followed, since it would carry the credentials along; neither messages nor `repr` hold them; and the
timeout is for a whole answer, however slowly a server lets it drip.
"""

from __future__ import annotations

import base64
import http.client
import json
import queue
import ssl
import threading
import time
import typing as t
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from ....module_utils._data.errors import Mistakes, Unavailable

_LARGEST = 1 << 29
"""Bytes of an answer that are read at most."""
_CHUNK = 1 << 16
_LONGEST_REASON = 300
"""Characters of what a server says about its refusal."""


def basic(username: str, password: str) -> str:
    """Return the header `Authorization` of a user with a password, as Ganeti's remote API takes it."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


@dataclass(frozen=True)
class Server:
    """The server and the login; `url` is the part before the resource's path, `timeout` is seconds for a whole answer.

    `authorization` makes the header of that name from the username and the password.
    """

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    validate_certs: bool = True
    timeout: float = 60.0
    authorization: Callable[[str, str], str] = field(default=basic, repr=False)
    option: str = "source"
    """What messages call the option that names it."""

    def get(self, path: str) -> t.Any:
        """Return the JSON at `path`; raise Unavailable when there is no answer, or none that can be read, and InputError for a bad URL."""
        self._check()
        address = self.url.rstrip("/") + path
        deadline = time.monotonic() + self.timeout
        # In a thread, since name service, handshakes and headers know no deadline. It ends with the process at the latest.
        found: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()
        threading.Thread(target=lambda: found.put(self._read(address, deadline)), daemon=True).start()
        try:
            answer = found.get(timeout=self.timeout)
        except queue.Empty:
            answer = TimeoutError()
        if isinstance(answer, Exception):
            raise Unavailable(self._reason(address, answer)) from None
        try:
            return json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise Unavailable(f"{address} does not answer with JSON: {error}") from None

    def _check(self) -> None:
        mistakes = Mistakes()
        if refused := _refused(self.url):
            mistakes.add(f"{self.option}.url", refused)
        if not 0 < self.timeout <= threading.TIMEOUT_MAX:
            mistakes.add(f"{self.option}.timeout", f"is {self.timeout:g}; must be seconds, more than 0")
        mistakes.check()

    def _read(self, address: str, deadline: float) -> bytes | Exception:
        """Return the body of an answer, or why there is none."""
        try:
            headers = {"Accept": "application/json"}
            if self.username:
                headers["Authorization"] = self.authorization(self.username, self.password)
            request = urllib.request.Request(address, headers=headers)
            context = ssl.create_default_context()
            if not self.validate_certs:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context), _NoRedirect()]
            with urllib.request.build_opener(*handlers).open(request, timeout=self.timeout) as answer:
                body = bytearray()
                while chunk := answer.read1(_CHUNK):
                    body += chunk
                    if time.monotonic() > deadline:
                        return TimeoutError()
                    if len(body) > _LARGEST:
                        return OSError(f"the answer is larger than {_LARGEST >> 20} MiB")
                if answer.length:
                    return http.client.IncompleteRead(bytes(body), answer.length)
                return bytes(body)
        except urllib.error.HTTPError as error:
            return _Refusal(error, _said(error))
        except (OSError, ValueError, http.client.HTTPException) as error:
            return error

    def _reason(self, address: str, error: Exception) -> str:
        if isinstance(error, _Refusal):
            status = error.status
            if 300 <= status.code < 400:
                elsewhere = _host(status.headers.get("Location", ""))
                return f"{address} redirects to {elsewhere or 'nowhere'}; redirects are not followed, so give the right address in url"
            says = self._open(error.says)[:_LONGEST_REASON]
            return self._open(f"{address} answers {status.code} {status.reason}") + (says and f": {says}")
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, TimeoutError):
            return f"cannot ask {address}: timed out, there is no complete answer after {self.timeout:g} s"
        return self._open(f"cannot ask {address}: {str(reason) or type(reason).__name__}")

    def _open(self, text: str) -> str:
        """Return what a server or a library says, without what could be a secret in it."""
        secrets = [self.password, self.authorization(self.username, self.password).rpartition(" ")[2]] if self.password else []
        for secret in secrets:
            text = text.replace(secret, "********")
        return text


class _Refusal(Exception):
    """An answer with a status of HTTP that is none of success, and the reason in its body, if there is one."""

    def __init__(self, status: urllib.error.HTTPError, says: str) -> None:
        super().__init__(says)
        self.status, self.says = status, says


def _said(status: urllib.error.HTTPError) -> str:
    """Return the reason in a refusal, as Prometheus (`error`) and Ganeti (`message`) give it, on one line; empty if there is none."""
    length = status.headers.get("Content-Length", "")
    if not (length.isdecimal() and len(length) < 6):
        return ""
    try:
        body = json.loads(status.read(int(length)))
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return ""
    texts = [body.get(key) for key in ("error", "message")] if isinstance(body, dict) else []
    return next((" ".join(text.split()) for text in texts if isinstance(text, str) and text.strip()), "")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: t.Any, **_more: t.Any) -> None:
        """Follow none: the redirect becomes an HTTPError."""


def _refused(url: str) -> str:
    """Return what is wrong with a URL: that it is none, or that it has credentials in it, which would be shown with it."""
    parts = _split(url)
    if parts is None or "@" in url:
        return "must be https://HOST[:PORT] without a user in it; give username and password as options of their own"
    if parts.scheme not in ("http", "https"):
        return f"{url!r} must start with https:// or http://"
    return "" if parts.hostname else f"{url!r} names no host; must be https://HOST[:PORT]"


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port >= 0 else None
    except ValueError:
        return None


def _host(url: str) -> str:
    """Return scheme, host and port of a URL, and nothing else that may stand in it."""
    parts = _split(url)
    if parts is None or not parts.hostname:
        return url if url.startswith("/") and "@" not in url else ""
    port = f":{parts.port}" if parts.port is not None else ""
    return f"{parts.scheme}://{parts.hostname}{port}"
