# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes a page of a ledger."""

from __future__ import annotations

DOCUMENTATION = r"""
name: ledger_to_html
short_description: Show a ledger on a page
version_added: 1.1.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Makes one HTML page of what M(bareon.allocator.provider_info) returns.
  - For each resource class it shows what is free, the most that one host has free, what is used, and what nobody can claim because its
    provider is drained.
  - Hosts are fields by rack, in a colour for how much of their scarcest class is used. Drained hosts are hatched.
  - Each claim is a row with its project, user, start and end, its amounts and its hosts. Each host is a row with what is free on it, the
    consumers of the rest, and why it is drained and until when. Rows can be sorted.
  - A search, and choices of host, rack, project, user, free class and state, leave the rows that match. They work by keyboard.
  - Quotas are shown where there are any, and contradictions that O(bareon.allocator.provider_info#module:audit) found.
  - The page loads nothing, follows the light or dark setting of the reader, can be read on a phone, and prints. Its script is for the
    search and the choices; without it, everything is shown.
positional: _input
options:
  _input:
    description:
      - The result of M(bareon.allocator.provider_info). Of a result for some providers or consumers the page shows only these.
    type: dict
    required: true
  racks:
    description:
      - Names of the aggregates that are racks, with C(*) for any characters. Without it all aggregates are.
      - A host in several of them is shown in the one with the fewest hosts.
    type: list
    elements: str
    default: []
  title:
    description:
      - The heading of the page.
    type: str
    default: Ledger
seealso:
  - module: bareon.allocator.provider_info
  - plugin: bareon.allocator.plans_to_html
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Read the ledger
  bareon.allocator.provider_info:
  register: ledger

- name: Write the page
  bareon.allocator.controller_file:
    content: "{{ ledger | bareon.allocator.ledger_to_html(racks=['rack*'], title='Hall 2') }}"
    dest: "{{ playbook_dir }}/ledger.html"
    public: true
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
from collections.abc import Mapping, Sequence

from ansible.errors import AnsibleFilterError

from ..plugin_utils._common.filters import MISREAD
from ..plugin_utils._common.plain import plain
from ..plugin_utils._provider.render.page import ledger_page


def ledger_to_html(ledger: t.Any, racks: t.Any = (), title: str = "Ledger") -> str:
    """Return the page of a ledger; AnsibleFilterError when the input is no result of provider_info."""
    if not isinstance(ledger, Mapping) or not {"providers", "usages", "consumers"} <= ledger.keys():
        raise AnsibleFilterError("ledger_to_html needs the result of bareon.allocator.provider_info, as `register` keeps it")
    if isinstance(racks, str) or not isinstance(racks, Sequence):
        raise AnsibleFilterError("racks of ledger_to_html must be a list of names of aggregates, such as ['rack*']")
    try:
        return ledger_page(plain(ledger), str(title), [str(rack) for rack in racks])
    except MISREAD as error:
        raise AnsibleFilterError(f"ledger_to_html cannot read the ledger: {type(error).__name__}: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"ledger_to_html": ledger_to_html}
