#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes a planned layout on a host's disks."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_layout
short_description: Make a planned layout on a host's disks
version_added: 1.0.0
description:
  - Makes the partitions, md arrays, LUKS containers, volume groups with logical volumes, thin pools and caches, file systems and swap of
    a static schema, from M(bareon.allocator.disk_plan) or written by hand.
  - Reads what is on the disks, works out the steps from there to the layout, carries them out with the standard tools, and checks the
    result of each. After the last step it looks at everything once more, and fails if anything is left to do.
  - Nothing that exists is destroyed unless its disk is named in O(wipe). Nothing at all is written to a disk that O(protect) or the file
    C(/etc/bareon/protected) of the host names. Otherwise a disk with a partition table, signature, holder or
    mount that is not part of this layout is refused, and the message lists what would be lost. A disk that is mounted, used as swap or
    otherwise in use is refused even then, and whatever the schema marks with C(keep_data) is never destroyed.
  - Only the disks of the schema are touched. Arrays, groups and containers on other disks stay as they are.
  - An existing layout can grow by a larger partition with free room behind it, a larger logical volume, or another disk in
    a volume group, a mirror or an array with parity, and can get more partitions and volumes. An array that has lost a disk gets a new
    one in its place, one that was started without a member takes that back if nothing is lost by it, and an array grows when the
    partitions of all its members do.
    Volumes and file systems grow while they are in use. Nothing is moved except off the disks in O(replace), and nothing shrinks except
    the volumes in O(allow_shrink).
  - If a LUKS container exists already, its key is first tried on its header, and refused if it does not open it. If the schema says what
    opens the container (C(unlock)), M(bareon.allocator.disk_keys) manages its keys.
  - If a run was interrupted at any moment, by a signal or by a power cut, the next run with the same schema completes it.
    Unfinished work is recognised by identities that follow from the plan, and needs no O(wipe).
  - Does not mount anything and does not write C(/etc/fstab), C(/etc/crypttab) and C(mdadm.conf). RV(filesystems), RV(containers)
    and RV(arrays) return the data for these files.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.keys
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.linux
  - bareon.allocator.lock
requirements:
  - root on the host
  - C(sfdisk), C(partx), C(wipefs) and C(blkid) of util-linux
  - C(mdadm), C(cryptsetup), C(lvm2), C(thin-provisioning-tools), C(e2fsprogs), C(xfsprogs), C(btrfs-progs), C(f2fs-tools), C(dosfstools),
    each only if the layout needs it
