# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""EFI system partitions stay alike when packages write to the mounted one: dpkg, kernel-install, FAT and the journal are a machine's own.

The packages are made here; what starts from the partitions is tested in test_install.py. TEST_TORN_SEEDS is the number of power cuts (4).
"""

from __future__ import annotations

import os
import random
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._booting import esp_sync
from ansible_collections.bareon.allocator.plugins.module_utils._booting.system import Folder
from ansible_collections.bareon.allocator.plugins.module_utils._storage.gpt import ESP
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine
from ansible_collections.bareon.allocator.tests.support.vm import torn_disks
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.support.vm.recorded_disks import Served
from ansible_collections.bareon.allocator.tests.support.vm.torn_runs import State
from ansible_collections.bareon.allocator.tests.support.vm.user_mode import UserModeMachine
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

MIB = 1024**2
SEEDS = int(os.environ.get("TEST_TORN_SEEDS", "4"))
ONE, TWO, OTHER = DISKS = tuple(Disk(name, 96 * MIB) for name in ("ONE", "TWO", "OTHER"))
UUIDS = {disk.serial: f"0000000{number}-1111-4222-8333-444444444444" for number, disk in enumerate(DISKS, 1)}
ESPS = {f"{disk.link}-part1": UUIDS[disk.serial] for disk in (ONE, TWO)}
SYSTEM = Folder("/", RecordingMachine(folders={"/usr/bin": ["dpkg", "kernel-install"], "/usr/sbin": ["update-initramfs"]}))

KERNEL = """set -e
rm -rf /tmp/package; mkdir -p /tmp/package/DEBIAN; cd /tmp/package
printf 'Package: linux-image-%s\\nVersion: 1\\nArchitecture: all\\nMaintainer: tests\\nDescription: none\\n' "$1" >DEBIAN/control
cat >DEBIAN/postinst <<END
#!/bin/sh -e
mkdir -p /boot/efi/os/$1 /boot/efi/loader/entries
head -c $2 /dev/urandom >/boot/efi/os/$1/linux
echo linux /os/$1/linux >/boot/efi/loader/entries/$1.conf
END
cat >DEBIAN/postrm <<END
#!/bin/sh
[ \\$1 != remove ] || rm -r /boot/efi/os/$1 /boot/efi/loader/entries/$1.conf
END
chmod 755 DEBIAN/postinst DEBIAN/postrm
dpkg-deb --build --root-owner-group /tmp/package "/tmp/linux-image-$1.deb" >/dev/null
"""
"""A shell's words: a package that does what those of kernels do on such a system, of this version and with so many bytes."""


class Host(LayoutHost):
    """A machine with an EFI system partition on each disk, of which that of ONE is mounted, and that of OTHER is not of the layout."""

    def make(self) -> None:
        for disk in DISKS:
            table = f"label: gpt\\nsize=64MiB, type={ESP}, uuid={UUIDS[disk.serial]}\\n"
            self.shell(f"printf '{table}' | sfdisk -q {disk.link}; udevadm settle")
            self.shell(f"mkfs.vfat -n {disk.serial} {disk.link}-part1 >/dev/null")
        self.shell(f"mkdir -p /boot/efi; mount {ONE.link}-part1 /boot/efi; mkdir -p /boot/efi/EFI/BOOT /boot/efi/loader")
        self.shell("cd /boot/efi; head -c 3000000 /dev/urandom >EFI/BOOT/BOOTX64.EFI; echo seed >loader/random-seed")
        self.shell("echo default >'/boot/efi/loader/a b.conf'")

    def set_up(self) -> None:
        for step in esp_sync.plan("/boot/efi", ESPS, SYSTEM, True):
            self.machine.run(*step.command)

    def kernel(self, version: str, size: int = 100000) -> None:
        self.machine.run("sh", "-c", KERNEL, "sh", version, str(size))
        self.shell(f"dpkg -i /tmp/linux-image-{version}.deb >/dev/null 2>&1")

    def files(self, disk: Disk) -> dict[str, str]:
        """The digests of the files on a partition that is not mounted, by path."""
        self.shell(f"mount -o ro {disk.link}-part1 /mnt")
        found = self._digests("/mnt")
        self.shell("umount /mnt")
        return found

    def mounted(self) -> dict[str, str]:
        return {path: digest for path, digest in self._digests("/boot/efi").items() if path != "./loader/random-seed"}

    def _digests(self, folder: str) -> dict[str, str]:
        lines = self.shell(f"cd {folder}; find . -type f -exec sha256sum {{}} +").splitlines()
        return {path: digest for digest, path in (line.split("  ") for line in lines)}

    def journal(self) -> str:
        return self.shell("journalctl --sync; journalctl --output=cat --identifier=bareon-esp-sync")

    def bytes_of(self, disk: Disk) -> str:
        return self.shell(f"sync; echo 3 >/proc/sys/vm/drop_caches; sha256sum {disk.link}")


