# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes the OSDs of a plan for Ceph."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_ceph
short_description: Write the OSDs of a plan as a service specification of Ceph
version_added: 1.1.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns a service specification of the type C(osd), which C(ceph orch apply) takes. It names the disks and volumes of one host.
  - OSDs get disks that the plan leaves whole (spaces of the type V(disk)), and logical volumes. C(ceph-volume) refuses partitions, and so
    does this filter.
  - The rest of the plan, such as the system, is left out; M(bareon.allocator.disk_layout) or an installer makes that.
positional: _input, hardware
options:
  _input:
    description:
      - The plan of one host, as RV(bareon.allocator.disk_plan#module:plan).
    type: dict
    required: true
  hardware:
    description:
      - The hardware, as M(bareon.allocator.disk_facts) returns it. It gives durable names to disks whose name in the plan is none, and
        warns of disks that are not empty.
    type: dict
  host:
    description:
      - The name that Ceph's orchestrator has for the host. Without it the specification is for all hosts, and a warning says so; that
        is refused where a device has a name that other hosts may have, too.
    type: str
  service_id:
    description:
      - The name of the specification. By default that of the host.
    type: str
  data:
    description:
      - The spaces that hold the data of OSDs, as ids or patterns.
    type: list
    elements: str
    default: ['osd*']
  db:
    description:
      - The spaces that hold their databases. Whole disks are cut by C(ceph-volume); of volumes there has to be one for each OSD.
    type: list
    elements: str
    default: ['ceph-db*']
  wal:
    description:
      - The spaces that hold their write-ahead logs.
    type: list
    elements: str
    default: ['ceph-wal*']
  encrypted:
    description:
      - Whether C(ceph-volume) encrypts the OSDs.
    type: bool
    default: false
  osds_per_device:
    description:
      - How many OSDs there are on each data device.
    type: int
    default: 1
seealso:
  - module: bareon.allocator.disk_plan
"""

EXAMPLES = r"""
---
- name: Plan the disks
  bareon.allocator.disk_plan:
    profile: ceph-osd
  register: planned

- name: Write the specification of the host's OSDs
  ansible.builtin.copy:
    content: "{{ planned.plan | bareon.allocator.plan_to_ceph(bareon_hardware, host=inventory_hostname) | to_nice_yaml }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}-osds.yml"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - The service specification.
  type: dict
  returned: always
  sample:
    service_type: osd
    service_id: node1
    placement:
      hosts: [node1]
    spec:
      data_devices:
        paths: [/dev/disk/by-id/wwn-0x5000c500a1b2c3d4]
"""

import typing as t

from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer.ceph import write_osds


@plain_filter
def plan_to_ceph(
    plan: t.Any,
    hardware: t.Any = None,
    host: t.Any = None,
    service_id: t.Any = None,
    data: t.Any = None,
    db: t.Any = None,
    wal: t.Any = None,
    encrypted: t.Any = None,
    osds_per_device: t.Any = None,
) -> Answer:
    """Return the specification; AnsibleFilterError with all that is wrong with the plan, or that ceph-volume refuses."""
    options = {"host": host, "service_id": service_id, "data": data, "db": db, "wal": wal}
    return write_osds(plan, hardware, {**options, "encrypted": encrypted, "osds_per_device": osds_per_device})


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_ceph": plan_to_ceph}