options:
  schema:
    description:
      - The layout. Either Bareon's explicit static schema, such as RV(bareon.allocator.disk_plan#module:plan.schema), with sizes in MiB,
        or a hand-written list as Bareon documents it for C(partitions), or a deploy configuration with that key.
      - All mistakes in it are reported at once, each with its place.
      - Needed unless O(adopt) is set.
    type: raw
  adopt:
    description:
      - Takes over a layout that was made by hand, as M(bareon.allocator.disk_layout_info) reads it. RV(schema) returns its explicit static
        schema; nothing is changed, marked or opened.
      - RV(steps) lists what this schema would do as it is. It is empty, unless something does not use all of its device.
    type: bool
    default: false
  disks:
    description:
      - The disks to take over with O(adopt), by any of their links. Default is all that M(bareon.allocator.disk_facts) reports.
    type: list
    elements: str
    default: []
  fingerprint:
    description:
      - RV(bareon.allocator.disk_plan#module:plan.fingerprint), which identifies the hardware that the plan was made for.
      - The task fails if a disk of this host was replaced, added or removed since then, or has another size.
      - Default is to compare only the disks of O(schema), each with its size in the schema.
    type: str
  devices:
    description:
      - What the facts of the plan were read with, if not of all disks, as O(bareon.allocator.disk_facts#module:devices). Disks that it
        leaves out are not compared with O(fingerprint).
    type: list
    elements: str
    default: []
    version_added: 1.1.0
  include:
    description:
      - What the facts of the plan were read with, as O(bareon.allocator.disk_facts#module:include).
    type: list
    elements: str
    default: []
    version_added: 1.1.0
  wipe:
    description:
      - The IDs of the disks on which everything in the way of the layout may be destroyed.
      - Links in C(/dev/disk/by-id) and C(/dev/disk/by-path) are allowed. Nodes such as C(/dev/sda) are not, because they can be another
        disk after the next boot, unless a disk has no other name.
      - Parts of the layout that already exist on these disks are not made again. It is safe, but not wise, to leave this on.
    type: list
    elements: str
    default: []
  protect:
    description:
      - Disks that nothing is written to, by ID (a link in C(/dev/disk/by-id) or C(/dev/disk/by-path), with or without the directory),
        serial number, WWN, or the label of a file system on them. It wins over every O(wipe).
      - The file C(/etc/bareon/protected) of the host adds to this, one entry a line; lines that begin with C(#) and what follows a space
        and C(#) are comments. If the file exists and cannot be read, the task fails.
      - An array, a volume group or a pool with a member on a protected disk is not changed either. If the layout needs a change there, the
        task fails before anything is done, and says which entry protects the disk. A protected disk that is as the layout has it is fine.
      - An entry that matches no disk of the host is a warning.
    type: list
    elements: str
    default: []
  replace:
    description:
      - Disks that still work, by ID as in O(wipe), each with the ID of the disk that takes its contents. The schema is that of the disks
        that stay, so it has the new disk and not the old one.
      - Members of mirrors and of arrays with parity, physical volumes, Btrfs and ZFS move while they are mounted and in use. A file system
        alone on a partition, or a closed LUKS container with one, is copied, and refused as long as it is mounted or open. ESPs, boot
        partitions and swap are made on the new disk, and those of the old one stay. What can be moved in none of these ways is refused by
        name before anything is done, as is what does not fit.
      - The new disk must be empty or named in O(wipe), which counts for it only until it has its new table. The old disk is not erased,
        but is a member of nothing afterwards; a warning says what it still has. If O(wipe) names it, its partitions and signatures go when
        everything has moved.
      - The task ends when everything has moved, which can take hours, so run it with C(async). A run that was cut off at any moment goes on
        where it was. When nothing is left to be moved, or the old disk is gone and the new one complete, the option changes nothing.
    type: dict
    default: {}
  keep_unlisted:
    description:
      - Whether to keep partitions and logical volumes that are on the disks of the layout, but not in the layout.
      - With V(false) they are removed from disks in O(wipe).
    type: bool
    default: true
  confirm:
    description:
      - The RV(destroys_digest) that check mode returned. The layout is only made if it destroys exactly what check mode listed.
      - A run that destroys nothing needs no confirmation, so a second run after the confirmed one still finds nothing to do.
      - After an interrupted run there is less left to destroy, and it has to be confirmed again.
    type: str
  allow_shrink:
    description:
      - Logical volumes, as GROUP/NAME, that may be made smaller if the layout has them smaller. They must carry ext2, ext3 or
        ext4, without encryption on the volume, and must not be mounted.
      - The file system is checked and made smaller before its volume. If its content does not fit, nothing is begun.
      - Have a backup. A power cut while C(resize2fs) moves blocks can cost the file system, as with any other tool that calls it.
      - It is safe to leave this on, because volumes that have their size are left alone.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    details:
      - If something has to be opened before it can be examined, such as a stopped array, only the opening is shown.
  diff_mode:
    details:
      - Shows what is on the disks before and after, and the steps.
notes:
  - md synchronises new arrays in the background, as always. They can be used at once, but only survive the loss of a disk when
    that is done.
  - After a signal the running tool finishes, and no other is started. Runs on one host exclude each other.
  - Volume groups have extents of 4 MiB unless the schema says otherwise. LUKS is LUKS 2 with the defaults of C(cryptsetup) on the host.
  - Inside containers only partitions and file systems work. Arrays, open LUKS containers and logical volumes need a kernel that has them.
seealso:
  - module: bareon.allocator.disk_plan
  - module: bareon.allocator.disk_facts
  - module: bareon.allocator.disk_keys
  - plugin: bareon.allocator.layout_to_host_files
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Plan the disks of a host
  bareon.allocator.disk_plan:
    schema:
      - {id: os, type: vg, contains: [root, var]}
      - {id: root, type: lv, size: 20 GiB, mount: /srv/system, fs_type: ext4, fs_label: system}
      - {id: var, type: lv, min_size: 10 GiB, mount: /srv/var}
  register: planned

- name: See what would be done, and what the disks will look like
  bareon.allocator.disk_layout:
    schema: "{{ planned.plan.schema }}"
    fingerprint: "{{ planned.plan.fingerprint }}"
  become: true
  check_mode: true
  diff: true

- name: Make the layout on empty disks
  bareon.allocator.disk_layout:
    schema: "{{ planned.plan.schema }}"
    fingerprint: "{{ planned.plan.fingerprint }}"
  become: true

- name: Make it on a disk that had something else on it, and that is not needed any more
  bareon.allocator.disk_layout:
    schema: "{{ planned.plan.schema }}"
    fingerprint: "{{ planned.plan.fingerprint }}"
    wipe:
      - /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
  become: true

- name: Write nothing to the disks of the database, whatever wipe names
  bareon.allocator.disk_layout:
    schema: "{{ planned.plan.schema }}"
    wipe: "{{ planned.plan.disks | map(attribute='disk_id') }}"
    protect: [pgdata, S3Z8NB0K123456]
  become: true

- name: Empty a disk that is about to fail, while it is in use
  bareon.allocator.disk_layout:
    schema: "{{ planned.plan.schema }}"
    replace:
      /dev/disk/by-id/wwn-0x5000c500a1b2c3d4: /dev/disk/by-id/wwn-0x5000c500d4c3b2a1
  become: true

- name: Make a volume smaller, and give what it had to another one
  bareon.allocator.disk_layout:
    schema: "{{ planned.plan.schema }}"
    allow_shrink: [os/root]
  become: true

- name: Take over what was made by hand, without changing anything
  bareon.allocator.disk_layout:
    adopt: true
  become: true
  register: adopted

- name: Show the schema of the present layout
  ansible.builtin.debug:
    msg: "{{ adopted.schema | to_nice_yaml }}"

- name: Make an encrypted layout that is written by hand
  bareon.allocator.disk_layout:
    schema:
      parteds:
        - name: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
          partitions:
            - {count: 1, begin: 1, end: 1025, space_id: keys}
      luks:
        - {name: keys, device: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part1}
      fss:
        - {device: /dev/mapper/keys, mount: /srv/keys, fs_type: ext4}
    luks_key: "{{ vault_luks_key }}"
  become: true
"""

RETURN = r"""
---
steps:
  description:
    - What was done, or in check mode what would be done, in order. Empty if there is nothing to do.
    - Also returned if the task fails, with what was done and what was not.
  returned: always, unless the input cannot be used
  type: list
  elements: dict
  contains:
    kind:
      description: The kind of the step.
      returned: always
      type: str
      sample: make_filesystem
    device:
      description: What it works on. A current device node, the name of a volume group, or that of a logical volume with its group.
      returned: always
      type: str
      sample: /dev/mapper/os-root
    says:
      description: The step, in words.
      returned: always
      type: str
      sample: make ext4 on /dev/mapper/os-root, label system
    done:
      description: Whether it was done. V(false) in check mode.
      returned: always
      type: bool
      sample: true
destroys:
  description:
    - What the steps destroy, for every disk. Unfinished work of an earlier run is not counted.
    - If something has to be opened before it can be examined, the list has what is known so far.
    - A warning says the same in one paragraph. It is written to the host's journal before the first step.
  returned: always, unless the input cannot be used
  type: list
  elements: dict
  contains:
    disk:
      description: The id of the disk.
      returned: always
      type: str
      sample: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
    why:
      description: Why it may be destroyed.
      returned: always
      type: str
      sample: the disk is named in wipe
    contents:
      description: What is on it.
      returned: always
      type: list
      elements: dict
      contains:
        device:
          description: The current device node, or a name if there is none.
          returned: always
          type: str
          sample: /dev/sda1
        kind:
          description: The kind of content.
          returned: always
          type: str
          sample: ext4
        label:
          description: Its label, or else the name of the partition.
          returned: always
          type: str
          sample: precious
        size:
          description: The size of the device, in MiB.
          returned: always
          type: int
          sample: 476940
        last_mounted:
          description: Where it was mounted last, as ext2, ext3 and ext4 record, or C(/etc/fstab) of this host. Empty if it is not known.
          returned: always
          type: str
          sample: /srv
        part_of:
          description: The array or volume group that it is a part of.
          returned: always
          type: str
          sample: the array nas:data
        host:
          description: The host that made the array or the volume group, as md and LVM remember it. Empty if it is not known.
          returned: always
          type: str
          sample: nas
destroys_digest:
  description: The digest of RV(destroys), for O(confirm).
  returned: always, unless the input cannot be used
  type: str
  sample: 0a1b2c3d4e5f60718293a4b5c6d7e8f9
failed_step:
  description:
    - The step that failed. It may be half done. The message has the command and its output.
    - The next run with the same options completes it.
  returned: when a step failed
  type: dict
  sample: {"kind": "make_filesystem", "device": "/dev/sda1", "says": "make xfs on /dev/sda1", "done": false}
mistakes:
  description: Everything that is wrong with the input.
  returned: when the input cannot be used
  type: list
  elements: str
  sample: ["parteds[0].partitions[1].end: must be more than begin (1025): the MiB where the partition ends, exclusively"]
schema:
  description:
    - The layout as an explicit static schema. That is O(schema) itself unless it is a hand-written list.
    - With O(adopt), the schema of the layout that is there.
  returned: on success
  type: dict
  sample: {"parteds": [], "vgs": [], "lvs": [], "fss": []}
filesystems:
  description: The file systems and swap spaces of the layout.
  returned: on success
  type: list
  elements: dict
  contains:
    device:
      description: The device as the schema calls it.
      returned: always
      type: str
      sample: /dev/mapper/os-root
    node:
      description: Its current device node. V(none) if it does not exist yet, which happens in check mode.
      returned: always
      type: str
      sample: /dev/mapper/os-root
    type:
      description: The type.
      returned: always
      type: str
      sample: ext4
    uuid:
      description: The UUID, in the form that C(/etc/fstab) needs.
      returned: always
      type: str
      sample: 8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f10
    names:
      description: All names by which a line of C(/etc/fstab) calls it, and nothing else on this host. Empty if it does not exist yet.
      returned: always
      type: list
      elements: str
      sample: [LABEL=root, UUID=8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f10, /dev/mapper/os-root]
    mountpoints:
      description: Where it is mounted. For swap that is on, V([SWAP]).
      returned: always
      type: list
      elements: str
      sample: [/srv/system]
containers:
  description: The LUKS containers of the layout.
  returned: on success
  type: list
  elements: dict
  contains:
    name:
      description: The name that it is opened under.
      returned: always
      type: str
      sample: keys
    device:
      description: The device that it is on, as the schema calls it.
      returned: always
      type: str
      sample: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part1
    names:
      description: All names by which a line of C(/etc/crypttab) calls it, and nothing else on this host. Empty if it does not exist yet.
      returned: always
      type: list
      elements: str
      sample: [PARTUUID=8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f11, /dev/sda2]
    node:
      description: The current node of the device that it is on. V(none) if it does not exist yet.
      returned: always
      type: str
      sample: /dev/sda1
    uuid:
      description: The UUID, in the form that C(/etc/crypttab) needs.
      returned: always
      type: str
      sample: 1f0f6a2e-0d4c-5b1e-8c0e-5d4b6e1b7f11
    unlock:
      description: The ways to open it, from the schema. M(bareon.allocator.disk_keys) takes RV(containers) as they are.
      returned: always
      type: list
      elements: dict
      sample: [{"method": "passphrase"}, {"method": "recovery"}]
arrays:
  description: The md arrays of the layout.
  returned: on success
  type: list
  elements: dict
  contains:
    device:
      description: The device as the schema calls it.
      returned: always
      type: str
      sample: /dev/md/boot
    node:
      description: Its current device node. V(none) if it does not exist yet.
      returned: always
      type: str
      sample: /dev/md127
    uuid:
      description: The UUID, in the form that C(blkid) prints. C(mdadm) writes it as four groups of eight digits with colons between them.
      returned: always
      type: str
      sample: 2b7a1c3e-4f5d-5c6b-8d7e-9f0a1b2c3d4e
"""

import os
import typing as t
from dataclasses import replace
from functools import partial

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import Selection
from ansible_collections.bareon.allocator.plugins.module_utils._layout.apply import Report, Request, apply, foresee, stop_by_signal
from ansible_collections.bareon.allocator.plugins.module_utils._layout.least import too_small
from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import LOCK_ARGUMENTS, only_run, why_no_timeout
from ansible_collections.bareon.allocator.plugins.module_utils._layout.losses import paragraph
from ansible_collections.bareon.allocator.plugins.module_utils._layout.protected import protections_in_force, read_protections
from ansible_collections.bareon.allocator.plugins.module_utils._layout.report import as_failure, as_result
from ansible_collections.bareon.allocator.plugins.module_utils._schema.bareon.form import is_bareon_list
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema, why_not_shrink
from ansible_collections.bareon.allocator.plugins.module_utils._steps.key import KEY_ARGUMENTS, KEY_EXCLUSIVE, key_of
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine, StepFailed


def main() -> t.NoReturn:
    """Make the layout, and return the result."""
    module = AnsibleModule(
        argument_spec={
            "schema": {"type": "raw"},
            "adopt": {"type": "bool", "default": False},
            "disks": {"type": "list", "elements": "str", "default": []},
            "fingerprint": {"type": "str"},
            "devices": {"type": "list", "elements": "str", "default": []},
            "include": {"type": "list", "elements": "str", "default": []},
            "wipe": {"type": "list", "elements": "str", "default": []},
            "protect": {"type": "list", "elements": "str", "default": []},
            "replace": {"type": "dict", "default": {}},
            "keep_unlisted": {"type": "bool", "default": True},
            "confirm": {"type": "str"},
            "allow_shrink": {"type": "list", "elements": "str", "default": []},
            **LOCK_ARGUMENTS,
            **KEY_ARGUMENTS,
        },
        mutually_exclusive=[KEY_EXCLUSIVE, ("schema", "disks")],
        supports_check_mode=True,
    )
    if os.geteuid() != 0:
        module.fail_json(msg="only root can read and change what is on disks; use become")
    machine = LocalMachine(key_of(module.params))
    adopting = module.params["adopt"]
    schema = adopted_schema(module, machine) if adopting else explicit_schema(module, machine)
    request = checked_request(module, schema, machine)
    report = foresee(request, machine) if adopting else run(module, request, machine)
    for note in report.notes:
        module.warn(note)
    if report.losses:
        module.warn(paragraph(report.losses))
    if report.problem is not None:
        module.fail_json(**as_failure(report))
    result = as_result(report, request, module.check_mode or adopting, module._diff and not adopting)
    module.exit_json(schema=schema, **({**result, "changed": False} if adopting else result))


def adopted_schema(module: AnsibleModule, machine: LocalMachine) -> t.Any:
    """Return the explicit schema of what is on the disks."""
    # Hosts get sources, and compile in each run what they import: this only where it is used.
    from ansible_collections.bareon.allocator.plugins.module_utils._layout.adopt import take_over

    found, refusals = take_over(machine, module.params["disks"])
    for note in found.notes:
        module.warn(note)
    if refusals:
        refuse(module, refusals)
    return found.schema


def explicit_schema(module: AnsibleModule, machine: LocalMachine) -> t.Any:
    """Return the explicit schema; a hand-written list is laid out on the disks of this host."""
    given = module.params["schema"]
    if given is None:
        module.fail_json(msg="give schema, or adopt: true to take over the layout that is there")
    if not is_bareon_list(given):
        return given
    from ansible_collections.bareon.allocator.plugins.module_utils._facts.hardware import read_hardware
    from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import LEFT_OUT
    from ansible_collections.bareon.allocator.plugins.module_utils._schema.bareon.convert import read_bareon_list

    hardware, warnings = read_hardware(machine, LEFT_OUT)
    reading = read_bareon_list(given, hardware)
    for note in (*warnings, *reading.notes):
        module.warn(note)
    if reading.mistakes:
        refuse(module, reading.mistakes)
    return reading.schema


def checked_request(module: AnsibleModule, schema: t.Any, machine: LocalMachine) -> Request:
    """Return what is asked for, or fail with all that is wrong with it."""
    params, key = module.params, machine.luks_key
    protections, wrong = read_protections(machine, params["protect"])
    mistakes = [*key.passphrase_problems(), *key.problems(), *wrong, *why_no_timeout(params)]
    try:
        layout = parse_static_schema(schema)
    except SchemaMistakes as error:
        refuse(module, (*error.mistakes, *mistakes))
    names = [container.name for container in layout.containers]
    mistakes += too_small(layout)
    mistakes += list(why_not_shrink(layout, params["allow_shrink"]))
    if params["replace"]:
        from ansible_collections.bareon.allocator.plugins.module_utils._layout.replacing import why_no_pairs

        mistakes += list(why_no_pairs(params["replace"]))
    mistakes += [f"luks_key_files.{name}: there is no container of that name in the schema" for name in key.files if name not in names]
    if mistakes:
        refuse(module, mistakes)
    layout = layout.with_shrinking(params["allow_shrink"])
    wipe = tuple(params["wipe"])
    selection = Selection(tuple(params["include"]), tuple(params["devices"]))
    return Request(
        layout, wipe, params["keep_unlisted"], params["fingerprint"], params["confirm"], protections, params["replace"], selection
    )


def refuse(module: AnsibleModule, mistakes: t.Sequence[str]) -> t.NoReturn:
    """Fail with every mistake of the input."""
    listed = mistakes[0] if len(mistakes) == 1 else "\n- ".join([f"{len(mistakes)} mistakes; nothing was changed:", *mistakes])
    module.fail_json(msg=listed, mistakes=list(mistakes))


def run(module: AnsibleModule, request: Request, machine: LocalMachine) -> Report:
    """Make the layout, or return the plan; fail while another run holds the lock."""
    if module.check_mode:
        return foresee(request, machine)
    try:
        with only_run("disk_layout", module.params["lock_timeout"]), stop_by_signal() as stop_asked:
            # The list may have grown while this run waited, and may grow while it opens devices.
            in_force = partial(protections_in_force, machine, module.params["protect"])
            request = replace(request, protections=in_force("nothing was changed: "))
            return apply(request, machine, stop_asked, module.log, in_force)
    except StepFailed as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
