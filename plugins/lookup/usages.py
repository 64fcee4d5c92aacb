# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look up how much of providers is used."""

from __future__ import annotations

DOCUMENTATION = r"""
---
name: usages
author:
  - The bareon.allocator maintainers (@bareon)
short_description: How much of resource providers is used
version_added: 1.0.0
description:
  - Returns for each provider what it has by class, how much is used and how much is free.
  - Reads the database of M(bareon.allocator.provider) and changes nothing.
extends_documentation_fragment:
  - bareon.allocator.database.lookup
options:
  _terms:
    description:
      - UUIDs or names of providers. Each gives one item of the result, in their order.
      - Without any, the result has one item, the totals over all providers.
    type: list
    elements: str
  tree:
    description: Whether to add up the whole tree that is rooted at each provider.
    type: bool
    default: false
seealso:
  - module: bareon.allocator.provider_info
"""

EXAMPLES = r"""
---
- name: Say how many CPUs of a host are free
  ansible.builtin.debug:
    msg: "{{ lookup('bareon.allocator.usages', 'host1').VCPU.free }}"

- name: Say how full all is, with the NUMA nodes and network cards of the hosts
  ansible.builtin.debug:
    msg: "{{ lookup('bareon.allocator.usages', database='sqlite:////var/lib/bareon.sqlite') }}"
"""

RETURN = r"""
---
_raw:
  description: By class, its C(capacity), and how much is C(used) and C(free); one such mapping for each provider.
  type: list
  elements: dict
  returned: always
  sample: [{"PGPU": {"capacity": 8, "used": 2, "free": 6}}]
"""

import typing as t

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..module_utils._data.errors import InputError, Unavailable, describe_unwritable
from ..plugin_utils._common.action import rehearsal_folder
from ..plugin_utils._common.libraries import MissingLibraries, refuse_missing
from ..plugin_utils._common.plain import plain, plain_input
from ..plugin_utils._provider.tasks.info import look_up_tree_usages, look_up_usages


class LookupModule(LookupBase):
    """usages: terms to one call of plugin_utils._provider."""

    def run(self, terms: list[t.Any], variables: dict[str, t.Any] | None = None, **kwargs: t.Any) -> list[t.Any]:
        """Return one mapping of usages by class for each provider."""
        self.set_options(var_options=variables, direct=kwargs)
        look_up = look_up_tree_usages if self.get_option("tree") else look_up_usages
        rehearsal = rehearsal_folder(check_mode=bool((variables or {}).get("ansible_check_mode")))
        try:
            refuse_missing("ledger")
            given = plain_input(terms, "usages"), plain(self.get_option("database")), self.get_option("timeout")
            return t.cast("list[t.Any]", plain(look_up(*given, rehearsal)))
        except (InputError, MissingLibraries, Unavailable) as error:
            raise AnsibleLookupError(str(error)) from None
        except UnicodeEncodeError as error:
            raise AnsibleLookupError(describe_unwritable(error)) from None
