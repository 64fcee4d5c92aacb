# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hooks that keep EFI system partitions alike, and the script they call, on folders in the place of partitions.

What mounts and identifies partitions are stand-ins here, which know nothing of FAT; tests/vm/test_esp_sync.py has the real ones.
"""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._booting import esp_sync
from ansible_collections.bareon.allocator.plugins.module_utils._booting.system import Folder
from ansible_collections.bareon.allocator.plugins.module_utils._storage.gpt import ESP
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine

ONE, TWO = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
ESPS = {"/dev/a-part1": ONE, "/dev/b-part1": TWO}
STAND_INS = """
identity() {{ printf 'TYPE=vfat\\nPART_ENTRY_TYPE={type}\\nPART_ENTRY_UUID=%s\\n' "$(cat "$1.uuid")"; }}
blkid() {{ for one in {root}/dev/*.uuid; do [ "PARTUUID=$(cat "$one")" != "$4" ] || echo "${{one%.uuid}}"; done; }}
findmnt() {{ case "$1" in --source) return 1 ;; *) cat {root}/mounted ;; esac; }}
mount() {{ for last; do :; done; for word; do [ "$word" = "$last" ] || from=$word; done; rmdir "$last"; ln -s "$from" "$last"; }}
umount() {{ rm "$1"; mkdir "$1"; }}
flock() {{ :; }}
logger() {{ :; }}
command() {{ return 1; }}
sync() {{ :; }}
lsblk() {{ case "$*" in *KNAME*) echo disk ;; *SERIAL*) echo "SN 42" ;; esac; }}
"""


def system(**folders):
    return Folder("/target", RecordingMachine(folders={f"/target/{name.replace('_', '/')}": names for name, names in folders.items()}))


def files_of(steps):
    return {step.command[4]: step.command[-2] for step in steps if step.command[0] == "sh" and len(step.command) == 7}


@pytest.mark.parametrize(
    ("found", "hooks"),
    [
        ({"usr_bin": ["dpkg"], "usr_sbin": ["update-initramfs"]}, {"dpkg.cfg.d/bareon-esp-sync", "post-update.d/zz-bareon-esp-sync"}),
        (
            {"usr_bin": ["rpm", "kernel-install"]},
            {"install.d/zz-bareon-esp-sync.install", "system/bareon-esp-sync.path", "system/bareon-esp-sync.service"},
        ),
        ({}, set()),
    ],
)
def test_each_distribution_gets_the_hooks_that_it_has(found, hooks):
    steps = list(esp_sync.plan("/efi", ESPS, system(**found), True))
    written = files_of(steps)
    assert {"/".join(file.rsplit("/", 2)[1:]) for file in written} == {"bareon/esps", "bareon/esp-sync", *hooks}
    assert written["/etc/bareon/esps"].splitlines()[1:] == ["place /efi", f"partition {ONE}", f"partition {TWO}"]
    assert (steps[-1].command, steps[-1].esp) == (("/etc/bareon/esp-sync", "--all"), "/dev/a-part1")
    for text in (text for file, text in written.items() if text.startswith("#!/bin/sh")):
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)


def test_one_alone_needs_none_and_what_was_there_goes():
    one = {"/dev/a-part1": ONE}
    assert list(esp_sync.plan("/efi", one, system(), True)) == []
    assert list(esp_sync.plan("/efi", ESPS, system(), False)) == []
    for esps, wanted in ((one, True), (ESPS, False)):
        (step,) = esp_sync.plan("/efi", esps, system(etc_bareon=["esps"]), wanted)
        assert step.command[:2] == ("rm", "-f")
        everything = files_of(
            esp_sync.plan("/efi", ESPS, system(usr_bin=["dpkg", "rpm", "kernel-install"], usr_sbin=["update-initramfs"]), True)
        )
        assert set(everything) < set(step.command)


class Partitions:
    """Folders that stand in for a mounted partition and another one."""

    def __init__(self, root):
        self.root, self.mounted, self.other = root, root / "dev/one", root / "dev/two"
        for folder, uuid in ((self.mounted, ONE), (self.other, TWO)):
            (folder / "EFI/BOOT").mkdir(parents=True)
            folder.with_suffix(".uuid").write_text(uuid)
        (root / "mounted").write_text(str(self.mounted))
        (root / "etc").mkdir()
        (root / "etc/esps").write_text(f"place {self.mounted}\npartition {ONE}\npartition {TWO}\n")
        self.write("EFI/BOOT/BOOTX64.EFI", "loader")
        text = files_of(esp_sync.plan("/efi", ESPS, system(), True))["/etc/bareon/esp-sync"]
        for before, after in (("/etc/bareon", "etc"), ("/var/lib/bareon.allocator", "var"), ("/run/bareon-esp-sync", "run")):
            text = text.replace(before, str(root / after))
        place = text.index("write_file() {")
        self.script = text[:place] + STAND_INS.format(root=root, type=ESP) + text[place:]

    def write(self, path, text):
        file = self.mounted / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, *arguments):
        done = subprocess.run(["sh", "-c", self.script, "sh", "--inside", *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def copied(self):
        return {str(file.relative_to(self.other)): file.read_text() for file in self.other.rglob("*") if file.is_file()}


@pytest.fixture
def partitions(tmp_path):
    return Partitions(tmp_path)


def test_what_changes_is_copied_and_what_goes_is_removed(partitions):
    partitions.write("os/6.1/linux", "kernel")
    partitions.write("loader/random-seed", "seed")
    (partitions.other / "EFI/other.efi").write_text("other")
    code, said = partitions.run()
    assert (code, "2 files written, 0 removed" in said) == (0, True)
    kept = {"EFI/BOOT/BOOTX64.EFI": "loader", "EFI/other.efi": "other"}
    assert partitions.copied() == {**kept, "os/6.1/linux": "kernel"}
    (partitions.mounted / "os/6.1/linux").unlink()
    partitions.write("os/6.2/linux", "kernel")
    code, said = partitions.run()
    assert (code, "1 files written, 1 removed" in said) == (0, True)
    assert partitions.copied() == {**kept, "os/6.2/linux": "kernel"}
    assert not (partitions.other / "os/6.1").exists()
    assert partitions.run() == (0, "")


def test_only_all_compares_what_nobody_has_changed(partitions):
    partitions.run()
    (partitions.other / "EFI/BOOT/BOOTX64.EFI").write_text("torn")
    assert partitions.run() == (0, "")
    assert "1 files written" in partitions.run("--all")[1]
    assert partitions.copied() == {"EFI/BOOT/BOOTX64.EFI": "loader"}


def test_doubt_copies_nothing(partitions):
    (partitions.root / "etc/protected").write_text('# disks\nserial="sn 42" # mine\n')
    code, said = partitions.run()
    assert (code, "protected names" in said, partitions.copied()) == (0, True, {})
    (partitions.root / "etc/protected").write_text("# SN 42\nSN 421\n")
    (partitions.root / "dev/three.uuid").write_text(TWO)
    code, said = partitions.run()
    assert (code, f"both have the PARTUUID {TWO}" in said, partitions.copied()) == (1, True, {})
    (partitions.root / "dev/three.uuid").unlink()
    (partitions.mounted / "EFI/BOOT/BOOTX64.EFI").rename(partitions.root / "kept")
    code, said = partitions.run()
    assert (code, "has no boot loader" in said, partitions.copied()) == (1, True, {})
    (partitions.root / "kept").rename(partitions.mounted / "EFI/BOOT/BOOTX64.EFI")
    (partitions.root / "mounted").write_text("")
    code, said = partitions.run()
    assert (code, "no EFI system partition is mounted" in said, partitions.copied()) == (0, True, {})
    (partitions.root / "mounted").write_text(str(partitions.mounted))
    assert partitions.run()[0] == 0
    assert partitions.copied() == {"EFI/BOOT/BOOTX64.EFI": "loader"}
