# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of LUKS headers on the controller, in files that only their owner can read: HOST.UUID.luks.

What a host sends is checked: it has the magic number of LUKS and a UUID, is not larger than headers are, and goes to a file of this host
alone. A copy that is like the file that is there is not written again.
"""

from __future__ import annotations

import base64
import re
import typing as t
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import quote

from .._common.files import replace_file
from .recovery_keys import Refused

_MAGIC = b"LUKS\xba\xbe"
_UUID_AT, _UUID_SIZE = 168, 40
"""Where the UUID stands, in LUKS 1 and LUKS 2."""
_UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LARGEST = 136 * 2**20
"""Bytes: the largest metadata of LUKS 2 twice, and the largest area of key slots."""


def write_headers(folder: Path, host: str, sent: t.Any, asked: Collection[str]) -> tuple[dict[str, str], bool]:
    """Return the files by the names of containers, and whether one is new or another than before; `sent` are the headers by name.

    Raises Refused for what is no header, or not of a container that was `asked` for.
    """
    if not isinstance(sent, Mapping) or set(sent) != set(asked):
        raise Refused("The host has not sent the headers that it was asked for. No header was written; do not trust this host.")
    copies = {name: _header(name, sent[name]) for name in asked}
    files = {name: folder / f"{quote(host, safe='', errors='surrogatepass')}.{uuid_of(copy)}.luks" for name, copy in copies.items()}
    twice = [name for name in files if list(files.values()).count(files[name]) > 1]
    if twice:
        raise Refused(
            f"The headers of {' and '.join(twice)} have one UUID, so that one copy would replace the other; give one another UUID"
        )
    changed = False
    for name, file in files.items():
        if _content(file) != copies[name]:
            changed = True
            try:
                replace_file(file, copies[name])
            except OSError as error:
                raise Refused(f"header_backup_directory: {file} cannot be written: {error.strerror}") from error
    return {name: str(file) for name, file in files.items()}, changed


def uuid_of(header: bytes) -> str:
    """Return the UUID of a header; raises Refused for anything else."""
    uuid = header[_UUID_AT : _UUID_AT + _UUID_SIZE].rstrip(b"\0")
    if not header.startswith(_MAGIC) or not _UUID.fullmatch(uuid):
        raise Refused("The host has sent what is no header of LUKS. No header was written; do not trust this host.")
    return uuid.decode()


def _header(name: str, sent: t.Any) -> bytes:
    try:
        reader = zlib.decompressobj()
        header = reader.decompress(base64.b64decode(sent, validate=True), _LARGEST)
        whole = reader.eof and not reader.unused_data
    except (TypeError, ValueError, zlib.error):
        whole, header = False, b""
    if not whole:
        raise Refused(f"The host has sent what is no header of {name}, or is larger than headers are. No header was written.")
    return header


def _content(file: Path) -> bytes | None:
    try:
        return None if file.is_symlink() else file.read_bytes()
    except OSError:
        return None


def names_of(containers: t.Any) -> list[str]:
    """Return the names that the module gives to containers; what is no container is for the module to refuse."""
    listed = [one for one in containers if isinstance(one, Mapping)] if isinstance(containers, list) else []
    return [str(one.get("name") or one.get("node") or one.get("device")) for one in listed]
