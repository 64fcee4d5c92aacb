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
version_added: 0.1.0
description:
  - Makes the initramfs of a system that lies in a folder, installs GRUB on every disk that the layout has a BIOS boot partition on, and on
    every EFI system partition, and writes its menu, so that the system starts from each of them alone.
  - Before anything is done it is looked for what a start from arrays, LUKS containers and logical volumes takes. All that is missing in
    the system is named at once.
  - All is done inside of the system, with its own programs, in a mount namespace of its own. Nothing stays mounted.
  - For UEFI GRUB is installed under the name that every firmware looks for (C(EFI/BOOT/BOOTX64.EFI)), without an entry in the memory of
    the firmware, which would be lost with a mainboard.
  - Where the layout has arrays and the initramfs is Debian's, C(/etc/default/grub.d/90-root-on-arrays.cfg) gives a start
    C(rootdelay=180), unless the settings of GRUB have a C(rootdelay) already. With the usual 30 seconds a system in LUKS on an array that
    lacks a member does not start where its disks are slow to appear. Such a start takes two minutes longer.
  - A second run finds that fstab, crypttab, mdadm.conf, the settings of GRUB, the kernels and the disks are the same, and does nothing.
author:
  - The bareon.allocator maintainers (@bareon)
requirements:
  - root on the host
  - C(unshare), C(mount) and C(chroot) on the host
  - in the system a kernel, GRUB with what the firmware takes, and one of C(update-initramfs), C(dracut) and C(mkinitcpio)
options:
  root:
    description:
      - The folder of the system, with all of its file systems mounted below it.
    type: path
    required: true
  schema:
    description:
      - The layout, RV(bareon.allocator.disk_layout#module:schema).
    type: dict
    required: true
attributes:
  check_mode:
    description: Can run in check mode and return what it would return otherwise.
    support: full
  diff_mode:
    description: Returns what has changed, or would, when in diff mode.
    support: full
    details:
      - Shows the steps.
  idempotent:
    description: A second run changes nothing.
    support: full
  platform:
    description: The platforms that the module works on.
    platforms: posix
    support: full
    details:
      - Linux only.
notes:
  - Tried with Debian, by BIOS, from partitions and from LVM in LUKS on a mirror. Systems with C(dracut) or C(mkinitcpio) are made to
    start by the commands that these document, and were not started.
  - The files of several EFI system partitions are alike after each run. When a package changes them later, run it again.
seealso:
  - module: bareon.allocator.disk_layout
"""

EXAMPLES = r"""
---
# `layout` is what bareon.allocator.disk_layout returned, and a system was unpacked into /target.
- name: Make the system start from each of its disks
  bareon.allocator.disk_boot:
    root: /target
    schema: "{{ layout.schema }}"
  become: true
"""

RETURN = r"""
---
steps:
  description: What was done, in check mode what would be done, in words.
  returned: success
  type: list
  elements: str
  sample:
    - make the initramfs of 6.12.48+deb13-amd64
    - install GRUB for BIOS on /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
    - write the menu of GRUB
"""

import os
import tempfile
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils.booting import make_bootable, plan_boot, processor
from ansible_collections.bareon.allocator.plugins.module_utils.steps.machine import LocalMachine, StepFailed


def main() -> t.NoReturn:
    """Make it start, and tell what was done."""
    module = AnsibleModule(
        argument_spec={"root": {"type": "path", "required": True}, "schema": {"type": "dict", "required": True}},
        supports_check_mode=True,
    )
    machine, root = LocalMachine(), module.params["root"]
    plan, refusals = plan_boot(module.params["schema"], root, machine, processor())
    if refusals:
        module.fail_json(msg="\n- ".join(["The system cannot be made bootable, and nothing was changed:", *refusals]))
    if not module.check_mode:
        try:
            make_bootable(plan, root, machine, lambda path, text: write(module, path, text))
        except StepFailed as error:
            module.fail_json(msg=str(error))
    steps = [step.says for step in plan.steps]
    module.exit_json(changed=bool(steps), steps=steps, **({"diff": {"prepared": "".join(f"{step}\n" for step in steps)}} if steps else {}))


def write(module: AnsibleModule, path: str, text: str) -> None:
    """Put a text into a file, with its folder, at once."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, name = tempfile.mkstemp(dir=module.tmpdir)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
    module.atomic_move(name, path)


if __name__ == "__main__":
    main()
