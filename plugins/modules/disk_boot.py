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
    partition and on every EFI system partition of the layout, and writes GRUB's menu.
  - It first checks whether the system has what it needs to boot from arrays, LUKS containers and logical volumes, and names everything that
    is missing at once.
  - Everything runs inside that system, with its own programs, in a separate mount namespace. Nothing stays mounted.
  - For UEFI, GRUB is installed under the name that every firmware looks for (C(EFI/BOOT/BOOTX64.EFI)). No boot entry is written to the
    firmware, because it would be lost with the mainboard.
  - If the layout has arrays and the initramfs is Debian's, C(/etc/default/grub.d/90-root-on-arrays.cfg) adds C(rootdelay=180) to the
    kernel's command line, unless GRUB's settings have a C(rootdelay) already. With the usual 30 seconds, a system in LUKS on a degraded
    array does not boot if its disks are slow to appear. Booting from a degraded array takes up to two minutes longer.
  - A second run does nothing if fstab, crypttab, mdadm.conf, GRUB's settings, the kernels and the disks are still the same.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.host
requirements:
  - root on the host
  - C(unshare), C(mount) and C(chroot) on the host
  - in the installed system, a kernel, GRUB for the host's firmware, and one of C(update-initramfs), C(dracut) and C(mkinitcpio)
options:
  root:
    description:
      - The directory where the installed system's file systems are mounted.
    type: path
    required: true
  schema:
    description:
      - The layout, RV(bareon.allocator.disk_layout#module:schema).
    type: dict
    required: true
attributes:
  diff_mode:
    description: Returns what has changed, or would, when in diff mode.
    support: full
    details:
      - Shows the steps.
notes:
  - Tested with Debian on BIOS and UEFI, booting from partitions and from LVM in LUKS on a mirror. For C(dracut) and C(mkinitcpio) the
    documented commands are run, but no such system was booted.
  - After each run all EFI system partitions have the same files. If a package changes one of them later, run the module again.
seealso:
  - module: bareon.allocator.disk_layout
"""

EXAMPLES = r"""
--- # `layout` is the registered result of bareon.allocator.disk_layout, and a system was unpacked into /target.
- name: Make the system start from each of its disks
  bareon.allocator.disk_boot:
    root: /target
    schema: "{{ layout.schema }}"
  become: true
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
