# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of types of partitions, against util-linux, which has them from the same specification."""

from __future__ import annotations

import re
import subprocess

from ansible_collections.bareon.allocator.plugins.module_utils._storage.gpt import DISCOVERABLE

MACHINES = {"x86": "x86", "x86-64": "x86-64", "arm": "ARM", "arm64": "ARM-64", "loongarch64": "LoongArch-64", "riscv32": "RISC-V-32"}
MACHINES |= {"riscv64": "RISC-V-64", "ppc64": "PPC64", "ppc64-le": "PPC64LE", "s390x": "S390X"}
NAMES = {
    "home": "Linux home",
    "linux-generic": "Linux filesystem",
    "srv": "Linux server data",
    "swap": "Linux swap",
    "tmp": "Linux temporary data",
    "var": "Linux variable data",
    "xbootldr": "Linux extended boot",
}


def test_the_names_are_those_of_util_linux() -> None:
    listed = subprocess.run(["sfdisk", "--list-types", "--label", "gpt"], capture_output=True, text=True, check=True).stdout
    known = {guid.lower(): name for guid, name in re.findall(r"^([0-9A-F-]{36})\s+(.+)$", listed, re.MULTILINE)}
    # Not every release knows all of them.
    compared = {name: guid for name, guid in DISCOVERABLE.items() if guid in known}
    assert len(compared) > len(DISCOVERABLE) / 2
    for name, guid in compared.items():
        tree, _dash, machine = name.partition("-")
        expected = f"Linux {'/usr' if tree == 'usr' else tree} ({MACHINES[machine]})" if tree in ("root", "usr") else NAMES[name]
        assert known[guid] == expected, name
