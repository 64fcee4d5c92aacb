# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_layout on a host that has just the disks of the schema, all of them empty: everything but the doing is real."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils._facts.present import Present
from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import Disk
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device, Tree
from ansible_collections.bareon.allocator.plugins.module_utils._layout.apply import Report, Request
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.report import as_result
from ansible_collections.bareon.allocator.plugins.module_utils._schema.model import Layout
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema

MIB = 1024**2


def empty_host(layout: Layout) -> Present:
    """Return the state of a host with the disks of a layout."""
    disks = []
    for number, wanted in enumerate(layout.disks):
        size = wanted.size * MIB if wanted.size else max(part.end for part in wanted.partitions) + 2 * MIB
        device = Device(f"vd{number}", f"/dev/vd{number}", "disk", size, row={"log-sec": 512}, links=(wanted.id,), read=True)
        disks.append(Disk(device, wanted.id, None, device.links, "virtio", device, (device,)))
    return Present(Tree({disk.device.name: disk.device for disk in disks}), tuple(disks))


def main() -> None:
    """Tell what would be done."""
    module = AnsibleModule(
        argument_spec={
            "schema": {"type": "raw", "default": {}},
            "adopt": {"type": "bool", "default": False},
            "fingerprint": {"type": "str"},
            "wipe": {"type": "list", "elements": "str", "default": []},
            "protect": {"type": "list", "elements": "str", "default": []},
            "replace": {"type": "dict", "default": {}},
            "lock_timeout": {"type": "int", "default": 0},
            "keep_unlisted": {"type": "bool", "default": True},
            "allow_shrink": {"type": "list", "default": []},
            "luks_key": {"type": "str", "no_log": True},
            "luks_key_file": {"type": "path", "no_log": False},
            "luks_key_files": {"type": "dict", "default": {}, "no_log": False},
        },
        mutually_exclusive=[("luks_key", "luks_key_file")],
        supports_check_mode=True,
    )
    params = module.params
    request = Request(parse_static_schema(params["schema"]), tuple(params["wipe"]), params["keep_unlisted"], params["fingerprint"])
    present = empty_host(request.layout)
    plan = plan_steps(request.layout, present, request.wipe, request.keep_unlisted, request.fingerprint)
    if plan.refusals:
        module.fail_json(msg="; ".join(plan.refusals))
    module.exit_json(
        schema=params["schema"], **as_result(Report(present, pending=plan.steps), request, check_mode=True, shows_diff=module._diff)
    )


if __name__ == "__main__":
    main()
