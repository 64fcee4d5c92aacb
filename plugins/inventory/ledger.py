# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the ledger knows as an inventory of Ansible."""

from __future__ import annotations

DOCUMENTATION = r"""
---
name: ledger
author:
  - The bareon.allocator maintainers (@bareon)
short_description: Resource providers or their consumers as hosts
version_added: 1.1.0
description:
  - Makes hosts of the providers of the ledger, or of its consumers, such as virtual machines, with groups by trait, aggregate, parent and
    project.
  - A play can so run on the hosts that one has claimed, or on the machines of a project.
  - All variables begin with C(ledger_). No template in a name is ever evaluated.
  - A name is that of a host only if it is a host name of letters, digits, C(.), C(_) and C(-) that does not name the controller, and if
    nothing else has it, neither a group of this file nor another host. Otherwise the UUID is the host's name, and C(ledger_name) has the
    other one. Names of groups are those in O(groups), and all that begin with C(trait_), C(aggregate_), C(parent_) or C(project_).
  - Reads the database of M(bareon.allocator.provider) and changes nothing. Whose lease has ended is not there.
  - The name of the file has to end in C(ledger.yml) or C(ledger.yaml).
extends_documentation_fragment:
  - bareon.allocator.database.lookup
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices: [bareon.allocator.ledger, ledger]
  hosts:
    description: Whether the hosts are V(providers) or V(consumers).
    type: str
    choices: [providers, consumers]
    default: providers
  roots:
    description: Whether only roots of trees are hosts, and not what lies below them. For O(hosts=providers).
    type: bool
    default: false
  group_by:
    description:
      - Which groups to make. Each has the kind in its name, such as C(trait_CUSTOM_SAS), C(aggregate_rack1), C(parent_host1) and
        C(project_red). Where a name has other characters than letters, digits and C(_), these become C(_), and a part of the name's hash
        follows.
      - V(project) has the providers of which a consumer of the project has something, by itself or from below, or its consumers.
      - V(parent) makes a group for each provider, of the providers below it, or of the consumers that use it or a provider below it.
    type: list
    elements: str
    choices: [trait, aggregate, parent, project]
    default: [trait, aggregate, parent, project]
  project:
    description: Only consumers of this project, or only providers of which they have something, by themselves or from below.
    type: str
  user:
    description: Only consumers of this user, or only providers of which they have something.
    type: str
  consumer_type:
    description: Only consumers of this type, or only providers of which they have something.
    type: str
seealso:
  - module: bareon.allocator.provider_info
"""

EXAMPLES = r"""
---
# claimed.ledger.yml: the hosts of which project red has something, to be reached by the name that their provider has
plugin: bareon.allocator.ledger
roots: true
project: red
keyed_groups:
  - key: ledger_aggregates
    prefix: rack
compose:
  free_cpus: ledger_inventories.VCPU.free
groups:
  lent: ledger_consumers | selectattr('expires_at') | list | length > 0
"""

import typing as t

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ..module_utils._data.errors import InputError, Unavailable
from ..module_utils._data.words import listed, visible
from ..plugin_utils._common.libraries import MissingLibraries, refuse_missing
from ..plugin_utils._provider.tasks.inventory import Wanted, read_inventory

_SHOWN = 3


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """ledger: options to one call of plugin_utils._provider, and its answer to hosts and groups."""

    NAME = "bareon.allocator.ledger"

    def verify_file(self, path: str) -> bool:
        """Return whether a file is one of this plugin's, by its name."""
        return bool(super().verify_file(path)) and path.endswith(("ledger.yml", "ledger.yaml"))

    def parse(self, inventory: t.Any, loader: t.Any, path: str, cache: bool = True) -> None:
        """Add the hosts and groups of a ledger."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        key = self.get_cache_key(path)
        found = self._cache.get(key) if self.get_option("cache") and cache else None
        if found is None:
            found = self._read()
            if self.get_option("cache"):
                self._cache[key] = found
        for name, variables in found["hosts"].items():
            inventory.add_host(name)
            for variable, value in variables.items():
                inventory.set_variable(name, variable, value)
        for group, hosts in found["groups"].items():
            inventory.add_group(group)
            for name in hosts:
                inventory.add_host(name, group=group)
        strict = self.get_option("strict")
        for name, variables in found["hosts"].items():
            self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
            self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict=strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, name, strict=strict)
        if found["renamed"]:
            self.display.vv(f"ledger: no host names, so that UUIDs stand for them: {visible(listed(found['renamed'], _SHOWN))}")

    def _read(self) -> dict[str, t.Any]:
        options = {name: self.get_option(name) for name in ("hosts", "roots", "project", "user", "consumer_type")}
        try:
            refuse_missing("ledger")
            return read_inventory(
                self.get_option("database"),
                self.get_option("timeout"),
                Wanted(**options, grouped=self.get_option("group_by"), reserved=list(self.get_option("groups") or ())),
            )
        except (InputError, MissingLibraries, Unavailable) as error:
            raise AnsibleParserError(str(error)) from None
