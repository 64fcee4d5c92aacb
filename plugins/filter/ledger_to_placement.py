# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes requests to OpenStack Placement of a ledger."""

from __future__ import annotations

DOCUMENTATION = r"""
name: ledger_to_placement
short_description: Convert a ledger to requests that fill OpenStack Placement
version_added: 1.1.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns the HTTP requests that make an empty OpenStack Placement hold what the ledger holds, in the order in which they are sent. These
    are the resource classes and traits, the providers with inventories, traits and aggregates, and the allocations of consumers.
  - They are for version 1.39 of its API, so send the header C(OpenStack-API-Version) with V(placement 1.39).
  - A drained provider gets the trait V(COMPUTE_STATUS_DISABLED). Leases, quotas and past allocations are left out, for Placement has none.
  - Placement knows consumers by UUID only.
positional: _input
requirements:
  - os-traits and os-resource-classes on the controller
options:
  _input:
    description:
      - What M(bareon.allocator.provider_info) returns.
    type: dict
    required: true
  project:
    description:
      - The project of consumers that have none.
    type: str
    default: unknown
  user:
    description:
      - The user of consumers that have none.
    type: str
    default: unknown
  consumer_type:
    description:
      - The type of consumers that have none, of A-Z, 0-9 and _.
    type: str
    default: INSTANCE
seealso:
  - module: bareon.allocator.provider_info
  - module: ansible.builtin.uri
"""

EXAMPLES = r"""
---
- name: Read the ledger
  bareon.allocator.provider_info:
  register: ledger

- name: Show what would be sent
  ansible.builtin.debug:
    msg: "{{ ledger | bareon.allocator.ledger_to_placement(project='lab') }}"
"""

RETURN = r"""
_value:
  description:
    - The requests, each with C(method), C(path), the list of the C(status) codes that mean success, and C(body), if it has one.
  type: list
  elements: dict
  returned: always
  sample:
    - method: POST
      path: /resource_providers
      status: [200]
      body:
        name: host1
        uuid: 0e5f5c35-98c4-4b37-9d0b-43b0c8e1b3a6
"""

import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleFilterError

from ..module_utils._data.errors import InputError
from ..plugin_utils._common.filters import MISREAD
from ..plugin_utils._common.libraries import MissingLibraries, refuse_missing
from ..plugin_utils._common.plain import plain
from ..plugin_utils._provider.render.placement import placement_requests


def ledger_to_placement(
    ledger: t.Any, project: str = "unknown", user: str = "unknown", consumer_type: str = "INSTANCE"
) -> list[dict[str, t.Any]]:
    """Return requests to Placement; AnsibleFilterError when the input is no result of provider_info."""
    try:
        refuse_missing("ledger")
        if not isinstance(ledger, Mapping) or not {"providers", "allocations", "consumers"} <= ledger.keys():
            raise AnsibleFilterError("ledger_to_placement needs the result of bareon.allocator.provider_info, as `register` keeps it")
        return placement_requests(plain(ledger), str(project), str(user), str(consumer_type))
    except (InputError, MissingLibraries) as error:
        raise AnsibleFilterError(f"ledger_to_placement: {error}") from error
    except MISREAD as error:
        raise AnsibleFilterError(f"ledger_to_placement cannot read the ledger: {type(error).__name__}: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"ledger_to_placement": ledger_to_placement}
