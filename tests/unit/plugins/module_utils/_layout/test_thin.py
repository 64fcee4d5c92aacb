# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of thin pools on a host: how they grow, what they are not made into, and what is told of what goes with one."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout.losses import paragraph
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import installed, maker_on, plan, refusal
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import SchemaMaker
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out

DISK = "sda"


def pooled() -> SchemaMaker:
    maker = maker_on(DISK)
    maker.fill(maker.partition(DISK, 400, "os"), 400, "pv", "os", "ext4")
    maker.volume("vg0", "plain", 10, False, "ext4")
    maker.pool("vg0", "pool", 20)
    maker.thin("vg0", "pool", "web", 200, False, "ext4")
    return maker


def says(host, schema, wipe=(), **options):
    found = plan(host, schema, wipe, **options)
    assert not found.refusals, found.refusals
    return [step.says for step in found.steps]


def test_a_pool_is_made_before_what_is_in_it_and_each_is_finished_when_it_is_complete():
    maker = pooled()
    host = installed(maker_on(DISK))
    steps = [line for line in says(host, maker.schema) if "vg0" in line]
    assert steps[1:] == [
        "create the thin pool vg0/pool with 80 MiB, 4 MiB of metadata and chunks of 64 KiB",
        "create the logical volume vg0/plain with 40 MiB",
        "create the thin volume vg0/web with 200 MiB in pool",
        "clear old signatures at both ends of /dev/mapper/vg0-plain, /dev/mapper/vg0-web",
        "mark plain, web in vg0 as cleared",
        "mark pool in vg0 as finished",
        "make ext4 on /dev/mapper/vg0-plain",
        "mark plain in vg0 as finished",
        "make ext4 on /dev/mapper/vg0-web",
        "mark web in vg0 as finished",
    ]


def test_metadata_grow_before_data_and_volumes():
    maker = pooled()
    host = installed(maker)
    assert says(host, maker.schema) == []
    maker.schema["thin_pools"][0].update(size=120, metadata_size=9)
    maker.schema["lvs"][1]["size"] = 300
    assert says(host, maker.schema) == [
        "grow the metadata of the thin pool vg0/pool from 4 MiB to 12 MiB",
        "grow the logical volume vg0/pool from 80 MiB to 120 MiB",
        "grow the logical volume vg0/web from 200 MiB to 300 MiB",
        "grow the ext4 on /dev/mapper/vg0-web to the size of its device",
    ]


def test_room_is_counted_with_metadata_and_their_spare():
    maker = pooled()
    host = installed(maker)
    # The group has 99 extents, of which 10 are the volume's and 22 the pool's with its metadata and their spare.
    free = 99 - 10 - 22
    maker.schema["thin_pools"][0]["size"] += free * 4
    assert len(says(host, maker.schema)) == 1
    maker.schema["thin_pools"][0]["metadata_size"] = 8
    assert f"has room for {free} more extents of 4 MiB, but {free + 2} are needed: 8 MiB too few" in refusal(host, maker.schema)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda pool, _web: pool.update(size=40), "the thin pool vg0/pool would have to shrink from 80 MiB to 40 MiB; LVM cannot do that"),
        (
            lambda pool, _web: pool.update(size=10000, metadata_size=5),
            "which stay: with 10000 MiB it needs 10 MiB of metadata, and would have 5 MiB; plan it with chunk_size: 64 KiB",
        ),
        (lambda pool, _web: pool.update(name="plain2"), "vg0/web is in the thin pool pool, but wanted in the thin pool plain2"),
        (lambda _pool, web: web.pop("pool"), "vg0/web is in the thin pool pool, but wanted in no thin pool; volumes are not moved"),
        (lambda pool, web: (pool.update(name="web"), web.update(name="pool", pool="web")), "vg0/web exists, but is no thin pool"),
        (
            lambda pool, web: (pool.update(name="web"), web.update(name="pool", pool="web")),
            "vg0/pool is a thin pool, but wanted as a",
        ),
    ],
)
def test_what_is_there_otherwise_is_refused_and_made_anew_where_it_may_go(change, said):
    maker = pooled()
    host = installed(maker)
    schema = copy.deepcopy(maker.schema)
    pool, web = schema["thin_pools"][0], schema["lvs"][1]
    change(pool, web)
    if web.get("pool", pool["name"]) != pool["name"]:
        web["pool"] = pool["name"]
    schema["fss"][1]["device"] = f"/dev/mapper/vg0-{web['name']}"
    assert said in refusal(host, schema)
    if pool["size"] < 1000:
        for step in plan(host, schema, [DISK]).steps:
            carry_out(host, step)
        assert says(host, schema) == []


def test_a_pool_that_is_made_anew_takes_along_what_is_in_it_and_says_so():
    maker = pooled()
    maker.thin("vg0", "pool", "other", 100, False, "xfs")
    host = installed(maker)
    schema = copy.deepcopy(maker.schema)
    schema["thin_pools"][0]["size"] = 40
    del schema["lvs"][2], schema["fss"][2]
    found = plan(host, schema, [DISK])
    removed = [step.says for step in found.steps if "remove" in step.says]
    assert removed == ["remove the logical volume vg0/pool"]
    lost = paragraph(found.losses)
    assert "ext4 on /dev/mapper/vg0-web" in lost
    assert "xfs on /dev/mapper/vg0-other" in lost
    host.mounts[host.by_node("/dev/mapper/vg0-other").name] = "/srv"
    assert "vg0-other would be destroyed, but is mounted on /srv" in refusal(host, schema, [DISK])


def test_what_is_not_listed_goes_with_its_pool():
    maker = pooled()
    host = installed(maker)
    schema = copy.deepcopy(maker.schema)
    schema["thin_pools"], schema["lvs"], schema["fss"] = [], schema["lvs"][:1], schema["fss"][:1]
    assert says(host, schema) == []
    assert says(host, schema, [DISK], keep_unlisted=False) == ["remove the logical volume vg0/pool"]


def test_what_lvm_had_begun_of_a_pool_is_removed_where_nothing_is_on_it():
    maker = pooled()
    before = maker_on(DISK)
    before.fill(before.partition(DISK, 400, "os"), 400, "pv", "os", "ext4")
    before.volume("vg0", "lvol0", 1, False, "ext4")
    host = installed(before)
    found = plan(host, maker.schema)
    assert not any("remove" in step.says for step in found.steps)
    host.media.wipe(host.by_node("/dev/mapper/vg0-lvol0"))
    found = plan(host, maker.schema)
    assert found.steps[0].says == "remove the logical volume vg0/lvol0"
    assert found.losses == ()


def test_parts_of_pools_are_not_told_as_losses():
    maker = pooled()
    host = installed(maker)
    alone = maker_on(DISK)
    alone.fill(alone.partition(DISK, 300, "alone"), 300, "ext4", "alone", "ext4")
    alone.schema["parteds"][0]["partitions"][0]["uuid"] = "00000000-0000-4000-8000-000000000001"
    said = refusal(host, alone.schema)
    assert said.count("volume vg0/web (200 MiB)") == 1
    assert not any(part in said for part in ("_tdata", "_tmeta", "-tpool"))
    lost = paragraph(plan(host, alone.schema, [DISK]).losses)
    assert "/dev/mapper/vg0-web" in lost
    assert "unknown content" not in lost
