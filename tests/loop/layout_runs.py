# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_layout as a process of its own, as Ansible runs it; schemas for it; and what other tools than ours say of a disk."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import typing as t

import pytest
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

MIB = 1024**2
COLLECTIONS = pathlib.Path(__file__).parents[2] / ".venv" / "collections"
MODULES = "ansible_collections.bareon.allocator.plugins.modules"
COMMAND = ("-m", f"{MODULES}.disk_layout")
PATIENCE = 120
"""Seconds."""
BUSY = "is active on this host"

Plain = dict[str, t.Any]

EXT4 = {"fs_type": "ext4", "mount": "/boot", "fs_label": "boot"}
XFS = {"fs_type": "xfs", "mount": "/srv"}
SWAP = {"fs_type": "swap", "mount": "swap"}


def start(options: Plain, check: bool = False, tools: pathlib.Path | None = None, module: str = "disk_layout") -> subprocess.Popen[str]:
    """Start the module, or another one; `tools` is a folder of programs that are found before those of the system."""
    arguments = {"ANSIBLE_MODULE_ARGS": {**options, "_ansible_check_mode": check, "_ansible_diff": True}}
    path = os.environ["PATH"] if tools is None else f"{tools}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        [sys.executable, *(COMMAND if module == "disk_layout" else ("-m", f"{MODULES}.{module}"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(COLLECTIONS), "PATH": path},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(arguments))
    process.stdin.close()
    return process


def result_of(process: subprocess.Popen[str]) -> Plain:
    """Wait for the end and return the result."""
    assert process.stdout is not None
    assert process.stderr is not None
    text, errors = process.stdout.read().strip(), process.stderr.read()
    process.wait()
    assert text.startswith("{"), text + errors
    return t.cast("Plain", json.loads(text))


def attempt(options: Plain, check: bool = False, tools: pathlib.Path | None = None) -> Plain:
    """Run the module and return its result, whatever it is; a run of somebody else, or a tool that outlived one, is waited for."""
    end = time.monotonic() + PATIENCE
    while True:
        result = result_of(start(options, check, tools))
        if BUSY not in result.get("msg", "") or time.monotonic() > end:
            return result
        time.sleep(0.2)


def apply(options: Plain, **how: t.Any) -> Plain:
    """Run the module, which has to succeed."""
    result = attempt(options, **how)
    assert not result.get("failed"), result["msg"]
    return result


def refuse(options: Plain, **how: t.Any) -> str:
    """Run the module, which has to fail, and return what it says."""
    result = attempt(options, **how)
    assert result.get("failed"), result
    return t.cast(str, result["msg"])


def says(result: Plain) -> list[str]:
    return [step["says"] for step in result["steps"]]


def schema(disk: str, *spaces: Plain, begin: int = 1) -> Plain:
    """Return the explicit schema of partitions one after the other: each has `name`, `size` in MiB, and what its `fss` entry has."""
    partitions, filesystems = [], []
    for number, space in enumerate(spaces, start=1):
        own = dict(space)
        name, size = own.pop("name"), own.pop("size")
        guid = {"guid": own.pop("guid")} if "guid" in own else {}
        device = f"{disk}p{number}"
        partitions.append({"name": device, "count": number, "begin": begin, "end": begin + size, "space_id": name, **guid})
        if own:
            filesystems.append({"device": device, **own})
        begin += size
    return {"parteds": [{"name": disk, "disk_id": disk, "partitions": partitions}], "fss": filesystems}


def merged(*schemas: Plain) -> Plain:
    """Return schemas of several disks as one."""
    return {kind: [entry for one in schemas for entry in one[kind]] for kind in ("parteds", "fss")}


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def probe(device: str) -> dict[str, str]:
    """Return what blkid finds on a device."""
    done = subprocess.run(["blkid", "-p", "-o", "export", device], capture_output=True, text=True, check=False)
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def table_of(disk: str) -> Plain:
    """Return what sfdisk reads."""
    return t.cast("Plain", json.loads(run("sfdisk", "--json", disk))["partitiontable"])


def digest(disk: str) -> str:
    """Return the digest of all that is on a disk."""
    hashed = hashlib.blake2b()
    with open(disk, "rb") as file:
        while block := file.read(4 * MIB):
            hashed.update(block)
    return hashed.hexdigest()


class Mounted:
    """A device, mounted for the time of a test."""

    def __init__(self, device: str, folder: pathlib.Path) -> None:
        folder.mkdir(exist_ok=True)
        run("mount", device, str(folder))
        self.folder = folder

    def __enter__(self) -> pathlib.Path:
        return self.folder

    def __exit__(self, *_error: object) -> None:
        run("umount", str(self.folder))


def room(folder: pathlib.Path) -> int:
    """Return the bytes of a mounted file system."""
    found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize


@pytest.fixture
def tools(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder for programs that stand in for those of the system."""
    folder = tmp_path / "tools"
    folder.mkdir()
    return folder


def stand_in(folder: pathlib.Path, name: str, script: str) -> None:
    """Put a shell script in the place of a program."""
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)


def new_disk(loops: Loops, size: int = 1200, sector: int = 512) -> str:
    """Return the node of a new disk of so many MiB."""
    return str(loops.hardware([size * MIB], sector)["disks"][0]["dev"])


def server(disk: str) -> Plain:
    """Return a schema with one of each."""
    return schema(
        disk,
        {"name": "grub", "size": 1, "guid": "21686148-6449-6e6f-744e-656564454649"},
        {"name": "esp", "size": 260, "fs_type": "vfat", "mount": "/boot/efi", "fs_label": "EFI"},
        {"name": "boot", "size": 100, **EXT4},
        {"name": "data", "size": 400, **XFS},
        {"name": "log", "size": 150, "fs_type": "btrfs", "mount": "/var/log"},
        {"name": "swap", "size": 50, **SWAP},
    )


def leave_descriptors_in_the_journal(device: str) -> None:
    """Leave an ext4 as a cut while it grows does: the descriptor of its last group lies in the journal alone, which nobody has replayed."""
    said = run("dumpe2fs", "-h", device)
    told = {name: int(value) for name, value in re.findall(r"^(.+?): +(\d+)$", said, re.MULTILINE)}
    size, groups = told["Block size"], -(-(told["Block count"] - told["First block"]) // told["Blocks per group"])
    last = (groups - 1) * told.get("Group descriptor size", 32)
    block, begin = told["First block"] + 1 + last // size, last % size
    with open(device, "r+b") as raw, tempfile.NamedTemporaryFile() as copy:
        raw.seek(block * size)
        content = raw.read(size)
        copy.write(content)
        copy.flush()
        subprocess.run(["debugfs", "-w", device], input=f"jo\njw -b {block} {copy.name}\njc\n", capture_output=True, text=True, check=True)
        raw.seek(block * size)
        raw.write(content[:begin] + bytes(size - begin))
