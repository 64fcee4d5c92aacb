# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_layout beside what it cannot see at first: mounts in other namespaces, the list of protected disks, another run."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import subprocess
import sys
import time
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import LocalHost
from ansible_collections.bareon.allocator.plugins.module_utils._facts.reader import read_contents, read_devices
from ansible_collections.bareon.allocator.tests.loop.layout_runs import (
    COLLECTIONS,
    COMMAND,
    EXT4,
    XFS,
    Mounted,
    apply,
    attempt,
    digest,
    new_disk,
    result_of,
    schema,
    stand_in,
    start,
)


@contextlib.contextmanager
def mounted_elsewhere(node: str, place: pathlib.Path) -> t.Iterator[int]:
    """Mount a file system in a mount namespace of its own, as a container does; gives the process that lives in it."""
    place.mkdir()
    program = f"mount {node} {place} && echo mounted && exec cat"
    process = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "mounted\n"
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def inside(process: int) -> list[str]:
    return ["nsenter", "--target", str(process), "--mount"]


@pytest.fixture
def host_list() -> t.Iterator[pathlib.Path]:
    """The host's own list of protected disks, which is put back as it was."""
    file = pathlib.Path("/etc/bareon/protected")
    before = file.read_bytes() if file.exists() else None
    made = not file.parent.exists()
    file.parent.mkdir(exist_ok=True)
    yield file
    if before is not None:
        file.write_bytes(before)
    else:
        file.unlink(missing_ok=True)
        if made:
            file.parent.rmdir()


def two(disk: str, second: t.Any) -> t.Any:
    return schema(disk, {"name": "one", "size": 200, **EXT4}, {"name": "two", "size": 400, **second, "mount": "/two"})


def test_a_partition_that_is_mounted_in_another_namespace_is_not_destroyed(loops, tmp_path):
    disk = new_disk(loops)
    apply({"schema": two(disk, EXT4)})
    with Mounted(f"{disk}p1", tmp_path / "here"):
        with mounted_elsewhere(f"{disk}p2", tmp_path / "there") as process:
            subprocess.run([*inside(process), "sh", "-c", f"echo precious > {tmp_path}/there/file && sync"], check=True)
            for check in (True, False):
                said = attempt({"schema": two(disk, XFS), "wipe": [disk]}, check=check)
                assert said.get("failed")
                assert f"({process})" in said["msg"]
                assert f"mounted on {tmp_path / 'there'}" in said["msg"]
                assert said["changed"] is False
            seen = subprocess.run([*inside(process), "cat", f"{tmp_path}/there/file"], capture_output=True, text=True, check=True)
            assert seen.stdout == "precious\n"
        assert apply({"schema": two(disk, XFS), "wipe": [disk]})["changed"]


def test_a_disk_on_the_list_of_the_host_is_not_written_to(loops, host_list):
    disk = new_disk(loops)
    made = {"schema": two(disk, EXT4)}
    apply(made)
    host_list.write_text("# the database\n\nboot   # by its label\n")
    before = digest(disk)
    for check in (True, False):
        said = attempt({"schema": two(disk, XFS), "wipe": [disk]}, check=check)
        assert said.get("failed")
        assert "/etc/bareon/protected:3" in said["msg"]
        assert disk in said["msg"]
    assert apply(made)["changed"] is False
    host_list.write_bytes(b"\xff\n")
    assert [text.partition(": ")[0] for text in attempt(made)["mistakes"]] == ["/etc/bareon/protected"]
    assert digest(disk) == before


def test_a_disk_keeps_the_identities_that_it_got_and_another_host_gives_others(loops, tmp_path):
    disk = new_disk(loops)
    options = {"schema": two(disk, EXT4)}

    def as_host(machine_id: str) -> t.Any:
        """Run the module on a host of this machine-id."""
        file = tmp_path / "machine-id"
        file.write_text(machine_id * 8 + "\n")
        program = f"mount --bind {file} /etc/machine-id && exec {sys.executable} {' '.join(COMMAND)}"
        given = json.dumps({"ANSIBLE_MODULE_ARGS": {**options, "lock_timeout": 60, "_ansible_check_mode": False, "_ansible_diff": False}})
        done = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", program],
            input=given,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(COLLECTIONS)},
        )
        return json.loads(done.stdout)

    def uuids(result: t.Any) -> list[str]:
        return [filesystem["uuid"] for filesystem in result["filesystems"]]

    one = as_host("1abc")
    kept = as_host("2def")
    assert (one["changed"], kept["changed"], uuids(kept)) == (True, False, uuids(one))
    subprocess.run(["partx", "--delete", disk], check=True)
    subprocess.run(["wipefs", "--all", disk], check=True, capture_output=True)
    subprocess.run(["blkdiscard", disk], check=True)
    other = as_host("2def")
    assert other["changed"]
    assert not set(uuids(other)) & set(uuids(one))


