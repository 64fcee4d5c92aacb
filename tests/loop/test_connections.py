# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_layout by a playbook over ssh: connections are cut, controllers are killed, and two come at once, at random moments of a run.

The server is an sshd of its own on loopback. A moment is a number of writes that the disk has taken. TEST_CONNECTION_CUTS says how many
cuts of each kind there are (3), TEST_CONNECTION_SEED at which moments.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.loop.layout_runs import EXT4, SWAP, XFS, Mounted, new_disk, probe, schema
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

CUTS = int(os.environ.get("TEST_CONNECTION_CUTS", "3"))
SEED = int(os.environ.get("TEST_CONNECTION_SEED", "1"))
ROOT = Path(__file__).parents[2]
PATIENCE = 300
PLAY = [
    {"hosts": "all", "gather_facts": False, "tasks": [{"bareon.allocator.disk_layout": {"schema": "{{ wanted }}", "lock_timeout": 300}}]}
]
ROLE = [
    {
        "hosts": "all",
        "gather_facts": False,
        "roles": [{"role": "bareon.allocator.disk_layout", "tags": ["apply"]}],
        "vars": {"disk_layout_static": "{{ wanted }}", "disk_layout_mount": False, "disk_layout_async": 3600, "disk_layout_poll": 1},
    }
]
RECAP = re.compile(r"^host +: ok=(\d+) +changed=(\d+) +unreachable=0 +failed=0", re.MULTILINE)
KEPT = {"name": "kept", "size": 320, **XFS}
SPACES = [{"name": f"s{number}", "size": 60, **EXT4, "mount": f"/s{number}", "fs_label": ""} for number in range(4)]


