#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes a system that was unpacked onto a layout start from its disks."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_boot
short_description: Make a system that was unpacked onto a layout bootable
version_added: 1.0.0
description:
  - Makes an installed system bootable from each of its disks alone. It builds the initramfs, installs GRUB on every disk with a BIOS boot
    partition and on every EFI system partition of the layout, and writes GRUB's menu. If the system has systemd-boot and no GRUB, that is
    installed on every EFI system partition, together with the kernels.
  - It first checks whether the system has what it needs to boot from arrays, LUKS containers and logical volumes, and names everything that
    is missing at once.
  - Everything runs inside that system, with its own programs, in a separate mount namespace. Nothing stays mounted.
  - With O(archive) it only makes that check, on an archive that is not unpacked yet.
  - For UEFI, the boot loader is installed under the name that every firmware looks for (C(EFI/BOOT/BOOTX64.EFI)). No boot entry is written
    to the firmware unless O(firmware_entries) asks for it, because it would be lost with the mainboard.
  - If the layout has arrays and the initramfs is Debian's, that gets a script (in C(/etc/initramfs-tools/scripts/local-block)) which opens
    what is on a degraded array as soon as that is started. Otherwise a system in LUKS on a degraded array does not boot if its disks are
    slow to appear.
  - With systemd-boot the kernel's command line is that of C(/etc/kernel/cmdline), with the new system's root. An EFI system partition needs
    room for the kernels and their initramfs; 512 MiB are enough for two.
  - If C(dracut) makes the initramfs, and the layout has arrays, LUKS or logical volumes, C(/etc/dracut.conf.d/90-disks-of-root.conf) has it
    look for them.
  - Runs of this module, M(bareon.allocator.disk_tables) and M(bareon.allocator.disk_mounts) on one host work one after the other.
  - A second run does nothing if fstab, crypttab, mdadm.conf, GRUB's settings, the kernels and the disks are still the same.
  - If a layout has several EFI system partitions, the system keeps them alike from then on, see O(esp_sync).
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.linux
requirements:
  - root on the host
  - C(unshare), C(mount) and C(chroot) on the host
  - in the installed system, a kernel, GRUB for the host's firmware or systemd-boot, and one of C(update-initramfs), C(dracut) and
    C(mkinitcpio)
  - C(tar) for O(archive)
  - C(efibootmgr) on the host for O(firmware_entries)
