# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that returns the lines of a host's tables for a layout."""

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
  - A line that is there keeps its source, where that names nothing else, and its options. Those of the schema and of O(nofail) and
    O(crypttab_options) come to them, in the place of their opposites (V(rw) for V(ro)) and of other values of the same key. A word of the
    schema with a dash before it, such as V(-noatime), takes that word away.
  - An option that is not given changes nothing. One that is given again takes away what it asked for before, which the host remembers.
positional: _input
extends_documentation_fragment:
  - bareon.allocator.static.root
options:
  _input:
    description:
      - The result of M(bareon.allocator.disk_layout).
    type: dict
    required: true
  present:
    description:
      - The texts of C(/etc/fstab), C(/etc/crypttab), and C(/etc/mdadm/mdadm.conf) or C(/etc/mdadm.conf), by their paths.
      - With C(/etc/bareon/boot_settings.json), what the host remembers of lines that it had.
    type: dict
    default: {}
  new_system:
    description:
      - Whether the tables are for a system below O(root). Its mount points are then written without O(root).
    type: bool
    default: false
  nofail:
    description:
      - Mount points, or IDs of spaces, without which the system may still boot. V(all) stands for all but C(/).
      - Without this option, lines keep what they have.
    type: list
    elements: str
  key_files:
    description:
      - Paths of key files on the host by the name of the container or of its space. V(none) takes the path away that a line has.
    type: dict
    default: {}
  key_file:
    description:
      - The path of the key file of all other containers. Without it, or with V(none), lines keep what they have, and of a container that
        has no line the system asks for a passphrase at boot.
    type: str
  crypttab_options:
    description:
      - The options of containers in crypttab. Without this option, lines keep what they have; a new one gets V(luks).
    type: str
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
    - C(containers) with C(name), C(source), C(key_file), C(options), C(line) and C(configured), and C(arrays) with C(name), C(uuid),
      C(metadata), C(line) and C(configured).
    - Mounts, swaps and containers have C(origins), where each of their options comes from.
    - C(boot_settings) with the C(text) of C(/etc/bareon/boot_settings.json), its C(path) and C(configured). C(before_tables) is what that
      has to be before the tables are written, so that a run that was cut off can go on; C(prepared) says whether it is.
  type: dict
  returned: always
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

from ..plugin_utils._common.filters import MISREAD, texts_of
from ..plugin_utils._common.plain import plain
from ..plugin_utils._disk.static.host_files import Settings, host_files


def layout_to_host_files(layout: t.Any, present: t.Any = None, **settings: t.Any) -> dict[str, t.Any]:
    """Return the lines of the tables; AnsibleFilterError when the layout is none, or a table has no form for what it has."""
    try:
        given = plain(settings)
        nofail = given.get("nofail")
        chosen = Settings(**{**given, "nofail": None if nofail is None else tuple(nofail), "key_files": given.get("key_files") or {}})
        return host_files(plain(layout), chosen, texts_of(present))
    except ValueError as error:
        raise AnsibleFilterError(f"layout_to_host_files: {error}") from error
    except MISREAD as error:
        raise AnsibleFilterError(f"layout_to_host_files: {error} is not in what disk_layout returned") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"layout_to_host_files": layout_to_host_files}
