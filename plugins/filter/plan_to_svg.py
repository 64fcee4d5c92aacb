# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that draws a plan."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_svg
short_description: Draw the plan of one host as an SVG image
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Draws the disks of a plan as bars to scale, with what lies on them in colours and with names.
  - The image needs nothing but itself, says its contents to screen readers, and follows the light or dark setting of the reader.
positional: _input
options:
  _input:
    description:
      - A plan, as RV(bareon.allocator.disk_plan#module:plan) returns it.
    type: dict
    required: true
  hardware:
    description:
      - The hardware that the plan was made for, as M(bareon.allocator.disk_facts) returns it. Adds names and models of the disks.
    type: dict
    default: {}
  title:
    description:
      - The heading of the image, for example the name of the host.
    type: str
    default: ""
seealso:
  - plugin: bareon.allocator.plans_to_html
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Make a folder for drawings
  ansible.builtin.file:
    path: "{{ playbook_dir }}/layouts"
    state: directory
    mode: "0755"
  delegate_to: localhost
  run_once: true

- name: Write the drawing of a plan
  ansible.builtin.copy:
    content: "{{ planned.plan | bareon.allocator.plan_to_svg(hardware=ansible_facts.bareon_hardware, title=inventory_hostname) }}"
    dest: "{{ playbook_dir }}/layouts/{{ inventory_hostname }}.svg"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - An SVG document.
  type: str
  returned: always
  sample: "<svg ...>...</svg>"
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..plugin_utils._common.filters import MISREAD
from ..plugin_utils._common.plain import plain
from ..plugin_utils._disk.render.svg import svg


def plan_to_svg(plan: t.Any, hardware: t.Any = None, title: str = "") -> str:
    """Return the drawing of a plan; AnsibleFilterError when the input is no plan."""
    if not isinstance(plan, dict) or "disks" not in plan:
        raise AnsibleFilterError("plan_to_svg needs a plan as bareon.allocator.disk_plan returns it: a mapping with `disks`")
    try:
        return svg(plain(plan), plain(hardware or {}), str(title))
    except MISREAD as error:
        raise AnsibleFilterError(f"plan_to_svg cannot read the plan: {type(error).__name__}: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_svg": plan_to_svg}
