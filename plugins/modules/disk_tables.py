#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes what the next start of a system has to know of a layout: fstab, crypttab, mdadm.conf."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_tables
short_description: Write lines into fstab, crypttab and mdadm.conf
version_added: 1.0.0
description:
  - Writes what P(bareon.allocator.layout_to_host_files#filter) computed into the tables of the running system, or of a system below
    O(root). Lines of others stay as they are.
  - Each table is written next to the old one, flushed to the disk, and then put in its place, so that a power cut at any moment leaves a
    whole table. It keeps its owner, mode and SELinux label.
  - Runs for one host write one after the other, so that no line of another one is lost.
  - A field that a table has no form for is refused before anything is written.
  - Mounts nothing. For the mounts of the running system use M(bareon.allocator.disk_mounts).
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.linux
options:
  root:
    description:
      - The directory of the system whose tables are written. Its links are followed as that system would follow them.
    type: path
    default: /
  fstab:
    description:
      - The lines of C(/etc/fstab). A line with the same mount point, or of swap with the same source, is replaced.
    type: list
    elements: dict
    default: []
    suboptions:
      src:
        description: What is mounted, such as C(UUID=...).
        type: str
        required: true
      path:
        description: Where it is mounted. V(none) for swap.
        type: str
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
        description: Where each of O(fstab[].opts) comes from, which the diff shows.
        type: dict
  image_sources:
    description:
      - The sources in C(/etc/fstab) that stay when O(root) was unpacked from an image. Lines of all other devices are commented out,
        because the disks of the image are not there. Without this option no line is.
    type: list
    elements: str
  crypttab:
    description:
      - The lines of C(/etc/crypttab). A line with the same name is replaced.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The name of the container when it is open.
        type: str
        required: true
      source:
        description: The device, such as C(UUID=...).
        type: str
        required: true
      key_file:
        description: The path of the key file, or V(none).
        type: str
        default: none
      options:
        description: Options, with commas between them.
        type: str
        default: luks
      origins:
        description: Where each of O(crypttab[].options) comes from, which the diff shows.
        type: dict
  arrays:
    description:
      - The arrays in O(mdadm_conf). A line with the same name and another UUID is replaced.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The device.
        type: str
        required: true
      uuid:
        description: The UUID, in the form of C(mdadm).
        type: str
        required: true
      metadata:
        description: The version of the metadata.
        type: str
        default: "1.2"
  mdadm_conf:
    description:
      - The configuration file of C(mdadm).
    type: path
    default: /etc/mdadm/mdadm.conf
  boot_settings:
    description:
      - The text of C(/etc/bareon/boot_settings.json), where the host remembers what its lines were made from. Only root can read it.
    type: str
  backup:
    description: Whether to keep a copy of each changed table in the same folder, with the time in its name.
    type: bool
    default: false
attributes:
  diff_mode:
    details:
      - Shows each table before and after, and where options come from.
seealso:
  - module: bareon.allocator.disk_mounts
  - plugin: bareon.allocator.layout_to_host_files
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Write a container, and the swap space on it, into the tables
  bareon.allocator.disk_tables:
    crypttab:
      - {name: swap-crypt, source: UUID=0a4c1c9e-56f1-4d5a-b1a3-5b6d4a5b0e11, key_file: /etc/keys/swap, options: "luks,discard"}
    fstab:
      - {src: UUID=8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f10, path: none, fstype: swap, opts: "defaults,nofail"}
    backup: true
  become: true
"""

RETURN = r"""
tables:
  description: The paths of the tables that have changed, or in check mode would, as the system in O(root) has them.
  returned: success
  type: list
  elements: str
  sample: [/etc/crypttab]
backup_files:
  description: The copies of tables as they were before.
  returned: success
  type: list
  elements: str
  sample: [/etc/crypttab.2412.2026-11-22@10:41:07~]
"""

import contextlib
import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import only_writer
from ansible_collections.bareon.allocator.plugins.module_utils._steps.below import path_below
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine, StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.whole_file import read_file, replace_file
from ansible_collections.bareon.allocator.plugins.module_utils._storage.boot_tables import Tables, changed_tables
from ansible_collections.bareon.allocator.plugins.module_utils._storage.crypttab import Container
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import SWAP
from ansible_collections.bareon.allocator.plugins.module_utils._storage.fstab import Entry
from ansible_collections.bareon.allocator.plugins.module_utils._storage.mdadm_conf import ArrayLine
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options.words import says_where_from


def texts(*required: str, **defaults: str) -> dict[str, t.Any]:
    """Return the specification of options that are texts."""
    return {
        **{name: {"type": "str", "required": True} for name in required},
        # The sanity tests take some of them for secrets.
        **{name: {"type": "str", "default": value, "no_log": False} for name, value in defaults.items()},
    }


ORIGINS = {"origins": {"type": "dict"}}
LINES: t.Mapping[str, t.Any] = {
    "fstab": {**texts("src", "path", "fstype", opts="defaults", dump="0", passno="0"), **ORIGINS},
    "crypttab": {**texts("name", "source", key_file="none", options="luks"), **ORIGINS},
    "arrays": texts("name", "uuid", metadata="1.2"),
}


def main() -> t.NoReturn:
    """Write the tables, and return which changed."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/"},
            **{name: {"type": "list", "elements": "dict", "default": [], "options": options} for name, options in LINES.items()},
            "image_sources": {"type": "list", "elements": "str"},
            "mdadm_conf": {"type": "path", "default": "/etc/mdadm/mdadm.conf"},
            "boot_settings": {"type": "str"},
            "backup": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        with contextlib.nullcontext() if module.check_mode else only_writer("disk_tables"):
            result = write_tables(module)
        module.exit_json(**result)
    except (StepFailed, ValueError) as error:
        module.fail_json(msg=str(error))


def write_tables(module: AnsibleModule) -> dict[str, t.Any]:
    """Write them, unless in check mode, and return the result; raises StepFailed, and ValueError for what a table has no form for."""
    params = module.params
    wanted = Tables(
        fstab=tuple(Entry(**without_origins(given)) for given in params["fstab"]),
        crypttab=tuple(Container(**without_origins(given)) for given in params["crypttab"]),
        arrays=tuple(ArrayLine(**given) for given in params["arrays"]),
        mdadm_conf=params["mdadm_conf"],
        image_sources=None if params["image_sources"] is None else tuple(params["image_sources"]),
        boot_settings=params["boot_settings"],
    )
    places = {path: path_below(params["root"], path) for path in wanted.paths}
    changes = changed_tables(wanted, {path: read_file(place) for path, place in places.items()})
    copies = []
    for change in () if module.check_mode else changes:
        place = places[change.path]
        if params["backup"] and change.kept and os.path.exists(place):
            copies.append(module.backup_local(place))
            LocalMachine().flush(copies[-1:])
        replace_file(place, change.after, change.mode)
    named = [(line["src"] if line["fstype"] == SWAP else line["path"], line) for line in params["fstab"]]
    named += [(line["name"], line) for line in params["crypttab"]]
    settings = says_where_from((name, line["origins"] or {}) for name, line in named)
    diff = [
        {"before_header": places[one.path], "after_header": places[one.path], "before": one.before, "after": one.after} for one in changes
    ]
    return {
        "changed": bool(changes),
        "tables": [change.path for change in changes],
        "backup_files": copies,
        "diff": [*diff, *([{"prepared": settings}] if settings and changes else [])],
    }


def without_origins(given: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the fields of a line."""
    return {name: value for name, value in given.items() if name != "origins"}


if __name__ == "__main__":
    main()
