# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fifty hosts pull their plans at once: containers with Python and ansible-core of Debian, each with a loop device of its own.

Run by `tests/molecule/environment`, where podman works.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.disk.planned import make_plan
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import MIB, Loops

HOSTS = int(os.environ.get("TEST_PULL_HOSTS", "50"))
IMAGE = "localhost/bareon-allocator:pull"
SIZE = 128
# Loop devices and their partitions, and no other disk of this machine.
CONFINED = [
    *("--cap-add=SYS_ADMIN,MKNOD,SYS_RAWIO", "--security-opt=seccomp=unconfined", "--security-opt=unmask=ALL", "--volume=/dev:/dev"),
    *("--device-cgroup-rule=b 7:* rwm", "--device-cgroup-rule=b 259:* rwm", "--device-cgroup-rule=c 10:237 rwm"),
]
RECAP = re.compile(r"^host\d+ +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=(\d+)", re.MULTILINE)
CPU = re.compile(r"^cpu ([\d.]+) ([\d.]+)$", re.MULTILINE)


class Ended(t.NamedTuple):
    """How many tasks changed something and failed, the seconds of CPU, and all that was printed."""

    changed: int
    failed: int
    cpu: float
    text: str


@pytest.fixture
def disks(tmp_path: Path) -> t.Iterator[list[str]]:
    loops = Loops(tmp_path)
    try:
        yield [str(disk["dev"]) for disk in loops.hardware([SIZE * MIB] * HOSTS)["disks"]]
    finally:
        loops.remove()


def begin(folder: Path, number: int, disk: str, *options: str) -> subprocess.Popen[str]:
    """Start a container in which a host pulls its plan."""
    variables = {"bareon_from": "/plans", "bareon_devices": [disk], "bareon_include": ["loop"]}
    words = ["ansible-playbook", "--inventory", f"host{number},", "--connection", "local", "bareon.allocator.pull", *options]
    command = ["podman", "run", "--rm", "--network=none", *CONFINED, f"--volume={folder}/plans:/plans:ro"]
    state = folder / f"host{number}"
    state.mkdir(exist_ok=True)
    # `time` of bash says what the run has cost.
    script = 'TIMEFORMAT="cpu %U %S"; time "$@"'
    command += [f"--volume={state}:/var/lib/bareon", IMAGE, "bash", "-c", script, "pull", *words, "--extra-vars", json.dumps(variables)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ends(running: t.Sequence[subprocess.Popen[str]]) -> list[Ended]:
    """Wait for all containers."""
    found = []
    for process in running:
        text, _none = process.communicate(timeout=3600)
        recap, cost = RECAP.search(text), CPU.search(text)
        assert recap is not None, text
        assert cost is not None, text
        found.append(Ended(int(recap[1]), int(recap[2]), float(cost[1]) + float(cost[2]), text))
    return found


def test_all_hosts_pull_at_once(disks: list[str], tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    for number, disk in enumerate(disks):
        facts = {"ram": 4096, "disks": [{"id": disk, "type": "hdd", "size": SIZE}]}
        text = json.dumps(make_plan([{"id": "data", "type": "partition", "size": 64 + number % 7, "fs_type": "ext4"}], facts))
        (tmp_path / f"plans/host{number}.json").write_text(text, encoding="utf-8")
        digest = hashlib.sha256(text.encode()).hexdigest()
        (tmp_path / f"plans/host{number}.json.sha256").write_text(f"{digest}  host{number}.json\n", encoding="utf-8")
    made = ends([begin(tmp_path, number, disk) for number, disk in enumerate(disks)])
    assert {(ended.changed, ended.failed) for ended in made} == {(1, 0)}, next(
        one.text for one in made if (one.changed, one.failed) != (1, 0)
    )
    for number, disk in enumerate(disks):
        size = subprocess.run(["blockdev", "--getsize64", f"{disk}p1"], capture_output=True, text=True, check=True).stdout
        assert int(size) == (64 + number % 7) * MIB
    reported = ends([begin(tmp_path, number, disk, "--check") for number, disk in enumerate(disks)])
    assert {(ended.changed, ended.failed) for ended in reported} == {(0, 0)}
    for number in range(HOSTS):
        report = json.loads((tmp_path / f"host{number}/pulled/report/report.json").read_text(encoding="utf-8"))
        assert (report["host"], report["drift"]["state"]) == (f"host{number}", "alike")
    for what, hosts in (("made", made), ("reported", reported)):
        costs = sorted(ended.cpu for ended in hosts)
        print(f"{what}: {len(costs)} hosts, CPU of one {costs[0]:.1f} to {costs[-1]:.1f} s, in all {sum(costs):.0f} s")
