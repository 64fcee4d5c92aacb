# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A power cut at any moment leaves whole tables, and a note that an image was unpacked only where all of it is.

What has reached the file behind a loop device is what a cut leaves of the disk; a copy of that file is taken after each program that ran.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.module_utils._mounting import MountPlan, carry_out
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine
from ansible_collections.bareon.allocator.plugins.module_utils._steps.whole_file import replace_file
from ansible_collections.bareon.allocator.tests.loop.layout_runs import run

ROLE = Path(__file__).parents[2] / "roles" / "disk_layout"
NOTE = "var/lib/bareon.allocator/unpacked"
SIZE = 400 * 1024**2


class CutDisk:
    """A file system on a loop device, mounted at `root`, and what a cut would leave of it."""

    def __init__(self, folder: Path, fs_type: str) -> None:
        self.fs_type, self.image, self.root, self.left = fs_type, folder / "disk.img", folder / "root", folder / "left"
        with self.image.open("wb") as file:
            file.truncate(SIZE)
        self.root.mkdir()
        self.left.mkdir()
        run(f"mkfs.{fs_type}", "-q", str(self.image))
        self.device = run("losetup", "--find", "--show", str(self.image)).strip()
        run("mount", self.device, str(self.root))

    def cut(self, copy: Path) -> dict[str, str]:
        """Return the digests of all files that a disk of this content has after a start, by path."""
        device = run("losetup", "--find", "--show", str(copy)).strip()
        try:
            run("mount", *(["-o", "nouuid"] if self.fs_type == "xfs" else []), device, str(self.left))
            try:
                return digests(self.left)
            finally:
                run("umount", str(self.left))
        finally:
            run("losetup", "--detach", device)

    def remove(self) -> None:
        subprocess.run(["umount", str(self.root)], check=False)
        run("losetup", "--detach", self.device)


def digests(folder: Path) -> dict[str, str]:
    files = [Path(top) / name for top, _folders, names in os.walk(folder) for name in names]
    return {str(file.relative_to(folder)): hashlib.blake2b(file.read_bytes()).hexdigest() for file in files}


@pytest.fixture(params=["ext4", "xfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CutDisk]:
    found = CutDisk(tmp_path, request.param)
    yield found
    found.remove()


def copied(disk: CutDisk, name: str) -> Path:
    copy = disk.image.with_name(name)
    run("cp", "--sparse=always", str(disk.image), str(copy))
    return copy


def test_an_fstab_is_there_whole_as_soon_as_the_run_goes_on(disk: CutDisk) -> None:
    fstab, machine = disk.root / "etc/fstab", LocalMachine()
    replace_file(str(fstab), "LABEL=root / xfs defaults 0 0\n" * 20)
    after = f"{fstab.read_text(encoding='utf-8')}tmpfs /tmp tmpfs defaults 0 0\n"
    plan = MountPlan(fstab.read_text(encoding="utf-8"), after)
    carry_out(plan, str(fstab), machine, lambda text: replace_file(str(fstab), text))
    # Others make the file system write its journal, and with it the name of a file whose text is not there yet.
    (disk.root / "etc/other").write_text("x", encoding="utf-8")
    machine.flush([str(disk.root / "etc/other")])
    assert disk.cut(copied(disk, "cut"))["etc/fstab"] == hashlib.blake2b(after.encode()).hexdigest()


def note_script(root: Path) -> str:
    """The shell text by which the role notes that an image is unpacked, as it stands in its tasks."""
    tasks = yaml.safe_load((ROLE / "tasks/unpack_image.yml").read_text(encoding="utf-8"))
    given = [task.get("bareon.allocator.host_answer", {}).get("arguments", {}) for task in tasks]
    (text,) = [arguments["cmd"] for arguments in given if "cmd" in arguments and "removes" in arguments]
    values = {
        "root": str(root),
        "__disk_layout_unpacked_into": str(root),
        "__disk_layout_unpacked": str(root / NOTE),
        "__disk_layout_unpacking": str(root / ".bareon-unpacking"),
        "image": "system.tar",
    }
    return re.sub(r"\{\{ (?:__disk_layout_option\.)?(\w+)[^}]*\}\}", lambda match: values[match[1]], t.cast("str", text))


def unpacking(image: Path, root: Path) -> list[str]:
    """The command by which the role unpacks an image, as it stands in its tasks."""
    tasks = yaml.safe_load((ROLE / "tasks/unpack_image.yml").read_text(encoding="utf-8"))
    given = [task.get("bareon.allocator.host_answer", {}).get("arguments", {}) for task in tasks]
    (words,) = [arguments["argv"] for arguments in given if "tar" in arguments.get("argv", [])]
    replaced = {"--file=": str(image), "--directory=": str(root)}
    named = [(next((key for key in replaced if word.startswith(key)), ""), word) for word in words]
    return [f"{key}{replaced[key]}" if key else word for key, word in named]


@pytest.mark.parametrize("prefix", ["./", "", "/"])
def test_an_image_of_a_system_that_was_unpacked_brings_no_note(tmp_path: Path, prefix: str) -> None:
    """A run that was cut off while it was unpacked would not be repeated. tar --absolute-names keeps the slash in front."""
    source, root = tmp_path / "source", tmp_path / "root"
    root.mkdir()
    for name in (NOTE, "var/lib/other/file", f"srv/copy/{NOTE}"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("x", encoding="utf-8")
    image = tmp_path / "system.tar"
    rename = f"--transform=s,^\\./,{prefix},"
    run("tar", "--create", "--absolute-names", f"--file={image}", f"--directory={source}", rename, "./srv", "./var")
    assert f"{prefix}{NOTE}" in run("tar", "--list", "--absolute-names", f"--file={image}").splitlines()
    run(*unpacking(image, root))
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()) == [f"srv/copy/{NOTE}", "var/lib/other/file"]


def test_an_image_is_noted_as_unpacked_when_all_of_it_is_on_the_disk(disk: CutDisk, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for number in range(300):
        file = source / f"usr/lib/{number % 7}/{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(7000 + number))
    run("tar", "--create", f"--file={tmp_path}/system.tar", f"--directory={source}", ".")
    wanted = digests(source)

    # Each program of the text is run by one of the same name, which keeps the disk as a cut after it would leave it.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sync", "mkdir", "chmod", "mv"):
        copy = f'cp --sparse=always {disk.image} "{tmp_path}/cut.$(ls {tmp_path} | grep -c "^cut")"'
        (tools / name).write_text(f'#!/bin/sh\n{copy}\n{shutil.which(name)} "$@"\n{copy}\n', encoding="utf-8")
        (tools / name).chmod(0o755)
    (disk.root / ".bareon-unpacking").touch()
    run("tar", "--extract", f"--file={tmp_path}/system.tar", f"--directory={disk.root}")
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", note_script(disk.root)], env=environment, check=True, capture_output=True)
    cuts = [disk.cut(copy) for copy in (*sorted(tmp_path.glob("cut.*")), copied(disk, "end"))]

    noted = [found for found in cuts if NOTE in found]
    assert len(cuts) >= 13
    assert noted
    assert ".bareon-unpacking" not in cuts[-1]
    for found in noted:
        assert found[NOTE] == hashlib.blake2b(b"system.tar\n").hexdigest()
        assert {path: digest for path, digest in found.items() if path in wanted} == wanted
    # The copies do tell: before the first sync not all of it was there.
    assert {path: digest for path, digest in cuts[0].items() if path in wanted} != wanted
