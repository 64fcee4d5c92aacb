# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asking a server for JSON: one GET after another, with a time limit, over TLS when the URL says so."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import typing as t
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ...common.errors import InputError, Mistake, Unavailable


@dataclass(frozen=True)
class Server:
    """Where to ask, and as whom; `url` is the part before the resource's path. Passwords never get into messages."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    validate_certs: bool = True
    timeout: float = 60.0

    def get(self, path: str) -> t.Any:
        """Return the JSON at `path`; raise Unavailable when there is no answer, or none that can be read."""
        if urlsplit(self.url).scheme not in ("http", "https"):
            raise InputError([Mistake("source.url", f"{self.url!r} must start with https:// or http://")])
        address = self.url.rstrip("/") + path
        try:
            request = urllib.request.Request(address, headers=self._headers())
            with urllib.request.urlopen(request, timeout=self.timeout, context=self._context()) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Unavailable(f"{address} answers {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error or type(error).__name__
            raise Unavailable(f"cannot ask {address}: {reason}") from error
        except (ValueError, RecursionError) as error:
            raise Unavailable(f"{address} does not answer with JSON: {error}") from error

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self.username:
            token = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        return headers

    def _context(self) -> ssl.SSLContext | None:
        if urlsplit(self.url).scheme != "https":
            return None
        context = ssl.create_default_context()
        if not self.validate_certs:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
