# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Torn superblocks, from what mke2fs 1.47 wrote: 32 MiB in blocks of 1 KiB."""

from __future__ import annotations

import base64
import zlib

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.torn import Torn, find_torn
from ansible_collections.bareon.allocator.plugins.module_utils._storage.ext4 import as_first, parse_superblock
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost

MIB = 1024**2
SIZE = 32 * MIB
UUID = "6e2b9d5c-0a4f-4c19-8f0e-d1a2b3c4d5e6"


def unpacked(text):
    return zlib.decompress(base64.b64decode(text))


FIRST = unpacked(
    "eNpjUGBgYGhgYEhjY2B4lsLA8FWegYGRAQkoQDEHhFu/gSWbgeH//+D3jGB1ED4EwPRxQzk2QOoQEwNDNgsDQ5723Bgufx/Jfr6LizYfufosJbEkkYHq4D+GCAcS+x2z"
    "zUPn7+7ubSvW2MhLHpRgZHRg4GFA+IvrMyMDC7JmAaA3HEixH1WxAhAyYlHFAhQUY2QYVoBHmmEUDDGwrbQtFgA/jyLv"
)
COPY = unpacked(
    "eNpjUGBgYGhgYEhjY2B4lsLA8FWegYGRAQkoQDEHhFu/gSWbgeH//+D3EHUQPgTA9HGDOYwMNkDqEBMDQzYLA0Oe9twYLn8fyX6+i4s2H7n6LCWxJJGB6uA/hggHEvsd"
    "s81D5+/u7m0r1tjISx6UYGR0YOBhQPiL6zMjAwuyZgGgNxxIsR9VsQIQMmJRxQIUFGNkGFaAR5phFAwxYC7j9AgAPGUiWA=="
)
TORN = FIRST[:512] + bytes(508) + b"torn"


def host(**changed):
    """The device, with some of what is on it otherwise."""
    written = {"first": TORN, "copy": COPY, **changed}
    places = {"first": 1024, "copy": 8193 * 1024}
    return RecordedHost({"bytes": {"/dev/sda1": {places[name]: content for name, content in written.items()}}})


def test_a_superblock_says_what_tools_say():
    found = parse_superblock(FIRST)
    assert found is not None
    assert (found.uuid, found.label, found.block_size, found.blocks, found.group, found.whole) == (UUID, "data", 1024, 32768, 0, True)
    assert list(found.copies())[:3] == [(1, 8193), (3, 24577), (5, 40961)]
    assert parse_superblock(bytes(1024)) is parse_superblock(FIRST[:1000]) is None


def test_a_torn_superblock_is_known_by_its_copy():
    assert find_torn(host(), "/dev/sda1", SIZE) == Torn(UUID, "data", 8193, 1024)
    assert find_torn(host(first=FIRST), "/dev/sda1", SIZE) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"first": TORN[:104] + bytes(16) + TORN[120:]},
        {"first": bytes(512) + TORN[512:]},
        {"copy": COPY[:512] + TORN[512:]},
        {"copy": FIRST},
        {"first": OSError(5, "Input/output error")},
    ],
    ids=["another UUID", "no magic", "the copy is torn", "no copy", "unreadable"],
)
def test_what_no_copy_tells_of_is_not_known(changed):
    assert find_torn(host(**changed), "/dev/sda1", SIZE) is None


def test_a_copy_becomes_the_first_with_its_journal_to_be_replayed():
    made = as_first(COPY)
    found = parse_superblock(made)
    assert found is not None
    assert (found.whole, found.group, found.uuid) == (True, 0, UUID)
    changed = {at for at in range(1024) if made[at] != COPY[at]}
    assert {0x5A, 0x60} <= changed <= {0x5A, 0x60, 0x3FC, 0x3FD, 0x3FE, 0x3FF}
    assert made[0x60] == COPY[0x60] | 4


def test_a_copy_of_something_larger_than_the_device_is_none():
    assert find_torn(host(), "/dev/sda1", SIZE - 1024) is None
    assert find_torn(host(), "/dev/sda1", 8 * MIB) is None
