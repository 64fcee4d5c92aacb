#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Has LUKS containers be opened by what they are to be opened by."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_keys
short_description: Say what opens LUKS containers
version_added: 0.1.0
description:
  - Adds to the headers of LUKS 2 containers what is to open them, as far as it is lacking. What is there already is found by the keys that
    are given and by the tokens of the header. A second run changes nothing.
  - Nothing is taken away but what O(take_away) or O(renew) names, and that only when something that stays was seen to open the container in
    this very run. A header is never left without a key.
  - A container need not be closed for it, and what is in it is not touched.
  - A run that is cut off leaves a mark in the header at the key slot that it was about to fill. The next run removes the slot and fills
    it again.
author:
  - The bareon.allocator maintainers (@bareon)
requirements:
  - root on the host
  - C(cryptsetup) 2.4 or newer
  - C(clevis) and, for what opens the containers at a start, C(clevis-systemd), for O(containers[].unlock[].method=tang)
  - C(systemd-cryptenroll) of systemd 252 or newer, the libraries of TPMs (C(tpm2-tools) brings them along), and cryptsetup's plugin for
    systemd's tokens, for O(containers[].unlock[].method=tpm2)
options:
  containers:
    description:
      - The containers. RV(bareon.allocator.disk_layout#module:containers) is such a list.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: What it is called in results and messages; by default its device.
        type: str
      device:
        description: The device that has the header.
        type: path
        required: true
      node:
        description: Its node of this boot, which is taken instead of O(containers[].device) where it is given.
        type: path
      uuid:
        description: Its UUID. It is taken for the sake of RV(bareon.allocator.disk_layout#module:containers) and says nothing here.
        type: str
      unlock:
        description:
          - What is to open the container, each by itself.
        type: list
        elements: dict
        required: true
        suboptions:
          method:
            description:
              - V(passphrase) is O(luks_key). Where that is not given, any passphrase will do that is there already.
              - V(key_file) is a file on the host, the whole content of which is a key. Where there is none it is made, of 64 random bytes,
                and only root can read it.
              - V(recovery) is a recovery key of 256 random bits, in letters that lie on the same keys of most keyboards. It is returned by
                the run that makes it, and by no other. What it is for, its token says as C(systemd-cryptenroll) would.
              - V(tang) is a server in the network, which helps to open it and learns nothing by that. The server is asked by C(clevis), and
                gives back what was encrypted for it before anything is added.
              - V(tpm2) is the TPM 2 of the machine, in which C(systemd-cryptenroll) seals a key. It gives the key out as long as the
                registers O(containers[].unlock[].pcrs) are as they are now.
            type: str
            choices: [tpm2, tang, key_file, passphrase, recovery]
            required: true
          pcrs:
            description:
              - Of V(tpm2), the registers that must be as they are when the key is sealed. V(7) is secure boot, and what may sign what
                starts. V(0) and V(2) are the firmware, V(4) the boot loader and the kernel, with which every update changes them.
              - Default is V([7]). None at all, V([]), only ties the container to this machine.
            type: list
            elements: int
          url:
            description: Of V(tang), the address of the server.
            type: str
          thumbprint:
            description:
              - Of V(tang), the thumbprint by SHA-256 of the key that the server signs with, as C(tang-show-keys) tells it on the server.
              - Where the server gets new keys, a new thumbprint here has the container bound to these.
            type: str
          path:
            description: The path of the key file.
            type: path
  luks_key:
    description:
      - A passphrase that opens the containers now, or that is to open those with the method V(passphrase).
      - It is taken as it is, no newline is added, and goes to C(cryptsetup) by its standard input or in memory. It shows nowhere.
    type: str
  luks_key_file:
    description:
      - A file on the host whose whole content opens the containers now.
    type: path
  luks_key_files:
    description:
      - Such files of single containers, by their names.
    type: dict
    default: {}
  luks_old_key:
    description:
      - What opens the containers where the other keys do not yet. With it a passphrase is changed. A recovery key can be given here, too.
    type: str
  luks_old_key_file:
    description:
      - The same as a file on the host.
    type: path
  take_away:
    description:
      - What is removed from the headers where O(containers[].unlock) does not have it.
      - V(keys) are all slots without a token, which is passphrases and key files. Those stay that O(luks_key) or a key file opens, if the
        method is listed. Without O(luks_key) all of them stay where V(passphrase) is listed.
      - V(recovery), V(tang) and V(tpm2) are what their tokens say, as far as it is another server or other registers.
    type: list
    elements: str
    choices: [keys, recovery, tang, tpm2]
    default: []
  renew:
    description:
      - What is made anew by this run though it is there, after which the old one is removed. As it is done by every run, it is something to
        ask for once.
      - V(recovery) makes a new recovery key, for example after one was used.
      - V(tpm2) seals a new key with the registers as they are now, for example after an update of the firmware.
      - V(tang) binds to the server anew.
    type: list
    elements: str
    choices: [recovery, tang, tpm2]
    default: []
  root:
    description:
      - The directory that the paths of the method V(key_file) lie below, for a system that is being installed there.
    type: path
    default: /
  recovery_key_directory:
    description:
      - A directory on the controller. New recovery keys are written there, a file for each by the name of the host, the container and its
        key slot, which only its owner can read. They are not in the result then.
      - It is made where it is missing.
    type: path
attributes:
  check_mode:
    description: Can run in check mode and return what it would return otherwise.
    support: full
    details:
      - Recovery keys are made by no run in check mode. A container that is not there yet counts as one that is new.
  diff_mode:
    description: Returns what has changed, or would, when in diff mode.
    support: full
    details:
      - Shows by what the containers are opened. Keys never show.
  idempotent:
    description: A second run changes nothing.
    support: full
    details:
      - But for O(renew), which asks for something new.
  action:
    description: Has a part that runs on the controller, which writes recovery keys.
    support: full
  platform:
    description: The platforms that the module works on.
    platforms: posix
    support: full
    details:
      - Linux only.
notes:
  - Keys are tried on the header, which takes a second or two for each of them, as long as C(cryptsetup) means it to.
  - Whoever can read results of tasks can read RV(recovery_keys). Give O(recovery_key_directory), or set C(no_log) on the task and hand on
    what it registers.
seealso:
  - module: bareon.allocator.disk_layout
  - module: community.crypto.luks_device
"""

EXAMPLES = r"""
---
- name: Have a passphrase and a recovery key open a container
  bareon.allocator.disk_keys:
    containers:
      - device: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part1
        name: data
        unlock:
          - method: passphrase
          - method: recovery
    luks_key: "{{ vault_luks_key }}"
    recovery_key_directory: ~/recovery-keys
  become: true

- name: Have the TPM and a server in the network open a container, and take away the key that it was made with
  bareon.allocator.disk_keys:
    containers:
      - device: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part1
        name: data
        unlock:
          - method: tpm2
            pcrs: [7]
          - method: tang
            url: http://tang.example
            thumbprint: NQnBuKHtSZmKFyMTAv1KPUpJ8CQBW7VwiNUxhWSfwkw
          - method: recovery
    luks_key: "{{ vault_luks_key }}"
    take_away: [keys]
    recovery_key_directory: ~/recovery-keys
  become: true

- name: Change the passphrase, and take the old one away
  bareon.allocator.disk_keys:
    containers:
      - device: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part1
        name: data
        unlock:
          - method: passphrase
          - method: recovery
    luks_key: "{{ vault_luks_key }}"
    luks_old_key: "{{ vault_luks_key_of_last_year }}"
    take_away: [keys]
  become: true
"""

RETURN = r"""
---
steps:
  description:
    - What was done, in check mode what would be done, in its order. Empty when there is nothing to do.
    - Returned when the task fails, too, with what was done and what was not.
  returned: always, unless the input cannot be used
  type: list
  elements: dict
  contains:
    kind:
      description: The kind of the step.
      returned: always
      type: str
      sample: enrol
    container:
      description: The name of the container.
      returned: always
      type: str
      sample: data
    device:
      description: The device that has the header.
      returned: always
      type: str
      sample: /dev/sda1
    says:
      description: What is done, in words.
      returned: always
      type: str
      sample: have a recovery key open the LUKS container data
    done:
      description: Whether it was done. V(false) in check mode.
      returned: always
      type: bool
      sample: true
containers:
  description: The containers as they are, in check mode as they were found.
  returned: always, unless the input cannot be used
  type: list
  elements: dict
  contains:
    name:
      description: What it is called.
      returned: always
      type: str
      sample: data
    device:
      description: The device that has the header.
      returned: always
      type: str
      sample: /dev/sda1
    slots:
      description: The key slots that are taken.
      returned: always
      type: list
      elements: dict
      sample: [{"slot": 0, "opened_by": "keys"}, {"slot": 1, "opened_by": "recovery"}]
    unlisted:
      description: Those of them that O(containers[].unlock) does not ask for.
      returned: always
      type: list
      elements: dict
      sample: []
recovery_keys:
  description:
    - The recovery keys that this run has made, by the names of the containers. Without O(recovery_key_directory) this is the only time
      that they show.
  returned: always, unless the input cannot be used
  type: dict
  sample: {}
recovery_key_files:
  description: The files on the controller in which they are, by the names of the containers.
  returned: with O(recovery_key_directory)
  type: dict
  sample: {"data": "/home/admin/recovery-keys/db1.data.1"}
mistakes:
  description: Everything that is wrong with the input.
  returned: when the input cannot be used
  type: list
  elements: str
  sample: ["containers[0].unlock[1].path: is missing; key_file takes it"]
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils.keys.changes import GOING, RENEWED, Request
from ansible_collections.bareon.allocator.plugins.module_utils.keys.options import request_of
from ansible_collections.bareon.allocator.plugins.module_utils.keys.report import as_result
from ansible_collections.bareon.allocator.plugins.module_utils.keys.run import Report, apply, foresee
from ansible_collections.bareon.allocator.plugins.module_utils.layout.apply import only_run, stop_by_signal
from ansible_collections.bareon.allocator.plugins.module_utils.schema.static import SchemaMistakes
from ansible_collections.bareon.allocator.plugins.module_utils.steps.machine import LocalMachine, StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils.storage.unlock import KEYS_OF_METHODS


def main() -> t.NoReturn:
    """Change the keys, and tell what was changed."""
    method: dict[str, t.Any] = {
        "method": {"type": "str", "required": True, "choices": list(KEYS_OF_METHODS)},
        "pcrs": {"type": "list", "elements": "int"},
        **{key: {"type": "str"} for key in ("url", "thumbprint")},
        "path": {"type": "path"},
    }
    container: dict[str, t.Any] = {
        "name": {"type": "str"},
        "device": {"type": "path", "required": True},
        "node": {"type": "path"},
        "uuid": {"type": "str"},
        "unlock": {"type": "list", "elements": "dict", "required": True, "options": method},
    }
    module = AnsibleModule(
        argument_spec={
            "containers": {"type": "list", "elements": "dict", "required": True, "options": container},
            "luks_key": {"type": "str", "no_log": True},
            "luks_key_file": {"type": "path", "no_log": False},
            "luks_key_files": {"type": "dict", "default": {}, "no_log": False},
            "luks_old_key": {"type": "str", "no_log": True},
            "luks_old_key_file": {"type": "path", "no_log": False},
            "take_away": {"type": "list", "elements": "str", "choices": list(GOING), "default": []},
            "renew": {"type": "list", "elements": "str", "choices": list(RENEWED), "default": []},
            "root": {"type": "path", "default": "/"},
            # Taken out by the part on the controller, which writes there.
            "recovery_key_directory": {"type": "path", "no_log": False},
        },
        mutually_exclusive=[("luks_key", "luks_key_file"), ("luks_old_key", "luks_old_key_file")],
        supports_check_mode=True,
    )
    if os.geteuid() != 0:
        module.fail_json(msg="only root can read and change what is on disks; use become")
    request = checked_request(module)
    report = run(module, request)
    for note in report.notes:
        module.warn(note)
    result = as_result(report, request, module.check_mode)
    if report.problem is not None:
        module.fail_json(msg=report.problem, **result)
    module.exit_json(**result)


def checked_request(module: AnsibleModule) -> Request:
    """Return what is asked for, or fail with all that is wrong with it."""
    try:
        return request_of(module.params)
    except SchemaMistakes as error:
        module.fail_json(msg=str(error), mistakes=list(error.mistakes))


def run(module: AnsibleModule, request: Request) -> Report:
    """Do it, or tell what would be done; fail when another run is at work."""
    machine = LocalMachine()
    try:
        if module.check_mode:
            return foresee(request, machine)
        with only_run(), stop_by_signal() as stop_asked:
            return apply(request, machine, stop_asked)
    except StepFailed as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
