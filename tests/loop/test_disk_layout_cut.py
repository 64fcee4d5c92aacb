# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_layout on real (loop) disks when something goes wrong: tools that fail, signals, cuts, other runs; and keys that must not show."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import threading
import time

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout import apply as layout_run
from ansible_collections.bareon.allocator.plugins.module_utils._layout.apply import Request
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.key import Key
from ansible_collections.bareon.allocator.plugins.module_utils._steps.luks import FormatLuks
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine
from ansible_collections.bareon.allocator.plugins.module_utils._storage.derived import salt_of_table, table_uuid
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.tests.loop.layout_runs import (
    BUSY,
    EXT4,
    MIB,
    SWAP,
    XFS,
    Mounted,
    apply,
    attempt,
    digest,
    new_disk,
    probe,
    refuse,
    result_of,
    run,
    schema,
    server,
    stand_in,
    start,
    table_of,
    tools,
)

__all__ = ["tools"]

KILLED_SEEDS = int(os.environ.get("TEST_KILLED_SEEDS", "3"))
"""Each kills six runs."""


def test_what_fails_is_told_with_what_was_done_and_what_was_not_and_done_the_next_time(loops, tools):
    disk = new_disk(loops)
    stand_in(tools, "mkfs.xfs", "echo 'no such luck' >&2; exit 3")
    options = {"schema": server(disk)}

    result = attempt(options, tools=tools)

    assert result["failed"]
    assert result["changed"]
    assert "mkfs.xfs" in result["msg"]
    assert "failed with code 3: no such luck" in result["msg"]
    assert result["failed_step"]["device"] == f"{disk}p4"
    done = [step["says"] for step in result["steps"] if step["done"]]
    left = [step["says"] for step in result["steps"] if not step["done"]]
    assert result["failed_step"]["says"] == left[0]
    assert all(line in result["msg"] for line in (*done, *left))
    ext4 = probe(f"{disk}p3")["UUID"]
    apply(options)
    assert [probe(f"{disk}p{number}").get("TYPE") for number in range(3, 7)] == ["ext4", "xfs", "btrfs", "swap"]
    assert probe(f"{disk}p3")["UUID"] == ext4
    assert not apply(options)["changed"]


def test_a_tool_that_is_missing_is_named_before_anything_is_changed(loops, tools, monkeypatch):
    disk = new_disk(loops)
    for folder in os.environ["PATH"].split(os.pathsep) + ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            link = tools / name
            if name != "mkfs.xfs" and not link.is_symlink():
                link.symlink_to(os.path.join(folder, name))
    lines = [
        "import runpy",
        "from ansible_collections.bareon.allocator.plugins.module_utils._facts import host",
        "host.SYSTEM_PATHS = ()",
        "runpy.run_module('ansible_collections.bareon.allocator.plugins.modules.disk_layout', run_name='__main__')",
    ]
    monkeypatch.setattr("ansible_collections.bareon.allocator.tests.loop.layout_runs.COMMAND", ("-c", "\n".join(lines)))
    monkeypatch.setenv("PATH", str(tools))
    said = refuse({"schema": server(disk)})
    assert "there is no mkfs.xfs on this host: install the package xfsprogs" in said
    assert probe(disk) == {}


def test_volumes_need_a_kernel_that_has_them(loops):
    with open("/proc/misc", encoding="ascii") as listed:
        if "device-mapper" in listed.read():
            pytest.fail("this machine has device-mapper, and tests/vm tries what can be made with it: run this test where there is none")
    disk = new_disk(loops)
    wanted = schema(disk, {"name": "os", "size": 500})
    wanted["pvs"] = [{"name": f"{disk}p1"}]
    wanted["vgs"] = [{"name": "looptest", "pvnames": [f"{disk}p1"]}]
    wanted["lvs"] = [{"name": "root", "vgname": "looptest", "size": 100}]
    said = refuse({"schema": wanted})
    assert "device-mapper" in said
    assert "nothing on the disks was changed" in said
    assert probe(disk) == {}


def wait_for_seconds_of_cpu(process, seconds):
    """Wait until a process and the tools that it has waited for had so many seconds of a processor, or ended: load changes nothing then."""
    while process.poll() is None:
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            ticks = sum(map(int, file.read().rpartition(")")[2].split()[11:15]))
        if ticks >= seconds * os.sysconf("SC_CLK_TCK"):
            return
        time.sleep(0.002)


