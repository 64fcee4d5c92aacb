# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Simulated hosts and schemas for tests of what is planned on them."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import TableEntry
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID, SimulatedHost, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import DISK_SIZES, SchemaMaker
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out

MIB = 1024**2
LINUX = "0fc63daf-8483-4772-8e79-3d69d8477de4"


def new_host():
    return SimulatedHost.with_disks(dict(DISK_SIZES))


def host_with_table(disk="sda", *entries):
    """A host with a foreign table; entries are (number, begin, size, name) in MiB."""
    host = new_host()
    table = tuple(TableEntry(number, begin * MIB, size * MIB, LINUX, new_uuid(), name) for number, begin, size, name in entries)
    host.media.write_table(disk, new_uuid(), table)
    host.start_all()
    return host


def maker_on(*disks):
    maker = SchemaMaker()
    for disk in disks:
        maker.disk(disk, DISK_SIZES[disk])
    return maker


def simple():
    """Root on sda, and a volume group with a volume."""
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 100, "root"), 100, "ext4", "root", "ext4")
    maker.fill(maker.partition("sda", 200, "os"), 200, "pv", "os", "ext4")
    maker.volume("vg0", "data", 20, False, "xfs")
    return maker


def installed(maker):
    host = new_host()
    for step in plan_steps(parse_static_schema(maker.schema), host.present()).steps:
        carry_out(host, step)
    return host


def plan(host, schema, wipe=(), allow_shrink=(), **options):
    layout = parse_static_schema(schema).with_shrinking(allow_shrink)
    return plan_steps(layout, host.present(), [f"{BY_ID}{disk}" for disk in wipe], **options)


def refusal(host, schema, wipe=(), **options):
    found = plan(host, schema, wipe, **options)
    assert found.steps == ()
    assert found.refusals
    return "\n".join(found.refusals)
