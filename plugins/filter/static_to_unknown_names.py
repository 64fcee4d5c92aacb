# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that finds names in options which nothing of a layout has."""

from __future__ import annotations

DOCUMENTATION = r"""
name: static_to_unknown_names
short_description: Find names in options that a static schema does not have
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.static
description:
  - Returns a sentence for each name in the options that the layout does not have, such as a mount point with a typing mistake.
  - So does a key file or an option that crypttab has no form for.
  - An empty list means that every option has something to act on.
positional: _input
options:
  nofail:
    description:
      - Mount points, or IDs of spaces, as O(bareon.allocator.layout_to_host_files#filter:nofail).
    type: list
    elements: str
    default: []
  key_files:
    description:
      - Paths of key files by the name of the container or of its space, as O(bareon.allocator.layout_to_host_files#filter:key_files).
    type: dict
    default: {}
  key_file:
    description:
      - The path of the key file of all other containers, as O(bareon.allocator.layout_to_host_files#filter:key_file).
    type: str
  crypttab_options:
    description:
      - The options of containers, as O(bareon.allocator.layout_to_host_files#filter:crypttab_options).
    type: str
  mount_points:
    description:
      - Dictionaries with the C(path) of a mount point, and its C(owner) and C(group) if they are to be set.
    type: list
    elements: dict
    default: []
  accounts:
    description:
      - A line C(user NAME NUMBER) or C(group NAME NUMBER) for each account that is known. Other lines are ignored.
      - Without it, owners and groups are not checked.
    type: str
seealso:
  - module: bareon.allocator.disk_layout
  - plugin: bareon.allocator.layout_to_host_files
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Show that a mount point has a typing mistake
  ansible.builtin.debug:
    msg: "{{ schema | bareon.allocator.static_to_unknown_names(nofail=['/srv/keis']) }}"
  vars:
    schema: {fss: [{device: /dev/sda1, mount: /srv/keys}]}
"""

RETURN = r"""
_value:
  description:
    - A sentence for each name.
  type: list
  elements: str
  returned: always
  sample: ["nofail: the layout has no mount point or space /srv/keis (did you mean /srv/keys?)"]
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..plugin_utils._common.filters import MISREAD
from ..plugin_utils._common.plain import plain
from ..plugin_utils._disk.static.unknown_names import Named, unknown_names


def static_to_unknown_names(schema: t.Any, accounts: str | None = None, **options: t.Any) -> list[str]:
    """Return a sentence for each name that nothing has; AnsibleFilterError when the schema is none."""
    try:
        given = {name: value for name, value in plain(options).items() if value is not None}
        given |= {name: tuple(given.get(name, ())) for name in ("nofail", "mount_points")}
        return unknown_names(plain(schema), Named(**given), None if accounts is None else str(accounts))
    except MISREAD as error:
        raise AnsibleFilterError(f"static_to_unknown_names: this is not a static schema with its options: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"static_to_unknown_names": static_to_unknown_names}
