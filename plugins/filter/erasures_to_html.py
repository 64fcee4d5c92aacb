# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes a page of the records of erased disks."""

from __future__ import annotations

DOCUMENTATION = r"""
name: erasures_to_html
short_description: Show records of erased disks on a page
version_added: 1.1.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Makes one HTML page of the records of M(bareon.allocator.disk_erase), for an auditor. It is a table of hosts and disks, each with its
    serial number, the operation and its level, when it began and ended, and what was read afterwards.
  - The page loads nothing and runs no script, follows the light or dark setting of the reader, and prints.
positional: _input
options:
  _input:
    description:
      - The records by host, each a list as RV(bareon.allocator.disk_erase#module:records).
    type: dict
    required: true
  title:
    description:
      - The heading of the page.
    type: str
    default: Erased disks
seealso:
  - module: bareon.allocator.disk_erase
"""

EXAMPLES = r"""
---
- name: Write a page of all records
  ansible.builtin.copy:
    content: "{{ {inventory_hostname: erased.records} | bareon.allocator.erasures_to_html(title='Rack 7') }}"
    dest: "{{ playbook_dir }}/erased.html"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - An HTML document.
  type: str
  returned: always
  sample: "<!DOCTYPE html> ..."
"""

import typing as t

from ..plugin_utils._common.filters import plain_filter
from ..plugin_utils._disk.render.erasures import erasures_page


def erasures_to_html(erasures: t.Any, title: str = "Erased disks") -> t.Any:
    """Return the page; AnsibleFilterError with all that is wrong with the records."""
    return plain_filter(erasures_page)(erasures, title=title)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"erasures_to_html": erasures_to_html}
