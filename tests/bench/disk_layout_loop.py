# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What disk_layout costs on a host, beside the same steps by hand: CPU seconds of processes with all their children, on two loop devices.

    .venv/bin/python tests/bench/disk_layout_loop.py [--rounds 7] [--against FOLDER]

`module` is the program that Ansible sends to a host, as it sends it: an archive of sources that are compiled in each run. `by hand` is a
shell that makes the same tables and file systems, or looks at them with the same tools. FOLDER is the root of another version's checkout,
whose module takes turns with this one's: the figure to watch when something is changed. `first` makes everything on empty disks, `second`
finds nothing to do. Exits with 1 when a target is missed. Needs root and loop devices.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import typing as t

from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIB = 1024**2
SIZE = 640
SPACES = {"ext4": 120, "xfs": 400, "swap": 60}
"""The partitions of each disk, in MiB by file system."""
RUNS = ("first", "second")
TARGETS = {"by hand": {"first": 18.0, "second": 28.0}, "the other version": {"first": 1.1, "second": 1.1}}
"""At most so many times the CPU of these."""

BY_HAND = {
    "first": """
        set -e
        for disk in "$@"; do
            wipefs --all --quiet "$disk"
            printf 'label: gpt\\n,120M\\n,400M\\n,60M\\n' | sfdisk --quiet --no-reread --no-tell-kernel "$disk"
            partx --update "$disk"
            wipefs --all --quiet "$disk"p1 "$disk"p2 "$disk"p3
            mkfs.ext4 -q "$disk"p1
            mkfs.xfs -q "$disk"p2
            mkswap "$disk"p3
            for number in 1 2 3; do blkid --probe "$disk"p$number; done
            sfdisk --dump "$disk"
        done
    """,
    "second": """
        set -e
        lsblk --json --bytes --output-all
        for disk in "$@"; do
            sfdisk --dump "$disk"
            wipefs --json "$disk" "$disk"p1 "$disk"p2 "$disk"p3
            dumpe2fs -h "$disk"p1
            xfs_db -r -c 'sb 0' -c 'print dblocks blocksize' "$disk"p2
        done
    """,
}

CHECKED = '"_ansible_check_mode": true'
"""What the program has where Ansible made it for a look only."""

Command = t.Sequence[str]


def schema_of(disks: t.Sequence[str]) -> dict[str, t.Any]:
    """Return the static schema of these partitions on each disk."""
    parteds, filesystems = [], []
    for disk in disks:
        partitions, begin = [], 1
        for number, (fs_type, size) in enumerate(SPACES.items(), start=1):
            partitions.append({"name": f"{disk}p{number}", "count": number, "begin": begin, "end": begin + size, "space_id": fs_type})
            filesystems.append({"device": f"{disk}p{number}", "fs_type": fs_type, "mount": "none"})
            begin += size
        parteds.append({"name": disk, "disk_id": disk, "partitions": partitions})
    return {"parteds": parteds, "fss": filesystems}


def program_of(checkout: pathlib.Path, arguments: dict[str, t.Any], folder: pathlib.Path) -> pathlib.Path:
    """Return the program that Ansible makes of the module of a checkout with these arguments."""
    collections = folder / "collections" / "ansible_collections" / "bareon"
    collections.mkdir(parents=True)
    (collections / "allocator").symlink_to(checkout)
    task = {"bareon.allocator.disk_layout": arguments}
    playbook = folder / "playbook.yml"
    playbook.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]), encoding="utf-8")
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_KEEP_REMOTE_FILES": "true",
        "ANSIBLE_REMOTE_TEMP": str(folder / "remote"),
    }
    command = [
        sys.executable,
        "-m",
        "ansible",
        "playbook",
        "-i",
        "localhost,",
        "-c",
        "local",
        "-e",
        f"ansible_python_interpreter={sys.executable}",
    ]
    command += ["--check", str(playbook)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    program = next((folder / "remote").glob("*/AnsiballZ_disk_layout.py"))
    program.write_text(program.read_text(encoding="utf-8").replace(CHECKED, CHECKED.replace("true", "false")), encoding="utf-8")
    return program


def cpu_seconds(command: Command) -> float:
    """Return the CPU seconds of a process with all of its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def empty(disks: t.Sequence[str]) -> None:
    """Make disks as they were when they were new."""
    for disk in disks:
        subprocess.run(["partx", "--delete", disk], capture_output=True, check=False)
        subprocess.run(["blkdiscard", "--force", disk], capture_output=True, check=True)


def measure(ways: dict[str, dict[str, Command]], disks: t.Sequence[str], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return the CPU seconds of all runs of each way, in turns."""
    found: dict[str, dict[str, list[float]]] = {name: {run: [] for run in RUNS} for name in ways}
    for _round in range(rounds):
        for name, commands in ways.items():
            empty(disks)
            for run in RUNS:
                found[name][run].append(cpu_seconds(commands[run]))
    return found


def program_run(program: pathlib.Path) -> dict[str, Command]:
    return {run: (sys.executable, str(program)) for run in RUNS}


def judged(found: dict[str, dict[str, list[float]]]) -> bool:
    """Print the table, and return whether every target is met."""
    met = True
    for run in RUNS:
        for name, seconds in ((name, runs[run]) for name, runs in found.items()):
            print(f"{run:8}{name:20}min {min(seconds):.3f} s, median {statistics.median(seconds):.3f} s")
        for name, targets in TARGETS.items():
            if name in found:
                ours, theirs = found["module"][run], found[name][run]
                least, middle = min(ours) / min(theirs), statistics.median(ours) / statistics.median(theirs)
                missed = least > targets[run]
                met = met and not missed
                print(f"{run:8}module / {name}: min {least:.2f}, median {middle:.2f}, target {targets[run]}{' MISSED' if missed else ''}")
    return met


def main() -> int:
    """Print the table, and tell by the exit status whether every target is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--against", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        loops = Loops(folder)
        try:
            disks = [disk["id"] for disk in loops.hardware([SIZE * MIB] * 2)["disks"]]
            arguments = {"schema": schema_of(disks), "wipe": disks}
            checkouts = {"module": ROOT, **({"the other version": options.against.resolve()} if options.against else {})}
            ways = {label: program_run(program_of(at, arguments, folder / label)) for label, at in checkouts.items()}
            ways["by hand"] = {run: ("sh", "-c", BY_HAND[run], "sh", *disks) for run in RUNS}
            return 0 if judged(measure(ways, disks, options.rounds)) else 1
        finally:
            loops.remove()
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
