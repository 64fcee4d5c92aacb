# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Headers of cryptsetup are read as cryptsetup reads them, but one that is half damaged is not mended: cryptsetup does that by reading."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.hardware import read_hardware
from ansible_collections.bareon.allocator.plugins.module_utils._facts.luks_header import read_luks2
from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import LEFT_OUT
from ansible_collections.bareon.allocator.plugins.module_utils._facts.stacks import luks_command, parse_luks
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine
from ansible_collections.bareon.allocator.tests.loop.layout_runs import EXT4, digest, new_disk, refuse, run, schema
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

SECOND = 0x4000
KEY = b"a key of 20 letters."


def seal(disk: str, *options: str) -> None:
    command = ("cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000")
    subprocess.run([*command, *options, disk], input=KEY, check=True)


def damage(disk: str, place: int) -> None:
    with open(disk, "r+b") as file:
        file.seek(place)
        file.write(bytes(4096))


@pytest.mark.parametrize(
    "options",
    [[], ["--luks2-metadata-size=64k"], ["--sector-size=4096", "--offset=65536"], ["--hash=sha512"]],
)
def test_a_header_is_read_as_cryptsetup_reads_it(loops: Loops, options: list[str]) -> None:
    disk = new_disk(loops, 64)
    seal(disk, *options)
    machine = LocalMachine()
    assert read_luks2(lambda start, length: machine.read_bytes(disk, start, length)) == parse_luks(run(*luks_command(disk)))


@pytest.mark.parametrize("place", [0, SECOND])
def test_a_header_of_which_a_copy_is_damaged_stays_as_it_is(loops: Loops, place: int) -> None:
    disk = new_disk(loops)
    seal(disk)
    damage(disk, place)
    before = digest(disk)
    hardware, _warnings = read_hardware(LocalMachine(), LEFT_OUT)
    (header,) = [holder["luks"] for found in hardware["disks"] if found["dev"] == disk for holder in found["holders"]]
    assert header == {"version": 2, "cipher": "aes-xts-plain64", "key_slots": 1}
    for check in (True, False):
        assert disk in refuse({"schema": schema(disk, {"name": "boot", "size": 100, **EXT4})}, check=check)
    assert digest(disk) == before
