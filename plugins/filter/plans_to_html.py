# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes a page of the plans of a fleet."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plans_to_html
short_description: Show the plans of many hosts on one page
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Makes one HTML page of the plans of a fleet.
  - Conflicts and warnings come first.
  - Every disk is drawn to scale. Point at a space, or tap it, to see its size, its mount point, and why it has that size.
  - Hosts of the same shape share one row, which can be opened; disks that are alike are drawn once. A search finds hosts, models, sizes and
    mount points.
  - The page loads nothing, follows the light or dark setting of the reader, and can be read on a phone and in print. The search is its only
    script.
positional: _input
options:
  _input:
    description:
      - Plans by the name of their host, as RV(bareon.allocator.disk_plan#module:plans) returns them.
    type: dict
    required: true
  hardware:
    description:
      - The hardware of the hosts by name, as M(bareon.allocator.disk_facts) returns it. Adds names and models of the disks.
    type: dict
    default: {}
  schema:
    description:
      - The dynamic schema that the plans were made from, or a mapping of such schemas by host. Adds the reasons for sizes.
    type: raw
    default: []
  profiles:
    description:
      - The profiles that hosts were planned with, as they are in their files, by the name of the host.
      - Their C(schema) takes precedence over O(schema), and their C(why) is shown with the reasons for sizes.
    type: dict
    default: {}
  failures:
    description:
      - What M(bareon.allocator.disk_plan) says about hosts without a plan, by the name of the host.
      - For hosts with a plan, what M(bareon.allocator.disk_drift) found to be not as planned.
      - The keys C(msg) and C(conflict) of each are shown. A plain string is taken as C(msg).
    type: dict
    default: {}
  title:
    description:
      - The heading of the page.
    type: str
    default: Disk layouts
  origin:
    description:
      - What the page says of where the plans come from, name by name, such as the profile, the versions, the date and the source of
        the facts. With it a change board can file the page.
      - The fingerprint of the disks that each plan was made for is shown anyway.
    type: dict
    default: {}
    version_added: 1.1.0
seealso:
  - plugin: bareon.allocator.plan_to_svg
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Write a page for all hosts
  ansible.builtin.copy:
    content: "{{ planned.plans | bareon.allocator.plans_to_html(title='Rack 12') }}"
    dest: "{{ playbook_dir }}/layouts.html"
    mode: "0644"
  delegate_to: localhost
  run_once: true
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
from collections.abc import Mapping

from ansible.errors import AnsibleFilterError

from ..plugin_utils._common.filters import MISREAD
from ..plugin_utils._common.plain import plain
from ..plugin_utils._disk.render.html import FleetHost, fleet_page


def plans_to_html(
    plans: t.Any,
    hardware: t.Any = None,
    schema: t.Any = None,
    profiles: t.Any = None,
    failures: t.Any = None,
    title: str = "Disk layouts",
    origin: t.Any = None,
) -> str:
    """Return the page of a fleet; AnsibleFilterError when the input is not plans by host."""
    if not isinstance(plans, Mapping):
        raise AnsibleFilterError("plans_to_html needs plans by the name of their host, as `plans` of bareon.allocator.disk_plan")
    if origin is not None and not isinstance(origin, Mapping):
        raise AnsibleFilterError("plans_to_html needs in `origin` a mapping of names to words")
    try:
        hosts = _hosts(*(plain(part or {}) for part in (plans, hardware, schema, profiles, failures)))
        return fleet_page(hosts, str(title), plain(origin or {}))
    except MISREAD as error:
        raise AnsibleFilterError(f"plans_to_html cannot read the plans: {type(error).__name__}: {error}") from error


def _hosts(plans: t.Any, hardware: t.Any, schema: t.Any, profiles: t.Any, failures: t.Any) -> list[FleetHost]:
    hosts = []
    for name in {**plans, **failures}:
        profile = profiles.get(name) or {}
        shared = schema.get(name) if isinstance(schema, Mapping) else schema
        failure = failures.get(name)
        hosts.append(
            FleetHost(
                name=name,
                plan=plans.get(name),
                hardware=hardware.get(name),
                schema=profile.get("schema") or shared or (),
                why=profile.get("why"),
                failure={"msg": failure} if isinstance(failure, str) else failure,
            )
        )
    return hosts


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plans_to_html": plans_to_html}
