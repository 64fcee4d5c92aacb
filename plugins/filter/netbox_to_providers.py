# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes resource providers of NetBox's devices."""

from __future__ import annotations

DOCUMENTATION = r"""
name: netbox_to_providers
short_description: Convert devices of NetBox to resource providers
version_added: 1.1.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns devices in the form that O(bareon.allocator.provider#module:providers) takes. Each device is the root of a tree, with its name.
  - Inventories come from custom fields (O(fields)) and from inventory items (O(item_roles)). Without both of them the result has no
    inventories, so that those that the ledger has stay as they are.
  - Sites and racks become aggregates, tags become traits, and the status becomes a drain. Where the result has aggregates or traits of a
    device, they are complete, so that a device that moves to another rack leaves the old one.
  - An aggregate has the slug of the site, or the name of the cluster. That of a rack is SITE/RACK, or SITE/LOCATION/RACK if the device has
    a location. Characters that names of aggregates cannot have become V(-).
  - A trait is C(CUSTOM_TAG_SLUG), C(CUSTOM_ROLE_SLUG), C(CUSTOM_DEVICE_TYPE_SLUG) or C(CUSTOM_PLATFORM_SLUG), the slug in capitals, with
    V(_) for everything that is not a letter or digit. A tag whose slug is that of a standard trait, such as C(hw-cpu-x86-avx2), is this
    trait.
  - The UUID of a provider follows from its name, as M(bareon.allocator.provider) derives it. So the same device can have inventories from
    P(bareon.allocator.plan_to_providers#filter). A device with a new name in NetBox is a new provider.
  - The filter asks no server.
positional: _input
requirements:
  - os-traits and os-resource-classes on the controller
options:
  _input:
    description:
      - What C(/api/dcim/devices/) of NetBox returns, as a list of devices, a page with C(results), or a list of all pages. It is made for
        the schema of NetBox 4.2.
      - Devices without a name, or several with one name, are refused.
      - A page that lacks some of its C(count) is refused.
    type: raw
    required: true
  fields:
    description:
      - By resource class, the name of the custom field that has the amount, or a mapping with C(field) and C(factor), by which the amount
        is multiplied. An empty field, and one with 0, gives no inventory of the class.
    type: dict
    default: {}
  inventory_items:
    description:
      - What C(/api/dcim/inventory-items/) returns, in one of the forms of the devices. Items of other devices are ignored. Needs
        O(item_roles).
    type: raw
  item_roles:
    description:
      - By resource class, the slug of a role of inventory items. A device gets one for each item of this role that is active, added to what
        O(fields) says of the class.
    type: dict
    default: {}
  limits:
    description:
      - By resource class, further keys of O(bareon.allocator.provider#module:inventories), such as C(reserved) or C(allocation_ratio).
    type: dict
    default: {}
  usable:
    description:
      - The statuses of devices that are given out, of V(offline), V(active), V(planned), V(staged), V(failed), V(inventory) and
        V(decommissioning). A device with any other is drained, with the status as the reason.
    type: list
    elements: str
    default: [active]
  drains:
    description:
      - Whether NetBox alone says which providers are drained. With V(false) the result leaves drains as the ledger has them.
    type: bool
    default: true
  aggregates:
    description:
      - What becomes aggregates, of V(site), V(location), V(rack), V(cluster) and V(tenant). An empty list leaves aggregates as they are.
    type: list
    elements: str
    default: [site, rack]
  traits:
    description:
      - What becomes traits, of V(tags), V(role), V(device_type) and V(platform). An empty list leaves traits as they are.
    type: list
    elements: str
    default: [tags]
seealso:
  - module: bareon.allocator.provider
  - module: ansible.builtin.uri
"""

EXAMPLES = r"""
---
# `devices` and `items` are what /api/dcim/devices/?role=server&limit=0 and /api/dcim/inventory-items/?role=gpu&limit=0 returned.
- name: Register the servers of NetBox
  bareon.allocator.provider:
    providers: >-
      {{ devices.json | bareon.allocator.netbox_to_providers(fields=fields, inventory_items=items.json, item_roles={'PGPU': 'gpu'},
      limits=limits) }}
  vars:
    fields:
      VCPU: cpus
      MEMORY_MB: {field: memory_gib, factor: 1024}
    limits:
      VCPU: {allocation_ratio: 4.0}
      MEMORY_MB: {reserved: 2048}

- name: Take only racks, tags and drains from NetBox
  bareon.allocator.provider:
    providers: "{{ devices.json | bareon.allocator.netbox_to_providers }}"
"""

RETURN = r"""
_value:
  description:
    - The providers, in the order of the devices.
  type: list
  elements: dict
  returned: always
  sample:
    - name: node1
      drained: false
      inventories:
        VCPU:
          total: 64
          allocation_ratio: 4.0
      aggregates:
        - fra1
        - fra1/room-2/R07
      traits:
        - CUSTOM_TAG_SAS
"""

import typing as t

from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._common.libraries import refuse_missing
from ..plugin_utils._provider.sources import netbox


@plain_filter
def netbox_to_providers(
    devices: t.Any,
    fields: t.Any = None,
    inventory_items: t.Any = None,
    item_roles: t.Any = None,
    limits: t.Any = None,
    usable: t.Any = None,
    drains: t.Any = None,
    aggregates: t.Any = None,
    traits: t.Any = None,
) -> Answer:
    """Return providers; AnsibleFilterError with all that is wrong with the data."""
    refuse_missing("ledger")
    options = {
        "fields": fields,
        "item_roles": item_roles,
        "limits": limits,
        "usable": usable,
        "drains": drains,
        "aggregates": aggregates,
        "traits": traits,
    }
    return netbox.netbox_to_providers(devices, inventory_items, options)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"netbox_to_providers": netbox_to_providers}
