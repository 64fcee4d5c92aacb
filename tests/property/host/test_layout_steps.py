# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Layouts on simulated hosts: cut off at any moment a run is completed by the next, nothing is lost, nothing old comes back."""

from __future__ import annotations

import typing as t

from ansible_collections.bareon.allocator.plugins.module_utils._layout.adopt import adopt
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.tests.support.host.simulated.checks import check_data, check_layout, write_data
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost
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
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import (
    BYSTANDER,
    DISK_SIZES,
    MIB,
    Draw,
    change,
    makers,
    old_group,
    put_old_contents,
    schemas,
)
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st

Plain = dict[str, t.Any]


def host_with(draw: Draw, disks: list[str]) -> SimulatedHost:
    """A host with leftovers on these disks, and with a disk that has nothing to do with the layout."""
    host = SimulatedHost.with_disks({**DISK_SIZES, BYSTANDER: 800 * MIB})
    old_group(host, [host.media.disk(BYSTANDER)], "others")
    put_old_contents(draw, host, disks)
    host.start_all()
    return host


def leave_earlier_layout(draw: Draw, host: SimulatedHost, schema: Plain) -> None:
    """Make this layout or another one on the host, and then perhaps lose some of the tables."""
    earlier = schema if draw(st.booleans()) else draw(schemas())
    layout = parse_static_schema(earlier)
    if plan_steps(layout, host.present(), ids(disks_of(earlier))).refusals:
        return
    complete(host, layout, ids(disks_of(earlier)))
    for disk in draw(st.lists(st.sampled_from(disks_of(earlier)), unique=True)):
        host.media.wipe_table(disk)
    host.start_all()


def may_stand_in_the_way(refusal: str) -> bool:
    """Whether it is of what also lies on disks that the schema does not have, or of a part of a btrfs that lost its other disks."""
    known = ("is also on", "already exists, on other devices", "over its remains", "is not imported on this host")
    return any(words in refusal for words in known)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_a_run_that_is_cut_off_is_completed_by_the_next(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    disks = disks_of(schema)
    host = host_with(data.draw, sorted(DISK_SIZES))
    layout = parse_static_schema(schema)
    earlier = data.draw(st.booleans())
    if earlier:
        leave_earlier_layout(data.draw, host, schema)
    # A group of somebody else that lacks a disk is in the way until its owner gives that disk up.
    reduce_as_asked(host, layout, ids(disks))
    others = {disk: dict(host.media.marks.get(disk, {})) for disk in host.media.sizes if disk not in disks}
    wipe, before = ids(disks), state_of(host)
    for _cut in range(data.draw(st.integers(0, 4))):
        plan = plan_steps(layout, host.present(), wipe)
        if plan.refusals:
            assert all(may_stand_in_the_way(refusal) for refusal in plan.refusals), plan.refusals
            return
        run_until(host, plan, data.draw(st.integers(0, 60)))
        if data.draw(st.booleans()):
            host.start_all()
        wipe = not_begun(host, before, disks)
    plan = plan_steps(layout, host.present(), wipe)
    if plan.refusals and wipe == ids(disks):
        assert all(may_stand_in_the_way(refusal) for refusal in plan.refusals), plan.refusals
        return
    import_as_asked(host, layout, wipe)
    complete(host, layout, wipe)
    check_layout(host, layout, earlier)
    for wiped in ([], ids(disks)):
        for keep_unlisted in (True,) if earlier else (True, False):
            assert plan_steps(layout, host.present(), wiped, keep_unlisted).steps == ()
    assert {disk: dict(host.media.marks.get(disk, {})) for disk in others} == others
    host.start_all()
    complete(host, layout, [])
    check_layout(host, layout, earlier)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_a_change_after_the_install_loses_nothing(data: st.DataObject) -> None:
    """Grown, added, joined by a disk; without a permission to destroy anything, and cut off here and there."""
    maker = data.draw(makers())
    host = host_with(data.draw, [])
    first = parse_static_schema(maker.schema)
    complete(host, first, [])
    write_data(host, first)
    change(data.draw, maker)
    layout = parse_static_schema(maker.schema)
    for _cut in range(data.draw(st.integers(0, 3))):
        plan = plan_steps(layout, host.present())
        assert not plan.refusals, plan.refusals
        run_until(host, plan, data.draw(st.integers(0, 30)))
        if data.draw(st.booleans()):
            host.start_all()
        import_as_asked(host, layout, [])
    complete(host, layout, [])
    check_layout(host, layout, earlier=False)
    check_data(host, layout)
    assert plan_steps(layout, host.present(), ids(disks_of(maker.schema)), keep_unlisted=False).steps == ()


@settings(max_examples=examples(60), deadline=None)
@given(schemas())
def test_what_is_there_is_a_schema_with_which_nothing_is_to_be_done(schema: Plain) -> None:
    host = SimulatedHost.with_disks(dict(DISK_SIZES))
    complete(host, parse_static_schema(schema), ids(disks_of(schema)))
    present = host.present()
    found = adopt(present, present.disks, {pool.name: pool.datasets for pool in present.zpools})
    planned = plan_steps(parse_static_schema(found.schema), present)
    assert (planned.steps, planned.refusals) == ((), ())
    for kind in ("parteds", "mds", "luks", "pvs", "vgs", "thin_pools", "lvs", "caches", "zpools"):
        listed = [entry for entry in schema.get(kind, ()) if kind != "parteds" or entry["partitions"]]
        assert sorted(entry["name"] for entry in found.schema.get(kind, ())) == sorted(entry["name"] for entry in listed)
