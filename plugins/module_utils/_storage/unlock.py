# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may open a LUKS container as the system starts, or when somebody asks: one row per method, and what a wish for one may hold."""

from __future__ import annotations

import os
import re
import stat
import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .names import why_no_file
from .text import has_control

PASSPHRASE, KEY_FILE, RECOVERY, TANG, TPM2 = "passphrase", "key_file", "recovery", "tang", "tpm2"
KEYS_OF_METHODS: t.Mapping[str, tuple[str, ...]] = {
    TPM2: ("pcrs", "pin"),
    TANG: ("url", "thumbprint"),
    KEY_FILE: ("path",),
    PASSPHRASE: (),
    RECOVERY: (),
}
"""The methods, and the keys that each takes in addition to `method`."""

REQUIRED_KEYS: t.Mapping[str, tuple[str, ...]] = {KEY_FILE: ("path",), TANG: ("url", "thumbprint")}
_ONCE = (PASSPHRASE, RECOVERY, TPM2)

SECURE_BOOT_PCR = 7
"""The firmware measures secure boot here: whether it is on, and whose signatures may start. It stays the same over updates of kernels."""
_PCRS = 24
_URL = r"https?://[A-Za-z0-9.:_~\[\]-]+(/[A-Za-z0-9.:_~/-]*)?"
_LONGEST_URL = 2048
_THUMBPRINT = r"[A-Za-z0-9_-]{43}"

_ROOT = 0
LEAST_KEY_FILE = 16
"""Bytes of the shortest key file that is taken: 128 bits. An empty one is a template that was rendered to nothing."""
_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class Method:
    """One way to open a container.

    `path` is that of a key file on the host, `url` that of a Tang server, `thumbprint` the one of the key that it signs with. `pcrs` are
    the registers of a TPM that must be as they are now; with `pin` it wants a PIN as well.
    """

    kind: str
    path: str = ""
    url: str = ""
    thumbprint: str = ""
    pcrs: tuple[int, ...] = (SECURE_BOOT_PCR,)
    pin: bool = False

    @property
    def words(self) -> str:
        """Return it in words."""
        registers = f" (PCR {'+'.join(map(str, self.pcrs))})" if self.pcrs else ""
        return {
            PASSPHRASE: "a passphrase",
            KEY_FILE: f"the key file {self.path}",
            RECOVERY: "a recovery key",
            TANG: f"Tang at {self.url}",
            TPM2: f"the TPM{registers}{' with a PIN' if self.pin else ''}",
        }[self.kind]

    def plain(self) -> dict[str, t.Any]:
        """Return it as it stands in a schema."""
        values = {key: getattr(self, key) for key in KEYS_OF_METHODS[self.kind] if getattr(self, key) is not False}
        return {"method": self.kind, **{key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}}


def method_of(values: Mapping[str, t.Any]) -> Method:
    """Return the method of values without mistakes."""
    own = {key: values[key] for key in KEYS_OF_METHODS[values["method"]] if values.get(key) is not None}
    if "pcrs" in own:
        own["pcrs"] = tuple(sorted(set(own["pcrs"])))
    if "url" in own:
        own["url"] = own["url"].rstrip("/")
    return Method(values["method"], **own)


def mistakes_in(values: Mapping[str, t.Any]) -> Iterator[tuple[str, str]]:
    """Give what is wrong with one method, `(key, says)`; the values are of the right kinds, and its `method` is one of the methods."""
    kind = values["method"]
    for key in REQUIRED_KEYS.get(kind, ()):
        if not values.get(key):
            yield key, f"is missing; {kind} needs it"
    own = KEYS_OF_METHODS[kind]
    for key in sorted({key for keys in KEYS_OF_METHODS.values() for key in keys} - set(own)):
        if values.get(key) is not None:
            yield key, f"does not apply to {kind}, which takes {', '.join(own) or 'no other keys'}"
    path, url = values.get("path"), values.get("url")
    if path and "path" in own and why_no_file(path) is not None:
        yield "path", f"is {path!r}; must be an absolute path without blanks, such as /etc/keys/data.key"
    if url and "url" in own and not (re.fullmatch(_URL, url) and len(url) <= _LONGEST_URL):
        yield "url", f"is {values['url']!r}; must be a URL such as http://tang.example"
    if values.get("thumbprint") and "thumbprint" in own and not re.fullmatch(_THUMBPRINT, values["thumbprint"]):
        yield "thumbprint", f"is {values['thumbprint']!r}; must be the SHA-256 thumbprint of a signing key, as tang-show-keys prints it"
    if any(not 0 <= register < _PCRS for register in values.get("pcrs") or ()):
        yield "pcrs", f"is {values['pcrs']!r}; must be a list of numbers from 0 to {_PCRS - 1}"


def why_no_passphrase(text: str) -> t.Optional[str]:
    """Return what is wrong with a passphrase that a container is to get, and what would be right; None for nothing."""
    if not has_control(text):
        return None
    return "has a line break or another control character, which nobody can type at a console; in YAML, write |- in place of |"


def why_no_key_file(found: os.stat_result) -> t.Optional[str]:
    """Return what is wrong with a key file, and what would be right; None for nothing. Its owner can read it whatever its mode is."""
    if not stat.S_ISREG(found.st_mode):
        return "is not a file"
    if found.st_size < LEAST_KEY_FILE:
        return f"has {found.st_size} bytes; a key file has {LEAST_KEY_FILE} or more, best 64 of /dev/urandom"
    if found.st_mode & _OF_OTHERS:
        return f"has the mode {stat.S_IMODE(found.st_mode):04o}, by which others than its owner may use it; make it 0400"
    if found.st_uid not in (_ROOT, os.geteuid()):
        return f"belongs to the user {found.st_uid}, who can read the key and replace it; make it root's (chown root)"
    return None


def doubles_in(methods: Sequence[Mapping[str, t.Any]]) -> Iterator[tuple[int, str]]:
    """Give the positions of methods that stand there already, and what to say of them."""
    seen: list[Mapping[str, t.Any]] = []
    for at, values in enumerate(methods):
        if values in seen or (values["method"] in _ONCE and values["method"] in [other["method"] for other in seen]):
            yield at, f"{values['method']} is listed already"
        seen.append(values)


def crypttab_key(methods: Iterable[Method]) -> str:
    """Return the key file that crypttab has to name, empty where it names none."""
    kinds = {method.kind: method for method in methods}
    # With a TPM the field would name a file with a key that the TPM has sealed.
    return kinds[KEY_FILE].path if KEY_FILE in kinds and TPM2 not in kinds else ""


def crypttab_options(methods: Iterable[Method], before_network: bool) -> list[str]:
    """Return the options that crypttab has to have; what is opened before there is a network is not waited for with it."""
    kinds = {method.kind for method in methods}
    return [*(["tpm2-device=auto"] if TPM2 in kinds else []), *(["_netdev"] if TANG in kinds and not before_network else [])]
