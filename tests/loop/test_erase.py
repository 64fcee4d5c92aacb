# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_erase as Ansible runs it, on loop devices: every byte goes, and nothing goes that is in use, protected or not named."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._erase.record import FOLDER
from ansible_collections.bareon.allocator.tests.loop.layout_runs import COLLECTIONS, MIB, Mounted, apply, digest, merged, run, schema
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

Plain = dict[str, t.Any]
SIZE = 96
COMMAND = ("-m", "ansible_collections.bareon.allocator.plugins.modules.disk_erase")
EXT4 = {"fs_type": "ext4"}


@pytest.fixture(autouse=True)
def _records_are_gone_afterwards() -> t.Iterator[None]:
    before = set(pathlib.Path(FOLDER).glob("*"))
    yield
    for file in set(pathlib.Path(FOLDER).glob("*")) - before:
        file.unlink()


def start(disks: t.Sequence[str], check: bool = False, **options: t.Any) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, *COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(COLLECTIONS)},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps({"ANSIBLE_MODULE_ARGS": {"disks": list(disks), **options, "_ansible_check_mode": check}}))
    process.stdin.close()
    return process


def erase(disks: t.Sequence[str], check: bool = False, **options: t.Any) -> Plain:
    process = start(disks, check, lock_timeout=60, **options)
    assert process.stdout is not None
    assert process.stderr is not None
    text, errors = process.stdout.read().strip(), process.stderr.read()
    process.wait()
    assert text.startswith("{"), text + errors
    return t.cast("Plain", json.loads(text))


def new_disks(loops: Loops, number: int, sector: int = 512) -> list[str]:
    """Return disks with a partition and an ext4, and other data everywhere else."""
    disks = [disk["dev"] for disk in loops.hardware([SIZE * MIB] * number, sector)["disks"]]
    apply(
        {
            "schema": merged(
                *(schema(disk, {"name": f"space{at}", "size": 40, "mount": f"/srv/{at}", **EXT4}) for at, disk in enumerate(disks))
            )
        }
    )
    for at, disk in enumerate(disks):
        with open(disk, "r+b") as file:
            file.seek(50 * MIB)
            file.write(random.Random(at).randbytes(20 * MIB))
    return disks


def is_zero(disk: str) -> bool:
    return subprocess.run(["cmp", "--silent", f"--bytes={SIZE * MIB}", disk, "/dev/zero"], check=False).returncode == 0


@pytest.mark.parametrize(("method", "sector"), [("auto", 512), ("zero", 4096), ("discard", 512)])
def test_every_byte_goes_and_no_other_disk_changes(loops: Loops, method: str, sector: int) -> None:
    one, two, other = new_disks(loops, 3, sector)
    before = digest(other)
    expected = erase([one, two], check=True, method=method)
    assert not is_zero(one)
    assert expected["changed"]
    assert expected["records"] == []
    assert [content["kind"] for loss in expected["destroys"] for content in loss["contents"]] == ["gpt table", "ext4"] * 2

    done = erase([one, two], method=method, confirm=expected["destroys_digest"])
    assert done["changed"]
    assert [step["says"] for step in done["steps"]] == [step["says"] for step in expected["steps"]]
    assert is_zero(one)
    assert is_zero(two)
    assert digest(other) == before
    assert [(record["disk"], record["verified"], record["size"]) for record in done["records"]] == [
        (disk, True, SIZE * MIB) for disk in (one, two)
    ]
    assert run("lsblk", "--noheadings", "--output=NAME", one).split() == [one.rsplit("/", 1)[-1]]

    for check in (True, False):
        again = erase([one, two], check=check, method=method)
        assert not again["changed"]
        assert again["records"] == done["records"]
    with open(one, "r+b") as file:
        file.seek(70 * MIB)
        file.write(b"a new tenant")
    once_more = erase([one, two], method=method)
    assert [step["says"].split(" ")[3] for step in once_more["steps"]] == [one]
    assert is_zero(one)


def swap_on(disk: str, _folder: pathlib.Path) -> contextlib.AbstractContextManager[t.Any]:
    run("mkswap", f"{disk}p1", "-f")
    run("swapon", f"{disk}p1")
    return contextlib.closing(_Closing("swapoff", f"{disk}p1"))


class _Closing:
    def __init__(self, *command: str) -> None:
        self._command = command

    def close(self) -> None:
        run(*self._command)


def opened(disk: str, _folder: pathlib.Path) -> contextlib.AbstractContextManager[t.Any]:
    return open(f"{disk}p1", "rb")


