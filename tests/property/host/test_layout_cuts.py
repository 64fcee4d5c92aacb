# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Layouts that are hard to complete, cut off at every single moment, by a kill and by a power cut: the next run completes each."""

from __future__ import annotations

import copy
import functools
import itertools
import random
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.tests.support.host.simulated.caches import run_until_cut
from ansible_collections.bareon.allocator.tests.support.host.simulated.checks import check_data, check_layout, write_data
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import MIB, Block
from ansible_collections.bareon.allocator.tests.support.host.simulated.runs import (
    complete,
    disks_of,
    ids,
    import_as_asked,
    not_begun,
    reduce_as_asked,
    run_until,
    state_of,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import DISK_SIZES, SchemaMaker, old_array, old_group
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out, perform

Plain = dict[str, t.Any]


def started(*disks: str) -> SchemaMaker:
    maker = SchemaMaker()
    for disk in disks:
        maker.disk(disk, DISK_SIZES[disk])
    return maker


def mirrored_server() -> SchemaMaker:
    """An ESP as a mirror with its metadata at the end, a mirror with LUKS and a volume group on it, and swap."""
    maker = started("sda", "sdb")
    maker.fill(maker.mirror(("sda", "sdb"), 60, "esp", "1.0"), 58, "vfat", "esp", "vfat")
    maker.fill(maker.mirror(("sda", "sdb"), 400, "os", "1.2"), 390, "luks-pv", "os", "ext4")
    maker.fill(maker.partition("sdb", 40, "swap"), 40, "swap", "swap", "swap")
    maker.volume("vg0", "root", 30, False, "ext4")
    maker.volume("vg0", "secret", 20, True, "xfs")
    return maker


def plain_mirror() -> SchemaMaker:
    """A mirror with a volume group on it that nothing hides."""
    maker = started("sda", "sdb")
    maker.fill(maker.mirror(("sda", "sdb"), 500, "os", "1.2"), 490, "pv", "os", "ext4")
    maker.volume("vg0", "root", 30, False, "ext4")
    return maker


def spread_btrfs() -> SchemaMaker:
    """A btrfs on two disks, with subvolumes, and a plain one."""
    maker = started("sda", "sdb")
    maker.spread(("sda", "sdb"), 300, "data")
    maker.fill(maker.partition("sdb", 120, "log"), 120, "fs", "log", "btrfs")
    return maker


def zfs_pool() -> SchemaMaker:
    """A ZFS pool on three disks, with datasets, beside a plain partition."""
    maker = started("sda", "sdb", "sdc")
    maker.fill(maker.partition("sdb", 60, "log"), 60, "fs", "log", "ext4")
    maker.zpool(("sda", "sdb", "sdc"), 120, "tank")
    return maker


def zfs_pool_with_parts() -> SchemaMaker:
    """A ZFS mirror with a mirrored log, a cache and a spare."""
    maker = started("sda", "sdb", "sdc")
    maker.zpool(("sda", "sdb"), 120, "tank")
    with_parts(maker)
    return maker


def with_parts(maker: SchemaMaker) -> None:
    maker.log(("sda", "sdc"), 70, "tank_log")
    maker.beside("caches", "sdc", 80, "tank_cache")
    maker.beside("spares", "sdc", 120, "tank")


def thin_pool() -> SchemaMaker:
    """A thin pool with more in it than it has room for, beside a plain volume, on two disks."""
    maker = group_of_two()
    maker.pool("vg0", "pool", 12)
    maker.thin("vg0", "pool", "web", 100, False, "ext4")
    maker.thin("vg0", "pool", "secret", 200, True, "xfs")
    return maker


def thin_pool_partly_sealed() -> SchemaMaker:
    """A thin pool in a group of which the first part is in LUKS, and closed after a start."""
    maker = started("sda")
    sealed, plain = (maker.partition("sda", 100, space) for space in ("sealed", "plain"))
    maker.schema["luks"].append({"name": "c0", "device": sealed})
    maker.schema["pvs"] += [{"name": "/dev/mapper/c0"}, {"name": plain}]
    maker.schema["vgs"].append({"name": "vg0", "pvnames": ["/dev/mapper/c0", plain]})
    maker.room["vg0"] = 40
    maker.volume("vg0", "root", 5, False, "ext4")
    maker.pool("vg0", "pool", 10)
    maker.thin("vg0", "pool", "web", 100, False, "xfs")
    return maker


def cached() -> SchemaMaker:
    """A volume with a cache on another disk, and one in LUKS with a cache in LUKS."""
    maker = started("sda", "sdb", "sdc")
    maker.fill(maker.partition("sda", 400, "slow"), 400, "pv", "slow", "ext4")
    maker.volume("vg0", "data", 50, True, "xfs")
    maker.volume("vg0", "more", 10, False, "ext4")
    maker.cache("vg0", "data", maker.partition("sdb", 60, "fast"))
    maker.schema["luks"].append({"name": "fast-crypt", "device": maker.partition("sdc", 80, "faster")})
    maker.cache("vg0", "more", "/dev/mapper/fast-crypt")
    return maker


def group_of_two() -> SchemaMaker:
    maker = started("sda", "sdb")
    for disk in ("sda", "sdb"):
        maker.schema["pvs"].append({"name": maker.partition(disk, 200, f"pv{disk}")})
    maker.schema["vgs"].append({"name": "vg0", "pvnames": [volume["name"] for volume in maker.schema["pvs"]]})
    maker.room["vg0"] = 90
    maker.volume("vg0", "wide", 70, False, "ext4")
    return maker


def joined_by_a_disk(maker: SchemaMaker, encrypted: bool) -> Plain:
    """The schema with one more disk in its volume group, and a volume that needs it."""
    schema = maker.schema
    maker.disk("sdc", DISK_SIZES["sdc"])
    device = maker.partition("sdc", 600, "more")
    if encrypted:
        schema["luks"].append({"name": "more-crypt", "device": device})
        device = "/dev/mapper/more-crypt"
    schema["pvs"].append({"name": device})
    schema["vgs"][0]["pvnames"].append(device)
    schema["lvs"][0]["size"] += 400
    return schema


def cut_everywhere(host: SimulatedHost, schema: Plain, wipe: list[str], check: t.Callable[[SimulatedHost], None]) -> int:
    """Cut a run off at every moment and complete it; returns at how many. Disks that were begun are not in `wipe` any more."""
    layout = parse_static_schema(schema)
    whole = copy.deepcopy(host)
    moments = 0
    while True:
        plan = plan_steps(layout, whole.present(), wipe)
        assert not plan.refusals, plan.refusals
        if not plan.steps:
            break
        moments += sum(len(list(perform(whole, step))) for step in plan.steps)
    before = state_of(host)
    for moment in range(moments):
        for start in _starts(schema):
            cut = copy.deepcopy(host)
            _run_all_until(cut, schema, wipe, moment)
            start(cut)
            still = not_begun(cut, before, disks_of(schema)) if wipe else []
            left = [name for name in wipe if name in still]
            import_as_asked(cut, layout, left)
            complete(cut, layout, left)
            check_layout(cut, layout, earlier=False)
            check(cut)
    return moments


def _starts(schema: Plain) -> list[t.Callable[[SimulatedHost], None]]:
    """What follows a cut: nothing, for a run that was killed, or a start; where there are arrays also with disks that come late."""
    late = [functools.partial(SimulatedHost.start_all, late=disk) for disk in disks_of(schema) if schema["mds"]]
    return [nothing, SimulatedHost.start_all, *late]


def _run_all_until(host: SimulatedHost, schema: Plain, wipe: list[str], moment: int) -> None:
    layout = parse_static_schema(schema)
    while True:
        plan = plan_steps(layout, host.present(), wipe)
        whole = copy.deepcopy(host)
        moments = sum(len(list(perform(whole, step))) for step in plan.steps)
        run_until(host, plan, moment)
        if moment < moments or not plan.steps:
            return
        moment -= moments


def tear_everywhere(host: SimulatedHost, schema: Plain, wipe: list[str], check: t.Callable[[SimulatedHost], None], seeds: int = 2) -> int:
    """Cut the power at every moment of a run, so that what was not flushed is lost in parts, and complete it; returns at how many."""
    layout = parse_static_schema(schema)
    before, moments = state_of(host), 0
    while True:
        for seed in range(seeds):
            cut, left = copy.deepcopy(host), moments
            while True:
                plan = plan_steps(layout, cut.present(), wipe)
                assert not plan.refusals, plan.refusals
                whole = copy.deepcopy(cut)
                of_plan = sum(len(list(perform(whole, step))) for step in plan.steps)
                if run_until_cut(cut, plan, left, random.Random(seed)):
                    break
                if not plan.steps:
                    return moments
                left -= of_plan
            still = not_begun(cut, before, disks_of(schema)) if wipe else []
            complete(cut, layout, [name for name in wipe if name in still])
            check_layout(cut, layout, earlier=False)
            check(cut)
        moments += 1


def nothing(_host: SimulatedHost) -> None:
    """There are no data yet."""


@pytest.mark.parametrize(
    "make",
    [
        mirrored_server,
        plain_mirror,
        group_of_two,
        spread_btrfs,
        thin_pool,
        thin_pool_partly_sealed,
        cached,
        zfs_pool,
        zfs_pool_with_parts,
    ],
)
def test_on_empty_disks(make: t.Callable[[], SchemaMaker]) -> None:
    assert cut_everywhere(SimulatedHost.with_disks(dict(DISK_SIZES)), make().schema, [], nothing) > 15


@pytest.mark.parametrize("make", [mirrored_server, plain_mirror, group_of_two])
def test_on_empty_disks_that_lose_what_was_not_flushed(make: t.Callable[[], SchemaMaker]) -> None:
    assert tear_everywhere(SimulatedHost.with_disks(dict(DISK_SIZES)), make().schema, [], nothing) > 15


@pytest.mark.parametrize(
    ("make", "zapped"),
    [
        *((make, zapped) for make in (mirrored_server, plain_mirror, group_of_two, thin_pool) for zapped in (["sda", "sdb"], ["sdb"])),
        (cached, ["sda", "sdb"]),
        # What is left of it on one disk is never made anew.
        (spread_btrfs, ["sda", "sdb"]),
    ],
)
def test_once_more_after_the_tables_were_lost(make: t.Callable[[], SchemaMaker], zapped: list[str]) -> None:
    """Everything of before lies where the new things will, under the very same identities."""
    schema = make().schema
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    complete(host, parse_static_schema(schema), [])
    for disk in zapped:
        host.media.wipe_table(disk)
    host.start_all()
    wipe = ids(disk for disk in disks_of(schema) if disk not in zapped)
    assert cut_everywhere(host, schema, wipe, nothing) > 15


@pytest.mark.parametrize("make", [mirrored_server, plain_mirror, group_of_two])
def test_over_a_group_of_the_same_name(make: t.Callable[[], SchemaMaker]) -> None:
    """The disks held a group vg0 on partitions that begin where the new ones do."""
    schema = make().schema
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    earlier = group_of_two()
    for volume in earlier.schema["parteds"]:
        volume["partitions"][0]["end"] += 30
        volume["partitions"][0]["uuid"] = f"00000000-0000-4000-8000-{volume['name'][-3:].encode().hex():>012}"
    complete(host, parse_static_schema(earlier.schema), [])
    assert cut_everywhere(host, schema, ids(disks_of(schema)), nothing) > 15
    assert tear_everywhere(host, schema, ids(disks_of(schema)), nothing, seeds=1) > 15


def test_over_whole_disks_in_an_array_and_in_a_group() -> None:
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    old_array(host, [host.media.disk("sda"), host.media.disk("sdb")], "1.0", "old")
    old_group(host, [host.media.disk("sdc")], "vg0")
    host.start_all()
    maker = mirrored_server()
    maker.disk("sdc", DISK_SIZES["sdc"])
    assert cut_everywhere(host, maker.schema, ids(DISK_SIZES), nothing) > 15


@pytest.mark.parametrize("zfs", [False, True])
@pytest.mark.parametrize(
    ("order", "before", "after", "size"),
    [
        (("sda", "sdb", "sdc"), ("sda", "sdb"), ("sda", "sdb"), 100),
        (("sda", "sdb", "sdc"), ("sda", "sdb"), ("sdb", "sdc"), 120),
        (("sdb", "sda", "sdc"), ("sda", "sdb"), ("sda", "sdc"), 140),
        (("sdc", "sdb", "sda"), ("sda", "sdb", "sdc"), ("sda", "sdb"), 100),
    ],
)
def test_a_filesystem_on_several_disks_is_made_again_on_others(
    zfs: bool, order: tuple[str, ...], before: tuple[str, ...], after: tuple[str, ...], size: int
) -> None:
    """What a cut leaves of the former one is not taken for what a failed disk left, nor for a pool that somebody exported."""
    earlier, later = started("sda", "sdb", "sdc"), started(*order)
    for maker, disks, room in ((earlier, before, 120), (later, after, size)):
        maker.zpool(disks, room, "tank") if zfs else maker.spread(disks, room, "tank")
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    complete(host, parse_static_schema(earlier.schema), [])
    assert cut_everywhere(host, later.schema, ids(DISK_SIZES), nothing) > 15


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("make", [mirrored_server, plain_mirror, group_of_two])
def test_a_disk_that_joins_a_group(make: t.Callable[[], SchemaMaker], encrypted: bool) -> None:
    maker = make()
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    first = parse_static_schema(maker.schema)
    complete(host, first, [])
    write_data(host, first)
    schema = joined_by_a_disk(maker, encrypted)
    layout = parse_static_schema(schema)
    assert cut_everywhere(host, schema, [], lambda cut: check_data(cut, layout)) > 10
    assert tear_everywhere(host, schema, [], lambda cut: check_data(cut, layout)) > 10


def test_a_sealed_part_that_joins_a_group_of_which_another_one_is_closed_after_a_start() -> None:
    """What lacks of the group is seen first: the new container may have been cut off while it was made, and cannot be opened then."""
    maker = started("sda")
    plain, sealed = (maker.partition("sda", 200, space) for space in ("plain", "sealed"))
    maker.schema["luks"].append({"name": "c0", "device": sealed})
    maker.schema["pvs"] += [{"name": plain}, {"name": "/dev/mapper/c0"}]
    maker.schema["vgs"].append({"name": "vg0", "pvnames": [plain, "/dev/mapper/c0"]})
    maker.room["vg0"] = 80
    maker.volume("vg0", "wide", 70, False, "ext4")
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    first = parse_static_schema(maker.schema)
    complete(host, first, [])
    write_data(host, first)
    maker.schema["luks"].append({"name": "c1", "device": maker.partition("sda", 200, "joins")})
    maker.schema["pvs"].append({"name": "/dev/mapper/c1"})
    maker.schema["vgs"][0]["pvnames"].append("/dev/mapper/c1")
    layout = parse_static_schema(maker.schema)
    assert cut_everywhere(host, maker.schema, [], lambda cut: check_data(cut, layout)) > 5


def test_a_btrfs_on_two_disks_that_grows_on_one_of_them() -> None:
    maker = spread_btrfs()
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    first = parse_static_schema(maker.schema)
    complete(host, first, [])
    write_data(host, first)
    maker.schema["parteds"][0]["partitions"][0]["end"] += 200
    maker.schema["fss"][0]["subvolumes"].append({"name": "more", "quota": 8})
    layout = parse_static_schema(maker.schema)
    assert cut_everywhere(host, maker.schema, [], lambda cut: check_data(cut, layout)) > 3


def test_a_thin_pool_that_grows_with_what_is_in_it() -> None:
    """Metadata with their spare, data, a volume with LUKS in it and its file system; and a volume more."""
    maker = thin_pool()
    maker.schema["lvs"][0]["size"] -= 60
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    first = parse_static_schema(maker.schema)
    complete(host, first, [])
    write_data(host, first)
    maker.schema["thin_pools"][0].update(size=72, metadata_size=8)
    maker.schema["lvs"][2]["size"] += 400
    maker.thin("vg0", "pool", "more", 60, False, "ext4")
    layout = parse_static_schema(maker.schema)
    assert cut_everywhere(host, maker.schema, [], lambda cut: check_data(cut, layout)) > 8


def test_a_zfs_pool_with_data_that_gets_a_log_a_cache_a_spare_and_a_vdev() -> None:
    maker = started("sda", "sdb", "sdc")
    maker.zpool(("sda", "sdb"), 120, "tank")
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    first = parse_static_schema(maker.schema)
    complete(host, first, [])
    write_data(host, first)
    with_parts(maker)
    more = [maker.partition(disk, 120, "tank") for disk in ("sdb", "sdc")]
    maker.schema["zpools"][0]["vdevs"].append({"type": "mirror", "devices": more})
    layout = parse_static_schema(maker.schema)
    assert cut_everywhere(host, maker.schema, [], lambda cut: check_data(cut, first)) > 8
    complete(host, layout, [])
    # Without them in the schema they stay, and go where that is asked for; with another plan they go, too.
    without = started("sda", "sdb", "sdc")
    without.zpool(("sda", "sdb"), 120, "tank")
    without.schema["zpools"][0]["vdevs"].append({"type": "mirror", "devices": more})
    without.schema["parteds"] = [
        {
            **disk,
            "partitions": [
                part for part in disk["partitions"] if part["space_id"] == "tank" and part["name"] in (*more, *first.zpools[0].devices)
            ],
        }
        for disk in maker.schema["parteds"]
    ]
    layout = parse_static_schema(without.schema)
    assert plan_steps(layout, host.present()).steps == ()
    gone = plan_steps(layout, host.present(), ids(DISK_SIZES), keep_unlisted=False)
    assert not gone.refusals
    assert sorted(step.says.split()[2] for step in gone.steps if "out of the ZFS pool tank" in step.says) == ["cache", "log", "spare"]
    assert not any("export" in step.says for step in gone.steps)


def test_a_cache_that_a_volume_with_data_gets() -> None:
    maker = started("sda", "sdb")
    maker.fill(maker.partition("sda", 400, "slow"), 400, "pv", "slow", "ext4")
    maker.volume("vg0", "data", 50, False, "xfs")
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    first = parse_static_schema(maker.schema)
    complete(host, first, [])
    write_data(host, first)
    maker.cache("vg0", "data", maker.partition("sdb", 60, "fast"))
    maker.schema["caches"][0]["mode"] = "writeback"
    maker.schema["lvs"][0]["size"] += 40
    layout = parse_static_schema(maker.schema)
    assert cut_everywhere(host, maker.schema, [], lambda cut: check_data(cut, layout)) > 5


def test_an_encrypted_space_that_grows() -> None:
    """Partition, LUKS, physical volume, volume, LUKS in it and filesystem: one after the other."""
    maker = started("sda")
    maker.fill(maker.partition("sda", 200, "os"), 190, "luks-pv", "os", "ext4")
    maker.volume("vg0", "secret", 20, True, "xfs")
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    first = parse_static_schema(maker.schema)
    complete(host, first, [])
    write_data(host, first)
    maker.schema["parteds"][0]["partitions"][0]["end"] += 300
    maker.schema["lvs"][0]["size"] += 280
    layout = parse_static_schema(maker.schema)
    assert cut_everywhere(host, maker.schema, [], lambda cut: check_data(cut, layout)) > 5
    assert tear_everywhere(host, maker.schema, [], lambda cut: check_data(cut, layout)) > 5


def test_an_array_of_before_goes_and_the_run_is_cut_off_twice() -> None:
    """The first cut may leave the backup of a table alone, and partitions that only the kernel has; the second comes at any moment."""
    earlier, later = started("sda", "sdb"), started("sda", "sdb")
    earlier.fill(earlier.mirror(("sda", "sdb"), 40, "s0", "1.0"), 38, "none", "s0", "ext4")
    later.fill(later.partition("sda", 40, "s0"), 40, "fs", "s0", "ext4")
    host = SimulatedHost.with_disks({disk: DISK_SIZES[disk] for disk in ("sda", "sdb")})
    complete(host, parse_static_schema(earlier.schema), [])
    layout, before, wipe = parse_static_schema(later.schema), state_of(host), ids(["sda", "sdb"])
    twice = 0
    for first, second in itertools.product(range(30), range(14)):
        cut = copy.deepcopy(host)
        run_until(cut, plan_steps(layout, cut.present(), wipe), first)
        twice += run_until(cut, plan_steps(layout, cut.present(), not_begun(cut, before, ["sda", "sdb"])), second)
        left = not_begun(cut, before, ["sda", "sdb"])
        complete(cut, layout, left)
        check_layout(cut, layout, earlier=False)
    assert twice > 100


@pytest.mark.parametrize("lost", ["stale", "whole"])
def test_a_group_of_somebody_else_that_lacks_a_disk_goes_only_when_that_is_given_up(lost: str) -> None:
    """One physical volume is on the disk of the layout, the other one under a table that was wiped, or on a disk that is not attached."""
    maker = started("sda")
    maker.fill(maker.partition("sda", 40, "s0"), 40, "fs", "s0", "ext4")
    host = SimulatedHost.with_disks({disk: DISK_SIZES[disk] for disk in ("sda", "sdb")})
    other = Block("sdb1", "", "part", host.media.disk("sdb").part(MIB, 30 * MIB)) if lost == "stale" else host.media.disk("sdb")
    old_group(host, [host.media.disk("sda"), other], "old")
    if lost == "whole":
        host.media.marks["sdb"] = {}
    host.start_all()
    layout, marks = parse_static_schema(maker.schema), copy.deepcopy(host.media.marks)
    (refusal,) = plan_steps(layout, host.present(), ids(["sda"])).refusals
    assert "vgreduce --removemissing old" in refusal
    assert host.media.marks == marks
    reduce_as_asked(host, layout, ids(["sda"]))
    assert cut_everywhere(host, maker.schema, ids(["sda"]), nothing) > 5


def test_a_mark_of_a_cut_gives_up_no_group_on_a_disk_that_came_later() -> None:
    """A run is cut off while it builds on sda; then the layout gets sdb, which has a group of which sdc is not attached."""
    earlier, later = started("sda"), started("sda", "sdb")
    for maker in (earlier, later):
        maker.fill(maker.partition("sda", 40, "s0"), 40, "fs", "s0", "ext4")
    later.fill(later.partition("sdb", 40, "s1"), 40, "fs", "s1", "ext4")
    host = SimulatedHost.with_disks({disk: DISK_SIZES[disk] for disk in ("sda", "sdb", "sdc")})
    old_group(host, [host.media.disk("sdb"), host.media.disk("sdc")], "old")
    host.media.marks["sdc"] = {}
    for step in plan_steps(parse_static_schema(earlier.schema), host.present()).steps[:-1]:
        carry_out(host, step)
    host.start_all()
    layout, marks = parse_static_schema(later.schema), copy.deepcopy(host.media.marks)
    refused = plan_steps(layout, host.present(), ids(["sda", "sdb"]))
    assert "vgreduce --removemissing old" in " ".join(refused.refusals)
    assert host.media.marks == marks
    reduce_as_asked(host, layout, ids(["sda", "sdb"]))
    assert cut_everywhere(host, later.schema, ids(["sda", "sdb"]), nothing) > 5


def test_what_a_lost_disk_left_of_a_btrfs_stays_even_where_the_plan_has_less_room_for_it() -> None:
    """It is refused before anything is destroyed, and the refusal says what to do; after that is done the layout is made."""
    earlier, later = started("sda", "sdb"), started("sda", "sdb")
    earlier.spread(("sda", "sdb"), 226, "s0")
    later.spread(("sda", "sdb"), 186, "s0")
    host = SimulatedHost.with_disks({disk: DISK_SIZES[disk] for disk in ("sda", "sdb")})
    complete(host, parse_static_schema(earlier.schema), [])
    host.media.wipe_table("sdb")
    host.start_all()
    layout, marks = parse_static_schema(later.schema), copy.deepcopy(host.media.marks)
    (refusal,) = plan_steps(layout, host.present(), ids(["sda", "sdb"])).refusals
    assert "wipefs" in refusal
    assert host.media.marks == marks
    host.media.wipe(host.blocks()["sda1"])
    assert cut_everywhere(host, later.schema, ids(["sda", "sdb"]), nothing) > 5
