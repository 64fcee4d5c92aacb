# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Headers of LUKS 2 that are written by hand; tests/loop has those of cryptsetup."""

from __future__ import annotations

import hashlib
import json
import struct

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.luks_header import read_luks2
from ansible_collections.bareon.allocator.plugins.module_utils._facts.stacks import Luks

SIZE = 0x4000
METADATA = {
    "keyslots": {"0": {"type": "luks2"}, "1": {"type": "reencrypt"}, "2": {"type": "luks2"}},
    "segments": {"0": {"type": "crypt", "offset": "16777216", "encryption": "aes-xts-plain64"}},
}
FOUND = Luks(2, "aes-xts-plain64", 2, 16777216)


def copy(place: int, metadata: object = None, change: int = 1, algorithm: bytes = b"sha256", size: int = SIZE) -> bytes:
    text = (
        (metadata if isinstance(metadata, str) else json.dumps(METADATA if metadata is None else metadata))
        .encode()
        .ljust(SIZE - 4096, b"\0")
    )
    magic = b"SKUL\xba\xbe" if place else b"LUKS\xba\xbe"
    head = struct.pack(">6sHQQ48s32s64s40s48sQ184s64s", magic, 2, size, change, b"", algorithm, b"", b"", b"", place, b"", b"")
    head = head.ljust(4096, b"\0")
    digest = hashlib.sha256(head + text).digest().ljust(64, b"\0")
    return head[:448] + digest + head[512:] + text


def read(content: bytes) -> Luks | None:
    return read_luks2(lambda start, length: content[start : start + length])


def damaged(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize("at", [None, 0, 7, 16, 460, 5000, SIZE, SIZE + 460, SIZE + 5000])
def test_one_whole_copy_is_enough(at):
    content = copy(0) + copy(SIZE)
    assert read(content if at is None else damaged(content, at)) == FOUND


def test_the_newer_copy_counts():
    newer = {**METADATA, "keyslots": {}}
    assert read(copy(0) + copy(SIZE, newer, change=2)).key_slots == 0
    assert read(copy(0, newer, change=3) + copy(SIZE, change=2)).key_slots == 0


def test_what_has_no_whole_copy_has_no_header():
    whole = copy(0) + copy(SIZE)
    for content in (b"", bytes(8 * SIZE), whole[:4096], damaged(damaged(whole, 5000), SIZE + 5000), copy(SIZE)):
        assert read(content) is None
    for other in (copy(0, algorithm=b"shake_128"), copy(0, algorithm=b"no-such"), copy(0, size=SIZE + 4096), copy(0, size=2**63)):
        assert read(other + bytes(SIZE)) is None


def test_a_container_without_a_cipher_has_none():
    assert read(copy(0, {"keyslots": {}, "segments": {}})) == Luks(2, None, 0)


@pytest.mark.parametrize(
    "metadata",
    ["", "[]", "5", "null", "{", "{}", '{"segments": 5, "keyslots": {}}', '{"segments": {"a": 1}, "keyslots": {}}', "[" * 12000]
    + [json.dumps({**METADATA, "keyslots": found}) for found in (None, [1], {"0": 1}, {"0": {}})],
)
def test_metadata_of_another_form_are_no_header(metadata):
    assert read(copy(0, metadata) + copy(SIZE, metadata)) is None