def read_only(disk: str, _folder: pathlib.Path) -> contextlib.AbstractContextManager[t.Any]:
    run("blockdev", "--setro", disk)
    return contextlib.closing(_Closing("blockdev", "--setrw", disk))


def mounted_elsewhere(disk: str, folder: pathlib.Path) -> contextlib.AbstractContextManager[t.Any]:
    script = f"mount {disk}p1 {folder} && echo there && exec sleep 1000"
    process = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"

    @contextlib.contextmanager
    def running() -> t.Iterator[None]:
        yield
        process.kill()
        process.wait()

    return running()


def loop_on(disk: str, _folder: pathlib.Path) -> contextlib.AbstractContextManager[t.Any]:
    return contextlib.closing(_Closing("losetup", "--detach", run("losetup", "--find", "--show", f"{disk}p1").strip()))


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda disk, folder: Mounted(f"{disk}p1", folder), id="mounted"),
        pytest.param(mounted_elsewhere, id="mounted in another namespace"),
        pytest.param(swap_on, id="swap"),
        pytest.param(opened, id="open in a process"),
        pytest.param(loop_on, id="a loop device"),
        pytest.param(read_only, id="read-only"),
    ],
)
def test_what_is_in_use_keeps_all_disks_as_they_are(loops: Loops, tmp_path: pathlib.Path, use: t.Callable[..., t.Any]) -> None:
    one, two = new_disks(loops, 2)
    folder = tmp_path / "mounted"
    folder.mkdir()
    with use(one, folder):
        before = digest(two)
        for check in (True, False):
            refused = erase([two, one], check=check)
            assert refused["failed"]
            assert not refused["changed"]
        assert digest(two) == before
        assert run("sfdisk", "--dump", one)


@pytest.mark.parametrize("how", ["id", "label"])
def test_a_protected_disk_keeps_all_as_they_are(loops: Loops, how: str) -> None:
    one, two = new_disks(loops, 2)
    run("e2label", f"{one}p1", "precious")
    before = digest(one), digest(two)
    refused = erase([one, two], protect=[{"id": one, "label": "precious"}[how]])
    assert refused["failed"]
    assert "protect" in refused["msg"]
    assert (digest(one), digest(two)) == before


def test_input_that_is_wrong_is_named_all_at_once(loops: Loops) -> None:
    (one,) = new_disks(loops, 1)
    before = digest(one)
    assert [text.split(":")[0] for text in erase([], protect=[""])["mistakes"]] == ["protect[0]", "disks"]
    refused = erase(["/dev/nothing", one, one])
    assert "disks[0]" in refused["msg"]
    assert "disks[2]" in refused["msg"]
    assert erase([one], method="crypto")["failed"]
    assert erase([one], confirm="0" * 32)["failed"]
    assert digest(one) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("seed", range(2))
def test_a_run_that_is_ended_at_any_moment_is_completed_by_the_next(loops: Loops, number: signal.Signals, seed: int) -> None:
    one, two, other = new_disks(loops, 3)
    before = digest(other)
    process = start([one, two])
    time.sleep(random.Random(seed).uniform(0.1, 1.2))
    process.send_signal(number)
    process.wait()
    done = erase([one, two])
    assert not done.get("failed"), done
    assert [record["verified"] for record in done["records"]] == [True, True]
    assert is_zero(one)
    assert is_zero(two)
    assert digest(other) == before


def test_a_disk_that_cannot_be_written_is_an_error_and_the_others_are_erased(loops: Loops, tmp_path: pathlib.Path) -> None:
    (one,) = new_disks(loops, 1)
    small = tmp_path / "full"
    small.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(small))
    try:
        with (small / "image").open("wb") as file:
            # An erasure of another test's loop device of this name would stand where all is zero.
            file.write(os.urandom(MIB))
            file.truncate(SIZE * MIB)
        broken = run("losetup", "--find", "--show", str(small / "image")).strip()
        try:
            ended = erase([broken, one])
            assert ended["failed"]
            assert broken in ended["msg"]
            assert [record["disk"] for record in ended["records"]] == [one]
            assert is_zero(one)
        finally:
            run("losetup", "--detach", broken)
    finally:
        run("umount", str(small))


def test_records_are_roots_alone(loops: Loops) -> None:
    (one,) = new_disks(loops, 1)
    shutil.rmtree(FOLDER, ignore_errors=True)
    erase([one])
    (file,) = pathlib.Path(FOLDER).iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
