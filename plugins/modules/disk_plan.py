#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin disk_plan, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_plan
short_description: Plan the spaces on each disk and their sizes
version_added: 1.0.0
description:
  - Turns a dynamic schema, with bounds, weights and preferences, into a static one, with the exact size and place of every space on
    the disks of one machine or of a whole fleet.
  - Runs on the controller and changes nothing except the files of O(plans_to). It returns Bareon's explicit static schema, ready
    to be carried out.
  - Sizes are whole MiB. The overhead of partition tables, LVM, md and LUKS is counted, so everything that is planned fits.
  - All mistakes in an input are reported at once, each with its place, such as C(schema[3].min_size). The numbers count the entries of
    the schema from 0.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.controller
requirements:
  - numpy, highspy and yaql on the controller; scipy for O(objective=ordered)
options:
  schema:
    description:
      - The dynamic schema, a list of spaces. Partitions on a disk follow this order, and it decides between equals.
      - Any value may be an expression in YAQL, written as text that begins with C(yaql=). C($) is the hardware,
        so that C(yaql=$.ram * 2) is twice the memory and C(yaql=$.disks.where($.type = ssd)) are the SSDs.
        A plan follows from its inputs, so C(random) and C(now) are refused, and there are no functions for dates.
      - An expression may take 1.5 s of CPU time and 256 MiB of memory, and its result may have 10,000 values or characters.
      - Some functions are added to YAQL's own. C($.disks.orderForSystem()) gives all disks, the best for an operating system first, which
        are SSDs of 32 GiB or more, then others, each from small to large; removable and read-only disks come last.
        C($.disks.systemDisks()) gives the first of them and its twin, if it has one; C($.disks.dataDisks()) gives the others, or all disks
        if there are no others. C($.disks.systemPair()) gives the best two disks for a mirror, alike or at least of one kind, or one disk
        if there is no such pair. C($.disks.withTwin()) gives the first of any disks and its twin.
      - C($.disks.alike()) gives the largest group of disks with the same transport, kind and block size, and sizes within 2 %;
        C($.disks.sameKind()) does so whatever the sizes. C($.disks.prefer(nvme, ssd)) gives the disks of the first of these types or
        transports that the machine has, or all disks if it has none of them.
      - C($.disks.arrayDisks(ssd)) gives the largest group of two or more disks alike among C(dataDisks), of the first named kind that has
        such a group, otherwise of any kind; failing that, such a group among all disks; failing that, the two largest disks of one kind.
      - C(recommendedSwap($.ram)) gives twice the memory up to 2 GiB, the same up to 8 GiB, half up to 64 GiB, and 4 GiB beyond.
      - Sizes are MiB as a number, text with a unit such as V(50 GiB), V(50G) or V(2 TB), or a percentage such as V(30 %) of what
        the space can have. For a volume these are the extents of its C(vg) without all that must lie on the same disks, for an array the
        data room of its legs, for a C(partition) the largest of its disks (with C(per_disk) the smallest), for C(partitions) all of its
        disks. The boot partitions of these disks come off first. Percentages are rounded down, so what adds up to 100 % fits.
      - If the schema has no C(vg), an C(lv) lies directly on disks. Then no overhead is counted, not even a partition table.
      - Exactly one of O(schema) and O(profile) is required.
    type: list
    elements: dict
    suboptions:
      id:
        description: The name of the space, of its volume, volume group or array, and of its partitions.
        type: str
        required: true
      type:
        description:
          - V(vg) is a volume group, with one physical volume on each disk that it lies on, or on arrays that it contains.
          - V(lv) is a logical volume.
          - V(thin_pool) is room in a V(vg) that the volumes in it take as they are written to. Bounds are those of the room for data. The
            metadata and their spare, which LVM keeps in addition, are counted.
          - V(thin) is a volume in a V(thin_pool). Its O(schema[].size), which it needs, is what it seems to have.
          - V(partition) lies on exactly one disk.
          - V(partitions) lies on as many disks as are useful, one partition on each. Bounds apply to the sum. A disk without room for
            the file system or for LUKS gets none.
          - V(raid) is an array with legs of the same size on different disks. Bounds apply to the room for data in its legs.
          - V(btrfs) is a Btrfs on several disks, which mirrors itself, on partitions of the same size. Bounds apply to the room for data.
            For a Btrfs on a single disk, use a V(partition) with O(schema[].fs_type=btrfs).
          - V(zpool) is a ZFS pool on several disks, on partitions of the same size. Bounds apply to the room that its datasets share. What
            ZFS keeps for itself, copies, parity and padding are counted as OpenZFS 2 has them. Its ID is the name of the pool. It is not
            encrypted, and the system does not lie on it.
          - V(disk) is every disk that it may use, whole and without a partition table, for a program that manages disks itself, such as
            Ceph. No other space uses these disks, and nothing is written to them. It has no size and no contents.
          - V(esp) and V(bios_grub) lie on every disk that the machine boots from.
        type: str
        required: true
        choices: [vg, lv, thin_pool, thin, partition, partitions, raid, btrfs, zpool, disk, esp, bios_grub]
      size:
        description: The exact size, in place of both bounds.
        type: raw
      min_size:
        description: The least size.
        type: raw
        default: 0
      max_size:
        description: The greatest size. Default is no limit.
        type: raw
      weight:
        description: The share of the room that is left after all minimums. A space of weight V(0) never grows.
        type: float
        default: 1.0
      disks:
        description:
          - The disks that the space must lie on, as IDs or as an expression that gives disks. Default is all disks.
          - Volumes lie anywhere on the disks of their V(vg), so it is the V(vg) that this is set on. What must lie on other disks than the
            rest goes into another V(vg).
        type: raw
      avoid_disks:
        description: The disks that the space must not lie on.
        type: raw
      best_with_disks:
        description:
          - The disks that the space prefers, or a list of expressions, the most preferred disks first.
          - If a space does not fit there, it lies elsewhere, and a warning says how many MiB do.
          - On a volume in a V(vg) this only takes part in choosing disks and sizes. LVM puts the volume anywhere in
            the V(vg), as a warning says. Set it on the V(vg) instead.
        type: raw
      contains:
        description:
          - The volumes of a V(vg) or of a V(thin_pool), as a list of IDs or of dictionaries with C(id).
          - A V(raid) in this list does not lie in the group, but carries it.
        type: list
        elements: raw
      overcommit:
        description:
          - How many times its size the volumes of a V(thin_pool) may come to, from 1 to 1000. A pool is made as large as that asks for, and
            by default as large as all its volumes together.
          - When a pool is full, writes to all of its volumes fail, so that with more than 1 somebody has to watch it. A warning says how
            much is given out.
        type: float
        default: 1.0
      metadata_size:
        description:
          - The room for the metadata of a V(thin_pool), at least 2 MiB. LVM takes as much once more, for a spare to repair them into.
          - Default is 64 bytes for each chunk. Many snapshots need more.
        type: raw
      chunk_size:
        description:
          - What a V(thin_pool) gives out at once, a multiple of 64 KiB up to 1 GiB, such as V(256 KiB). A number is MiB. A pool that is
            there keeps the chunks that it has.
          - Default is 64 KiB, doubled until the metadata are at most 128 MiB, as LVM does, and at most O(schema[].metadata_size) where it
            is given. Where a pool is to grow to many times its size later, give it the chunks that it will need then.
        type: raw
      cache_of:
        description:
          - The ID of the C(lv) that a V(partition) or a V(raid) is a cache of (dm-cache). It joins the group of that volume, as a physical
            volume on which nothing else lies, and holds the most used data of the volume. It belongs on faster disks than the
            group, which O(schema[].disks) says. Where the group is encrypted, so is the cache.
          - A volume that is there, with its data and in use, gets its cache as well.
          - Or the ID of the V(zpool) that a V(partition) is a cache of (L2ARC). O(schema[].count) makes several.
        type: str
      log_of:
        description:
          - The ID of the V(zpool) that a V(partition) is a log of (SLOG), on which ZFS keeps what programs wait to be safe, until it is in
            its place. It belongs on faster disks than the pool, which O(schema[].disks) says, with a O(schema[].size) of a few seconds of
            writes, such as 8 GiB.
          - With O(schema[].mirror) ZFS mirrors it on two disks that are alike.
        type: str
      cache_mode:
        description:
          - With V(writethrough) everything is written to the slow disks at once, so that a cache that fails loses nothing.
          - With V(writeback) it is written to the cache at first. That is faster, and lost if the cache fails. A warning says so where the
            cache lies on one disk.
        type: str
        choices: [writethrough, writeback]
        default: writethrough
      max_pvs:
        description: The greatest number of disks that a V(vg) may lie on.
        type: int
      extent_size:
        description:
          - The extent size of a V(vg), a power of two from 1 MiB to 16 GiB. Volumes are multiples of it. An existing group keeps
            its extent size.
        type: raw
        default: 4
      stripes:
        description:
          - On how many disks of its V(vg) an V(lv) lies in equal parts, so that they work at the same time. It takes the same room on
            each, and LVM gets these disks by name. V(1) is a linear volume. The loss of any of these disks loses the volume.
          - An existing volume is never created again for this. Without it, an existing volume stays as it is, and a new one is linear.
          - Not with O(schema[].min_size), O(schema[].max_size) or O(schema[].max_pvs) of its V(vg), and not in a V(vg) on arrays.
        type: int
      stripe_size:
        description:
          - How much of an V(lv) with O(schema[].stripes) is on one disk before the next one begins, a power of two from 4 KiB to the size
            of an extent, such as V(64 KiB), which is LVM's default. A number is MiB.
        type: raw
      level:
        description:
          - The level of a V(raid), for which it is required.
          - The profile of a V(btrfs), V(raid0), V(raid1) or V(raid10). Default is V(raid1), which keeps every block twice, on any two
            of the disks. Metadata is always kept more than once. Its V(raid5) and V(raid6) can lose data in a power cut, and are refused.
        type: str
        choices: [raid0, raid1, raid5, raid6, raid10]
      legs:
        description:
          - The number of disks that a V(raid), a V(btrfs) or a V(zpool) lies on, or V(all). Default is the least number for its level,
            which is 4 for V(raid10), or for its O(schema[].vdev).
          - A V(raid10) and a mirrored V(btrfs) lie on an even number of disks. If their number is odd, V(all) leaves one out.
        type: raw
      spares:
        description:
          - The number of spare disks of a V(raid) beyond its O(schema[].legs), each with a partition as large as a leg. When a member
            fails, md rebuilds it on a spare, before anybody comes to replace the disk. V(all) legs are all disks except the spares.
          - The disks that O(schema[].best_with_disks) prefers least become the spares. A V(raid0) cannot use any.
          - Also the number of spare disks of a V(zpool), which ZFS's own service puts to use.
        type: int
        default: 0
      bitmap:
        description:
          - Whether md notes which regions of a V(raid) are being written, so that it looks through these alone after a crash, and not
            through all. V(none) is faster for small writes. An array that is there gets what is said here, once it is built up; without
            it, it keeps what it has, and a new one has one (V(internal)).
          - A V(raid0) has none.
        type: str
        choices: [internal, none]
      write_mostly:
        description:
          - The slow disks of a V(raid1), as ids or as an expression, such as V("yaql=$.disks.where($.type = hdd)"). md reads from the legs
            on them only where no other can be read (write-mostly). An array that is there gets what is said here; without it, it keeps
            what it has.
          - Where all legs of an array lie on these disks, none is write-mostly. An array with O(schema[].spares) takes none.
        type: raw
      chunk:
        description:
          - How much of a V(raid) is on one disk before the next one begins, a power of two from 4 KiB to 512 KiB, such as V(64 KiB).
            A number is MiB. Without it, md makes chunks of 512 KiB.
          - An existing array keeps its chunks; a plan that asks it for others is refused. A V(raid1) has no chunks.
        type: raw
      layout:
        description:
          - How a V(raid) lies on its disks. A V(raid10) keeps its two copies near to each other (V(n2), md's default), in different halves
            of its disks (V(f2), which reads like a V(raid0), writes more slowly and cannot grow), or one chunk apart (V(o2)).
          - The others are where a V(raid5) or a V(raid6) has its parity; md's default is V(left-symmetric).
          - An existing array keeps its layout; a plan that asks it for another is refused.
        type: str
        choices: [left-symmetric, left-asymmetric, right-symmetric, right-asymmetric, n2, f2, o2]
      alike:
        description: >-
          Restricts a V(raid), a V(btrfs) or a V(zpool) to disks with the same transport, kind and block size, and sizes within 2 %. Of
          several such groups it takes one with a disk that O(schema[].best_with_disks) prefers most, otherwise the one with the most room.
        type: bool
        default: false
      mirror:
        description:
          - Puts a V(partition) or a V(vg) on a V(raid1) of two disks that are alike, as O(schema[].alike) says. For example, a vg C(os)
            then lies on an array C(os_mirror), and its bounds apply to that array. A V(btrfs) mirrors itself, or lies on one device.
          - If no two disks are alike, or if there is no room for two copies, a V(when_possible) space lies on one disk, and a warning says
            so. With V(required) there is no plan then.
        type: str
        choices: [when_possible, required]
      count:
        description:
          - Makes this number of a V(raid) or a V(partition), all of one size and each on disks of its own. Bounds apply to each.
          - They are named by the ID and a number from 1 on, C(data1) and C(data2), and so are their mount points and labels. Other
            spaces refer to them by the ID without a number. An O(schema[].optional) space is made as often as there is room.
          - With C(legs=all) each array gets as many disks as there are for it.
        type: int
      apart_from:
        description:
          - The IDs of spaces that must not share a disk with this one, so that the loss or the load of a disk does not affect both. An
            C(lv) counts with its whole C(vg), and a C(vg) on arrays with the disks of these.
          - If there are not enough disks for that, there is no plan. Data that is kept stays where it is, whatever else lies there.
        type: list
        elements: str
        default: []
      together_with:
        description:
          - The IDs of spaces that must lie on every disk that this one lies on, such as an array and its journal.
          - They must be of type V(partition) or V(raid), or V(partitions) with O(schema[].per_disk), or a V(vg) on arrays. Other spaces are
            spread over disks wherever there is room.
        type: list
        elements: str
        default: []
      per_disk:
        description:
          - Makes one V(partition), or this number of them, on every disk that the space may use. Bounds apply to each of them.
          - With O(schema[].apart_from) it is every disk but those on which these spaces lie, which take as few of them as they need, or
            all that they may use if they have O(schema[].per_disk) as well.
        type: raw
        default: false
      optional:
        description:
          - Whether the space may be left out if one of its expressions gives nothing, if no disk is left for it, or if there is no room
            for all spaces. RV(plan.left_out) has the reason. In any other space such an expression is a mistake.
        type: bool
        default: false
      priority:
        description:
          - Decides which optional space is dropped first if there is no room for all, like C(Priority=) of systemd-repart. The space with
            the highest number is dropped first and, among equals, the last one in the schema. A space is put back if dropping it did not
            help.
        type: int
        default: 0
      none_order:
        description: Excludes the space from the order of O(objective=ordered).
        type: bool
        default: false
      boot:
        description:
          - Whether the machine boots from this space. Every disk that carries it gets the partition that the firmware needs,
            V(esp) or V(bios_grub), even if the schema has none.
          - An array to boot from has its metadata at the end, where the firmware does not see it.
        type: bool
        default: false
      encrypt:
        description: Encrypts the space with LUKS. Volumes are encrypted below their group; one encrypted volume encrypts the whole group.
        type: bool
        default: false
      unlock:
        description:
          - The ways to open the LUKS container of an encrypted space. Any one of them is enough. The plan lists them in C(luks) of its
            static schema, and M(bareon.allocator.disk_keys) adds them after M(bareon.allocator.disk_layout) has made the container.
          - Volumes are opened together with their group, so set this on the group or on one of its volumes.
        type: list
        elements: dict
        default: []
        suboptions:
          method:
            description:
              - V(tpm2), V(tang), V(key_file), V(passphrase) or V(recovery), as in
                O(bareon.allocator.disk_keys#module:containers[].unlock[].method).
              - At boot the machine uses the TPM, the server of V(tang), or the key file that is named here. It asks for anything else at
                the console.
            type: str
            required: true
          pcrs:
            description: The registers of V(tpm2), as O(bareon.allocator.disk_keys#module:containers[].unlock[].pcrs). Default is V([7]).
            type: list
            elements: int
          pin:
            description: Whether the TPM of V(tpm2) wants a PIN as well, which somebody types at the console.
            type: bool
          url:
            description: The address of the server of V(tang).
            type: str
          thumbprint:
            description: The thumbprint of the key that this server signs with.
            type: str
          path:
            description: The path of the V(key_file) on the host. If there is no such file, it is made.
            type: str
      keep_data:
        description:
          - Keeps the partitions or the volume with this name in place, with their data, and plans around them. They are known by the name
            in the table, by the label of their file system, or by the volume group or array that they belong to.
          - If there are none, the space is made. But if there is something with a name that only differs in case or in a few letters, that
            is a mistake.
        type: bool
        default: false
      keep:
        description:
          - Keeps partitions, as O(schema[].keep_data) does, that are known by something else than the ID of the space. Has one of the keys.
          - On a disk that is not empty it is a mistake if there is no such partition, or if there are several for a single partition. Say
            with O(schema[].disks) which disk is meant.
        type: dict
        suboptions:
          partlabel:
            description: The name of the partition in the table, such as C(Basic data partition).
            type: str
          uuid:
            description: The UUID of the partition, or of the file system on it.
            type: str
          number:
            description: The number of the partition in the table.
            type: int
      mount:
        description:
          - Where the file system is mounted.
          - If there are several partitions, numbers from 1 on are appended. Of several V(esp) only the first is mounted.
        type: str
      mount_options:
        description:
          - Options of the mount, with commas between them.
          - They are of the words that are allowed for the file system; none names a device or a file, and none has blanks. A word with a
            dash before it takes that option away from a line that has it.
        type: str
      fs_type:
        description:
          - The kind of file system, V(ext2), V(ext3), V(ext4), V(xfs), V(btrfs), V(f2fs) or V(vfat), or V(swap).
          - Default is V(vfat) for an V(esp), V(xfs) for other spaces that are mounted, otherwise none.
        type: str
      fs_options:
        description:
          - Options of the program that makes the file system, as on its command line.
          - They are of those that are allowed for it, each with its kind of value. What names another device or a file is refused, as is
            what the schema says itself, such as the label.
        type: str
      fs_label:
        description: The label of the file system.
        type: str
      subvolumes:
        description:
          - The subvolumes of a Btrfs; O(schema[].fs_type) may then be omitted. They share the room of the space, and each is mounted
            separately. With O(schema[].mount) the file system is also mounted as a whole.
          - Existing subvolumes that are not listed stay, such as snapshots.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description:
              - The path below the top of the file system, such as C(@home) or C(@/.snapshots). Parent folders that are not subvolumes
                are made.
            type: str
            required: true
          mount:
            description: Where it is mounted. Default is nowhere. Numbers are appended as for O(schema[].mount).
            type: str
          mount_options:
            description:
              - Options of its mount, after those of the space (O(schema[].mount_options)).
              - Options of Btrfs itself, such as C(compress), apply to the whole file system and belong to the space.
            type: str
          quota:
            description:
              - The most that it may hold, in MiB or as text with a unit. It reserves nothing, and the quotas may add up to more than the
                space has. Quotas slow Btrfs down, the more so the more snapshots there are; if no subvolume has one, they are not enabled.
              - A limit that is no longer named here stays.
            type: raw
      vdev:
        description:
          - How the disks of a V(zpool) are put together. V(mirror) makes mirrors, of two disks each unless O(schema[].vdevs) says
            otherwise, and spreads data over them. V(raidz1), V(raidz2) and V(raidz3) make one vdev that survives the loss of 1, 2 or 3
            disks, of at least 3, 4 or 5. V(stripe) survives none.
        type: str
        choices: [stripe, mirror, raidz1, raidz2, raidz3]
        default: mirror
      vdevs:
        description:
          - Into how many vdevs the O(schema[].legs) of a V(zpool) are divided, each of the same number of disks. With V(all) disks that are
            left over are not used.
        type: int
      ashift:
        description: The sectors of a V(zpool), as a power of two from 9 to 16. An existing pool keeps its own.
        type: int
        default: 12
      properties:
        description:
          - Properties of the pool's own dataset of a V(zpool), which its datasets inherit, such as C(compression) or C(atime), with the
            values that C(zfs get) shows.
          - C(mountpoint), C(quota) and C(reservation) have keys of their own. ZFS's own encryption is not supported.
        type: dict
        default: {}
      datasets:
        description:
          - The datasets of a V(zpool). They share its room, and ZFS mounts them by itself, not C(/etc/fstab).
          - Existing datasets that are not listed stay, and so do properties that are not named.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: The path below the pool, such as C(home) or C(home/alice). What it lies in has to be listed, or to exist.
            type: str
            required: true
          mount:
            description: Where it is mounted, V(none) for nowhere. Default is below the mount point of what it lies in.
            type: str
          quota:
            description: The most that it and all in it may hold, in MiB or as text with a unit.
            type: raw
          reservation:
            description: What it has for itself, whatever others take, in MiB or as text with a unit.
            type: raw
          properties:
            description: Its properties, like O(schema[].properties).
            type: dict
            default: {}
      partition_type:
        description:
          - The type of a V(partition) or of V(partitions) in the table, by its name in the Discoverable Partitions Specification, such as
            V(home), V(srv), V(xbootldr) or V(root-x86-64), or as a GUID. systemd uses it to find and mount partitions that are not in
            C(/etc/fstab). PReP partitions are refused, since machines that start by PReP (POWER) are not supported.
          - Default is the type of the content. Cannot be combined with O(schema[].mirror), since legs of arrays have a type of their own.
        type: str
      partition_label:
        description:
          - The name of a V(partition) or of V(partitions) in the table and under C(/dev/disk/by-partlabel). Default is the ID.
        type: str
  profile:
    description:
      - The name of a profile of this collection, such as V(general), or the path of a file with a list of spaces,
        or with a dictionary that has them under C(schema). Paths are relative to the playbook.
      - If a profile leaves disks unused, the plan says how to use them, see RV(plan.idle_disks). C(idle) in the dictionary is your own
        remark about them.
    type: str
  overrides:
    description:
      - Spaces to merge into the schema or the profile by their C(id). Only the keys that are given change.
      - C(size) replaces the bounds, and bounds replace C(size).
      - A space with C(state=absent) is removed, also from its volume group. A new space needs a C(type).
    type: list
    elements: dict
  hardware:
    description:
      - The machine, as M(bareon.allocator.disk_facts) returns it in RV(bareon.allocator.disk_facts#module:ansible_facts.bareon_hardware).
        C(id) and C(size) of each disk are enough.
      - C(drive) of a disk, a text or a list of texts, says what fails together with it. Disks with a text in common are on one drive, such
        as the namespaces of an NVMe or the volumes on the same drives of a RAID controller. Arrays, mirrors, spares, copies, and spaces
        that O(schema[].apart_from) keeps apart lie on different drives. Where C(drive) is missing, the serial number counts.
      - Default is the variable C(bareon_known_hardware) of the host, for machines whose hardware you have written down, otherwise
        C(bareon_hardware) from its facts or its variables. Without any of these, the facts are gathered.
    type: dict
  hosts:
    description:
      - Plans all these hosts of the inventory in one task, from their known hardware (see O(hardware)). Nothing is gathered,
        and equal problems are solved once. If Ansible caches facts, those of a host that did not answer in this run are of an earlier one.
      - A host without a plan makes the task fail, but the others still get their plans.
      - Cannot be used together with O(hardware).
    type: list
    elements: str
  unreachable:
    description:
      - What to do with hosts in O(hosts) whose hardware is not known, because they could not be reached. V(skip) leaves them out and
        names them in a warning and in RV(left_out_hosts). V(fail) plans nothing then.
      - If the hardware of no host is known, the task fails.
    type: str
    choices: [skip, fail]
    default: skip
  objective:
    description:
      - V(fair) gives every space its share, by weight and within its bounds. Preferences come first, and nothing is split without need.
      - V(ordered) is the linear program with which the dynamic schema was first described. The order of the spaces and disks decides, and
        the first space that can grow takes all the room that is left. It supports the types V(vg), V(lv), V(partition) and V(partitions).
    type: str
    choices: [fair, ordered]
    default: fair
  reserve:
    description: The room to leave free on every disk, in MiB or as text with a unit.
    type: raw
    default: 0
  keep_existing:
    description:
      - Whether every partition that is on the disks stays where it is, with its data, also those that no space names. Each is in the plan
        as a space C(kept_NAME) with C(keep_data), so that M(bareon.allocator.disk_layout) keeps it even if C(wipe) names its disk.
      - Disks that have something on them and no partition table, and disks with a table of another type than GPT, are left out.
      - To give a new system the room next to another one, such as Windows, make the room free first; partitions are never made smaller.
    type: bool
    default: false
  eligible:
    description:
      - Kinds of disks that a plan uses only if they are named here. Default is C(eligible) of the profile, otherwise none of them.
      - A disk is in use if something that no plan made is mounted from it or active on it. Tables that M(bareon.allocator.disk_layout)
        made are recognised by their identifiers, so a machine can be planned again while it runs. A disk with a C(keep_data) space is
        always used.
      - Read-only disks, paths of a multipath device, and further paths to the same disk (same WWN and size) are never used.
      - Expressions only see eligible disks. The others are in RV(plan.left_out_disks), each with the reason.
    type: list
    elements: str
    choices: [in_use, removable, usb, sd_card, zoned, iscsi, fc]
  plans_to:
    description:
      - A folder on the controller for a file C(HOST.json) per host that has a plan, instead of plans in the result. This way a fleet of a
        thousand hosts takes about two thirds of the time, because Ansible does not pass megabytes of plans between processes.
      - The path is relative to the folder in which you run the command. The folder is made if necessary.
      - Files are replaced atomically, and only if they change. Files of other hosts stay, even of hosts that no longer have a plan.
    type: path
attributes:
  check_mode:
    details:
      - Without O(plans_to) nothing is ever changed. With it, check mode writes no file, and RV(ignore:changed) says whether one would be
        written.
  diff_mode:
    details:
      - Shows the present layout of the disks against the planned one.
      - Ansible only shows the differences of changed tasks, so RV(ignore:changed) is then V(true) if there are any, otherwise V(false).
      - With O(plans_to) shows the files before and after, and RV(ignore:changed) is V(true) when a file changes.
  idempotent:
    details:
      - The same input gives the same plan.
seealso:
  - module: bareon.allocator.disk_facts
  - module: bareon.allocator.disk_layout
  - name: YAQL
    description: The language of the expressions.
    link: https://yaql.readthedocs.io/
"""

EXAMPLES = r"""
---
- name: Plan the host's disks
  bareon.allocator.disk_plan:
    schema:
      - id: boot
        type: partition
        size: 1 GiB
        mount: /boot
        fs_type: ext4
        boot: true
      - id: os
        type: vg
        contains: [root, swap]
      - id: root
        type: lv
        min_size: 1 GiB
        mount: /
        fs_type: xfs
      - id: swap
        type: lv
        max_size: "yaql=$.ram * 2"
        weight: 0.5
        fs_type: swap
  register: planned

- name: Show the plan
  ansible.builtin.debug:
    msg: "{{ planned.summary.splitlines() }}"

- name: Plan a fleet from a profile with changes of your own
  bareon.allocator.disk_plan:
    profile: general
    overrides:
      - id: home
        state: absent
      - id: log
        max_size: 40 GiB
    hosts: "{{ groups['all'] }}"
  run_once: true
  register: fleet

- name: Plan a machine that may use a USB stick and what is mounted now
  bareon.allocator.disk_plan:
    profile: general
    eligible: [usb, in_use]

- name: Plan a large fleet into files
  bareon.allocator.disk_plan:
    profile: general
    hosts: "{{ groups['all'] }}"
    plans_to: "{{ playbook_dir }}/layouts"
  run_once: true

- name: Show the disks of a host as its file has them
  ansible.builtin.debug:
    msg: "{{ (lookup('ansible.builtin.file', playbook_dir ~ '/layouts/' ~ inventory_hostname ~ '.json') | from_json).disks }}"

- name: Plan two arrays with a spare disk each, and a log apart from them
  bareon.allocator.disk_plan:
    hardware:
      disks:
        - {id: a, size: 953000}
        - {id: b, size: 953000}
        - {id: c, size: 953000}
        - {id: d, size: 953000}
        - {id: e, size: 953000}
        - {id: f, size: 953000}
        - {id: g, size: 953000}
    schema:
      - id: store
        type: raid
        level: raid1
        count: 2
        spares: 1
        mount: /srv/store
      - id: log
        type: partition
        apart_from: [store]
        partition_type: var
        mount: /srv/log

- name: Plan hardware that is not there yet
  bareon.allocator.disk_plan:
    hardware:
      ram: 65536
      firmware: uefi
      disks:
        - id: ssd1
          type: ssd
          size: 457862
        - id: hdd1
          type: hdd
          size: 3815447
        - id: hdd2
          type: hdd
          size: 3815447
    schema:
      - id: root
        type: partition
        size: 50 GiB
        best_with_disks: yaql=$.disks.where($.type = ssd)
      - id: data
        type: raid
        level: raid1
        legs: 2
        disks: yaql=$.disks.where($.type = hdd)
        mount: /srv
        fs_type: xfs
"""

RETURN = r"""
---
plan:
  description: The plan of one machine. Not returned with O(hosts), nor with O(plans_to), whose files have one plan each.
  returned: success
  type: dict
  contains:
    fingerprint:
      description: Identifies the disks that the plan was made for. M(bareon.allocator.disk_layout) refuses others.
      type: str
      returned: always
      sample: 087c70f679ce367c7e2f09f4c1f3ee8b
    disks:
      description: What lies on each disk.
      type: list
      elements: dict
      returned: always
      contains:
        disk_id:
          description: The disk.
          type: str
          returned: always
          sample: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
        size:
          description: MiB of the disk.
          type: int
          returned: always
          sample: 457862
        spaces:
          description:
            - What is on the disk, in order. These are partitions, legs of arrays, and physical volumes under the C(id) of their volume
              group.
            - Logical volumes are here only where the schema has no group.
          type: list
          elements: dict
          returned: always
          sample:
            - space_id: boot
              size: 1024
            - space_id: os
              size: 456836
        unallocated:
          description: The MiB that are left, not counting what the partition table needs.
          type: int
          returned: always
          sample: 0
    schema:
      description: Bareon's explicit static schema. All sizes and positions are in MiB. The end of a partition is the first MiB after it.
      type: dict
      returned: always
      contains:
        parteds:
          description: The partition tables with their C(partitions). C(guid) is the type of a partition, C(uuid) is its own.
          type: list
          elements: dict
          sample: [{"name": "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", "label": "gpt", "partitions": []}]
          returned: always
        pvs:
          description: The physical volumes. A C(metadatasize) of 0 stands for LVM's default.
          type: list
          elements: dict
          sample: [{"name": "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part2", "metadatasize": 0}]
          returned: always
        vgs:
          description: The volume groups.
          type: list
          elements: dict
          sample: [{"name": "os", "pvnames": ["/dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part2"]}]
          returned: always
        thin_pools:
          description:
            - The thin pools, if there are any. C(size) is for data, C(metadata_size) is needed twice, C(chunk_size) is in KiB.
          type: list
          elements: dict
          sample: [{"name": "pool", "vgname": "os", "size": 4004, "metadata_size": 4, "chunk_size": 64}]
          returned: if there are thin pools
        lvs:
          description: The logical volumes. One with a C(pool) is in that thin pool, and its size is virtual.
          type: list
          elements: dict
          returned: always
          sample:
            - name: root
              vgname: os
              device: /dev/mapper/os-root
              size: 30720
              keep_data: false
              space_id: root
        caches:
          description: The caches, if there are any. Each caches the volume C(origin) on the physical volume C(device).
          type: list
          elements: dict
          sample: [{"name": "fast", "origin": "mail", "vgname": "bulk", "mode": "writethrough"}]
          returned: if there are caches
        zpools:
          description:
            - The ZFS pools, where there are any, each with C(vdevs), C(ashift), C(mount), C(properties) and C(datasets), and with C(logs),
              C(caches) and C(spares) if it has some. Their C(quota) and C(reservation) are MiB.
          type: list
          elements: dict
          sample: [{"name": "tank", "vdevs": [{"type": "mirror", "devices": ["/dev/sda1", "/dev/sdb1"]}]}]
          returned: if there are ZFS pools
        mds:
          description: The arrays.
          type: list
          elements: dict
          sample: [{"name": "/dev/md/boot", "level": "raid1", "devices": ["/dev/sda2", "/dev/sdb2"]}]
          returned: always
        luks:
          description: The encrypted containers.
          type: list
          elements: dict
          sample: [{"name": "home-crypt", "device": "/dev/os/home"}]
          returned: always
        fss:
          description: The file systems and swap spaces, with their mount points.
          type: list
          elements: dict
          sample: [{"device": "/dev/os/root", "mount": "/", "fs_type": "ext4"}]
          returned: always
    left_out:
      description:
        - Spaces that the machine does not get, each with its C(id) and the C(reason). They are C(optional), or have no minimum and there is
          no room left for them.
      type: list
      elements: dict
      sample: ["swap"]
      returned: always
    left_out_disks:
      description:
        - The disks that the plan leaves alone, each with C(disk_id), C(size) in MiB, C(reason), and C(kinds), the words of O(eligible) that
          would permit it. Without any C(kinds), the disk cannot be used.
      type: list
      elements: dict
      returned: always
      sample: [{disk_id: /dev/disk/by-id/usb-SanDisk_Ultra_Fit-0:0, size: 59392, reason: is on USB, kinds: [usb]}]
    whole_disks:
      description:
        - The disks of spaces of the type V(disk), each with C(disk_id), C(device), C(size) in MiB, and C(space_id).
      type: list
      elements: dict
      returned: when there are such spaces
      sample:
        - disk_id: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
          device: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
          size: 3815447
          space_id: osd
    idle_disks:
      description:
        - The disks that a profile puts nothing on, grouped by kind. Each group has C(disk_ids), C(size) of the smallest in MiB, the
          C(remark) of the profile, and C(override), an entry for O(overrides) that uses all of them and changes nothing else. Disks of less
          than 1 GiB are not listed.
      type: list
      elements: dict
      returned: with O(profile)
      sample:
        - disk_ids: [/dev/disk/by-id/wwn-0x5000c500a1b2c3d4]
          size: 15259648
          remark: ""
          override: {id: data, type: partition, disks: yaql=$.disks.dataDisks(), mount: /srv/data, fs_type: xfs}
    warnings:
      description:
        - What you should know, such as how many MiB do not fit on preferred disks, or that the plan is not proven to be the best.
      type: list
      elements: str
      sample: ["var prefers an ssd, but there is none: 300000 MiB of it lie on other disks"]
      returned: always
plans:
  description: The plans by host, each as RV(plan).
  returned: with O(hosts) and without O(plans_to), for the hosts that have a plan, also on failure
  type: dict
  sample: {"web1": {"fingerprint": "087c70f679ce367c7e2f09f4c1f3ee8b"}}
digests:
  description: The SHA-256 of the file of each host, as C(sha256sum) prints it.
  returned: with O(plans_to), also on failure
  type: dict
  sample:
    web1: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
written:
  description: The hosts whose file changed.
  returned: with O(plans_to), also on failure
  type: list
  elements: str
  sample: ["web1"]
left_out_hosts:
  description: Those of O(hosts) that have no plan because their hardware is not known.
  returned: with O(hosts)
  type: list
  elements: str
  sample: ["web9"]
profile:
  description:
    - The profile from its file, with O(overrides) merged into its C(schema). P(bareon.allocator.plans_to_html#filter) takes it to show the
      reasons for sizes.
  returned: with O(profile)
  type: dict
  sample: {"description": "A web server."}
summary:
  description:
    - The plan as a table to read. With O(hosts), one table with a row for each host. With O(plans_to), a sentence that says how many files
      there are.
  returned: success, but not by the command C(ansible)
  type: str
  sample: "sda       447 GiB        SATA SSD\n└─ root   447 GiB 99.9%  partition /    ext4"
summary_lines:
  description:
    - The lines of the summary. The command C(ansible) shows them in place of RV(summary), RV(plan), RV(plans) and RV(profile), since it
      prints a result as it is.
  returned: success, by the command C(ansible)
  type: list
  elements: str
  sample: ["sda       447 GiB        SATA SSD", "└─ root   447 GiB 99.9%  partition /    ext4"]
conflict:
  description: Why there is no plan.
  returned: when O(hosts) is not used and there is no plan
  type: dict
  contains:
    short:
      description: The least number of MiB that are missing, if it is space that is missing.
      type: int
      returned: always
      sample: 2000
    constraints:
      description: Constraints that contradict each other. Without any one of them, the others could be met.
      type: list
      elements: dict
      returned: always
      sample:
        - name: "min:root"
          says: root needs at least 5000 MiB
    remedies:
      description: What would help. Each remedy is enough by itself, and solves RV(conflict.further) as well.
      type: list
      elements: str
      sample: ["lower min_size of log to 417 GiB"]
      returned: always
    further:
      description: Conflicts that are left once RV(conflict.constraints) are met, each with C(short) and C(constraints).
      type: list
      elements: dict
      returned: when the planner looked for them
      sample: []
failures:
  description: Why hosts have no plan, by host. Each has C(msg), and C(conflict) if the input is valid.
  returned: with O(hosts), when a host has no plan
  type: dict
  sample: {"web2": {"msg": "No plan, 83936 MiB short"}}
"""
