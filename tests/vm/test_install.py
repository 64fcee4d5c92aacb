# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""playbooks/install.yml, from bare disks to a system that starts: root in LVM on LUKS on md, from either disk alone, by BIOS and UEFI.

By UEFI also a system that has dracut and systemd-boot instead of Debian's initramfs and GRUB: its kernels lie on the EFI system partitions,
so that there the package of the kernel is configured again, with another command line, before either disk starts alone.
"""

from __future__ import annotations

import contextlib
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.ansible_run import ROOT, Played, play
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, Machine, machine

FIRST, SECOND = (Disk(name, 2304 * 1024**2, "scsi") for name in ("FIRST", "SECOND"))
PROFILE = """---
- {id: boot, type: raid, level: raid1, legs: 2, size: 300, boot: true, mount: /boot, fs_type: ext4}
- {id: mirror, type: raid, level: raid1, legs: 2, min_size: 1 GiB}
- {id: os, type: vg, contains: [mirror, root, swap], encrypt: true}
- {id: root, type: lv, min_size: 1 GiB, mount: /, fs_type: ext4}
- {id: swap, type: lv, size: 64, fs_type: swap}
"""
UPGRADED = "bareon.upgraded"
INSTALL = """---
- name: Make a folder for the key
  ansible.builtin.file: {path: /target/etc/keys, state: directory, mode: "0700"}
- name: Bring the key
  ansible.builtin.copy: {src: /etc/keys/disks, dest: /target/etc/keys/disks, mode: "0400", remote_src: true}
"""


@pytest.fixture
def host(request: pytest.FixtureRequest, image: Path, tmp_path: Path) -> t.Iterator[Machine]:
    firmware, name = request.param
    if not (image / name).exists():
        pytest.fail(
            f"there is no system to install; as root run: tests/vm/build-system {image.name} {image.parent} {name.partition('.')[0]}"
        )
    with rescue_system(image, tmp_path, firmware == "uefi") as started:
        started.run("sh", "-c", "umask 077; mkdir /etc/keys; head --bytes=64 /dev/urandom >/etc/keys/disks")
        yield started


@contextlib.contextmanager
def rescue_system(image: Path, folder: Path, uefi: bool) -> t.Iterator[Machine]:
    """Give a machine that was started by this firmware; that of the saved start is a BIOS."""
    if not uefi:
        with machine(image, folder, [FIRST, SECOND]) as started:
            yield started
        return
    made = Machine(image, folder)
    try:
        made.start([FIRST, SECOND], uefi=True)
        yield made
    finally:
        made.throw_away()


def installed(host: Machine, archive: Path, folder: Path) -> Played:
    (folder / "profile.yml").write_text(PROFILE, encoding="utf-8")
    (folder / "install.yml").write_text(INSTALL, encoding="utf-8")
    given = {
        "bareon_profile": str(folder / "profile.yml"),
        "bareon_devices": [disk.link for disk in (FIRST, SECOND)],
        "bareon_become": False,
        "bareon_image": str(archive),
        "bareon_install_tasks": str(folder / "install.yml"),
        "bareon_luks_key_file": "/etc/keys/disks",
    }
    return play(host, folder, ROOT / "playbooks" / "install.yml", given)


def check(host: Machine, disks: int) -> None:
    assert host.run("cat", "/etc/hostname").strip() == "installed"
    assert host.run("findmnt", "--noheadings", "--output", "SOURCE", "/").strip() == "/dev/mapper/os-root"
    assert host.run("lsblk", "--noheadings", "--list", "--output", "TYPE", "/dev/mapper/os-crypt").split() == ["crypt", "lvm", "lvm"]
    assert {"/boot", "/tmp"} <= set(host.run("findmnt", "--raw", "--noheadings", "--output", "TARGET").split())
    assert len(host.run("swapon", "--show", "--noheadings").splitlines()) == 1
    assert host.run("systemctl", "--failed", "--quiet", "--plain") == ""
    assert host.run("cat", "/proc/mdstat").count("[UU]") == (2 if disks == 2 else 0)


def upgrade(host: Machine) -> None:
    host.run("sed", "--in-place", f"s/$/ {UPGRADED}/", "/etc/kernel/cmdline")
    host.run("sh", "-c", "dpkg-reconfigure --frontend noninteractive linux-image-$(uname --kernel-release)")
    copied = host.run("journalctl", "--output", "cat", "--identifier", "bareon-esp-sync")
    assert "copied /boot/efi to /dev/" in copied, copied


def await_resync(host: Machine) -> None:
    host.run("sh", "-c", "echo 1000000 | tee /proc/sys/dev/raid/speed_limit_min /proc/sys/dev/raid/speed_limit_max")
    while host.run("sh", "-c", "cat /sys/block/md*/md/sync_action").split() != ["idle", "idle"]:
        time.sleep(2)


@pytest.mark.parametrize(
    "host",
    [("bios", "system.tar.gz"), ("uefi", "system.tar.gz"), ("uefi", "system-dracut.tar.gz")],
    ids=["bios", "uefi", "uefi-systemd-boot-dracut"],
    indirect=True,
)
def test_a_system_is_installed_once_and_starts_from_either_disk(
    host: Machine, image: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    firmware, name = request.node.callspec.params["host"]
    uefi = firmware == "uefi"
    installed(host, image / name, tmp_path)
    again = installed(host, image / name, tmp_path)
    assert again.changed == 0, again.output
    fstab = host.run("cat", "/target/etc/fstab").splitlines()
    assert [line for line in fstab if "image-" in line] == [
        "# of the image: LABEL=image-root / ext4 defaults 0 1",
        "# of the image: LABEL=image-efi /boot/efi vfat defaults 0 1",
    ]
    await_resync(host)
    host.shut_down()

    host.start_from_disks([FIRST, SECOND], uefi)
    check(host, 2)
    has_kernels_on_esps = name == "system-dracut.tar.gz"
    if has_kernels_on_esps:
        upgrade(host)
    host.shut_down()
    # They do not meet again, so that what each of them wrote alone is in nobody's way.
    for disk in (SECOND, FIRST):
        host.start_from_disks([disk], uefi)
        check(host, 1)
        assert (UPGRADED in host.run("cat", "/proc/cmdline").split()) is has_kernels_on_esps
        host.shut_down()
