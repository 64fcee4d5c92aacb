#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Enrols the requested unlock methods in LUKS headers, and removes others that may go."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_keys
short_description: Manage the keys that open LUKS containers
version_added: 1.0.0
description:
  - Adds to the headers of LUKS 2 containers the unlock methods that they lack. It finds out which ones they have from the keys
    that it is given and from the tokens in the header. A second run changes nothing.
  - Removes only what O(take_away) or O(renew) names, and only after it has seen, in the same run, that something that stays opens the
    container. A header is never left without a key.
  - Containers may be open or closed. Their data are not touched.
  - Before it fills a key slot, a run marks it in the header. If the run is interrupted, the next one clears the marked slot and fills it
    again.
  - Keys are added to all containers before any key is removed. Recovery keys are created on the controller, and written there before a
    host gets them. The mark of their key slots stays until the controller has confirmed them; if it never does, the next run replaces them.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.keys
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.linux
  - bareon.allocator.lock
requirements:
  - root on the host
  - C(cryptsetup) 2.4 or newer
  - for O(containers[].unlock[].method=tang), C(clevis), and C(clevis-systemd) to open containers at boot
  - for O(containers[].unlock[].method=tpm2), C(systemd-cryptenroll) of systemd 252 or newer, the TPM libraries (C(tpm2-tools) depends on
    them), and cryptsetup's plugin for systemd's tokens
