# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is done to make a system in a folder start from its disks, and what it lacks for that; tests/vm starts one."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._booting.carry_out import make_bootable
from ansible_collections.bareon.allocator.plugins.module_utils._booting.plan import STAMP, Extras, plan_boot, why_archive_not
from ansible_collections.bareon.allocator.plugins.module_utils._booting.system import compression_of, list_archive
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import readable_layout
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine, StepFailed
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine

BIOS_BOOT = "21686148-6449-6e6f-744e-656564454649"
ESP = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
LINUX = "0fc63daf-8483-4772-8e79-3d69d8477de4"


def disk(name, *guids):
    parts = [{"name": f"{name}-part{number}", "guid": guid} for number, guid in enumerate(guids, start=1)]
    return {"name": name, "partitions": parts}


def fat(device, mount="none"):
    return {"device": device, "mount": mount, "fs_type": "vfat"}


BIOS = {"parteds": [disk("/dev/a", BIOS_BOOT, LINUX), disk("/dev/b", BIOS_BOOT), disk("/dev/c", LINUX)]}
UEFI = {"parteds": [disk("/dev/a", ESP), disk("/dev/b", ESP)], "fss": [fat("/dev/a-part1", "/boot/efi"), fat("/dev/b-part1")]}
LAYOUT = readable_layout(UEFI)
WHOLE = {**BIOS, "luks": [{}], "mds": [{}], "lvs": [{}]}

FOLDERS = {
    "/target/boot": ["initrd.img-6.1", "vmlinuz", "vmlinuz-6.1"],
    "/target/usr/sbin": ["grub-install", "update-initramfs"],
    "/target/usr/lib/grub": ["i386-pc", "x86_64-efi"],
    "/target/usr/share/initramfs-tools/hooks": ["cryptroot", "lvm2", "mdadm"],
}


def without(name):
    return {folder: [one for one in names if one != name] for folder, names in FOLDERS.items()}


def plan(schema, folders=None, files=None, root="/target", processor="x86_64", extras=None):
    machine = RecordingMachine(files=files, folders=FOLDERS if folders is None else folders)
    return plan_boot(readable_layout(schema), root, machine, processor, extras or Extras())


def test_grub_comes_onto_every_disk():
    found, refusals = plan(WHOLE)
    assert refusals == ()
    assert [step.command for step in found.steps[1:]] == [
        ("update-initramfs", "-u", "-k", "6.1"),
        ("grub-install", "--target=i386-pc", "/dev/a"),
        ("grub-install", "--target=i386-pc", "/dev/b"),
        ("grub-mkconfig", "-o", "/boot/grub/grub.cfg"),
    ]


