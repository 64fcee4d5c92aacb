# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Salts of identities: hosts with disks of the same names get different ones, and each keeps its own, whatever becomes of the host."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout.disks import find_disks
from ansible_collections.bareon.allocator.plugins.module_utils._layout.identified import identities
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import MakeFilesystem
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import TableEntry, WritePartitionTable
from ansible_collections.bareon.allocator.plugins.module_utils._storage.derived import salt_of_table
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import (
    LINUX,
    MIB,
    host_with_table,
    maker_on,
    new_host,
    simple,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out

ONE, OTHER = "1" * 12, "2" * 12


def seen(host, salt):
    return dataclasses.replace(host.present(), salt=salt)


def steps_on(host, schema, salt, wipe=()):
    found = plan_steps(parse_static_schema(schema), seen(host, salt), wipe)
    assert not found.refusals
    return found.steps


def uuids(host, schema, salt):
    layout, present = parse_static_schema(schema), seen(host, salt)
    found, _refusals = find_disks(layout, present, ())
    return [each["uuid"] for kind in identities(layout, present, found).values() for each in kind]


def table_on(host, disk="sda"):
    return host.media.table(disk)[1]


def test_hosts_give_disks_of_the_same_name_different_identities():
    schema = simple().schema
    one, other = (uuids(new_host(), schema, salt) for salt in (ONE, OTHER))
    assert len(one) == len(other) > 1
    assert not set(one) & set(other)
    tables = [next(step for step in steps_on(new_host(), schema, salt) if isinstance(step, WritePartitionTable)) for salt in (ONE, OTHER)]
    assert [salt_of_table(f"{BY_ID}sda", table.uuid) for table in tables] == [ONE, OTHER]


def test_a_run_that_was_cut_off_is_completed_by_a_host_of_another_identity():
    schema = simple().schema
    total = len(steps_on(new_host(), schema, ONE))
    for done in range(total + 1):
        host = new_host()
        for step in steps_on(host, schema, ONE)[:done]:
            carry_out(host, step)
        expected = uuids(new_host(), schema, ONE if done else OTHER)
        for _round in range(4):
            for step in steps_on(host, schema, OTHER):
                carry_out(host, step)
        assert steps_on(host, schema, OTHER) == ()
        assert salt_of_table(f"{BY_ID}sda", table_on(host)) == (ONE if done else OTHER)
        # LVM gives its own UUIDs; file systems and containers have ours.
        assert set(uuids(host, schema, OTHER)) == set(expected)


def test_a_layout_that_was_made_without_a_salt_goes_on_without_one():
    maker = simple()
    host = new_host()
    for step in steps_on(host, maker.schema, ""):
        carry_out(host, step)
    before = uuids(host, maker.schema, "")
    assert steps_on(host, maker.schema, ONE) == ()
    assert uuids(host, maker.schema, ONE) == before
    maker.fill(maker.partition("sda", 50, "more"), 50, "ext4", "more", "ext4")
    added = [step for step in steps_on(host, maker.schema, ONE) if isinstance(step, MakeFilesystem)]
    assert [step.uuid for step in added] == [uuid for uuid in uuids(new_host(), maker.schema, "") if uuid not in before][:1]


def test_what_is_added_to_a_table_of_others_gets_that_tables_guid_as_its_salt():
    host = host_with_table("sda", (1, 1, 100, "root"))
    maker = maker_on("sda")
    maker.partition("sda", 100, "root")
    maker.fill(maker.partition("sda", 100, "data"), 100, "xfs", "data", "xfs")
    guid = table_on(host)
    made = [uuids(host, maker.schema, salt) for salt in (ONE, OTHER, "")]
    assert made[0] == made[1] == made[2] != uuids(new_host(), maker.schema, "")
    for step in steps_on(host, maker.schema, ONE):
        carry_out(host, step)
    assert table_on(host) == guid
    assert steps_on(host, maker.schema, OTHER) == ()
    assert uuids(host, maker.schema, OTHER) == made[0]


def test_partitions_of_before_in_a_table_of_others_stay_as_they_are():
    maker = maker_on("sda")
    maker.partition("sda", 100, "root")
    maker.partition("sda", 100, "data")
    layout = parse_static_schema(maker.schema)
    first = layout.disks[0].partitions[0]
    host = new_host()
    entry = TableEntry(1, first.start, first.size, LINUX, first.uuid, "root")
    host.media.write_table("sda", new_uuid(), (entry,))
    host.start_all()
    (write,) = [step for step in steps_on(host, maker.schema, ONE) if isinstance(step, WritePartitionTable)]
    assert write.entries[0].uuid == first.uuid
    assert write.entries[1].uuid not in (layout.disks[0].partitions[1].uuid, layout.disks[0].partitions[1].unfinished)


def test_an_id_of_one_disk_in_the_world_needs_no_salt_and_a_uuid_of_the_schema_stays():
    wanted = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f0"
    maker = maker_on("sda")
    maker.partition("sda", 100, "root")
    maker.schema["parteds"][0]["partitions"][0]["uuid"] = wanted
    (write,) = [step for step in steps_on(new_host(), maker.schema, ONE) if isinstance(step, WritePartitionTable)]
    assert salt_of_table(f"{BY_ID}sda", write.uuid) == ONE
    host = new_host()
    for _round in range(2):
        for step in steps_on(host, maker.schema, ONE):
            carry_out(host, step)
    assert host.media.table("sda")[2][0].uuid == wanted


@pytest.mark.parametrize("twin", ["table", "partition"])
def test_identities_to_be_made_that_another_disk_has_are_a_warning(twin):
    schema = simple().schema
    write = next(step for step in steps_on(new_host(), schema, "") if isinstance(step, WritePartitionTable))
    host = new_host()
    entry = parse_static_schema(schema).disks[0].partitions[0]
    uuid = entry.uuid if twin == "partition" else new_uuid()
    other = TableEntry(1, MIB, 100 * MIB, LINUX, uuid, "copy")
    host.media.write_table("sdb", write.uuid if twin == "table" else new_uuid(), (other,))
    host.start_all()
    found = plan_steps(parse_static_schema(schema), host.present())
    assert found.steps
    assert any("/dev/sdb" in note and "has already" in note for note in found.notes)
    assert not any("has already" in note for note in plan_steps(parse_static_schema(schema), seen(host, ONE)).notes)