options:
  containers:
    description:
      - The containers, such as the list RV(bareon.allocator.disk_layout#module:containers).
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Its name in results and messages. Default is its device.
        type: str
      device:
        description: The device that has the header.
        type: path
        required: true
      node:
        description: Its current device node. If given, it is used instead of O(containers[].device).
        type: path
      uuid:
        description: Its UUID, which RV(bareon.allocator.disk_layout#module:containers) has. RV(prepared) repeats it.
        type: str
      names:
        description: Its names in crypttab. Accepted because RV(bareon.allocator.disk_layout#module:containers) has them, and ignored.
        type: list
        elements: str
      unlock:
        description:
          - The ways to open the container. Each of them is enough.
        type: list
        elements: dict
        required: true
        suboptions:
          method:
            description:
              - V(passphrase) is O(luks_key). Without it, any passphrase that is there already will do.
              - V(key_file) is a file on the host whose whole content is a key. If the file is missing, it is created with 64 random bytes,
                readable by root only.
              - V(recovery) is a recovery key of 256 random bits, written in letters that are on the same keys of most keyboards. It goes
                into a file below O(recovery_key_directory), or with O(show_recovery_keys) into the result of the run that creates it. It is
                marked with the same token that C(systemd-cryptenroll) uses.
              - V(tang) is a server on the network that helps to open the container without learning the key. It is used through C(clevis).
                Before anything is added, the server must decrypt a test message. List it several times for several servers; any one of
                them is enough to open the container.
              - V(tpm2) is the machine's TPM 2, in which C(systemd-cryptenroll) seals a key. The TPM releases the key as long as the
                registers O(containers[].unlock[].pcrs) have the values that they have now.
            type: str
            choices: [tpm2, tang, key_file, passphrase, recovery]
            required: true
          pcrs:
            description:
              - For V(tpm2), the registers that must keep the values that they have when the key is sealed. V(7) is the state of Secure
                Boot and its certificates. V(0) and V(2) are the firmware, V(4) is the boot loader and the kernel; these change with every
                update.
              - Default is V([7]). An empty list only ties the container to this machine.
            type: list
            elements: int
          pin:
            description:
              - For V(tpm2), whether somebody must also type a PIN at the console when the machine starts. The TPM refuses further
                PINs after too many wrong ones.
              - The PIN is O(tpm2_pin). To change it, run once with the new one and V(tpm2) in O(renew).
            type: bool
          url:
            description: For V(tang), the address of the server.
            type: str
          thumbprint:
            description:
              - For V(tang), the SHA-256 thumbprint of the server's signing key, as C(tang-show-keys) prints it on the server.
              - When the server gets new keys, give the new thumbprint here, and the container is bound to them.
            type: str
          path:
            description: For V(key_file), the path of the file.
            type: path
  schema:
    description:
      - The static schema that RV(bareon.allocator.disk_layout#module:containers) come from. Its C(unlock) is used instead of
        O(containers[].unlock), and containers for which it lists none are refused, so that a host cannot ask for keys of its own choice.
    type: dict
  tpm2_pin:
    description:
      - The PIN of containers with O(containers[].unlock[].pin). It is needed only when a PIN is set or has to be tried.
      - It is passed to C(systemd-cryptenroll) in its environment and to C(cryptsetup) on standard input, and does not appear anywhere else.
    type: str
  luks_old_key:
    description:
      - A passphrase that opens containers which the other keys do not open yet, for example to change the passphrase. It may be a recovery
        key.
      - Mutually exclusive with O(luks_old_key_file).
    type: str
  luks_old_key_file:
    description:
      - A file on the host whose whole content is such a key.
    type: path
  protect:
    description:
      - Disks on which no key is changed, as O(bareon.allocator.disk_layout#module:protect). The file C(/etc/bareon/protected) of the host
        adds to it. If a container on such a disk needs a change, the task fails before anything is done.
    type: list
    elements: str
    default: []
  take_away:
    description:
      - What to remove from the headers if O(containers[].unlock) does not list it.
      - V(keys) are all slots without a token, which means passphrases and key files. A slot stays if O(luks_key) or a key file opens it and
        that method is listed. If V(passphrase) is listed but O(luks_key) is not given, all of these slots stay.
      - V(recovery), V(tang) and V(tpm2) are the slots with such a token. For V(tang) and V(tpm2) they are those of other servers or other
        registers.
    type: list
    elements: str
    choices: [keys, recovery, tang, tpm2]
    default: []
  renew:
    description:
      - Methods to replace although the container has them. The old key is removed afterwards. Every run does this again, so set it
        for one run only.
      - V(recovery) creates a new recovery key, for example after one was used.
      - V(tpm2) seals a new key with the current values of the registers, for example after a firmware update.
      - V(tang) binds to the server again, with a new key.
    type: list
    elements: str
    choices: [recovery, tang, tpm2]
    default: []
  root:
    description:
      - The directory that key file paths are relative to, for a system that is being installed there.
    type: path
    default: /
  take_last_key:
    description:
      - Whether O(take_away) may remove the last passphrase, key file or recovery key of a container, so that only a TPM or Tang opens it.
        Nobody holds a key then. If the TPM or the server is lost, so are the data.
    type: bool
    default: false
  recovery_key_directory:
    description:
      - A directory on the controller to write new recovery keys to. Each key is a file, named after the host, the container and the key
        slot, that only its owner can read. Characters other than letters, digits, C(_), C(-), C(~) and C(.) are written as in a URL, and a
        C(.) in the name of a container is C(%2E), so that no two hosts or containers share a file.
      - A key is written before the host gets it. Until the host has confirmed it, the name of its file ends with C(.new). If a run is
        interrupted, the next one uses that key.
      - The directory is created if it is missing.
      - V(ledger) is refused, since keys never lie in the database of a ledger. C(disk_layout_escrow_tasks) of the role hands them over.
      - Without it, and without O(show_recovery_keys), a run that would create a recovery key fails before it changes anything.
    type: path
  show_recovery_keys:
    description:
      - Whether the task may return new recovery keys, if there is no O(recovery_key_directory). Then readers of the output, or
        of the log of a CI job, can read the keys.
      - No other key is removed on account of a recovery key that is only shown. Give it as O(luks_old_key) in a later run for that.
    type: bool
    default: false
  recovery_key_stage:
    description:
      - Whether to create and enrol recovery keys in one task, or in two, so that other tasks can hand the keys over to a store of keys
        (escrow) before a container depends on them.
      - V(prepare) changes nothing on the host. It creates the keys that are needed in O(recovery_key_directory), and names the files in
        RV(prepared).
      - V(enrol) changes all keys, but enrols only recovery keys that V(prepare) has created, and fails before it changes anything if there
        are others to create.
      - V(prepare) and V(enrol) need O(recovery_key_directory), which has the keys between the two tasks.
    type: str
    choices: [complete, prepare, enrol]
    default: complete
    version_added: 1.1.0
  keep_recovery_keys:
    description:
      - Whether the file of a recovery key stays in O(recovery_key_directory) when the host has confirmed the key. V(false) deletes it then,
        and is allowed only with O(recovery_key_stage=enrol).
    type: bool
    default: true
    version_added: 1.1.0
  header_backup_directory:
    description:
      - A directory on the controller to keep a copy of each header in, after all keys are changed. Without its header, nothing opens a
        container, not even its keys.
      - A copy is a file, named after the host and the UUID in the header, that only its owner can read. C(cryptsetup luksHeaderRestore)
        takes it. A later run replaces it if the header has changed.
      - A copy opens the container with the keys that it had then, also with those that were removed since, so keep it as safe as a key, and
        delete copies elsewhere after keys are removed.
      - The directory is created if it is missing. Nothing is copied in check mode.
    type: path
    version_added: 1.1.0
  hand_over:
    description:
      - Internal data from the controller to the host. Tasks cannot set it.
    type: dict
    suboptions:
      part:
        description: The part of the run.
        type: str
        choices: [begin, add, finish, copy, look]
        default: begin
      recovery_keys:
        description: The recovery keys that the controller holds, by the names of the containers.
        type: dict
        default: {}
      earlier_keys:
        description: Recovery keys that are replaced, by the names of the containers.
        type: dict
        default: {}
      written:
        description: Whether O(hand_over.recovery_keys) are in files.
        type: bool
        default: false
      added:
        description: The key slots that the run has filled, by the names of the containers.
        type: dict
        default: {}
attributes:
  check_mode:
    details:
      - No recovery keys are created in check mode. A container that does not exist yet is treated as a new one.
  diff_mode:
    details:
      - Shows what opens the containers. Keys are never shown.
  idempotent:
    details:
      - Except with O(renew), which creates something new in every run.
  action:
    description: Has an action plugin, which creates recovery keys and writes them on the controller.
    support: full
notes:
  - Each key is tried on the header. That takes a second or two for each, because C(cryptsetup) makes guessing slow on purpose.
  - A run that creates recovery keys talks to the host three times, and tries each key as often.
seealso:
  - module: bareon.allocator.disk_layout
  - module: community.crypto.luks_device
"""

EXAMPLES = r"""
---
- name: Open a container by a passphrase or a recovery key
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

- name: Open a container by the TPM or a Tang server, and remove the key that it was created with
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

- name: Change the passphrase, and remove the old one
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
    recovery_key_directory: ~/recovery-keys
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
      description: The step, in words.
      returned: always
      type: str
      sample: add a recovery key to the LUKS container data
    done:
      description: Whether it was done. V(false) in check mode.
      returned: always
      type: bool
      sample: true
containers:
  description: The containers after the run. In check mode, as they were found.
  returned: always, unless the input cannot be used
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      returned: always
      type: str
      sample: data
    device:
      description: The device that has the header.
      returned: always
      type: str
      sample: /dev/sda1
    slots:
      description: The key slots in use.
      returned: always
      type: list
      elements: dict
      sample: [{"slot": 0, "opened_by": "keys"}, {"slot": 1, "opened_by": "recovery"}]
    unlisted:
      description: The key slots that O(containers[].unlock) does not list.
      returned: always
      type: list
      elements: dict
      sample: []
recovery_keys:
  description:
    - The recovery keys that this run has created, by the names of the containers. They are never shown again. Empty with
      O(recovery_key_directory).
  returned: always, unless the input cannot be used. Keys are in it with O(show_recovery_keys) only
  type: dict
  sample: {}
recovery_key_files:
  description: The files on the controller that have the new recovery keys, by the names of the containers.
  returned: with O(recovery_key_directory)
  type: dict
  sample: {"data": "/home/admin/recovery-keys/db1.data.1"}
prepared:
  description: The recovery keys that are to be handed over before the next task enrols them. Empty in check mode.
  returned: with O(recovery_key_stage=prepare)
  type: list
  elements: dict
  contains:
    container:
      description: The name of the container.
      returned: always
      type: str
      sample: data
    uuid:
      description: The UUID of its header, from O(containers[].uuid); empty if that has none.
      returned: always
      type: str
      sample: 0b0fd0e8-7d1c-4f25-9d2e-3f0c8f3c7a11
    file:
      description: The file on the controller that has the key.
      returned: always
      type: str
      sample: /home/admin/recovery-keys/db1.data.new
header_backups:
  description: The files on the controller that have copies of the headers, by the names of the containers.
  returned: with O(header_backup_directory), unless in check mode
  type: dict
  sample: {"data": "/home/admin/headers/db1.0b0fd0e8-7d1c-4f25-9d2e-3f0c8f3c7a11.luks"}
mistakes:
  description: Everything that is wrong with the input.
  returned: when the input cannot be used
  type: list
  elements: str
  sample: ["containers[0].unlock[1].path: is missing; key_file needs it"]
"""

import os
import typing as t
from dataclasses import replace

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils._keys.backup import headers_of
from ansible_collections.bareon.allocator.plugins.module_utils._keys.changes import COPY, GOING, LOOK, PARTS, RENEWED, Request
from ansible_collections.bareon.allocator.plugins.module_utils._keys.options import request_of
from ansible_collections.bareon.allocator.plugins.module_utils._keys.report import as_result
from ansible_collections.bareon.allocator.plugins.module_utils._keys.run import Report, apply, foresee
from ansible_collections.bareon.allocator.plugins.module_utils._layout.apply import stop_by_signal
from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import LOCK_ARGUMENTS, only_run, why_no_timeout
from ansible_collections.bareon.allocator.plugins.module_utils._layout.protected import (
    Protection,
    protections_in_force,
    protections_of_node,
    read_protections,
)
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes
from ansible_collections.bareon.allocator.plugins.module_utils._steps.key import KEY_ARGUMENTS, KEY_EXCLUSIVE
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine, StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._storage.unlock import KEYS_OF_METHODS


def main() -> t.NoReturn:
    """Change the keys, and return what was changed."""
    method: dict[str, t.Any] = {
        "method": {"type": "str", "required": True, "choices": list(KEYS_OF_METHODS)},
        "pcrs": {"type": "list", "elements": "int"},
        "pin": {"type": "bool"},
        **{key: {"type": "str"} for key in ("url", "thumbprint")},
        "path": {"type": "path"},
    }
    container: dict[str, t.Any] = {
        "name": {"type": "str"},
        "device": {"type": "path", "required": True},
        "node": {"type": "path"},
        "uuid": {"type": "str"},
        "names": {"type": "list", "elements": "str"},
        "unlock": {"type": "list", "elements": "dict", "required": True, "options": method},
    }
    module = AnsibleModule(
        argument_spec={
            "containers": {"type": "list", "elements": "dict", "required": True, "options": container},
            **KEY_ARGUMENTS,
            **LOCK_ARGUMENTS,
            "protect": {"type": "list", "elements": "str", "default": []},
            "tpm2_pin": {"type": "str", "no_log": True},
            "luks_old_key": {"type": "str", "no_log": True},
            "luks_old_key_file": {"type": "path", "no_log": False},
            "take_away": {"type": "list", "elements": "str", "choices": list(GOING), "default": []},
            "renew": {"type": "list", "elements": "str", "choices": list(RENEWED), "default": []},
            "root": {"type": "path", "default": "/"},
            "take_last_key": {"type": "bool", "default": False},
            # Taken out by the part on the controller.
            "schema": {"type": "dict"},
            "recovery_key_directory": {"type": "path", "no_log": False},
            "header_backup_directory": {"type": "path"},
            "recovery_key_stage": {"type": "str", "choices": ["complete", "prepare", "enrol"], "default": "complete", "no_log": False},
            "keep_recovery_keys": {"type": "bool", "default": True, "no_log": False},
            "show_recovery_keys": {"type": "bool", "default": False, "no_log": False},
            "hand_over": {
                "type": "dict",
                "options": {
                    "part": {"type": "str", "choices": list(PARTS), "default": PARTS[0]},
                    "recovery_keys": {"type": "dict", "default": {}, "no_log": True},
                    "earlier_keys": {"type": "dict", "default": {}, "no_log": True},
                    "written": {"type": "bool", "default": False},
                    "added": {"type": "dict", "default": {}},
                },
            },
        },
        mutually_exclusive=[KEY_EXCLUSIVE, ("luks_old_key", "luks_old_key_file")],
        supports_check_mode=True,
    )
    if os.geteuid() != 0:
        module.fail_json(msg="only root can read and change what is on disks; use become")
    machine = LocalMachine()
    request = checked_request(module, machine)
    if request.hand_over.part == COPY:
        copy_headers(module, request, machine)
    report = run(module, request, machine)
    for note in report.notes:
        module.warn(note)
    result = as_result(report, request, module.check_mode or request.hand_over.part == LOOK)
    if report.problem is not None:
        module.fail_json(msg=report.problem, **result)
    module.exit_json(**result)


def copy_headers(module: AnsibleModule, request: Request, machine: LocalMachine) -> t.NoReturn:
    """Return the headers to the controller, which keeps them out of its result."""
    try:
        headers = headers_of(request.containers, machine)
    except StepFailed as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, headers=headers)


def checked_request(module: AnsibleModule, machine: LocalMachine) -> Request:
    """Return what is asked for, or fail with all that is wrong with it."""
    protections, unread = read_protections(machine, module.params["protect"])
    wrong = [*why_no_timeout(module.params), *unread]
    if wrong:
        module.fail_json(msg="; ".join(wrong), mistakes=wrong)
    try:
        return with_protected(request_of(module.params), protections, machine)
    except SchemaMistakes as error:
        module.fail_json(msg=str(error), mistakes=list(error.mistakes))


def with_protected(request: Request, protections: t.Sequence[Protection], machine: LocalMachine) -> Request:
    """Return the same with its containers on protected disks, and what protects them."""
    by_name = {one.name: protections_of_node(machine, one.device, protections) for one in request.containers}
    return replace(request, protected={name: " and ".join(each.words for each in by) for name, by in by_name.items() if by})


def run(module: AnsibleModule, request: Request, machine: LocalMachine) -> Report:
    """Change keys, or return what would change; fail while another run holds the lock."""
    try:
        if module.check_mode or request.hand_over.part == LOOK:
            return foresee(request, machine)
        with only_run("disk_keys", module.params["lock_timeout"]), stop_by_signal() as stop_asked:
            # The list may have grown while this run waited.
            request = with_protected(request, protections_in_force(machine, module.params["protect"]), machine)
            return apply(request, machine, stop_asked)
    except StepFailed as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