@pytest.mark.parametrize("seed", range(KILLED_SEEDS))
def test_a_run_that_is_killed_at_any_moment_is_completed_by_the_next(loops, tmp_path, seed):
    """Beside it another file system of the same layout keeps its data through all of it."""
    chance = random.Random(seed)
    disk, sector = new_disk(loops, sector=[512, 4096][seed % 2]), [512, 4096][seed % 2]
    kept = {"name": "kept", "size": 320, **XFS}
    apply({"schema": schema(disk, kept)})
    with Mounted(f"{disk}p1", tmp_path / "kept") as folder:
        (folder / "precious").write_text("data")
    spaces = [{"name": f"s{number}", "size": 100, **EXT4, "mount": f"/s{number}", "fs_label": ""} for number in range(4)]
    options = {"schema": schema(disk, kept, *spaces, {"name": "swap", "size": 50, **SWAP})}
    for _cut in range(6):
        process = start(options)
        wait_for_seconds_of_cpu(process, chance.uniform(0.1, 1.4))
        process.send_signal(signal.SIGKILL)
        process.wait()
    apply(options)
    assert not apply(options)["changed"]
    assert [probe(f"{disk}p{number}")["TYPE"] for number in range(1, 7)] == ["xfs", *["ext4"] * 4, "swap"]
    assert {part["size"] * sector // MIB for part in table_of(disk)["partitions"]} == {320, 100, 50}
    with Mounted(f"{disk}p1", tmp_path / "kept") as folder:
        assert (folder / "precious").read_text() == "data"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_before_the_next_step(loops, tools, tmp_path, number):
    disk = new_disk(loops)
    stand_in(tools, "mkfs.ext4", f'touch {tmp_path}/begun; sleep 1; PATH="${{PATH#*:}}"; exec mkfs.ext4 "$@"')
    process = start({"schema": server(disk)}, tools=tools)
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    result = result_of(process)
    assert result["failed"]
    assert "Stopped by a signal" in result["msg"]
    assert probe(f"{disk}p3")["TYPE"] == "ext4"
    assert [step["says"] for step in result["steps"] if step["done"]][-1].startswith("make ext4")
    apply({"schema": server(disk)})


def test_two_runs_at_once_exclude_each_other(loops, tools, tmp_path):
    disk = new_disk(loops)
    waits = f"touch {tmp_path}/begun; for _ in $(seq 600); do [ -e {tmp_path}/go ] && break; sleep 0.1; done"
    stand_in(tools, "mkfs.ext4", f'{waits}; PATH="${{PATH#*:}}"; exec mkfs.ext4 "$@"')
    process = start({"schema": server(disk)}, tools=tools)
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.02)
    assert BUSY in result_of(start({"schema": server(disk)}))["msg"]
    # A tool that outlives its run counts as the run.
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert BUSY in result_of(start({"schema": server(disk)}))["msg"]
    (tmp_path / "go").touch()
    apply({"schema": server(disk)})


def test_keys_show_nowhere_while_they_are_used(loops):
    """Nothing of device-mapper is needed to write a header: it is written for real, while everything that can be seen is watched."""
    disk = new_disk(loops, size=100)
    key = "aVerySecretPassphrase"
    seen: set[bytes] = set()
    done = threading.Event()

    def watch():
        while not done.is_set():
            for entry in os.listdir("/proc"):
                for file in ("cmdline", "environ") if entry.isdigit() else ():
                    with contextlib.suppress(OSError), open(f"/proc/{entry}/{file}", "rb") as content:
                        seen.add(content.read())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        FormatLuks(disk, "11111111-2222-4333-8444-555555555555", aligned=False).run(LocalMachine(Key(key.encode())))
    finally:
        done.set()
        watcher.join()
    assert any(b"luksFormat" in text for text in seen)
    assert not any(key.encode() in text for text in seen)
    test = ["cryptsetup", "open", "--test-passphrase", "--key-file=-", disk]
    assert subprocess.run(test, input=key.encode(), check=False).returncode == 0
    assert subprocess.run(test, input=key.encode() + b"\n", check=False, stderr=subprocess.DEVNULL).returncode == 2


def test_keys_do_not_show_in_results(loops):
    disk = new_disk(loops)
    wanted = schema(disk, {"name": "keys", "size": 500})
    wanted["luks"] = [{"name": "keys", "device": f"{disk}p1"}]
    for check in (True, False):
        assert "aVerySecretPassphrase" not in str(attempt({"schema": wanted, "luks_key": "aVerySecretPassphrase"}, check=check))
    assert "luks_key" in refuse({"schema": wanted})


class Cut(BaseException):
    """The power is gone."""


class FailingMachine(LocalMachine):
    """A machine of which the power fails just before, or in the middle of, its n-th change."""

    def __init__(self, changes, torn):
        self.left, self.torn = changes, torn

    def change(self, command, given=b"", patience=600, accepted=(0,)):
        self.count(lambda: None)
        return super().change(command, given, patience, accepted)

    def zero(self, device, regions, exclusively):
        regions = tuple(regions)
        self.count(lambda: super(FailingMachine, self).zero(device, regions[:1], exclusively))
        super().zero(device, regions, exclusively)

    def count(self, half):
        self.left -= 1
        if self.left == 0:
            if self.torn:
                half()
            raise Cut


