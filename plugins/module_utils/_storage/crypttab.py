# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of crypttab: the one reader and the one writer of them.

Its readers do not agree on quotation: Debian's initramfs knows octal escapes, systemd takes everything between blanks for what it says. So
what would have to be quoted is refused.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .fstab import plain_source, rows
from .names import why_no_mount
from .options.words import TAKE_AWAY, words_of

NO_KEY = "none"
NO_KEYS = (NO_KEY, "-", "")
"""What stands where no key file is named."""
PLAIN_OPTIONS = "luks"
"""The options of a container of which nothing is asked."""

_MADE_AT_EACH_START = ("swap", "tmp", "plain")
OPTIONS = frozenset(
    {
        *("luks", "discard", "nofail", "noauto", "_netdev", "readonly", "read-only", "header", "keyscript", "initramfs", "noearly"),
        *("key-slot", "keyfile-offset", "keyfile-size", "keyfile-erase", "keyfile-timeout", "loud", "quiet", "check", "checkargs"),
        *("tries", "timeout", "no-read-workqueue", "no-write-workqueue", "same-cpu-crypt", "submit-from-crypt-cpus", "sector-size"),
        *("perf-same_cpu_crypt", "perf-submit_from_crypt_cpus", "perf-no_read_workqueue", "perf-no_write_workqueue", "headless"),
        *("password-echo", "password-cache", "try-empty-password", "token-timeout", "link-volume-key", "tpm2-device", "tpm2-pcrs"),
        *("tpm2-pin", "tpm2-signature", "tpm2-pcrlock", "tpm2-measure-pcr", "tpm2-measure-bank", "tpm2-measure-keyslot-nvpcr"),
        *("fido2-device", "fido2-cid", "fido2-rp", "pkcs11-uri"),
    }
)
"""Options of LUKS containers: systemd's and Debian's crypttab(5). Others may stand on a line, and stay there."""
_OPTION = re.compile(rf"{TAKE_AWAY}?[A-Za-z_][A-Za-z0-9_.-]*(=[A-Za-z0-9_.:/@%+;?=-]{{1,255}})?")

_FEWEST_FIELDS = 2
_FIELDS_LEFT_OUT = (NO_KEY, "")
"""What key file and options are where a line ends before them."""

_QUOTED = re.compile(r"[\s\"'\\\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Container:
    """A line of crypttab: `options` with commas between them."""

    name: str
    source: str
    key_file: str = NO_KEY
    options: str = PLAIN_OPTIONS

    @property
    def line(self) -> str:
        """The line as it is written; raises ValueError with the field that cannot be."""
        fields = {"name": self.name, "device": self.source, "key file": self.key_file or NO_KEY, "options": self.options or PLAIN_OPTIONS}
        for what, field in fields.items():
            says = why_no_field(field)
            if says is not None:
                raise ValueError(f"the {what} of {self.name!r} in crypttab {says}")
        return " ".join(fields.values())

    def says(self, other: Container) -> bool:
        """Return whether two lines have the same meaning."""
        return (self.name, plain_source(self.source), _plain_key(self.key_file), self.options or PLAIN_OPTIONS) == (
            *(other.name, plain_source(other.source)),
            *(_plain_key(other.key_file), other.options or PLAIN_OPTIONS),
        )


def why_no_field(text: str) -> t.Optional[str]:
    """Return why a text cannot stand in crypttab, and what would be right; None where it can."""
    if not text:
        return "is empty"
    if _QUOTED.search(text) or text.startswith("#"):
        return (
            f"is {text!r}; crypttab has no form for blanks, quotation marks, backslashes and control characters that all its readers know"
        )
    return None


def why_no_options(text: str) -> t.Optional[str]:
    """Return why options cannot be asked for, and what would be right; None where they can. A dash before a word takes it away."""
    for word in words_of(text):
        key = word.removeprefix(TAKE_AWAY).partition("=")[0]
        if key in _MADE_AT_EACH_START:
            return f"has {word}, with which each start would make what is in the container; leave it out"
        if _OPTION.fullmatch(word) is None or (key not in OPTIONS and not key.startswith("x-")):
            return f"has {word!r}, which is no option of a LUKS container in crypttab; such options are discard, nofail and header=/PATH"
    return None


def why_no_key_file(path: str) -> t.Optional[str]:
    """Return why crypttab cannot name a key file, and what would be right; None where it can."""
    if path != NO_KEY and (why_no_mount(path) is not None or path.endswith("/")):
        return f"is {path!r}; must be an absolute path such as /etc/keys/data.key, or none"
    return why_no_field(path)


def read_container(line: str) -> t.Optional[Container]:
    """Return what a line says; None for a comment, an empty line and what is none."""
    found = next(rows(line), None)
    if found is None or len(found[1]) < _FEWEST_FIELDS:
        return None
    fields = found[1][:4]
    return Container(*fields, *_FIELDS_LEFT_OUT[len(fields) - _FEWEST_FIELDS :])


def read_containers(text: str) -> list[Container]:
    """Return what the lines of a table say."""
    return [container for line, _fields in rows(text) for container in [read_container(line)] if container is not None]


def with_containers(text: str, containers: Iterable[Container]) -> str:
    """Return the text with these lines: the first line of a name that says otherwise is replaced where it is, all else stays.

    Raises ValueError for a container that cannot be written.
    """
    lines = text.split("\n")[: -1 if text.endswith("\n") or not text else None]
    for container in containers:
        lines = _with_container(lines, container)
    return "".join(f"{line}\n" for line in lines)


def _with_container(lines: Sequence[str], container: Container) -> list[str]:
    there = [read_container(line) for line in lines]
    if any(known is not None and known.says(container) for known in there):
        return list(lines)
    position = next((at for at, known in enumerate(there) if known is not None and known.name == container.name), len(lines))
    return [*lines[:position], container.line, *lines[position + 1 :]]


def _plain_key(key_file: str) -> str:
    return NO_KEY if key_file in NO_KEYS else key_file