def started(image: Path, root: Path, folder: Path, contents: State) -> Host:
    machine = UserModeMachine(image, folder)
    machine.start(DISKS, contents, root)
    host = Host(machine)
    host.shell("modprobe -a vfat nls_cp437 nls_ascii nls_iso8859-1 nls_utf8 || true; mkdir -p /var/log/journal")
    for disk in DISKS:
        machine.plug(disk)
    return host


@pytest.fixture
def host(image: Path, user_mode_root: Path, tmp_path: Path) -> t.Iterator[Host]:
    found = started(image, user_mode_root, tmp_path, {disk.serial: Served(disk.size) for disk in DISKS})
    try:
        found.make()
        yield found
    finally:
        found.machine.throw_away()


def test_a_package_of_a_kernel_comes_to_all_and_goes_from_all(host: Host) -> None:
    other = host.bytes_of(OTHER)
    host.set_up()
    assert host.files(TWO) == host.mounted()
    host.shell(f"mount {TWO.link}-part1 /mnt; mkdir -p /mnt/EFI/Microsoft; echo other >/mnt/EFI/Microsoft/boot.efi; umount /mnt")
    host.kernel("6.1")
    host.kernel("6.2")
    assert "./os/6.2/linux" in host.mounted()
    theirs = {"./EFI/Microsoft/boot.efi"}
    found = host.files(TWO)
    assert {path: digest for path, digest in found.items() if path not in theirs} == host.mounted()
    host.shell("dpkg -r linux-image-6.1 >/dev/null 2>&1")
    after = host.files(TWO)
    assert set(after) == {*host.mounted(), *theirs}
    assert set(found) - set(after) == {"./os/6.1/linux", "./loader/entries/6.1.conf"}
    said = host.journal()
    assert said.count("2 files written, 0 removed") == 3
    assert "0 files written, 2 removed" in said
    assert other == host.bytes_of(OTHER)
    # Nothing has changed: nothing is written.
    writes = host.machine.written(DISKS)
    host.shell("dpkg --configure -a")
    assert host.machine.written(DISKS) == writes
    assert host.journal() == said


def test_kernel_install_calls_it(host: Host) -> None:
    host.set_up()
    host.shell("echo new >/boot/efi/EFI/BOOT/grub.cfg; mkdir -p /boot; echo kernel >/tmp/vmlinuz")
    host.shell("KERNEL_INSTALL_LAYOUT=other kernel-install add 6.3 /tmp/vmlinuz")
    assert host.files(TWO) == host.mounted()
    assert "./EFI/BOOT/grub.cfg" in host.files(TWO)


