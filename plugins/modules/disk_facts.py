#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of a host's disks."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_facts
short_description: Gather facts about disks and what is on them
version_added: 1.0.0
description:
  - Gathers the disks of a host with their identity, sizes and kind, their partition tables, their signatures, and everything that is
    built on them (md, LVM, LUKS, multipath, down to mount points and swap), the memory, and the kind of firmware.
  - The result is the C(hardware) option of M(bareon.allocator.disk_plan).
  - Works on physical machines, in virtual machines and in containers, as root and, with fewer facts, without.
  - Needs C(lsblk), C(wipefs), C(blkid) and C(sfdisk) of util-linux, and uses C(udevadm), C(pvs), C(lvs), C(mdadm) and
    C(cryptsetup) if they are installed. If a tool is missing or fails, a warning says which facts are lacking; the task does not fail.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.linux
  - bareon.allocator.attributes.facts
options:
  include:
    description:
      - Kinds of disks to report that are otherwise left out, because no system is installed on them.
    type: list
    elements: str
    choices: [loop, zram, ram, optical, floppy, null_blk, ublk, nbd, rbd, aoe, mtd]
    default: []
  devices:
    description:
      - Reports only disks whose node, ID, path or any link matches one of these shell-style patterns.
      - A pattern is compared with whole names, such as V(/dev/sd*) or V(*/wwn-0x5000c500*).
      - If a pattern matches no disk, there is a warning.
      - Default is to report all disks.
    type: list
    elements: str
    default: []
notes:
  - MiB are rounded down. The exact sizes are also given, in bytes.
  - Signatures are read from the devices themselves, which needs root. Without root, or if a container cannot read a disk, the facts
    come from udev and the mounts, RV(ansible_facts.bareon_hardware.disks[].probed) is V(false), and no disk is reported as empty.
  - To find out whether a disk is in use by something invisible (the host of a container, or ZFS), the module opens it exclusively
    for reading for an instant. Nothing is written.
  - A disk of which device-mapper or the NVMe driver says that it is reached on several paths is reported once, with
    RV(ansible_facts.bareon_hardware.disks[].multipath=true). Disks that only have the same WWN, serial number and size are reported each,
    by their places and with a warning.
seealso:
  - module: bareon.allocator.disk_plan
  - module: bareon.allocator.disk_layout
"""

EXAMPLES = r"""
---
# From the command line: ansible all -m bareon.allocator.disk_facts --become

- name: Gather the facts of all disks
  bareon.allocator.disk_facts:
  become: true

- name: Show the disks that nothing is on
  ansible.builtin.debug:
    msg: "{{ ansible_facts.bareon_hardware.disks | selectattr('empty') | map(attribute='id') }}"

- name: Gather the facts of NVMe disks only
  bareon.allocator.disk_facts:
    devices:
      - /dev/nvme*
  become: true

- name: Gather the facts of disks and of loop devices, as tests use them
  bareon.allocator.disk_facts:
    include:
      - loop
  become: true
