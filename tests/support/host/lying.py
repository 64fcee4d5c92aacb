# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that lies: in the place of its Python stands a program that runs no module and prints answers out of files.

It is a stand-in. An honest answer of it is what a module would print on a machine with two empty disks; a lie is drawn.
"""

from __future__ import annotations

import copy
import json
import random
import typing as t
from pathlib import Path

_PROGRAM = """#!/bin/sh
# Says which module it was to run, and prints what is written for it.
name="${*##*AnsiballZ_}"
name="${name%%.py*}"
echo "$name" >>FOLDER/asked
if [ -f "FOLDER/$name.json" ]; then cat "FOLDER/$name.json"; else cat FOLDER/other.json; fi
"""
_SSH = """#!/bin/sh
# Runs here what it was to run on the host, which is what comes last.
for command; do :; done
exec sh -c "$command"
"""
_SFTP = """#!/bin/sh
# Copies files to where they were to be on the host.
while read -r word from to; do
    [ "$word" != put ] || eval "cp $from $to"
done
"""
_DISKS = [
    {
        "id": f"/dev/disk/by-id/scsi-{letter}",
        "path": f"/dev/disk/by-id/scsi-{letter}",
        "dev": f"/dev/qq{letter}",
        "size": 200000,
        "type": "ssd",
        "logical_block": 512,
        "physical_block": 512,
        "partitions": [],
        "holders": [],
        "links": [f"/dev/disk/by-id/scsi-{letter}"],
        "content": [],
    }
    for letter in "ab"
]
_TOOLS = ("sfdisk", "tar", "mkfs.ext4", "mkfs.xfs", "mkfs.vfat", "lvm", "mdadm", "cryptsetup", "restorecon")
_SAID = "\n".join([*(f"tool /usr/sbin/{tool}" for tool in _TOOLS), "system debian", "running systemd", "target is unpacked", ""])
CONTAINER = {
    "name": "vault-crypt",
    "device": "/dev/qqa1",
    "uuid": "8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f12",
    "unlock": [{"method": "recovery"}],
}
"""An encrypted container, as disk_layout returns it."""
HONEST: dict[str, dict[str, t.Any]] = {
    "disk_facts": {"changed": False, "ansible_facts": {"bareon_hardware": {"ram": 8192, "firmware": "uefi", "disks": _DISKS}}},
    "node_facts": {"changed": False, "ansible_facts": {"bareon_node": {"cpus": 8, "memory": 8192, "numa": {}, "gpus": [], "nics": []}}},
    "setup": {
        "changed": False,
        "ansible_facts": {"ansible_processor_vcpus": 8, "ansible_memtotal_mb": 8192},
    },
    "command": {"changed": True, "rc": 0, "stdout": _SAID, "stderr": "", "cmd": [], "start": "", "end": "", "delta": ""},
    "stat": {"changed": False, "stat": {"exists": False}},
    "slurp": {"changed": False, "content": "", "encoding": "base64", "source": "/etc/fstab"},
    "disk_layout": {
        "changed": True,
        "steps": [],
        "schema": {"parteds": [], "fss": [{"device": "/dev/qqa2", "mount": "/srv/data", "fs_type": "ext4"}]},
        "filesystems": [{"device": "/dev/qqa2", "uuid": "8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f11", "mountpoints": []}],
        "containers": [],
        "arrays": [],
    },
    "disk_keys": {
        "changed": False,
        "steps": [],
        "recovery_needed": [],
        "recovery_slots": {},
        "added": {},
        "diff": {"before": "", "after": ""},
    },
    "other": {"changed": True},
}
"""What a module prints where nobody lies, by its name; `other` is for the rest of them."""


class Lie(t.NamedTuple):
    """What is wrong with an answer: facts under names of options, and values of the result in the place of honest ones."""

    facts: dict[str, t.Any]
    values: dict[str, t.Any]


def install(folder: Path, lies: t.Mapping[str, Lie]) -> Path:
    """Write the answers and the program into a folder; return the program. Without a lie for a module its answer is honest."""
    folder.mkdir(parents=True, exist_ok=True)
    for module in {*HONEST, *lies}:
        answer = copy.deepcopy(HONEST.get(module, HONEST["other"]))
        lie = lies.get(module, Lie({}, {}))
        if lie.facts:
            answer["ansible_facts"] = {**answer.get("ansible_facts", {}), **lie.facts}
        answer.update(lie.values)
        (folder / f"{module}.json").write_text(json.dumps(answer), encoding="utf-8")
    (folder / "asked").write_text("", encoding="utf-8")
    program = folder / "python"
    program.write_text(_PROGRAM.replace("FOLDER", str(folder)), encoding="utf-8")
    program.chmod(0o755)
    return program


def install_ssh(folder: Path) -> Path:
    """Write stand-ins for ssh and sftp, whose host is this machine, into a folder; return it."""
    folder.mkdir(parents=True)
    for name, text in (("ssh", _SSH), ("sftp", _SFTP)):
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


def asked(folder: Path) -> list[str]:
    """Return the modules that the host was to run, in order."""
    return (folder / "asked").read_text(encoding="utf-8").split()


def draw_values(answer: t.Mapping[str, t.Any], hostile: t.Sequence[t.Any], draw: random.Random) -> dict[str, t.Any]:
    """Return an answer's values with some replaced at any depth by hostile ones, also of other kinds."""
    values = copy.deepcopy(dict(answer))
    values.pop("changed", None)
    for _time in range(draw.randint(1, 4)):
        _spoil(values, hostile, draw)
    return values


def _spoil(value: t.Any, hostile: t.Sequence[t.Any], draw: random.Random) -> None:
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = draw.choice(keys)
    if isinstance(value[key], (dict, list)) and value[key] and draw.random() < 0.7:
        _spoil(value[key], hostile, draw)
    else:
        value[key] = copy.deepcopy(draw.choice(hostile))