options:
  root:
    description:
      - The directory where the installed system's file systems are mounted.
      - Exactly one of O(root) and O(archive) is required.
    type: path
  archive:
    description:
      - An archive of a root file system, of whatever compression C(tar) knows. It is read to its end, and nothing is changed. The module
        fails when it cannot be read, has not all that a start from the layout takes, or is larger than the file systems of the layout.
      - The size of a file system is that of its device, and one that is compressed or of ZFS counts as large enough.
    type: path
  complete:
    description:
      - Whether O(archive) has to have all that a start takes. With V(false) it has to be an archive that can be read; the rest comes later.
    type: bool
    default: true
  copied:
    description:
      - Whether O(archive) is copied into the root file system to be unpacked there, so that it needs room for both.
    type: bool
    default: false
  users:
    description:
      - Names of users that the system in O(archive) must have.
    type: list
    elements: str
    default: []
  groups:
    description:
      - Names of groups that the system in O(archive) must have.
    type: list
    elements: str
    default: []
  protect:
    description:
      - Disks that no boot loader is written to, as O(bareon.allocator.disk_layout#module:protect). The file C(/etc/bareon/protected) of the
        host adds to it. If the system in O(root) needs a boot loader on such a disk, the task fails before anything is done.
    type: list
    elements: str
    default: []
  schema:
    description:
      - The layout, RV(bareon.allocator.disk_layout#module:schema).
    type: dict
    required: true
  esp_sync:
    description:
      - Whether the system in O(root) keeps its EFI system partitions alike when packages write to the mounted one later. It has no effect
        unless the layout has several.
      - The script C(/etc/bareon/esp-sync) is installed in the system, and called by C(dpkg) when it ends, by C(kernel-install) and
        C(update-initramfs), and where packages are those of C(rpm) by a path unit of systemd that watches its database.
      - It copies new and changed files of the mounted partition to the others, each under a temporary name that is then renamed, removes
        those that it has copied and that the mounted one has no longer, and compares what is on the medium. What it does is in the journal
        (C(journalctl -t bareon-esp-sync)).
      - It writes to no other partitions than those of the layout, which it knows by PARTUUID and by the type of the partition, and to none
        of a disk that C(/etc/bareon/protected) names. If no EFI system partition is mounted, it copies nothing.
      - With V(false) the script and its hooks are removed.
    type: bool
    default: true
    version_added: 1.1.0
  firmware_entries:
    description:
      - Whether to mend the boot entries of this host's firmware, with C(efibootmgr). An EFI system partition of the layout that no entry
        starts from gets one at the end of the boot order, labelled C(bareon) and the beginning of its PARTUUID. An entry that this module
        made is removed when its partition is no longer one of the layout. Other entries stay.
      - Only for a host that was started by UEFI, and not for a system that is installed for another machine.
    type: bool
    default: false
    version_added: 1.1.0
attributes:
  diff_mode:
    details:
      - Shows the steps.
notes:
  - Tested with Debian on BIOS and UEFI, booting from partitions and from LVM in LUKS on a mirror. For C(mkinitcpio) the documented command
    is run, but no such system was booted.
  - After each run all EFI system partitions have the same files. If a package changes the mounted one later, the system copies it to the
    others; without O(esp_sync), run the module again.
seealso:
  - module: bareon.allocator.disk_layout
"""

EXAMPLES = r"""
---
# `layout` is the registered result of bareon.allocator.disk_layout, and a system was unpacked into /target.
- name: Make the system start from each of its disks
  bareon.allocator.disk_boot:
    root: /target
    schema: "{{ layout.schema }}"
  become: true

- name: Look whether an archive has all that the start takes, before the layout is made
  bareon.allocator.disk_boot:
    archive: /srv/images/server.tar.gz
    schema: "{{ planned.plan.schema }}"
  delegate_to: localhost
"""

RETURN = r"""
---
steps:
  description: What was done, or in check mode what would be done, in words.
  returned: success
  type: list
  elements: str
  sample:
    - make the initramfs of 6.12.48+deb13-amd64
    - install GRUB for BIOS on /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
    - write the menu of GRUB
compression:
  description: With O(archive), the program that tar needs to unpack it; empty where it needs none.
  returned: success
  type: str
  sample: zstd
"""

import contextlib
import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils._booting.carry_out import make_bootable, processor
from ansible_collections.bareon.allocator.plugins.module_utils._booting.plan import Extras, plan_boot, why_archive_not
from ansible_collections.bareon.allocator.plugins.module_utils._booting.room import why_no_room
from ansible_collections.bareon.allocator.plugins.module_utils._booting.system import compression_of, list_archive, unknown_accounts
from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import only_writer
from ansible_collections.bareon.allocator.plugins.module_utils._layout.protected import protections_of_node, read_protections
from ansible_collections.bareon.allocator.plugins.module_utils._schema.model import Layout
from ansible_collections.bareon.allocator.plugins.module_utils._schema.starting import legs_of
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, readable_layout
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine, StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.whole_file import replace_file

ARGUMENTS: t.Mapping[str, t.Any] = {
    "root": {"type": "path"},
    "archive": {"type": "path"},
    "complete": {"type": "bool", "default": True},
    "copied": {"type": "bool", "default": False},
    **{name: {"type": "list", "elements": "str", "default": []} for name in ("users", "groups")},
    "protect": {"type": "list", "elements": "str", "default": []},
    "esp_sync": {"type": "bool", "default": True},
    "firmware_entries": {"type": "bool", "default": False},
    "schema": {"type": "dict", "required": True},
}
ONE_OF = [["root", "archive"]]


def main() -> t.NoReturn:
    """Make the system start, or check an archive, and return the result."""
    module = AnsibleModule(argument_spec=dict(ARGUMENTS), supports_check_mode=True, mutually_exclusive=ONE_OF, required_one_of=ONE_OF)
    try:
        if module.params["archive"]:
            look_into_archive(module, LocalMachine())
        with contextlib.nullcontext() if module.check_mode else only_writer("disk_boot"):
            make_system_bootable(module, LocalMachine())
    except (StepFailed, SchemaMistakes) as error:
        module.fail_json(msg=str(error))


def look_into_archive(module: AnsibleModule, machine: LocalMachine) -> t.NoReturn:
    """Read an archive whole, and say what it lacks, or lacks room for; raises StepFailed and SchemaMistakes."""
    archive, schema = module.params["archive"], module.params["schema"]
    compression, listed = compression_of(archive, machine), list_archive(archive, machine)
    refusals = why_archive_not(readable_layout(schema), listed) if module.params["complete"] else ()
    if refusals:
        module.fail_json(msg="\n- ".join(["The system in the archive would not start, and nothing was changed:", *refusals]))
    others = why_no_room(schema, listed, os.path.getsize(archive) if module.params["copied"] else 0)
    others += tuple(unknown_accounts(archive, machine, module.params["users"], module.params["groups"]))
    if others:
        module.fail_json(msg="\n- ".join(["The archive does not go with the layout, and nothing was changed:", *others]))
    module.exit_json(changed=False, steps=[], compression=compression)


def make_system_bootable(module: AnsibleModule, machine: LocalMachine) -> t.NoReturn:
    """Make the system in a folder start; raises StepFailed."""
    root, layout = module.params["root"], readable_layout(module.params["schema"])
    extras = Extras(module.params["esp_sync"], module.params["firmware_entries"])
    plan, refusals = plan_boot(layout, root, machine, processor(), extras)
    refusals += tuple(forbidden(layout, module.params["protect"], machine)) if plan.steps else ()
    if refusals:
        module.fail_json(msg="\n- ".join(["The system cannot be made bootable, and nothing was changed:", *refusals]))
    if not module.check_mode:
        make_bootable(plan, root, machine, replace_file)
    steps = [step.says for step in plan.steps]
    module.exit_json(changed=bool(steps), steps=steps, **({"diff": {"prepared": "".join(f"{step}\n" for step in steps)}} if steps else {}))


def forbidden(layout: Layout, protect: t.Sequence[str], machine: LocalMachine) -> t.Iterator[str]:
    """Give a refusal for each device for a boot loader that is on a protected disk, and for lists of those that cannot be read."""
    protections, mistakes = read_protections(machine, protect)
    yield from mistakes
    legs = legs_of(layout)
    for device in (*legs.bios, *legs.esps):
        by = " and ".join(each.words for each in protections_of_node(machine, device, protections))
        if by:
            yield f"{device} is on a disk that is protected by {by}, so that no boot loader is written to it"


if __name__ == "__main__":
    main()
