#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Erases whole disks, and records how."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_erase
short_description: Erase all data of disks, with a record
version_added: 1.1.0
description:
  - Erases all of a disk, reads it afterwards, and returns a record for each disk.
  - Refuses what M(bareon.allocator.disk_layout) refuses to destroy. That is everything in use, protected disks, read-only disks, and parts
    of arrays, groups, pools and file systems that are also on disks which O(disks) does not name. With one refusal no disk is erased.
  - Arrays, LUKS containers and volume groups that nothing uses are closed first.
  - All disks are erased at the same time. If one fails, the others are finished, and the task fails.
  - The next run goes on with what was interrupted by a signal, a lost connection or a power cut. A disk that erases itself
    continues without the host.
  - A second run changes nothing. If the host was started since, it reads all of a disk that was erased by V(zero) or V(discard), and
    repeats V(sanitize) and V(crypto).
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.linux
  - bareon.allocator.lock
requirements:
  - root on the host
  - C(partx) of util-linux
  - C(nvme-cli), C(hdparm) and C(sg3-utils) for disks that can erase themselves
  - C(mdadm), C(cryptsetup) and C(lvm2), each only if such things are on the disks
options:
  disks:
    description:
      - The disks to erase, by ID. Links in C(/dev/disk/by-id) and C(/dev/disk/by-path) are allowed. Nodes such as C(/dev/sda) are not,
        because they can be another disk after the next boot, unless a disk has no other name.
    type: list
    elements: str
    required: true
  method:
    description:
      - How to erase. A disk that does not offer the method is refused.
      - V(sanitize) has the disk erase all of its cells or sectors. It is the sanitize operation of NVMe, ATA or SCSI (block erase, else
        overwrite), or else an NVMe format with user data erase.
      - V(crypto) has the disk change its encryption key, by a sanitize operation or an NVMe format.
      - V(discard) discards all blocks. It takes seconds, but disks do not promise what discarded blocks read like. If they read other
        than zero, the record is not RV(records[].verified).
      - V(zero) writes zeros to all blocks and reads them back. Every disk offers this.
      - V(auto) is the first of V(sanitize), V(crypto) and V(zero) that the disk offers.
      - V(sanitize) and V(crypto) also reach spare blocks and remapped sectors, which no address leads to.
        Some of their operations erase the whole drive. Then all namespaces of the drive have to be in O(disks).
    type: str
    choices: [auto, sanitize, crypto, discard, zero]
    default: auto
  protect:
    description:
      - Disks that nothing is written to, as O(bareon.allocator.disk_layout#module:protect). The file C(/etc/bareon/protected) of the host
        adds to this.
    type: list
    elements: str
    default: []
  confirm:
    description:
      - The RV(destroys_digest) that check mode returned. Disks are only erased if they have exactly the contents that check mode listed.
    type: str
attributes:
  check_mode:
    description: Can run in check mode and return what it would return otherwise.
    support: full
    details:
      - Disks that were erased before are read as in a run. RV(records) has only those.
  diff_mode:
    description: Returns what has changed, or would, when in diff mode.
    support: none
notes:
  - Hours are usual for V(zero) on a large disk. With O(lock_timeout) and in all other ways a run counts as one of
    M(bareon.allocator.disk_layout), which waits for it.
  - Records are kept in C(/var/lib/bareon/erase) on the host as well. A system that is gone after a restart loses them and begins again.
  - The ATA command SECURITY ERASE UNIT is not used, because a disk is left locked if it is interrupted.
seealso:
  - module: bareon.allocator.disk_layout
  - module: bareon.allocator.disk_facts
  - plugin: bareon.allocator.erasures_to_html
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: See what would be erased, and how
  bareon.allocator.disk_erase:
    disks:
      - /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
  become: true
  check_mode: true
  register: expected

- name: Erase it, if it is as it was
  bareon.allocator.disk_erase:
    disks:
      - /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
    confirm: "{{ expected.destroys_digest }}"
  become: true
  register: erased

- name: Keep the records on the controller
  ansible.builtin.copy:
    content: "{{ erased.records | to_nice_json }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.json"
    mode: "0600"
  delegate_to: localhost
"""

RETURN = r"""
---
records:
  description: A record for each disk that is erased, now or before.
  returned: always, unless the input cannot be used
  type: list
  elements: dict
  contains:
    disk:
      description: The id of the disk.
      returned: always
      type: str
      sample: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
    serial:
      description: Its serial number. Empty if it reports none.
      returned: always
      type: str
      sample: S3Z8NB0K123456
    wwn:
      description: Its WWN. Empty if it has none.
      returned: always
      type: str
      sample: "0x5000c500a1b2c3d4"
    model:
      description: Its model. Empty if it reports none.
      returned: always
      type: str
      sample: ST16000NM001G
    size:
      description: Its size, in bytes.
      returned: always
      type: int
      sample: 16000900661248
    method:
      description: The method, never V(auto).
      returned: always
      type: str
      sample: zero
    way:
      description: The operation in words.
      returned: always
      type: str
      sample: zeros on all blocks
    level:
      description:
        - V(purge) for operations that also reach what no address leads to, V(clear) for all others. The words are those of NIST SP 800-88.
      returned: always
      type: str
      sample: clear
    started:
      description: When it began, in UTC by the clock of the host.
      returned: always
      type: str
      sample: "2026-01-31T12:00:00Z"
    ended:
      description: When all was read back.
      returned: always
      type: str
      sample: "2026-02-01T17:21:40Z"
    verified:
      description: Whether what was read afterwards shows that the disk is erased.
      returned: always
      type: bool
      sample: true
    checked:
      description: What was read afterwards.
      returned: always
      type: str
      sample: all 15259648 MiB read back as zero
steps:
  description: What was done, or would be. Also returned if the task fails.
  returned: always, unless the input cannot be used
  type: list
  elements: dict
  contains:
    kind:
      description: V(close) for what is closed before, V(erase_disk) for a disk.
      returned: always
      type: str
      sample: erase_disk
    says:
      description: The step, in words.
      returned: always
      type: str
      sample: "erase all of /dev/sdb (/dev/disk/by-id/wwn-0x5000c500a1b2c3d4): zeros on all blocks"
    done:
      description: Whether it was done. V(false) in check mode.
      returned: always
      type: bool
      sample: true
destroys:
  description: What is known of the contents of the disks, as RV(bareon.allocator.disk_layout#module:destroys).
  returned: always, unless the input cannot be used
  type: list
  elements: dict
  sample: []
destroys_digest:
  description: The digest of RV(destroys), for O(confirm).
  returned: always, unless the input cannot be used
  type: str
  sample: 0a1b2c3d4e5f60718293a4b5c6d7e8f9
mistakes:
  description: Everything that is wrong with the input.
  returned: when the input cannot be used
  type: list
  elements: str
  sample: ["disks: must name at least one disk"]
"""

import os
import typing as t
from dataclasses import replace

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils._erase.carry_out import Workplace
from ansible_collections.bareon.allocator.plugins.module_utils._erase.record import Records
from ansible_collections.bareon.allocator.plugins.module_utils._erase.run import Request, expected, foresee, run
from ansible_collections.bareon.allocator.plugins.module_utils._erase.ways import AUTO, METHODS
from ansible_collections.bareon.allocator.plugins.module_utils._layout.apply import stop_by_signal
from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import LOCK_ARGUMENTS, only_run, why_no_timeout
from ansible_collections.bareon.allocator.plugins.module_utils._layout.protected import protections_in_force, read_protections
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine, StepFailed


def main() -> t.NoReturn:
    """Erase the disks, and return their records."""
    module = AnsibleModule(
        argument_spec={
            "disks": {"type": "list", "elements": "str", "required": True},
            "method": {"type": "str", "choices": list(METHODS), "default": AUTO},
            "protect": {"type": "list", "elements": "str", "default": []},
            "confirm": {"type": "str"},
            **LOCK_ARGUMENTS,
        },
        supports_check_mode=True,
    )
    if os.geteuid() != 0:
        module.fail_json(msg="only root can read and change what is on disks; use become")
    params, machine = module.params, LocalMachine()
    protections, mistakes = read_protections(machine, params["protect"])
    mistakes = (*mistakes, *why_no_timeout(params), *(() if params["disks"] else ("disks: must name at least one disk",)))
    if mistakes:
        module.fail_json(msg="\n- ".join(["Nothing was erased:", *mistakes]), mistakes=list(mistakes))
    request = Request(tuple(params["disks"]), params["method"], protections, params["confirm"])
    try:
        result = expected(foresee(request, Workplace(machine, Records())), request) if module.check_mode else _run(module, request, machine)
    except StepFailed as error:
        module.fail_json(msg=str(error))
    for warning in result.pop("warnings"):
        module.warn(warning)
    module.exit_json(**result)


def _run(module: AnsibleModule, request: Request, machine: LocalMachine) -> dict[str, t.Any]:
    with only_run("disk_erase", module.params["lock_timeout"]), stop_by_signal() as stop_asked:
        # The list may have grown while this run waited.
        request = replace(request, protections=protections_in_force(machine, module.params["protect"], "nothing was erased: "))
        return run(request, Workplace(machine, Records(), stop_asked), module.log)


if __name__ == "__main__":
    main()
