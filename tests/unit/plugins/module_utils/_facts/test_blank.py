# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks without any signature: blank, or with data that no tool knows, or that cannot be read."""

from __future__ import annotations

import os
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.blank import Remains, find_remains
from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import LocalHost
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost

MIB = 1024**2
SIZE = 900 * MIB


def remains(written: dict[int, t.Any], size: int = SIZE) -> Remains | None:
    return find_remains(RecordedHost({"bytes": {"/dev/sda": written}}), "/dev/sda", size)


@pytest.mark.parametrize("size", [SIZE, 3 * MIB, 2 * MIB, MIB, 4096, 512, SIZE + 512])
def test_zeros_are_blank(size: int) -> None:
    assert remains({}, size) is None


@pytest.mark.parametrize("pattern", [b"\xff", b"\xaa", b"\xde\xad\xbe\xef"])
def test_what_reads_as_one_pattern_is_blank(pattern: bytes) -> None:
    assert remains({0: pattern * (SIZE // len(pattern))}) is None
    assert remains({0: pattern * (MIB // len(pattern))}) is not None


@pytest.mark.parametrize("offset", [0, 446, 512, MIB - 1, MIB, MIB + 1080, 2 * MIB - 1, SIZE - MIB, SIZE - 33 * 512, SIZE - 1])
def test_one_byte_in_either_end_or_where_a_first_partition_begins_is_data(offset: int) -> None:
    # What comes first is taken for the pattern, which is broken where it does not come again.
    assert remains({offset: b"x"}) == Remains(offset or 8)


@pytest.mark.parametrize("size", [SIZE, 100 * MIB, 20 * MIB, 5 * MIB])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.55, 0.8])
def test_raw_data_in_the_middle_is_met_by_a_sample(size: int, share: float) -> None:
    found = remains({int(size * share): os.urandom(max(MIB, size // 100))}, size)
    assert found is not None
    assert found.error is None
    assert "unknown data at" in found.words


class OneRun:
    """A stand-in for a large disk with one run of raw data, and zeros elsewhere."""

    def __init__(self, start: int, size: int) -> None:
        self.start, self.end = start, start + size

    def read_bytes(self, _path: str, start: int, size: int) -> bytes:
        before, inside = max(0, min(size, self.start - start)), max(0, min(start + size, self.end) - max(start, self.start))
        return bytes(before) + os.urandom(inside) + bytes(size - before - inside)


@pytest.mark.parametrize("share", [0.011, 0.2503, 0.5, 0.77])
def test_a_database_of_256_mib_on_a_disk_of_64_gib_is_met_by_a_sample(share: float) -> None:
    size = 64 * 1024 * MIB
    host = t.cast(t.Any, OneRun(int(size * share), 256 * MIB))
    assert find_remains(host, "/dev/sda", size) is not None


@pytest.mark.parametrize("data", [{}, {0: b"data"}])
@pytest.mark.parametrize("offset", [512, 1024, MIB, SIZE - 512])
def test_what_cannot_be_read_is_not_blank_whatever_is_before_it(offset: int, data: dict[int, bytes]) -> None:
    found = remains({**data, offset: OSError(5, "Input/output error")})
    assert found is not None
    assert found.error == "Input/output error"
    assert "unreadable at" in found.words


def test_parts_of_files_and_their_openers_are_read_of_this_machine(tmp_path: t.Any) -> None:
    file = tmp_path / "disk"
    file.write_bytes(b"abcdef")
    host, nodes = LocalHost(), frozenset({str(file)})
    assert host.read_bytes(str(file), 2, 3) == b"cde"
    assert host.read_bytes(str(file), 4, 100) == b"ef"
    with pytest.raises(OSError, match="No such file"):
        host.read_bytes(str(tmp_path / "none"), 0, 1)
    assert host.openers(nodes) == {}
    script = f"file = open({str(file)!r}, 'rb'); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert host.openers(nodes)[str(file)][0].endswith(f" ({process.pid})")
        process.communicate(b"\n")
    assert host.openers(nodes) == {}


def test_one_byte_where_a_partition_is_to_begin_is_data() -> None:
    """A table was lost, and the partitions that it named began where those of the layout do."""
    place = 302 * MIB
    host = RecordedHost({"bytes": {"/dev/sda": {place + 1080: b"\x53\xef"}}})
    assert find_remains(host, "/dev/sda", SIZE) is None
    assert find_remains(host, "/dev/sda", SIZE, places=(MIB, place)) == Remains(place + 1080)