class Server:
    """An sshd on loopback that takes one key."""

    def __init__(self, folder: Path) -> None:
        self.key = folder / "key"
        for name in ("key", "host"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        lines = [f"Port {self.port}", "ListenAddress 127.0.0.1", f"HostKey {folder / 'host'}", f"AuthorizedKeysFile {folder / 'key.pub'}"]
        lines += ["StrictModes no", "UsePAM no", "PermitRootLogin prohibit-password", "PidFile none"]
        (folder / "config").write_text("\n".join([*lines, ""]), encoding="utf-8")
        Path("/run/sshd").mkdir(exist_ok=True)
        command = [str(shutil.which("sshd")), "-D", "-f", str(folder / "config"), "-E", str(folder / "log")]
        self._process = subprocess.Popen(command)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                assert time.monotonic() < end, "sshd does not listen"
                time.sleep(0.05)
            else:
                return

    def cut_connections(self) -> None:
        """Kill the processes that serve connections: what these have begun goes on, with nobody to listen."""
        for process in _children(self._process.pid):
            os.kill(process, signal.SIGKILL)

    def stop(self) -> None:
        self.cut_connections()
        self._process.terminate()
        self._process.wait()


class Controller:
    """Runs of the playbook from this machine on the one of the server."""

    def __init__(self, folder: Path, server: Server, wanted: dict[str, t.Any], play: t.Any = None) -> None:
        self._folder = folder
        host = {
            "ansible_host": "127.0.0.1",
            "ansible_port": server.port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(server.key),
            "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ControlPath=none",
            "ansible_python_interpreter": sys.executable,
            "wanted": wanted,
        }
        (folder / "play.yml").write_text(json.dumps(play or PLAY), encoding="utf-8")
        (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": {"host": host}}}), encoding="utf-8")

    def start(self) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
            "ANSIBLE_HOME": str(self._folder),
            "ANSIBLE_PIPELINING": "true",
            "ANSIBLE_NOCOLOR": "1",
        }
        environment.pop("ANSIBLE_CONFIG", None)
        return subprocess.Popen(
            [sys.executable, "-m", "ansible", "playbook", "--inventory", "inventory.json", "play.yml"],
            cwd=self._folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def changes(self) -> bool:
        """Run to the end, which has to be a good one; return whether anything was changed."""
        return changed(self.start())


def changed(process: subprocess.Popen[str]) -> bool:
    output, _none = process.communicate(timeout=PATIENCE)
    recap = RECAP.search(output)
    assert recap is not None, output
    return recap[2] != "0"


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a controller with its workers and its clients of ssh, as when its machine loses power."""
    for descendant in _descendants(process.pid):
        os.kill(descendant, signal.SIGKILL)
    process.kill()
    process.communicate()


def _children(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]) == parent:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def _descendants(parent: int) -> list[int]:
    children = _children(parent)
    return [*children, *(each for child in children for each in _descendants(child))]


def writes(disk: str) -> int:
    """Return how many writes a disk has completed."""
    return int(Path(f"/sys/class/block/{Path(disk).name}/stat").read_text(encoding="ascii").split()[4])


def wait_for_writes(disk: str, count: int, process: subprocess.Popen[str]) -> None:
    while writes(disk) < count and process.poll() is None:
        time.sleep(0.002)


def layout(disk: str) -> dict[str, t.Any]:
    return schema(disk, KEPT, *SPACES, {"name": "swap", "size": 50, **SWAP})


@pytest.fixture
def server(tmp_path: Path) -> t.Iterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    started = Server(folder)
    yield started
    started.stop()


def precious(disk: str, folder: Path, server: Server) -> Controller:
    """Make the file system that is kept through all of it, with a file; return the controller of the whole layout."""
    (folder / "first").mkdir()
    assert Controller(folder / "first", server, schema(disk, KEPT)).changes()
    with Mounted(f"{disk}p1", folder / "kept") as mounted:
        (mounted / "precious").write_text("data", encoding="utf-8")
    (folder / "all").mkdir()
    return Controller(folder / "all", server, layout(disk))


def assert_completed(disk: str, folder: Path, controller: Controller) -> None:
    controller.changes()
    assert not controller.changes()
    assert [probe(f"{disk}p{number}")["TYPE"] for number in range(1, 7)] == ["xfs", *["ext4"] * 4, "swap"]
    with Mounted(f"{disk}p1", folder / "kept") as mounted:
        assert (mounted / "precious").read_text(encoding="utf-8") == "data"


@pytest.mark.parametrize("who", ["the connection", "the controller"])
def test_what_was_cut_off_is_completed_by_the_next_run(loops: Loops, tmp_path: Path, server: Server, who: str) -> None:
    """What was begun on the host may go on meanwhile: the next run waits for it."""
    chance = random.Random(f"{SEED} {who}")
    disk = new_disk(loops)
    controller = precious(disk, tmp_path, server)
    for number in range(CUTS):
        process = controller.start()
        wait_for_writes(disk, writes(disk) + chance.choice([1, 5, 20, 60, 150]) * (number + 1), process)
        if who == "the connection":
            server.cut_connections()
            process.communicate(timeout=PATIENCE)
        else:
            kill(process)
    assert_completed(disk, tmp_path, controller)


def test_a_run_with_async_goes_on_when_its_connections_are_cut(loops: Loops, tmp_path: Path, server: Server) -> None:
    """The run itself ends well, and with what the host has made."""
    disk = new_disk(loops)
    precious(disk, tmp_path, server)
    (tmp_path / "role").mkdir()
    controller = Controller(tmp_path / "role", server, layout(disk), ROLE)
    process = controller.start()
    for count in (20, 60):
        wait_for_writes(disk, writes(disk) + count, process)
        server.cut_connections()
    output, _none = process.communicate(timeout=PATIENCE)
    recap = re.search(r"^host +: ok=\d+ +changed=(\d+) +unreachable=(\d+) +failed=(\d+)", output, re.MULTILINE)
    assert recap is not None, output
    assert (recap[1], recap[3]) == ("1", "0"), output
    assert "TASK [bareon.allocator.disk_layout : Wait until the layout is made]" in output
    assert_completed(disk, tmp_path, controller)


def test_of_two_controllers_at_once_one_makes_it_and_the_other_one_has_nothing_to_do(loops: Loops, tmp_path: Path, server: Server) -> None:
    disk = new_disk(loops)
    controller = precious(disk, tmp_path, server)
    assert sorted(changed(process) for process in [controller.start(), controller.start()]) == [False, True]
    assert_completed(disk, tmp_path, controller)