def test_nothing_is_written_where_there_is_doubt(host: Host) -> None:
    host.set_up()
    before = host.bytes_of(TWO)
    host.shell("umount /boot/efi; mkdir -p /boot/efi/EFI; echo x >/boot/efi/EFI/x.efi")
    host.shell("/etc/bareon/esp-sync")
    assert "no EFI system partition is mounted at /boot/efi" in host.journal()
    # Mounted is one that is not of the layout.
    host.shell(f"mount {OTHER.link}-part1 /boot/efi; mkdir -p /boot/efi/EFI; echo x >/boot/efi/EFI/x.efi")
    assert host.machine.attempt("/etc/bareon/esp-sync").returncode == 1
    assert "is not an EFI system partition of the layout" in host.journal()
    host.shell(f"umount /boot/efi; mount {ONE.link}-part1 /boot/efi; echo y >/boot/efi/EFI/y.efi")
    # The other one is on a protected disk, by its serial number, by the label of a file system, or by a link.
    for entry in ("two", "LABEL=TWO # no", TWO.link, TWO.link.rsplit("/", 1)[-1]):
        host.shell(f"echo {entry!r} >/etc/bareon/protected; /etc/bareon/esp-sync")
        assert host.bytes_of(TWO) == before, entry
    assert host.journal().count("/etc/bareon/protected names") == 4
    host.shell("echo ONES >/etc/bareon/protected")
    # Its type is another one, or its FAT is gone.
    host.shell(f"sfdisk -q --no-reread --part-type {TWO.link} 1 L; partx -u {TWO.link}; udevadm settle")
    changed = host.bytes_of(TWO)
    assert host.machine.attempt("/etc/bareon/esp-sync").returncode == 1
    assert host.bytes_of(TWO) == changed
    assert "is not an EFI system partition with a FAT any more" in host.journal()
    host.shell(f"sfdisk -q --no-reread --part-type {TWO.link} 1 {ESP}; partx -u {TWO.link}; udevadm settle")
    # Two have the PARTUUID, as after a disk was cloned.
    host.shell(f"sfdisk -q --no-reread --part-uuid {OTHER.link} 1 {UUIDS['TWO']}; partx -u {OTHER.link}; udevadm settle")
    assert host.machine.attempt("/etc/bareon/esp-sync").returncode == 1
    assert host.bytes_of(TWO) == before
    assert f"both have the PARTUUID {UUIDS['TWO']}" in host.journal()
    host.shell(f"wipefs -q -a {OTHER.link}; partx -d {OTHER.link} || true; udevadm settle; /etc/bareon/esp-sync")
    assert host.files(TWO) == host.mounted()
    # A mounted one that has lost its boot loader is no model for others.
    before = host.bytes_of(TWO)
    host.shell("rm -r /boot/efi/EFI")
    assert host.machine.attempt("/etc/bareon/esp-sync").returncode == 1
    assert host.bytes_of(TWO) == before


def test_what_does_not_fit_leaves_whole_files_and_no_package_fails(host: Host) -> None:
    host.set_up()
    host.shell(f"mount {TWO.link}-part1 /mnt; head -c 40000000 /dev/zero >/mnt/large; umount /mnt")
    before = host.files(TWO)
    host.kernel("6.4", 35000000)
    assert host.files(TWO) == before
    assert "is it full?" in host.journal()
    host.shell(f"mount {TWO.link}-part1 /mnt; rm /mnt/large; umount /mnt; dpkg --configure -a")
    assert host.files(TWO) == host.mounted()


def test_it_ends_where_it_is_not_wanted(host: Host) -> None:
    host.set_up()
    kept = Folder("/", RecordingMachine(folders={**SYSTEM.machine.folders, "/etc/bareon": ["esps"]}))
    for step in esp_sync.plan("/boot/efi", ESPS, kept, False):
        host.machine.run(*step.command)
    before = host.bytes_of(TWO)
    host.kernel("6.5")
    assert host.bytes_of(TWO) == before
    assert host.shell("find /etc -name '*esp-sync*'; ls /etc/bareon") == ""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_after_a_power_cut_every_file_is_the_old_one_or_the_new_one(
    host: Host, seed: int, image: Path, user_mode_root: Path, tmp_path: Path
) -> None:
    host.set_up()
    host.kernel("6.1", 900000)
    old = host.files(TWO)
    host.shell("cd /boot/efi; head -c 2500000 /dev/urandom >EFI/BOOT/BOOTX64.EFI; head -c 800000 /dev/urandom >os/6.1/linux; sync")
    new, first = host.mounted(), len(host.machine.server.events)
    before = {name: Served(disk.size, dict(disk.content)) for name, disk in host.machine.server.disks.items()}
    host.shell("/etc/bareon/esp-sync")
    events, chance = list(host.machine.server.events[first:]), random.Random(seed)
    host.machine.cut_power()
    own = torn_disks.of_disks(events[: torn_disks.moment(events, chance)], [TWO.serial])
    before[TWO.serial] = Served(TWO.size, torn_disks.after_cut(before[TWO.serial].content, own, TWO.block, chance))
    (tmp_path / "after").mkdir()
    after = started(image, user_mode_root, tmp_path / "after", before)
    try:
        after.shell(f"mount -o ro {TWO.link}-part1 /mnt")
        for path in ("./EFI/BOOT/BOOTX64.EFI", "./os/6.1/linux"):
            assert after.shell(f"sha256sum /mnt/{path}").split()[0] in (old[path], new[path]), (seed, path)
        after.shell("umount /mnt")
        after.shell(f"mkdir -p /boot/efi; mount {ONE.link}-part1 /boot/efi")
        after.set_up()
        assert after.files(TWO) == after.mounted() == new
    finally:
        after.machine.throw_away()
