# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Clevis has encrypted (a JSON Web Encryption, RFC 7516), in its two forms; and of what Tang server it speaks."""

from __future__ import annotations

import base64
import hashlib
import json
import typing as t
from collections.abc import Mapping

_PARTS = ("protected", "encrypted_key", "iv", "ciphertext", "tag")
_OF_A_KEY = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n"), "OKP": ("crv", "kty", "x")}
"""What of a key goes into its thumbprint (RFC 7638)."""


def parse_compact(text: str) -> dict[str, str]:
    """Return the parts of the compact form by their names, as a token of Clevis has them; raises ValueError."""
    parts = text.strip().split(".")
    if len(parts) != len(_PARTS) or not all(parts[at] for at in (0, 2, 3, 4)):
        raise ValueError("the output of clevis encrypt is not a JSON Web Encryption")
    return dict(zip(_PARTS, parts))


def compact(parts: Mapping[str, str]) -> str:
    """Return the compact form."""
    return ".".join(parts.get(name, "") for name in _PARTS)


def tang_of(parts: t.Any) -> t.Optional[Mapping[str, t.Any]]:
    """Return what is said of a Tang server, `{url, adv}`; None where something else helps to read it, or it is not understood."""
    try:
        clevis = json.loads(_decoded(parts["protected"]))["clevis"]
        return clevis["tang"] if clevis["pin"] == "tang" and isinstance(clevis["tang"], Mapping) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def thumbprints(tang: Mapping[str, t.Any]) -> frozenset[str]:
    """Return the thumbprints of all keys that a server advertised."""
    try:
        members = [
            json.dumps({name: key[name] for name in _OF_A_KEY[key["kty"]]}, separators=(",", ":"), sort_keys=True).encode()
            for key in tang["adv"]["keys"]
        ]
    except (KeyError, TypeError, AttributeError, ValueError):
        return frozenset()
    return frozenset(base64.urlsafe_b64encode(hashlib.sha256(member).digest()).rstrip(b"=").decode() for member in members)


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
