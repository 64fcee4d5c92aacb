#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin disk_plan, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_plan
short_description: Plan what goes onto which disk, and how large it is
version_added: 0.1.0
description:
  - Turns a dynamic schema, which says what is wanted with bounds, weights and preferences, into a static one, which says exactly
    what goes where on the disks of one machine or of a whole fleet.
  - Runs on the controller and changes nothing but the files of O(plans_to). What it returns is Bareon's explicit static schema, ready
    to be carried out.
  - Sizes are whole MiB. What partition tables, LVM, md and LUKS keep for themselves is counted, so that everything that is planned fits.
  - All mistakes in an input are reported at once, each with its place, such as C(schema[3].min_size). The numbers count the entries of
    the schema from 0.
author:
  - The bareon.allocator maintainers (@bareon)
requirements:
  - numpy, highspy and yaql on the controller
options:
  schema:
    description:
      - The dynamic schema, a list of spaces. Their order is the order of the partitions on a disk and decides between equals.
      - Any value may be an expression in YAQL, written as text that begins with C(yaql=). C($) is the hardware,
        so that C(yaql=$.ram * 2) is twice the memory and C(yaql=$.disks.where($.type = ssd)) are the SSDs.
        A plan follows from its inputs, so C(random) and C(now) are refused, and there are no functions for dates.
      - An expression ends after 1.5 s of CPU time, 256 MiB of memory, or with a value of more than 10,000 values or characters.
      - Some functions come on top of YAQL's own. C($.disks.orderForSystem()) are the disks, the fittest for an operating system first,
        which are SSDs of 32 GiB or more, then others, each from small to large; removable and read-only disks come last.
        C($.disks.systemDisks()) is the first of them and, where it has one, its twin; C($.disks.dataDisks()) are the others, all disks
        where there are none. C($.disks.systemPair()) are the two fittest for a mirror, alike or at least of one kind, and one disk
        where there are no such two. C($.disks.withTwin()) is the first of any disks and its twin.
      - C($.disks.alike()) is the largest group of disks of one transport, kind, block size and, within 2 %, size;
        C($.disks.sameKind()) that of whatever sizes. C($.disks.prefer(nvme, ssd)) are the disks of the first of these types or transports
        that there are any of, all disks where there are none. C($.disks.arrayDisks(ssd)) is the largest group of two or more alike among
        C(dataDisks), of the first of the kinds named that has one, else of any; then among all disks; then the two largest of one kind.
      - C(recommendedSwap($.ram)) is twice the memory up to 2 GiB, as much up to 8 GiB, half up to 64 GiB, and 4 GiB beyond.
      - Sizes are MiB as a number, text with a unit such as V(50 GiB), V(50G) or V(2 TB), or a percentage such as V(30 %) of the room
        of all disks that the space may use (with C(per_disk) of the smallest of them).
      - Where the schema has no C(vg), an C(lv) lies straight on disks. Then no overhead is counted, not even a partition table.
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
          - V(thin_pool) is room in a V(vg) that the volumes in it take as they are written to. Bounds are those of the room for data. What
            LVM keeps beside that, the metadata and their spare, is counted.
          - V(thin) is a volume in a V(thin_pool). Its O(schema[].size), which it needs, is what it seems to have.
          - V(partition) lies on exactly one disk.
          - V(partitions) lies on as many disks as useful, one partition on each. Bounds hold for the sum.
          - V(raid) is an array with legs of the same size on different disks. Bounds are those of the room for data in its legs.
          - V(btrfs) is a Btrfs on several disks, which mirrors by itself, on partitions of the same size. Bounds are those of the room for
            data. One on a single disk is a V(partition) with O(schema[].fs_type=btrfs).
          - V(esp) and V(bios_grub) lie on every disk that the machine starts from.
        type: str
        required: true
        choices: [vg, lv, thin_pool, thin, partition, partitions, raid, btrfs, esp, bios_grub]
      size:
        description: The exact size. It stands for both bounds.
        type: raw
      min_size:
        description: The least size.
        type: raw
        default: 0
      max_size:
        description: The greatest size. Default is no limit.
        type: raw
      weight:
        description: The share of what is left after all minimums. A space of weight V(0) never grows.
        type: float
        default: 1.0
      disks:
        description: The disks that the space must lie on, as IDs or as an expression that gives disks. Default is all disks.
        type: raw
      avoid_disks:
        description: The disks that the space must not lie on.
        type: raw
      best_with_disks:
        description:
          - The disks that the space is best with, or a list of expressions, of which the first gives the disks that are liked best.
          - A space that does not fit there lies elsewhere, and a warning says how many MiB do.
        type: raw
      contains:
        description:
          - What is in a V(vg) or in a V(thin_pool), as a list of IDs or of dictionaries with C(id).
          - A V(raid) in this list is not made of the group, but carries it.
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
          - Default is 64 bytes for each chunk. More of it serves many snapshots.
        type: raw
      chunk_size:
        description:
          - What a V(thin_pool) gives out at once, a multiple of 64 KiB up to 1 GiB, such as V(256 KiB). A number is MiB. A pool that is
            there keeps the chunks that it has.
          - Default is 64 KiB, doubled until the metadata are at most 128 MiB, as LVM does. Where a pool is to grow to many times its size
            later, give it the chunks that it will need then.
        type: raw
      max_pvs:
        description: On how many disks a V(vg) may lie at most.
        type: int
      extent_size:
        description:
          - The size of the extents of a V(vg), a power of two from 1 MiB to 16 GiB. Its volumes are multiples of it. A group that is there
            keeps the extents that it has.
        type: raw
        default: 4
      level:
        description:
          - The level of a V(raid), for which it is required.
          - How a V(btrfs) lies on its disks, V(raid0), V(raid1) or V(raid10). Default is V(raid1), which has every block twice, on any two
            of the disks. Metadata are never there only once. Its V(raid5) and V(raid6) can lose data when the power goes, and are refused.
        type: str
        choices: [raid0, raid1, raid5, raid6, raid10]
      legs:
        description:
          - How many disks a V(raid) or a V(btrfs) lies on, or V(all). Default is the least number that its level takes, for V(raid10) 4
            of them.
          - A V(btrfs) that is mirrored lies on an even number of disks. V(all) leaves one out where there is an odd number.
        type: raw
      spares:
        description:
          - How many spare disks a V(raid) has beyond its O(schema[].legs), each with a partition as large as a leg. md
            builds one up in the place of a disk that fails, before anybody has come to exchange it. Of V(all) legs these are left out.
          - Those on the disks that O(schema[].best_with_disks) likes least are the spares. A V(raid0) has no use for them.
        type: int
        default: 0
      alike:
        description: >-
          Keeps a V(raid) or a V(btrfs) to disks of one transport, kind, block size and, within 2 %, size. Of several such groups it takes
          one with a disk that O(schema[].best_with_disks) likes best, else that with most room.
        type: bool
        default: false
      mirror:
        description:
          - Puts a V(partition) or a V(vg) on a V(raid1) of two disks that are alike, as O(schema[].alike) says. A vg C(os) lies on an array
            C(os_mirror) then, which its bounds are for.
          - With V(when_possible) it lies on no mirror where no two disks are alike or there is no room for two of it, and a warning says
            so. With V(required) there is no plan then.
        type: str
        choices: [when_possible, required]
      count:
        description:
          - How many of a V(raid) or a V(partition) are made, all of one size and each on disks of its own. Bounds hold for each.
          - They are called by the ID with numbers from 1 on, C(data1) and C(data2), and so are their mount points and labels. Other
            spaces know them by the ID without a number. An O(schema[].optional) space is made as often as there is room for.
          - With C(legs=all) each array has as many disks as there are for one.
        type: int
      apart_from:
        description:
          - The IDs of spaces that the space shares no disk with, so that the loss or the load of a disk does not meet both. Of an C(lv)
            in a C(vg) all of the group counts, of a C(vg) on arrays the disks of these.
          - There is no plan where the disks do not suffice for that. Where data is kept it stays, whoever is there.
        type: list
        elements: str
        default: []
      together_with:
        description:
          - The IDs of spaces that lie on every disk that the space lies on, such as an array with its journal beside it.
          - They are of type V(partition) or V(raid), or V(partitions) with O(schema[].per_disk), or a V(vg) on arrays. Others are cut over
            disks as room goes.
        type: list
        elements: str
        default: []
      per_disk:
        description: Makes one V(partition) on every disk that the space may use. Bounds hold for each of them.
        type: bool
        default: false
      optional:
        description:
          - Says that the space may be left out where an expression of it gives nothing, where no disk is left for it, or where there is
            no room for all. RV(plan.left_out) has the reason. Of any other space such an expression is a mistake.
        type: bool
        default: false
      priority:
        description:
          - Says which optional space is left out first where there is no room for all, as C(Priority=) of systemd-repart does. That with
            the highest number goes first, of equals the last one of the schema. What turns out to have gone in vain comes back.
        type: int
        default: 0
      none_order:
        description: Lets the space take no part in the order of O(objective=ordered).
        type: bool
        default: false
      boot:
        description:
          - The machine starts from this space. Every disk that carries it gets the partition that the firmware needs,
            V(esp) or V(bios_grub), also when the schema has none.
          - An array that boots has its metadata at the end, where the firmware does not see it.
        type: bool
        default: false
      encrypt:
        description: Encrypts the space with LUKS. Volumes are encrypted below their group, all of it as soon as one of them is to be.
        type: bool
        default: false
      unlock:
        description:
          - What opens the LUKS container that an encrypted space lies on, each by itself. It stands with the plan in C(luks) of its static
            schema, and M(bareon.allocator.disk_keys) sees to it after M(bareon.allocator.disk_layout) has made the container.
          - Volumes are opened with their group, so that it stands with the group or with one of them.
        type: list
        elements: dict
        default: []
        suboptions:
          method:
            description:
              - V(tpm2), V(tang), V(key_file), V(passphrase) or V(recovery), as in
                O(bareon.allocator.disk_keys#module:containers[].unlock[].method).
              - The start of the machine takes the TPM or the key file that is named here. What neither opens it asks for at the console,
                and the server of V(tang) answers.
            type: str
            required: true
          pcrs:
            description: The registers of V(tpm2), as O(bareon.allocator.disk_keys#module:containers[].unlock[].pcrs). Default is V([7]).
            type: list
            elements: int
          url:
            description: The address of the server of V(tang).
            type: str
          thumbprint:
            description: The thumbprint of the key that this server signs with.
            type: str
          path:
            description: The path of the file of V(key_file) on the host, which is made where there is none.
            type: str
      keep_data:
        description: Keeps the partitions or the volume of this name where they are, with their data, and plans around them.
        type: bool
        default: false
      mount:
        description:
          - Where the file system is mounted.
          - If there are several partitions, numbers from 1 on are added. Of several V(esp) the first is mounted.
        type: str
      mount_options:
        description: Options of the mount.
        type: str
      fs_type:
        description:
          - The kind of file system, V(ext2), V(ext3), V(ext4), V(xfs), V(btrfs), V(f2fs) or V(vfat), or V(swap).
          - Default is V(vfat) for an V(esp), V(xfs) for what is mounted, else none.
        type: str
      fs_options:
        description: Options for making the file system.
        type: str
      fs_label:
        description: The label of the file system.
        type: str
      subvolumes:
        description:
          - The subvolumes of a Btrfs, which O(schema[].fs_type) need not say then. They share the room of the space, and each is mounted by
            itself. O(schema[].mount) is where the file system is mounted as a whole, if it is to be.
          - What is there already and is not listed stays, such as snapshots.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description:
              - The path below the top of the file system, such as C(@home) or C(@/.snapshots). Folders on the way that are no subvolumes
                are made.
            type: str
            required: true
          mount:
            description: Where it is mounted. Default is nowhere. Numbers are added as for O(schema[].mount).
            type: str
          mount_options:
            description:
              - Options of its mount, after those of the space (O(schema[].mount_options)).
              - Options of Btrfs itself, such as C(compress), hold for the whole file system and belong to the space.
            type: str
          quota:
            description:
              - The most that it may hold, in MiB or as text with a unit. It reserves nothing, and all quotas may come to more than the
                space has. Quotas cost Btrfs time, the more so the more snapshots there are; without any of them none are kept.
              - A limit that is not named here any more stays.
            type: raw
      partition_type:
        description:
          - The type of a V(partition) or of V(partitions) in the table, by its name in the Discoverable Partitions Specification, such as
            V(home), V(srv), V(xbootldr) or V(root-x86-64), or as a GUID. By it systemd finds and mounts what no C(/etc/fstab) names.
          - Default is the type that says what lies there. Cannot be combined with O(schema[].mirror), for legs of arrays are these.
        type: str
      partition_label:
        description:
          - The name of a V(partition) or of V(partitions) in the table, as C(/dev/disk/by-partlabel) has it. Default is the ID.
        type: str
  profile:
    description:
      - The name of a profile of this collection, such as V(general), or the path of a file with a list of spaces,
        which may also stand under C(schema) in a dictionary. Paths are relative to the playbook.
      - Of disks that a profile puts nothing on the plan says what would use them, see RV(plan.idle_disks). C(idle) in the dictionary is
        what you want to remark on them.
    type: str
  overrides:
    description:
      - Spaces to merge into the schema or the profile by their C(id). Only the keys that are there change.
      - C(size) replaces the bounds, and bounds replace C(size).
      - A space with C(state=absent) is taken out, of its volume group as well. A new one needs a C(type).
    type: list
    elements: dict
  hardware:
    description:
      - The machine, as M(bareon.allocator.disk_facts) returns it in RV(bareon.allocator.disk_facts#module:ansible_facts.bareon_hardware).
        Of each disk C(id) and C(size) suffice.
      - Default is the variable C(bareon_known_hardware) of the host, for machines whose hardware you have written down, else
        C(bareon_hardware) of its facts or its variables. Without any of them the facts are gathered.
    type: dict
  hosts:
    description:
      - Plans all these hosts of the inventory in one task, from what is known of their hardware (see O(hardware)). Nothing is gathered,
        and equal problems are solved once.
      - A host without a plan makes the task fail, but the others get their plans nevertheless.
      - Cannot be used together with O(hardware).
    type: list
    elements: str
  unreachable:
    description:
      - What becomes of those of O(hosts) whose hardware is not known, because they could not be reached. V(skip) leaves them out and
        names them in a warning and in RV(left_out_hosts). V(fail) plans nothing then.
      - When nothing is known of any host, the task fails.
    type: str
    choices: [skip, fail]
    default: skip
  objective:
    description:
      - V(fair) gives every space its share, by weight and within its bounds. Preferences go first, and nothing is split without need.
      - V(ordered) is the linear program that the dynamic schema was first described with. The order of the spaces and disks decides,
        the first space that can grow takes what is left. It knows the types V(vg), V(lv), V(partition) and V(partitions).
    type: str
    choices: [fair, ordered]
    default: fair
  reserve:
    description: What is left free on every disk, in MiB or as text with a unit.
    type: raw
    default: 0
  eligible:
    description:
      - Kinds of disks that a plan uses only where they are named here. Default is C(eligible) of the profile, else none of them.
      - A disk is in use where something is mounted from it, or active on it, that no plan made. Tables that M(bareon.allocator.disk_layout)
        made are known by their identifiers, so that a machine can be planned again while it runs. A disk with a space of C(keep_data)
        is used, too.
      - Read-only disks, paths of a multipath device, and further paths to a disk that is there already (the same WWN and size) are never
        used.
      - Expressions see the disks that are used. The others are in RV(plan.left_out_disks), each with the reason.
    type: list
    elements: str
    choices: [in_use, removable, usb, sd_card, zoned, iscsi, fc]
  plans_to:
    description:
      - A folder on the controller that gets a file C(HOST.json) for each host that has a plan, instead of plans in the result. A fleet of a
        thousand hosts is planned in about two thirds of the time so, because Ansible carries no megabytes of plans from process to process.
      - The path is relative to where the command was given. The folder is made if need be.
      - A file is replaced at once, and only when it changes. The files of other hosts stay, also those of hosts that have no plan any more.
    type: path
attributes:
  action:
    description: Has an action plugin, so that it runs on the controller.
    support: full
  check_mode:
    description: Can run in check mode and return what it would return otherwise.
    support: full
    details:
      - Without O(plans_to) nothing is ever changed. With it no file is written, and RV(ignore:changed) says whether one would be.
  diff_mode:
    description: Returns what has changed, or would, when in diff mode.
    support: full
    details:
      - Shows the present layout of the disks against the planned one.
      - As Ansible shows the differences of changed tasks only, RV(ignore:changed) is then V(true) if there are any. Else it is V(false).
      - With O(plans_to) shows the files before and after, and RV(ignore:changed) is V(true) when a file changes.
  idempotent:
    description: A second run changes nothing.
    support: full
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

- name: Plan a fleet from a profile with own wishes
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
  description: The static schema of one machine. Not there with O(hosts) and with O(plans_to), whose files each hold one.
  returned: success
  type: dict
  contains:
    fingerprint:
      description: Identifies the disks that the plan was made for. Others are refused when it is carried out.
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
            - What lies on the disk, in order, partitions, legs of arrays, and the physical volume of a group under the group's C(id).
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
          description: MiB that are left, without what the partition table keeps.
          type: int
          returned: always
          sample: 0
    schema:
      description: Bareon's explicit static schema. All sizes and positions are MiB, and the end of a partition is the first MiB behind it.
      type: dict
      returned: always
      contains:
        parteds:
          description: The partition tables, with the C(partitions) in them. C(guid) is their type, C(uuid) is their own.
          type: list
          elements: dict
          returned: always
        pvs:
          description: The physical volumes. A C(metadatasize) of 0 stands for LVM's default.
          type: list
          elements: dict
          returned: always
        vgs:
          description: The volume groups.
          type: list
          elements: dict
          returned: always
        thin_pools:
          description:
            - The thin pools, where there are any. C(size) is for data, C(metadata_size) is there twice, C(chunk_size) is KiB.
          type: list
          elements: dict
          returned: if there are thin pools
        lvs:
          description: The logical volumes. One with a C(pool) is in that thin pool, and its size is what it seems to have.
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
        mds:
          description: The arrays.
          type: list
          elements: dict
          returned: always
        luks:
          description: The encrypted containers.
          type: list
          elements: dict
          returned: always
        fss:
          description: The file systems and swap spaces, with their mount points.
          type: list
          elements: dict
          returned: always
    left_out:
      description:
        - Spaces that the machine does not get, each with its C(id) and the C(reason). They are C(optional), or have no minimum and
          nothing is left for them.
      type: list
      elements: dict
      returned: always
    left_out_disks:
      description:
        - The disks that the plan leaves alone, each with C(disk_id), C(size) in MiB, C(reason), and C(kinds), the words of O(eligible) that
          take it in. Nothing takes in a disk without any.
      type: list
      elements: dict
      returned: always
      sample: [{disk_id: /dev/disk/by-id/usb-SanDisk_Ultra_Fit-0:0, size: 59392, reason: is on USB, kinds: [usb]}]
    idle_disks:
      description:
        - The disks that a profile puts nothing on, those that are alike together. Each has C(disk_ids), C(size) in MiB of the smallest,
          the C(remark) of the profile, and C(override), an entry for O(overrides) that takes them all; nothing else changes by it. There
          is none for disks of less than 1 GiB.
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
        - What the user should know, such as how many MiB do not fit on preferred disks, or that a plan is not proven to be the best.
      type: list
      elements: str
      returned: always
plans:
  description: The plans by host, each as RV(plan).
  returned: with O(hosts) and without O(plans_to), for the hosts that have a plan, also on failure
  type: dict
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
left_out_hosts:
  description: Those of O(hosts) whose hardware is not known, and which have no plan for that reason.
  returned: with O(hosts)
  type: list
  elements: str
profile:
  description:
    - The profile as its file has it, with O(overrides) merged into its C(schema). P(bareon.allocator.plans_to_html#filter) takes it to tell
      the reasons of sizes.
  returned: with O(profile)
  type: dict
summary:
  description: The plan or the plans as tables to read. With O(hosts) and O(plans_to) a sentence on how many files there are.
  returned: success
  type: str
conflict:
  description: Why there is no plan.
  returned: when O(hosts) is not used and there is no plan
  type: dict
  contains:
    short:
      description: How many MiB are missing at least, if that is what is missing.
      type: int
      returned: always
      sample: 2000
    constraints:
      description: Constraints that contradict each other, and all of them are needed for that.
      type: list
      elements: dict
      returned: always
      sample:
        - name: "min:root"
          says: root needs at least 5000 MiB
    remedies:
      description: What would help.
      type: list
      elements: str
      returned: always
failures:
  description: Why hosts have no plan, by host. Each has C(msg), and C(conflict) where the input is sound.
  returned: with O(hosts), when a host has no plan
  type: dict
"""