@pytest.mark.parametrize(("torn", "sector"), [(False, 512), (True, 4096)])
def test_a_cut_before_every_single_change_is_completed_without_wiping(loops, torn, sector):
    """What was on the disk may be wiped in the first run only; what that run left is its own work from its first change on."""
    disk = new_disk(loops, size=300, sector=sector)
    spaces = [{"name": "boot", "size": 60, **EXT4}, {"name": "swap", "size": 30, **SWAP}, {"name": "raw", "size": 20}]
    layout = parse_static_schema(schema(disk, *spaces))
    wiping = Request(layout, wipe=(disk,))
    cuts = 0
    while True:
        subprocess.run(["partx", "--delete", disk], check=False, capture_output=True)
        run("wipefs", "--all", "--quiet", disk)
        run("mkfs.ext4", "-q", "-F", disk)
        try:
            report = layout_run.apply(wiping, FailingMachine(cuts + 1, torn), lambda: False)
        except Cut:
            cuts += 1
        else:
            assert report.problem is None
            break
        untouched = probe(disk).get("TYPE") == "ext4"
        report = layout_run.apply(wiping if untouched else Request(layout), LocalMachine(), lambda: False)
        assert report.problem is None, (cuts, report.problem)
        assert [probe(f"{disk}p{number}").get("TYPE") for number in (1, 2, 3)] == ["ext4", "swap", None]
        assert layout_run.apply(Request(layout), LocalMachine(), lambda: False).done == ()
    assert cuts > 10


def test_a_btrfs_on_two_disks_that_is_made_again_is_completed_after_a_cut_at_any_moment(loops):
    """What a cut leaves on one of the disks is not taken for what a failed disk left, over which nothing is made."""
    hardware = loops.hardware([600 * MIB, 600 * MIB])
    wiped = tuple(disk["id"] for disk in hardware["disks"])
    larger, smaller = ({"id": "data", "type": "btrfs", "size": size, "mount": "/srv"} for size in (300, 200))
    before, after = (Planner([space]).plan(hardware)["schema"] for space in (larger, smaller))
    first = Request(parse_static_schema(before), wipe=wiped)
    wanted = Request(parse_static_schema(after), wipe=wiped)
    cuts = 0
    while True:
        assert layout_run.apply(first, LocalMachine(), lambda: False).problem is None
        try:
            report = layout_run.apply(wanted, FailingMachine(cuts + 1, torn=True), lambda: False)
        except Cut:
            cuts += 1
        else:
            assert report.problem is None
            assert sum("as to be made again" in step.says for step in report.done) == 2
            break
        report = layout_run.apply(wanted, LocalMachine(), lambda: False)
        assert report.problem is None, (cuts, report.problem)
        assert [probe(device).get("TYPE") for device in after["fss"][0]["devices"]] == ["btrfs", "btrfs"]
        assert layout_run.apply(Request(wanted.layout), LocalMachine(), lambda: False).done == ()
    assert cuts > 10


def empty_table(disk, guid):
    script = f"label: gpt\nlabel-id: {guid}\nfirst-lba: 2048\n"
    subprocess.run(["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", disk], input=script, text=True, check=True)


def erase(disk, *regions):
    with open(disk, "r+b") as file:
        for start, size in regions:
            file.seek(start)
            file.write(bytes(size))


def halves(sector, size):
    """What of an empty table is erased again, in the words of what is left."""
    room = 2 * sector + 16384
    tail = (size - room, room)
    return {
        "the backup": [(0, room)],
        "both headers": [(0, 512)],
        "the first header": [(0, 512), tail],
        "the protective MBR": [(sector, room), tail],
    }


@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize("left", halves(512, 0))
def test_a_cut_in_the_first_write_of_a_table_takes_no_permission(loops, left, sector):
    disk = new_disk(loops, size=300, sector=sector)
    empty_table(disk, table_uuid(disk))
    erase(disk, *halves(sector, 300 * MIB)[left])
    found = run("wipefs", "--noheadings", "--output", "TYPE", disk).split()
    assert found, "a part of a table"
    options = {"schema": schema(disk, {"name": "boot", "size": 100, **EXT4})}
    made = apply(options)
    assert (made["changed"], made["destroys"]) == (True, [])
    assert salt_of_table(disk, table_of(disk)["id"]) is not None
    assert not apply(options)["changed"]


@pytest.mark.parametrize("other", ["another table", "a file system", "data beside an MBR"])
def test_half_a_table_that_a_cut_does_not_explain_is_kept(loops, other):
    disk = new_disk(loops, size=300)
    empty_table(disk, "11111111-2222-4333-8444-555555555555" if other == "another table" else table_uuid(disk))
    erase(disk, *halves(512, 300 * MIB)["the protective MBR" if other == "data beside an MBR" else "the backup"])
    if other == "a file system":
        run("mkfs.ext4", "-q", "-F", disk, "200m")
    if other == "data beside an MBR":
        with open(disk, "r+b") as file:
            file.seek(MIB)
            file.write(os.urandom(MIB))
    before = digest(disk)
    assert "is not empty" in refuse({"schema": schema(disk, {"name": "boot", "size": 100, **EXT4})})
    assert digest(disk) == before
