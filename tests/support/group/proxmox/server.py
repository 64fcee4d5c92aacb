# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in's server: HTTP by TLS, on this machine only."""

from __future__ import annotations

import contextlib
import datetime
import http.server
import ipaddress
import json
import pathlib
import ssl
import tempfile
import threading
import urllib.parse

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from .api import Refused
from .cluster import Cluster


@contextlib.contextmanager
def serving(cluster: Cluster, elsewhere: str = "", redirected: str = ""):
    """Yield the URL of a server on this machine that answers for a cluster, and the path of the authority it is certified by.

    It sends requests for the path `redirected` to `elsewhere`, another server.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self._serve("GET")

        def do_POST(self):
            self._serve("POST")

        def _serve(self, method):
            parts = urllib.parse.urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            given = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True) + urllib.parse.parse_qsl(body, keep_blank_values=True))
            path = urllib.parse.unquote(parts.path.removeprefix("/api2/json"))
            if path == redirected:
                self.send_response(307)
                self.send_header("Location", f"{elsewhere}{self.path}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            try:
                status, reason, said = 200, "OK", {"data": cluster.answer(method, path, given, self.headers)}
            except Refused as refused:
                status, reason, said = (
                    refused.status,
                    refused.reason,
                    {"data": None} | ({"errors": refused.errors} if refused.errors else {}),
                )
            content = json.dumps(said).encode()
            with contextlib.suppress(OSError):
                self.send_response(status, reason)
                self.send_header("Content-Type", "application/json;charset=UTF-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_arguments):
            """Keep quiet."""

    with tempfile.TemporaryDirectory() as folder:
        certificate = pathlib.Path(folder) / "pve.pem"
        certificate.write_bytes(_certificate())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"https://127.0.0.1:{server.server_port}", str(certificate)
        finally:
            server.shutdown()
            server.server_close()


def _certificate() -> bytes:
    """Return a key and its certificate for this machine, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stand-in of Proxmox VE")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    certificate = builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private + certificate.public_bytes(serialization.Encoding.PEM)
