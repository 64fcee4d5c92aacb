#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mounts file systems, all in one task."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_mounts
short_description: Mount file systems, all in one task
version_added: 1.0.0
description:
  - Writes lines for file systems to C(fstab), and mounts them in the given order.
  - Does the same as M(ansible.posix.mount) with O(ansible.posix.mount#module:state=mounted), for many file systems at once. A server with
    eight file systems needs one module run instead of eight, and C(fstab) is written once.
  - If a mount point already has a different line, that line is replaced in its place. All other lines stay as they are.
  - Runs for one host write and mount one after the other, so that no line of another one is lost.
  - If systemd is running, it reloads a changed C(fstab) before anything is mounted.
  - File systems that are mounted already stay mounted. If their line has changed, they are remounted with the new options, without
    being unmounted (C(remount)).
  - If a file system cannot be mounted and its O(mounts[].passno) is not V(0), it is checked as a start of the host would check it
    (C(fsck -a), which corrects only what is safe to correct), and mounted then. An ext4 needs that after a power cut while it grew.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.linux
requirements:
  - root on the host
  - C(mount) of util-linux, and C(fsck) for file systems that cannot be mounted unchecked
options:
  mounts:
    description:
      - The file systems, outer directories before inner ones.
      - P(bareon.allocator.layout_to_host_files#filter) returns such a list as C(mounts).
    type: list
    elements: dict
    required: true
    suboptions:
      src:
        description: The device, as C(fstab) names it, such as V(UUID=0a4c1c9e-56f1-4d5a-b1a3-5b6d4a5b0e11).
        type: str
        required: true
      path:
        description: Where it is mounted. A missing directory is made.
        type: path
        required: true
      fstype:
        description: The type of the file system.
        type: str
        required: true
      opts:
        description: Options, with commas between them.
        type: str
        default: defaults
      dump:
        description: Whether C(dump) backs it up.
        type: str
        default: "0"
      passno:
        description: The order in which C(fsck) checks it at boot. V(0) means never.
        type: str
        default: "0"
      origins:
        description: Where each of O(mounts[].opts) comes from, which the diff shows.
        type: dict
  fstab:
    description:
      - The file to write the lines to. It is made if it is missing.
    type: path
    default: /etc/fstab
  root:
    description:
      - The directory of a new system. Everything is mounted below it until the next start of the host, and O(fstab) is neither read nor
        written, because the new system has one of its own.
    type: path
  backup:
    description: Whether to keep a copy of the previous O(fstab) in the same folder, with the time in its name, when it changes.
    type: bool
    default: false
attributes:
  diff_mode:
    details:
      - Shows C(fstab) before and after, and where options come from.
notes:
  - A mount point counts as mounted even if something else is mounted there. P(bareon.allocator.static_to_conflicts#filter) finds these.
seealso:
  - module: ansible.posix.mount
  - module: bareon.allocator.disk_layout
  - plugin: bareon.allocator.layout_to_host_files
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Mount two file systems, one below the other
  bareon.allocator.disk_mounts:
    mounts:
      - {src: UUID=0a4c1c9e-56f1-4d5a-b1a3-5b6d4a5b0e11, path: /srv/data, fstype: xfs}
      - {src: UUID=8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f10, path: /srv/data/log, fstype: ext4, opts: "defaults,nofail", passno: "2"}
  become: true

- name: Mount the root file system of a system that is to be installed
  bareon.allocator.disk_mounts:
    mounts:
      - {src: UUID=0a4c1c9e-56f1-4d5a-b1a3-5b6d4a5b0e11, path: /, fstype: ext4, passno: "1"}
    root: /target
  become: true
"""

RETURN = r"""
---
backup_file:
  description: The copy of O(fstab) as it was before.
  returned: when O(backup=true) and an existing O(fstab) was changed
  type: str
  sample: /etc/fstab.2412.2026-11-22@10:41:07~
mounted:
  description: The mount points where something was mounted, or in check mode would be, in order.
  returned: success
  type: list
  elements: str
  sample: [/srv/data, /srv/data/log]
remounted:
  description: The mount points that were remounted with other options, or in check mode would be.
  returned: success
  type: list
  elements: str
  sample: []
"""

import contextlib
import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import only_writer
from ansible_collections.bareon.allocator.plugins.module_utils._mounting import MOUNTINFO, carry_out, entry_of, plan_mounts
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine, StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.whole_file import read_file, replace_file
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options.words import says_where_from


def main() -> t.NoReturn:
    """Mount, and return what was mounted."""
    fields: dict[str, t.Any] = {name: {"type": "str", "required": True} for name in ("src", "fstype")}
    fields["path"] = {"type": "path", "required": True}
    fields |= {name: {"type": "str", "default": value} for name, value in (("opts", "defaults"), ("dump", "0"))}
    # The sanity tests take it for a password.
    fields["passno"] = {"type": "str", "default": "0", "no_log": False}
    fields["origins"] = {"type": "dict"}
    module = AnsibleModule(
        argument_spec={
            "mounts": {"type": "list", "elements": "dict", "required": True, "options": fields},
            "fstab": {"type": "path", "default": "/etc/fstab"},
            "root": {"type": "path"},
            "backup": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        with contextlib.nullcontext() if module.check_mode else only_writer("disk_mounts"):
            result = mount(module, LocalMachine())
        module.exit_json(**result)
    except (StepFailed, ValueError) as error:
        module.fail_json(msg=str(error))


def mount(module: AnsibleModule, machine: LocalMachine) -> dict[str, t.Any]:
    """Mount, unless in check mode, and return the result; raises StepFailed, and ValueError for what fstab has no form for."""
    fstab, root = os.path.realpath(module.params["fstab"]), module.params["root"]
    entries = [entry_of(given) for given in module.params["mounts"]]
    if root is None:
        plan = plan_mounts(entries, read_file(fstab) or "", machine.read(MOUNTINFO) or "")
    else:
        plan = plan_mounts([entry.below(root) for entry in entries], None, machine.read(MOUNTINFO) or "")
    copy: dict[str, str] = {}
    if not module.check_mode:
        if module.params["backup"] and plan.after != plan.before and os.path.exists(fstab):
            copy["backup_file"] = module.backup_local(fstab)
            machine.flush([copy["backup_file"]])
        carry_out(plan, fstab if root is None else None, machine, lambda text: replace_file(fstab, text))
    settings = says_where_from((given["path"], given["origins"] or {}) for given in module.params["mounts"]) if plan.changes else ""
    return {
        "changed": plan.changes,
        "mounted": [entry.path for entry in plan.new],
        "remounted": [entry.path for entry in plan.changed],
        **copy,
        "diff": {
            **{"before_header": fstab, "after_header": fstab, "before": plan.before, "after": plan.after},
            **({"prepared": settings} if settings else {}),
        },
    }


if __name__ == "__main__":
    main()
