# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that tells what the host's tables have to say of a layout."""

from __future__ import annotations

DOCUMENTATION = r"""
name: layout_to_host_files
short_description: Compute what fstab, crypttab and mdadm.conf must say about a layout
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Takes what M(bareon.allocator.disk_layout) returned and gives the mounts in the order in which they can be made, swap spaces,
    containers for crypttab and arrays for mdadm.conf, all by UUID.
  - With O(present), each of them says whether it is there already, so that a second run has nothing to do.
positional: _input
options:
  _input:
    description:
      - The result of M(bareon.allocator.disk_layout).
    type: dict
    required: true
  present:
    description:
      - The texts of C(/etc/fstab), C(/etc/crypttab) and C(/etc/mdadm/mdadm.conf) or C(/etc/mdadm.conf), each below a line C(### PATH).
    type: str
    default: ''
  root:
    description:
      - The directory that the mount points are below.
    type: path
    default: /
  new_system:
    description:
      - Whether the tables are for a system below O(root). Its mount points are then written without O(root).
    type: bool
    default: false
  nofail:
    description:
      - Mount points, or IDs of spaces, without which the system may still boot. V(all) stands for all but C(/).
    type: list
    elements: str
    default: []
  key_files:
    description:
      - Paths of key files on the host by the name of the container or of its space.
    type: dict
    default: {}
  key_file:
    description:
      - The path of the key file of all other containers. With V(none), the system asks for a passphrase at boot.
    type: str
    default: none
  crypttab_options:
    description:
      - The options of containers in crypttab.
    type: str
    default: luks
notes:
  - C(passno) is V(1) for C(/), V(2) for other file systems that C(fsck) checks at boot, and V(0) for XFS, Btrfs and swap.
seealso:
  - module: bareon.allocator.disk_layout
"""

EXAMPLES = r"""
---
# `layout` is what bareon.allocator.disk_layout returned.
- name: Show what fstab has to say, in the order in which all can be mounted
  ansible.builtin.debug:
    msg: "{{ item.src }} {{ item.path }} {{ item.fstype }} {{ item.opts }} {{ item.dump }} {{ item.passno }}"
  loop: "{{ (layout | bareon.allocator.layout_to_host_files(nofail=['/srv'])).mounts }}"
"""

RETURN = r"""
_value:
  description:
    - C(mounts) and C(swaps) with C(src), C(path), C(fstype), C(opts), C(dump), C(passno), C(configured) (whether fstab says so) and
      C(active). A mount also has C(target), where it is mounted now; a swap space has C(device).
    - C(containers) and C(arrays) with C(name), C(line) (for crypttab and mdadm.conf) and C(configured).
  type: dict
  sample:
    mounts:
      - src: UUID=0a4c1c9e-56f1-4d5a-b1a3-5b6d4a5b0e11
        path: /srv
        target: /srv
        fstype: ext4
        opts: defaults,nofail
        dump: "0"
        passno: "2"
        configured: false
        active: false
    swaps: []
    containers: []
    arrays: []
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..plugin_utils.common.filters import MISREAD
from ..plugin_utils.common.plain import plain
from ..plugin_utils.disk.static.host_files import Settings, host_files


def layout_to_host_files(layout: t.Any, present: str = "", **settings: t.Any) -> dict[str, t.Any]:
    """Return the lines of the tables; AnsibleFilterError when the layout is none."""
    try:
        given = plain(settings)
        chosen = Settings(**{**given, "nofail": tuple(given.get("nofail") or ())})
        return host_files(plain(layout), chosen, str(present))
    except MISREAD as error:
        raise AnsibleFilterError(f"layout_to_host_files: {error} is not in what disk_layout returned") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"layout_to_host_files": layout_to_host_files}