def test_what_is_on_an_array_that_lacks_a_member_is_opened_in_the_round_in_which_that_starts(tmp_path):
    """Debian's script for LUKS comes before the one for arrays, and there may be no other round."""
    found, _refusals = plan(WHOLE)
    *command, file, script, mode = found.steps[0].command
    written = tmp_path / file.lstrip("/")
    subprocess.run([*command, written, script, mode], check=True)
    assert subprocess.run([written, "prereqs"], capture_output=True, text=True, check=True).stdout == "mdadm\n"
    said = []
    for number, (elapsed, delay) in enumerate(((19, ""), (20, ""), (119, "180"), (120, "180"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        tools = f"time_elapsed() {{ echo {elapsed}; }}; wait_for_udev() {{ :; }}; mdadm() {{ echo mdadm; }}"
        (folder / "functions").write_text(tools)
        (folder / "cryptroot").write_text("#!/bin/sh\necho opened in $CRYPTROOT_STAGE\n")
        (folder / "cryptroot").chmod(0o755)
        text = script.replace("/scripts/local-top/", f"{folder}/").replace("/scripts/", f"{folder}/").replace("/run/", f"{folder}/")
        once, twice = (
            subprocess.run(
                ["sh", "-c", text], env={"ROOTDELAY": delay, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
            ).stdout
            for _time in range(2)
        )
        said.append(once.split())
        assert twice == ""
    done = ["mdadm", "mdadm", "opened", "in", "local-block"]
    assert said == [[], done, [], done]
    assert "arrays" not in str(plan(BIOS)[0].steps)


def test_an_initramfs_that_is_not_there_is_made_and_every_kernel_has_its_own():
    found, _refusals = plan(BIOS, {**FOLDERS, "/target/boot": ["initrd.img-6.1", "vmlinuz-6.1", "vmlinuz-6.2"]})
    assert [step.command for step in found.steps[:2]] == [
        ("update-initramfs", "-u", "-k", "6.1"),
        ("update-initramfs", "-c", "-k", "6.2"),
    ]
    made, _refusals = plan(BIOS, without("initrd.img-6.1"))
    assert made.steps[0].command[1] == "-c"
    assert made.stamp == plan(BIOS)[0].stamp


def test_grub_comes_onto_every_esp_which_is_mounted_for_it():
    found, refusals = plan(UEFI)
    assert refusals == ()
    efi = ("grub-install", "--target=x86_64-efi", "--efi-directory=/boot/efi", "--removable", "--no-nvram")
    assert [(step.command, step.esp) for step in found.steps[1:3]] == [(efi, "/dev/a-part1"), (efi, "/dev/b-part1")]
    assert {found.steps[0].esp, found.steps[3].esp} == {""}


def test_other_distributions_have_other_commands():
    folders = {"/target/boot": ["vmlinuz-5"], "/target/usr/sbin": ["grub2-install"], "/target/usr/lib/grub": ["i386-pc"]}
    dracut, refusals = plan(BIOS, {**folders, "/target/usr/bin": ["dracut"]})
    assert refusals == ()
    assert [step.command[:3] for step in dracut.steps[:3]] == [
        ("dracut", "--regenerate-all", "--force"),
        ("grub2-install", "--target=i386-pc", "/dev/a"),
        ("grub2-install", "--target=i386-pc", "/dev/b"),
    ]
    assert dracut.steps[3].command == ("grub2-mkconfig", "-o", "/boot/grub2/grub.cfg")
    arch, refusals = plan(BIOS, {**folders, "/target/usr/bin": ["mkinitcpio"]})
    assert (arch.steps[0].command, refusals) == (("mkinitcpio", "-P"), ())


def test_dracut_is_told_to_look_for_what_root_lies_on():
    folders = {**FOLDERS, "/target/usr/sbin": ["grub-install", "cryptsetup", "mdadm", "lvm"], "/target/usr/bin": ["dracut"]}
    root = {"device": "/dev/mapper/os-root", "mount": "/", "fs_type": "ext4"}
    found, refusals = plan({**WHOLE, "fss": [root, fat("/dev/a-part1", "/boot/efi")]}, folders)
    assert refusals == ()
    assert 'add_device+=" /dev/mapper/os-root "' in found.steps[0].command[-2]
    assert "/dev/a-part1" not in found.steps[0].command[-2]
    assert found.steps[0].command[-3] == "/etc/dracut.conf.d/90-disks-of-root.conf"
    assert found.steps[1].command == ("dracut", "--regenerate-all", "--force")


SYSTEMD_BOOT = {
    "/target/boot": ["initrd.img-6.1", "vmlinuz-6.1", "vmlinuz-6.2"],
    "/target/usr/sbin": ["update-initramfs"],
    "/target/usr/bin": ["bootctl", "kernel-install"],
    "/target/usr/lib/systemd/boot/efi": ["systemd-bootx64.efi"],
    "/target/usr/share/initramfs-tools/hooks": ["cryptroot", "lvm2", "mdadm"],
}
OWN_ROOT = {
    "/target/etc/fstab": "# UUID=old / ext4 defaults 0 1\nUUID=1 / btrfs defaults,subvol=@ 0 0\n",
    "/target/etc/kernel/cmdline": "root=LABEL=image rw quiet console=ttyS0\n",
}


def test_systemd_boot_comes_onto_every_esp_with_all_kernels():
    found, refusals = plan(UEFI, SYSTEMD_BOOT, OWN_ROOT)
    assert refusals == ()
    assert [step.command[0] for step in found.steps[:2]] == ["update-initramfs", "update-initramfs"]
    assert found.steps[2].command[-3:-1] == ("/etc/kernel/cmdline", "root=UUID=1 rootflags=subvol=@ ro quiet console=ttyS0")
    assert [(step.command[-4:], step.esp) for step in found.steps[3:5]] == [
        (("sh", "/boot/efi", "6.1", "6.2"), "/dev/a-part1"),
        (("sh", "/boot/efi", "6.1", "6.2"), "/dev/b-part1"),
    ]
    remembered = {**OWN_ROOT, "/target/etc/kernel/cmdline": found.steps[2].command[-2], f"/target/{STAMP}": found.stamp}
    assert plan(UEFI, SYSTEMD_BOOT, remembered)[0].steps == ()
    assert plan(UEFI, SYSTEMD_BOOT, {**remembered, "/target/etc/kernel/cmdline": "ro debug"})[0].steps


def test_where_dracut_makes_the_initramfs_kernel_install_has_it_made():
    folders = {**SYSTEMD_BOOT, "/target/usr/sbin": [], "/target/usr/bin": ["bootctl", "kernel-install", "dracut"]}
    assert [step.esp for step in plan(UEFI, folders, OWN_ROOT)[0].steps[:3]] == ["", "/dev/a-part1", "/dev/b-part1"]


def test_what_systemd_boot_lacks_is_named_and_grub_comes_first():
    assert plan(BIOS, SYSTEMD_BOOT)[1] == ("there is systemd-boot in /target, which starts by UEFI only: install GRUB in it",)
    (refusal,) = plan(UEFI, {**SYSTEMD_BOOT, "/target/usr/bin": ["bootctl"]})[1]
    assert "no usr/bin/kernel-install in /target" in refusal
    both = {**SYSTEMD_BOOT, **FOLDERS, "/target/usr/lib/systemd/boot/efi": ["systemd-bootx64.efi"]}
    assert "grub-install" in str(plan(UEFI, both)[0].steps)


LISTED = """./
./boot/vmlinuz-6.1
./usr/bin/grub-install
./usr/bin/update-initramfs
./usr/lib/grub/arm64-efi/
./usr/share/initramfs-tools/hooks/mdadm
"""


def archive(listed):
    lines = [f"block {at}: -rw-r--r-- 0/0  12 2026-11-22 10:41 {path}" for at, path in enumerate(listed.splitlines())]
    said = "\n".join([*lines, f"block {len(lines)}: ** Block of NULs **"])
    return list_archive("/system.tar", RecordingMachine({"tar --list --verbose --block-number --numeric-owner --file=/system.tar": said}))


def test_what_an_archive_lacks_is_known_before_it_is_unpacked():
    assert why_archive_not(LAYOUT, archive(LISTED)) == ()
    assert why_archive_not(readable_layout({**UEFI, "mds": [{}]}), archive(LISTED)) == ()
    (refusal,) = why_archive_not(readable_layout({**UEFI, "lvs": [{}]}), archive(LISTED))
    assert "hooks/lvm2 in /system.tar" in refusal
    assert "no kernel (vmlinuz-VERSION) in boot of /system.tar" in why_archive_not(LAYOUT, archive(LISTED.replace("./", "./rootfs/")))[0]


def test_an_archive_that_cannot_be_read_is_named(tmp_path):
    broken = RecordingMachine(failing={"tar": 2})
    with pytest.raises(StepFailed, match=r"/system.tar is not an archive of a root file system that can be read to its end: tar --list"):
        list_archive("/system.tar", broken)
    for name, content, program in (("a.tar", b"etc/", ""), ("b", b"\x28\xb5\x2f\xfd..", "zstd"), ("c.gz", b"\x1f\x8b\x08", "gzip")):
        (tmp_path / name).write_bytes(content)
        assert compression_of(str(tmp_path / name), LocalMachine()) == program
    with pytest.raises(StepFailed, match="none.tar cannot be read: No such file or directory"):
        compression_of(str(tmp_path / "none.tar"), LocalMachine())
    with pytest.raises(StepFailed, match="cannot be read: Is a directory"):
        compression_of(str(tmp_path), LocalMachine())


@pytest.mark.parametrize(
    ("schema", "missing", "says"),
    [
        (WHOLE, "cryptroot", "package cryptsetup-initramfs"),
        (WHOLE, "mdadm", "package mdadm"),
        (WHOLE, "lvm2", "package lvm2"),
        (WHOLE, "vmlinuz-6.1", "no kernel (vmlinuz-VERSION) in boot of /target"),
        (WHOLE, "grub-install", "grub-pc-bin"),
        (WHOLE, "update-initramfs", "none of update-initramfs, dracut and mkinitcpio"),
        (BIOS, "i386-pc", "nothing for i386-pc"),
        (UEFI, "x86_64-efi", "nothing for x86_64-efi"),
        ({"parteds": [disk("/dev/a", LINUX)]}, "", "neither a BIOS boot partition nor an EFI system partition"),
    ],
)
def test_what_a_start_takes_and_the_system_lacks_is_named(schema, missing, says):
    found, (refusal,) = plan(schema, without(missing))
    assert found.steps == ()
    assert says in refusal


def with_root(*methods):
    unlock = [{"method": method, **({"url": "http://tang", "thumbprint": "A" * 43} if method == "tang" else {})} for method in methods]
    container = {"name": "os-crypt", "device": "/dev/a-part2", "unlock": unlock}
    volumes = {
        "vgs": [{"name": "os", "pvnames": ["/dev/mapper/os-crypt"]}],
        "lvs": [{"name": "root", "vgname": "os", "device": "/dev/mapper/os-root"}],
    }
    return {**BIOS, "luks": [container], **volumes, "fss": [{"device": "/dev/mapper/os-root", "mount": "/", "fs_type": "ext4"}]}


@pytest.mark.parametrize(
    ("methods", "says"),
    [
        (["tang", "recovery"], "what update-initramfs makes in /target does not: install package clevis-initramfs in it, for tang"),
        (["tpm2", "recovery"], "what update-initramfs makes in /target cannot do: list a passphrase in unlock, or have dracut in it"),
        (["tpm2", "passphrase"], ""),
        (["passphrase"], ""),
    ],
)
def test_what_opens_root_has_to_be_known_to_its_initramfs(methods, says):
    _found, refusals = plan(with_root(*methods))
    assert [says in refusal for refusal in refusals] == ([True] if says else [])
    hooks = "/target/usr/share/initramfs-tools/hooks"
    able = {**FOLDERS, hooks: [*FOLDERS[hooks], "clevis"]}
    assert bool(plan(with_root(*methods), able)[1]) == ("tpm2" in methods and "passphrase" not in methods)


def test_what_the_layout_does_not_have_is_not_asked_for():
    assert plan(BIOS, {**FOLDERS, "/target/usr/share/initramfs-tools/hooks": []})[1] == ()
    assert plan(BIOS, without("x86_64-efi"))[1] == ()


def test_all_is_done_inside_of_the_system_and_remembered_when_it_is_done():
    machine, written = RecordingMachine(), {}
    found, _refusals = plan(UEFI, root="/target/")
    make_bootable(found, "/target/", machine, written.__setitem__)
    *commands, _settings, _script, _hook, copies = [command.rpartition("sync sh ")[2] for command in machine.commands]
    assert copies == "/target /dev/a-part1 /boot/efi /etc/bareon/esp-sync --all"
    assert commands == [
        "/target  /boot/efi update-initramfs -u -k 6.1",
        *(
            f"/target {esp} /boot/efi grub-install --target=x86_64-efi --efi-directory=/boot/efi --removable --no-nvram"
            for esp in ("/dev/a-part1", "/dev/b-part1")
        ),
        "/target  /boot/efi grub-mkconfig -o /boot/grub/grub.cfg",
    ]
    assert all(command.startswith("unshare --mount -- sh -c ") for command in machine.commands)
    assert written == {f"/target/{STAMP}": found.stamp}


def test_what_keeps_partitions_alike_changes_alone():
    found = plan(UEFI)[0]
    stamp = {f"/target/{STAMP}": found.stamp}
    assert plan(UEFI, files=stamp)[0].steps == ()
    without_it = plan(UEFI, extras=Extras(esp_sync=False))[0]
    later = plan(UEFI, files={f"/target/{STAMP}": without_it.stamp})[0]
    assert (*without_it.steps, *later.steps) == found.steps
    assert later.stamp == found.stamp
    folders = {**FOLDERS, "/target/etc/bareon": ["esps"]}
    (gone,) = plan(UEFI, folders, stamp, extras=Extras(esp_sync=False))[0].steps
    assert gone.command[0] == "rm"
    assert plan(UEFI, files={f"/target/{STAMP}": "[]"})[0].steps == found.steps


def test_a_partition_that_was_kept_is_known_by_the_uuid_that_it_has():
    machine = RecordingMachine({"blkid --probe --output export /dev/b-part1": "PART_ENTRY_UUID=0A\n"}, folders=FOLDERS)
    settings = plan_boot(LAYOUT, "/target", machine, "x86_64")[0].steps[4].command[-2]
    assert settings.splitlines()[-1] == "partition 0a"


def test_entries_of_the_firmware_are_mended_on_the_host():
    machine = RecordingMachine({"efibootmgr --verbose": ""}, folders={**FOLDERS, "/sys/firmware/efi/efivars": ["BootOrder"]})
    found = plan_boot(LAYOUT, "/target", machine, "x86_64", Extras(firmware_entries=True))[0]
    assert [step.on_host for step in found.steps[-2:]] == [True, True]
    make_bootable(found, "/target", machine, lambda *_given: None)
    assert machine.commands[-1].startswith("sh -c set -e; label=")


def test_what_fails_is_told_and_not_remembered():
    machine, written = RecordingMachine(failing={"unshare --mount": 1}), {}
    with pytest.raises(StepFailed, match="Could not make the initramfs of 6.1: "):
        make_bootable(plan(UEFI)[0], "/target", machine, written.__setitem__)
    assert (len(machine.commands), written) == (1, {})


def test_a_second_run_does_nothing_until_something_of_it_changes():
    files = {"/target/etc/fstab": "UUID=1 / ext4\n", "/target/etc/crypttab": "a UUID=2 none\n"}
    stamp = {f"/target/{STAMP}": plan(BIOS, files=files)[0].stamp}
    assert plan(BIOS, files={**files, **stamp})[0].steps == ()
    assert plan(BIOS, files={**files, **stamp, "/target/etc/fstab": "# a comment\n\nUUID=1 / ext4\n"})[0].steps == ()
    assert plan(BIOS, files={**files, **stamp, "/target/etc/crypttab": "a UUID=3 none\n"})[0].steps
    assert plan(BIOS, {**FOLDERS, "/target/boot": ["vmlinuz-6.1", "vmlinuz-6.2"]}, {**files, **stamp})[0].steps
    assert plan({"parteds": [*BIOS["parteds"], disk("/dev/d", BIOS_BOOT)]}, files={**files, **stamp})[0].steps