"""

RETURN = r"""
---
ansible_facts:
  description: The facts.
  returned: always
  type: dict
  contains:
    bareon_hardware:
      description: The hardware of the host, as far as planning its disks needs it.
      returned: always
      type: dict
      contains:
        ram:
          description:
            - MiB of memory that the kernel manages (C(MemTotal) of C(/proc/meminfo)), rounded down.
            - It is a little less than is installed, for the firmware and the kernel keep some.
            - In a container it is the memory of the machine, not the limit of the container.
            - V(none) when it cannot be read.
          returned: always
          type: int
          sample: 32768
        zpools:
          description: The ZFS pools that are imported.
          returned: if a disk has a device of one, and ZFS answers
          type: list
          elements: dict
          contains:
            name:
              description: What it is called.
              returned: always
              type: str
              sample: tank
            guid:
              description: Its identifier.
              returned: always
              type: str
              sample: "363921270020803692"
            health:
              description: V(ONLINE) where it lacks nothing.
              returned: always
              type: str
              sample: ONLINE
            vdevs:
              description: What it lies on.
              returned: always
              type: list
              elements: dict
              contains:
                name:
                  description: What ZFS calls it, such as C(mirror-0), or the path of a single device.
                  returned: always
                  type: str
                  sample: mirror-0
                part:
                  description: What it is for, V(data), V(log), V(cache) or V(spare).
                  returned: always
                  type: str
                  sample: data
                devices:
                  description: The paths of its devices, as the pool knows them.
                  returned: always
                  type: list
                  elements: str
                  sample: [/dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part2]
            datasets:
              description: Its datasets and volumes, its own dataset among them.
              returned: always
              type: list
              elements: dict
              contains:
                name:
                  description: The name with that of the pool.
                  returned: always
                  type: str
                  sample: tank/home
                mounted:
                  description: Whether it is mounted.
                  returned: always
                  type: bool
                  sample: true
                mountpoint:
                  description: Where it is to be mounted, as ZFS has it.
                  returned: always
                  type: str
                  sample: /home
                properties:
                  description: The properties that are set on it itself, sizes in bytes.
                  returned: always
                  type: dict
                  sample: {quota: "1073741824"}
        firmware:
          description: What started the kernel, V(uefi) or V(bios).
          returned: always
          type: str
          sample: uefi
        disks:
          description:
            - The disks, in the order of where they are attached, never of the names that the kernel gave them.
            - Disks that are attached to nothing, such as loop devices, come last.
          returned: always
          type: list
          elements: dict
          contains:
            id:
              description:
                - The most durable link to the disk, which is that of its world wide name (WWN, EUI, NGUID), else of its serial number,
                  else of its path.
                - Its node where there is no link, as in a container without udev.
              returned: always
              type: str
              sample: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
            path:
              description: The link that says where the disk is attached. V(none) when there is none.
              returned: always
              type: str
              sample: /dev/disk/by-path/pci-0000:00:06.0-scsi-0:0:0:0
            dev:
              description: The node. The names of nodes may change with every start of the system.
              returned: always
              type: str
              sample: /dev/sda
            links:
              description: Every link to the disk in C(/dev/disk/by-id) and C(/dev/disk/by-path), sorted.
              returned: always
              type: list
              elements: str
              sample: [/dev/disk/by-id/scsi-35000c500a1b2c3d4, /dev/disk/by-id/wwn-0x5000c500a1b2c3d4]
            type:
              description:
                - V(hdd) or V(ssd).
                - NVMe, MMC and persistent memory are V(ssd). Disks of virtio and Xen are V(ssd), too, for they always say that they
                  rotate. All others are what RV(ansible_facts.bareon_hardware.disks[].rotational) says.
              returned: always
              type: str
              sample: hdd
            transport:
              description:
                - How the disk is attached, such as V(nvme), V(sata), V(sas), V(scsi), V(virtio), V(usb), V(mmc), V(iscsi), V(fc), V(xen),
                  V(loop).
                - V(scsi) is SCSI of which no more is known, as of the disks of RAID controllers and virtual SCSI disks.
                - V(none) when nothing is known.
              returned: always
              type: str
              sample: sas
            hctl:
              description:
                - The SCSI address, C(host:channel:target:lun). V(none) for other disks.
                - The number of the host may change with every start of the system.
              returned: always
              type: str
              sample: "6:1:0:0"
            drive:
              description:
                - What fails together with the disk, as text. Disks with the same text are on one drive, such as the namespaces of an NVMe,
                  the units of one device, or paths to one disk.
                - It is the model and the serial number, or the ID of the disk if it has no serial number of its own.
                - The kernel does not show which drives are behind a volume of a RAID controller.
              returned: always
              type: str
              sample: ST4000NM HDD0001
            numa_node:
              description: The NUMA node of the controller. V(none) when the kernel does not show it.
              returned: always
              type: int
              sample: 0
            enclosure:
              description: The identifier of the enclosure that the disk is in. V(none) when the kernel does not show it.
              returned: always
              type: str
              sample: "0x500304801f123abf"
            slot:
              description: The slot of the enclosure, or the PCI slot of an NVMe. V(none) when the kernel does not show it.
              returned: always
              type: str
              sample: "7"
            health:
              description:
                - The health that the disk reports, read by C(nvme) or C(smartctl) if one of them is installed. No tool wakes a disk that
                  sleeps.
                - V(none) when no tool could ask the disk, as without root.
              returned: always
              type: dict
              contains:
                ok:
                  description: Whether the disk reports no failure.
                  returned: always
                  type: bool
                  sample: true
                wear:
                  description: How much of its promised life an SSD has used, in per cent. V(none) when it does not report that.
                  returned: always
                  type: int
                  sample: 3
                temperature:
                  description: Degrees Celsius. V(none) when it does not report that.
                  returned: always
                  type: int
                  sample: 31
                source:
                  description: The tool, V(nvme) or V(smartctl).
                  returned: always
                  type: str
                  sample: smartctl
            vendor:
              description: The vendor. V(none) when it is not known.
              returned: always
              type: str
              sample: SEAGATE
            model:
              description: The model. V(none) when it is not known.
              returned: always
              type: str
              sample: ST4000NM
            serial:
              description: The serial number. V(none) when it is not known.
              returned: always
              type: str
              sample: HDD0001
            wwn:
              description: The world wide name, hexadecimal for SCSI and ATA, as the kernel writes it for NVMe. V(none) when there is none.
              returned: always
              type: str
              sample: "0x5000c500a1b2c3d4"
            firmware_revision:
              description: The revision of the disk's firmware. V(none) when it is not known.
              returned: always
              type: str
              sample: "2.5+"
            size:
              description: Size in MiB, rounded down.
              returned: always
              type: int
              sample: 3815447
            size_bytes:
              description: Size in bytes.
              returned: always
              type: int
              sample: 4000787030016
            logical_block:
              description: Bytes of a logical sector.
              returned: always
              type: int
              sample: 512
            physical_block:
              description: Bytes of a physical sector.
              returned: always
              type: int
              sample: 4096
            optimal_io:
              description: Bytes that are best read and written at once. V(0) when the disk does not say.
              returned: always
              type: int
              sample: 0
            removable:
              description: Whether the medium can be taken out.
              returned: always
              type: bool
              sample: false
            read_only:
              description: Whether the disk cannot be written.
              returned: always
              type: bool
              sample: false
            rotational:
              description: What the kernel says. Virtual disks often say that they rotate.
              returned: always
              type: bool
              sample: true
            zoned:
              description: Whether the disk is written in zones (host-aware or host-managed).
              returned: always
              type: bool
              sample: false
            multipath:
              description: Whether the disk is reached on several paths.
              returned: always
              type: bool
              sample: false
            path_devices:
              description: The nodes of the single paths, only the disk's own node when there is one path.
              returned: always
              type: list
              elements: str
              sample: [/dev/sda]
            volume_group:
              description: The volume group that the whole disk is a physical volume of. V(none) when there is none, or it is not known.
              returned: always
              type: str
              sample: vg0
            table:
              description:
                - The type of the partition table, V(gpt) or V(dos). V(none) when there is none.
                - A table of another kind is reported by the name that libfdisk gives it.
              returned: always
              type: str
              sample: gpt
            table_uuid:
              description: The identifier of the partition table. V(none) when there is none.
              returned: always
              type: str
              sample: 7324a969-2662-46c6-9731-b9e076bbd01d
            partitions:
              description: The partitions that are in the table, by number.
              returned: always
              type: list
              elements: dict
              contains:
                number:
                  description: The number in the table.
                  returned: always
                  type: int
                  sample: 1
                dev:
                  description: The node. V(none) when the kernel does not have the partition.
                  returned: always
                  type: str
                  sample: /dev/sda1
                name:
                  description: The name in a GPT. V(none) when there is none.
                  returned: always
                  type: str
                  sample: root
                uuid:
                  description: The identifier of the partition. V(none) when it is not known.
                  returned: always
                  type: str
                  sample: 4274f292-0822-4970-9687-8010da4bdf51
                type:
                  description: The type, a GUID in lower case or a code such as V(0x83). V(none) when it is not known.
                  returned: always
                  type: str
                  sample: 0fc63daf-8483-4772-8e79-3d69d8477de4
                start:
                  description: Start in MiB, rounded down.
                  returned: always
                  type: int
                  sample: 1
                size:
                  description: Size in MiB, rounded down.
                  returned: always
                  type: int
                  sample: 1024
                start_bytes:
                  description: Start in bytes.
                  returned: always
                  type: int
                  sample: 1048576
                size_bytes:
                  description: Size in bytes.
                  returned: always
                  type: int
                  sample: 1073741824
                volume_group:
                  description: The volume group that it is a physical volume of. V(none) when there is none, or it is not known.
                  returned: always
                  type: str
                  sample: vg0
                fs_type:
                  description:
                    - What is on it in the words of C(blkid), such as V(ext4), V(swap), V(LVM2_member), V(crypto_LUKS).
                    - V(none) when there is nothing, or it is not known.
                  returned: always
                  type: str
                  sample: ext4
                fs_uuid:
                  description: The identifier of what is on it. V(none) when there is none.
                  returned: always
                  type: str
                  sample: 49e117b1-3cae-42fa-b1ee-84e2f4bf8d04
                label:
                  description: The label of what is on it. V(none) when there is none.
                  returned: always
                  type: str
                  sample: rootfs
                mountpoints:
                  description: Where it is mounted. V([SWAP]) stands for swap in use.
                  returned: always
                  type: list
                  elements: str
                  sample: [/]
            content:
              description:
                - Every signature that is found on the disk and on everything that is built on it, from the disk outwards.
              returned: always
              type: list
              elements: dict
              contains:
                dev:
                  description: The node it is on. A partition without a node is written as the disk's node, V(#) and its number.
                  returned: always
                  type: str
                  sample: /dev/sda1
                type:
                  description: The type in the words of libblkid, such as V(gpt), V(PMBR), V(ext4), V(LVM2_member).
                  returned: always
                  type: str
                  sample: ext4
                uuid:
                  description: Its identifier. V(none) when it has none.
                  returned: always
                  type: str
                  sample: 49e117b1-3cae-42fa-b1ee-84e2f4bf8d04
                label:
                  description: Its label. V(none) when it has none.
                  returned: always
                  type: str
                  sample: rootfs
                offsets:
                  description: Where its magic bytes are, in bytes from the start of the device. Empty when the device could not be read.
                  returned: always
                  type: list
                  elements: int
                  sample: [1080]
            holders:
              description:
                - What is built on the disk and its partitions, md arrays and partitions of these, LVM volumes, LUKS.
                - What is below comes before what is on it.
                - What is there but does not run (a stopped array, a volume that is not active, LUKS that is closed) is listed, too.
              returned: always
              type: list
              elements: dict
              contains:
                dev:
                  description: The node. V(none) when it does not run.
                  returned: always
                  type: str
                  sample: /dev/mapper/vg0-data
                name:
                  description: The name, of a logical volume without the group's.
                  returned: always
                  type: str
                  sample: data
                type:
                  description: The type, such as V(raid1), V(lvm), V(crypt). V(raid) when the level is not known.
                  returned: always
                  type: str
                  sample: lvm
                active:
                  description: Whether it runs.
                  returned: always
                  type: bool
                  sample: true
                members:
                  description: The nodes that it is built on, also those on other disks.
                  returned: always
                  type: list
                  elements: str
                  sample: [/dev/sda2]
                uuid:
                  description: Its identifier. V(none) when it is not known.
                  returned: always
                  type: str
                  sample: nw9xnf-h3fH-MLyJ-SWeH-8wHd-ReRO-U3eqcK
                volume_group:
                  description: The volume group that it is a logical or physical volume of. V(none) when there is none, or it is not known.
                  returned: always
                  type: str
                  sample: vg0
                size:
                  description: Size in MiB, rounded down. V(none) when it is not known.
                  returned: always
                  type: int
                  sample: 500
                size_bytes:
                  description: Size in bytes. V(none) when it is not known.
                  returned: always
                  type: int
                  sample: 524288000
                fs_type:
                  description: What is on it in the words of C(blkid). V(none) when there is nothing, or it is not known.
                  returned: always
                  type: str
                  sample: xfs
                fs_uuid:
                  description: The identifier of what is on it. V(none) when there is none.
                  returned: always
                  type: str
                  sample: fc2a33f3-82f4-41f9-9f08-8616713ce1bb
                label:
                  description: The label of what is on it. V(none) when there is none.
                  returned: always
                  type: str
                  sample: xfsdata
                mountpoints:
                  description: Where it is mounted. V([SWAP]) stands for swap in use.
                  returned: always
                  type: list
                  elements: str
                  sample: [/srv/xfs]
                luks:
                  description: The LUKS header. V(none) for others, and when it could not be read.
                  returned: always
                  type: dict
                  contains:
                    version:
                      description: The version, V(1) or V(2).
                      returned: always
                      type: int
                      sample: 2
                    cipher:
                      description: The cipher of the data. V(none) when it is not known.
                      returned: always
                      type: str
                      sample: aes-xts-plain64
                    key_slots:
                      description: How many key slots are used.
                      returned: always
                      type: int
                      sample: 1
            in_use:
              description:
                - Whether the disk is mounted, swap, part of something that runs, or held by the kernel for another reason.
                - Where the disk cannot be opened, as without root or in a container, only what can be seen from there counts.
              returned: always
              type: bool
              sample: true
            used_by:
              description:
                - Uses of the disk, and of what is built on it, that no mount point and no holder shows. These are mounts in other mount
                  namespaces (containers), exports by nvmet and LIO, journals and logs of file systems on other devices, and bcache.
              returned: always
              type: list
              elements: dict
              contains:
                dev:
                  description: The node that is used.
                  returned: always
                  type: str
                  sample: /dev/sda2
                use:
                  description: The use, in words.
                  returned: always
                  type: str
                  sample: exported by nvmet as namespace 1 of nqn.2014-08.org.example:data
            twins:
              description:
                - Identities of the disk, its partitions and of what is on them that another disk of the host has as well. One of the disks
                  is a copy, or comes from a host whose disks were made with the same identities.
                - Whatever is found by such an identity may be found on either disk. A warning names each pair of disks.
              returned: always
              type: list
              elements: dict
              contains:
                kind:
                  description:
                    - What has the identity. V(disk) stands for its WWN or serial number, V(table) for the GUID of the partition table,
                      V(partition) for a PARTUUID, V(member) for the name that md gives to a single member. All else is a type of
                      content, such as V(ext4) or V(LVM2_member).
                  returned: always
                  type: str
                  sample: ext4
                identity:
                  description: The identity.
                  returned: always
                  type: str
                  sample: 49e117b1-3cae-42fa-b1ee-84e2f4bf8d04
                dev:
                  description: The node of this disk that has it.
                  returned: always
                  type: str
                  sample: /dev/sda1
                other:
                  description: The node of the other disk that has it.
                  returned: always
                  type: str
                  sample: /dev/sdb1
            mountpoints:
              description: Where the disk itself is mounted, which has a file system without a partition. V([SWAP]) stands for swap in use.
              returned: always
              type: list
              elements: str
              sample: []
            probed:
              description: Whether the disk and everything on it could be read for signatures.
              returned: always
              type: bool
              sample: true
            empty:
              description:
                - Whether there is no partition table, no signature, and nothing built on the disk, and it is not in use.
                - V(false) as well when that could not be found out, see RV(ansible_facts.bareon_hardware.disks[].probed).
              returned: always
              type: bool
              sample: false
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils._facts.hardware import read_hardware, with_health
from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import LocalHost
from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import LEFT_OUT


def main() -> t.NoReturn:
    """Gather the facts and leave."""
    module = AnsibleModule(
        argument_spec={
            "include": {"type": "list", "elements": "str", "choices": list(LEFT_OUT), "default": []},
            "devices": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    host = LocalHost()
    hardware, warnings = read_hardware(host, module.params["include"], module.params["devices"])
    for warning in warnings:
        module.warn(warning)
    module.exit_json(changed=False, ansible_facts={"bareon_hardware": with_health(host, hardware)})


if __name__ == "__main__":
    main()
