#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action disk_layout_info."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_layout_info
short_description: Read the layout of a host's disks as a static schema
version_added: 1.1.0
description:
  - Returns the layout that is on the disks as Bareon's explicit static schema, whatever made it. Nothing is changed, marked or opened.
  - Everything in the schema has C(keep_data), so no C(wipe) destroys it. Give it to M(bareon.allocator.disk_layout) from then on, and
    change it as you like.
  - The schema covers partitions of a GPT, arrays, open LUKS containers, volume groups with linear volumes, file systems and swap. A warning
    names everything else; that is left out of the schema, and stays as it is.
  - Options and key files that fstab and crypttab have for them are in the schema. What no table mentions has C(fstab_enabled),
    C(crypttab_enabled) or C(mdadm_conf_enabled) with V(false).
  - It is what M(bareon.allocator.disk_layout) does with O(bareon.allocator.disk_layout#module:adopt), by a name that says so.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.linux
requirements:
  - root on the host
  - C(sfdisk), C(wipefs) and C(blkid) of util-linux
  - C(mdadm), C(cryptsetup), C(lvm2) and the tools of file systems, each only if the layout has such things
options:
  disks:
    description:
      - The disks to read, by any of their links. Default is all that M(bareon.allocator.disk_facts) reports.
    type: list
    elements: str
    default: []
seealso:
  - module: bareon.allocator.disk_layout
  - module: bareon.allocator.disk_facts
  - module: bareon.allocator.disk_drift
"""

EXAMPLES = r"""
---
- name: Read the layout that somebody made by hand
  bareon.allocator.disk_layout_info:
  become: true
  register: present

- name: Keep it as a schema
  ansible.builtin.copy:
    content: "{{ present.schema | to_nice_yaml }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.yml"
    mode: "0600"
  delegate_to: localhost
"""

RETURN = r"""
---
schema:
  description: The layout as an explicit static schema.
  returned: on success
  type: dict
  sample: {"parteds": [], "pvs": [], "vgs": [], "lvs": [], "mds": [], "fss": []}
steps:
  description: What M(bareon.allocator.disk_layout) would do with this schema. Empty, unless something does not use all of its device.
  returned: on success
  type: list
  elements: dict
  sample: []
filesystems:
  description: The file systems and swap spaces, as RV(bareon.allocator.disk_layout#module:filesystems).
  returned: on success
  type: list
  elements: dict
  sample:
    - device: /dev/mapper/os-root
      node: /dev/dm-0
      type: ext4
      uuid: 8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f10
      names: [/dev/mapper/os-root]
      mountpoints: [/]
containers:
  description: The LUKS containers, as RV(bareon.allocator.disk_layout#module:containers).
  returned: on success
  type: list
  elements: dict
  sample: []
arrays:
  description: The md arrays, as RV(bareon.allocator.disk_layout#module:arrays).
  returned: on success
  type: list
  elements: dict
  sample: []
mistakes:
  description: Disks that cannot be read so, and why.
  returned: when there are some
  type: list
  elements: str
  sample: ["there is no disk /dev/sdz here"]
"""