def test_a_run_waits_for_another_one_or_says_who_it_is(loops, tmp_path):
    disk, other = (schema(new_disk(loops), {"name": "one", "size": 200, **EXT4}) for _disk in range(2))
    gate, tools = tmp_path / "gate", tmp_path / "tools"
    os.mkfifo(gate)
    tools.mkdir()
    stand_in(tools, "mkfs.ext4", f'cat {gate} >/dev/null; PATH="${{PATH#*:}}" exec mkfs.ext4 "$@"')
    # Other runs on this host may have the lock at first; this one has it when its tool waits at the gate.
    first = start({"schema": disk, "lock_timeout": 600}, tools=tools)
    with gate.open("w", encoding="utf-8"):
        holder = json.loads(pathlib.Path("/run/bareon-disk-layout.lock").read_text(encoding="utf-8"))
        assert (holder["pid"], holder["command"]) == (first.pid, "disk_layout")
        refused = result_of(start({"schema": other}))
        assert refused["failed"]
        for part in (f"process {first.pid}", holder["since"], holder["from"], "nothing was changed"):
            assert part in refused["msg"]
        waiting = start({"schema": other, "lock_timeout": 600})
    assert not result_of(first).get("failed")
    assert result_of(waiting)["changed"]


KEPT_OUT = {
    "disk_layout": lambda disk: {"schema": two(disk, XFS), "wipe": [disk]},
    "disk_erase": lambda disk: {"disks": [disk], "method": "zero"},
}


ADDED = {
    "{disk}  # since today\n": ("/etc/bareon/protected:1", ""),
    "two\0words\n": ("/etc/bareon/protected:1: must be text", "nothing was "),
}
"""What the host's list becomes, and what a run says then, with what it says before that."""


@pytest.mark.parametrize("text", ADDED, ids=["a disk", "what cannot be read"])
@pytest.mark.parametrize("module", KEPT_OUT)
def test_an_entry_that_is_added_while_a_run_waits_protects(loops, host_list, module, text):
    """The run has read its options, and then waits for the lock, whose file it has open then."""
    disk = new_disk(loops)
    apply({"schema": two(disk, EXT4)})
    before = digest(disk)
    with open("/run/bareon-disk-layout.lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = start({**KEPT_OUT[module](disk), "lock_timeout": 600}, module=module)
        while not has_open(waiting.pid, "/run/bareon-disk-layout.lock"):
            assert waiting.poll() is None
            time.sleep(0.05)
        host_list.write_text(text.format(disk=disk))
    said = result_of(waiting)
    assert said["failed"]
    says, first = ADDED[text]
    assert says in said["msg"]
    assert said["msg"].startswith(first)
    assert digest(disk) == before


def has_open(process: int, path: str) -> bool:
    folder = pathlib.Path(f"/proc/{process}/fd")
    return any(os.path.realpath(link) == path for link in folder.iterdir() if link.is_symlink())


def test_devices_of_a_btrfs_have_names_of_their_own_and_a_copy_has_the_name_of_its_original(loops):
    nodes = [new_disk(loops, 256) for _disk in range(3)]
    subprocess.run(["mkfs.btrfs", "--quiet", "--data", "raid1", *nodes[:2]], check=True)
    subprocess.run(["dd", f"if={nodes[0]}", f"of={nodes[2]}", "bs=1M", "conv=fsync"], capture_output=True, check=True)
    notes: list[str] = []
    host = LocalHost()
    tree = read_contents(host, read_devices(host, notes), [os.path.basename(node) for node in nodes], notes)
    members = [tree.devices[os.path.basename(node)].member for node in nodes]
    said = [
        subprocess.run(["blkid", "-p", "-o", "value", "-s", "UUID_SUB", node], capture_output=True, text=True, check=True).stdout
        for node in nodes
    ]
    assert members == [text.strip() for text in said]
    assert members[0] == members[2] != members[1]
