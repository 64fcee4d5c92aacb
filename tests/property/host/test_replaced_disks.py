# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that are emptied onto others, cut off at every moment, by a kill and by a power cut: the next run ends it, and data are whole.

The host is simulated; its tools refuse what real ones refuse.
"""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout.emptied import plan_replacing
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import LayoutPlan, plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.preview import after, picture_of, render
from ansible_collections.bareon.allocator.plugins.module_utils._schema.model import Layout
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.tests.support.host.simulated.checks import block_of, check_layout, write_data
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID, SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import MIB
from ansible_collections.bareon.allocator.tests.support.host.simulated.runs import complete, ids
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import SchemaMaker, old_group
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out, perform

Plain = dict[str, t.Any]
SIZES = dict.fromkeys(("sda", "sdb", "sdc"), 1500 * MIB)
MOST_ROUNDS = 12


def mirrored_server(one: str, two: str) -> SchemaMaker:
    """An ESP as a mirror with its metadata at the end, a mirror with LUKS and a volume group on it, and swap on the first disk."""
    maker = started(one, two)
    maker.fill(maker.mirror((one, two), 60, "esp", "1.0"), 58, "vfat", "esp", "vfat")
    maker.fill(maker.mirror((one, two), 400, "os", "1.2"), 390, "luks-pv", "os", "ext4")
    maker.fill(maker.partition(one, 40, "swap"), 40, "swap", "swap", "swap")
    maker.volume("vg0", "root", 30, False, "ext4")
    maker.volume("vg0", "secret", 20, True, "xfs")
    return maker


def single_disk(one: str, _two: str) -> SchemaMaker:
    """A volume group, a Btrfs, an ext4 and swap on one disk alone."""
    maker = started(one)
    maker.fill(maker.partition(one, 200, "os"), 200, "pv", "os", "ext4")
    maker.fill(maker.partition(one, 300, "data"), 300, "fs", "data", "btrfs")
    maker.fill(maker.partition(one, 100, "boot"), 100, "fs", "boot", "ext4")
    maker.fill(maker.partition(one, 40, "swap"), 40, "swap", "swap", "swap")
    maker.volume("vg0", "root", 30, False, "ext4")
    maker.volume("vg0", "secret", 10, True, "xfs")
    return maker


def sealed_disk(one: str, _two: str) -> SchemaMaker:
    """A volume group in LUKS, and a file system in LUKS."""
    maker = started(one)
    maker.fill(maker.partition(one, 220, "os"), 220, "luks-pv", "os", "ext4")
    maker.fill(maker.partition(one, 300, "data"), 300, "luks-fs", "data", "btrfs")
    maker.volume("vg0", "srv", 30, False, "ext4")
    return maker


def group_of_two(one: str, two: str) -> SchemaMaker:
    """A volume group on two disks."""
    maker = started(one, two)
    maker.fill(maker.partition(one, 200, "one"), 200, "pv", "one", "ext4")
    maker.schema["pvs"].append({"name": maker.partition(two, 200, "two")})
    maker.schema["vgs"][0]["pvnames"].append(maker.schema["pvs"][-1]["name"])
    maker.room["vg0"] += 48
    maker.volume("vg0", "wide", 80, False, "ext4")
    return maker


def spread_btrfs(one: str, two: str) -> SchemaMaker:
    """A Btrfs on two disks."""
    maker = started(one, two)
    maker.spread((one, two), 300, "data")
    return maker


def zfs_mirror(one: str, two: str) -> SchemaMaker:
    """A ZFS pool on two disks."""
    maker = started(one, two)
    maker.zpool((one, two), 120, "tank")
    return maker


LAYOUTS = [mirrored_server, single_disk, sealed_disk, group_of_two, spread_btrfs, zfs_mirror]
Make = t.Callable[[str, str], SchemaMaker]


def started(*disks: str) -> SchemaMaker:
    maker = SchemaMaker()
    for disk in disks:
        maker.disk(disk, SIZES[disk])
    return maker


class Replaced:
    """A host with data on sda, and on sdb where the layout has two disks, and the layout with sdc in the place of sda."""

    def __init__(self, make: Make, wipe: t.Sequence[str] = ()) -> None:
        before = parse_static_schema(make("sda", "sdb").schema)
        self.host = SimulatedHost.with_disks(dict(SIZES))
        complete(self.host, before, [])
        write_data(self.host, before)
        self.schema = make("sdc", "sdb").schema
        self.layout = parse_static_schema(self.schema)
        self.wipe = ids(wipe)

    def _plan(self, host: SimulatedHost) -> LayoutPlan:
        return plan_replacing(self.layout, host.present(), {f"{BY_ID}sda": f"{BY_ID}sdc"}, self.wipe)

    def plan(self, host: SimulatedHost) -> LayoutPlan:
        plan = self._plan(host)
        assert not plan.refusals, plan.refusals
        return plan

    def complete(self, host: SimulatedHost) -> None:
        for _round in range(MOST_ROUNDS):
            plan = self._plan(host)
            if any("import it first (zpool import " in refusal for refusal in plan.refusals):
                # A torn table hid a part of the pool at the start.
                host.import_zpools()
            plan = self.plan(host)
            for step in plan.steps:
                try:
                    carry_out(host, step)
                except (AssertionError, LookupError) as error:
                    raise AssertionError(f"{step.says}: {error}\n" + "\n".join(each.says for each in plan.steps)) from error
            if not plan.steps:
                return
        raise AssertionError("there is no end to it")

    def cut_at(self, moment: int) -> SimulatedHost | None:
        """Return the host after a run that was cut off at this moment; None where it has fewer."""
        host = copy.deepcopy(self.host)
        while True:
            plan = self.plan(host)
            if not plan.steps:
                return None
            for step in plan.steps:
                for _moment in perform(host, step):
                    if moment == 0:
                        return host
                    moment -= 1

    def check(self, host: SimulatedHost) -> None:
        """Everything is on sdc as the layout has it, with the data, and nothing on sda is a part of anything any more."""
        check_layout(host, self.layout, earlier=True)
        check_moved_data(host, self.layout)
        disks = {
            disk
            for block in host.blocks().values()
            if block.kind not in ("disk", "part")
            for disk in host.disks_below(host.blocks(), block.name)
        }
        assert "sda" not in disks
        assert plan_steps(self.layout, host.present(), []).steps == ()


def is_begun(host: SimulatedHost) -> bool:
    """Whether the new disk has a table with partitions."""
    table = host.media.table("sdc")
    return table is not None and bool(table[2])


def check_moved_data(host: SimulatedHost, layout: Layout) -> None:
    """Raise AssertionError unless all data are where they were in what they are in; swap is new."""
    found = host.blocks()
    swaps = {filesystem.device for filesystem in layout.filesystems if filesystem.type == "swap"}
    for device, offsets in host.data.items():
        now = device.replace(f"{BY_ID}sda", f"{BY_ID}sdc")
        for offset in offsets if now not in swaps else ():
            block = block_of(found, layout, now)
            # md builds up a larger data area on a larger member; here both are of one size.
            mark = host.media.read(block, offset)
            assert mark is not None, (device, offset)
            assert mark.payload == f"{device}@{offset}"


@pytest.mark.parametrize("make", LAYOUTS)
def test_a_run_moves_everything(make: Make) -> None:
    replaced = Replaced(make)
    replaced.complete(replaced.host)
    replaced.check(replaced.host)
    assert replaced.plan(replaced.host).steps == ()


@pytest.mark.parametrize("start", [lambda _host: None, SimulatedHost.start_all], ids=["killed", "power"])
@pytest.mark.parametrize("make", LAYOUTS)
def test_a_run_that_was_cut_off_at_any_moment_is_completed(make: Make, start: t.Callable[[SimulatedHost], None]) -> None:
    replaced, moment = Replaced(make), 0
    while (cut := replaced.cut_at(moment)) is not None:
        start(cut)
        cut.import_zpools()
        replaced.complete(cut)
        replaced.check(cut)
        moment += 1
    assert moment > 10


@pytest.mark.parametrize("make", LAYOUTS)
def test_what_was_moved_is_never_wiped(make: Make) -> None:
    """The new disk stays in wipe for good: that was for what was on it before."""
    replaced, moment = Replaced(make, ["sdc"]), 0
    old_group(replaced.host, [replaced.host.media.disk("sdc")], "old")
    while (cut := replaced.cut_at(moment)) is not None:
        cut.start_all()
        cut.import_zpools()
        replaced.complete(cut)
        replaced.check(cut)
        moment += 3
    assert moment > 10


@pytest.mark.parametrize("make", LAYOUTS)
def test_the_layout_without_replace_destroys_nothing_in_the_middle(make: Make) -> None:
    """Whoever forgets the option, with all disks in wipe, loses nothing that has begun to move."""
    replaced, moment = Replaced(make), 0
    while (cut := replaced.cut_at(moment)) is not None:
        # Before the new disk has its table, the layout without the option is another one.
        plan = plan_steps(replaced.layout, cut.present(), ids(["sdc"]))
        for step in plan.steps if is_begun(cut) else ():
            carry_out(cut, step)
        replaced.complete(cut)
        check_moved_data(cut, replaced.layout)
        moment += 2
    assert moment > 10


@pytest.mark.parametrize("make", LAYOUTS)
def test_check_mode_tells_all_steps(make: Make) -> None:
    """What follows the moves is told before, and is what the run does then."""
    replaced = Replaced(make)
    first = replaced.plan(replaced.host)
    drawn = render(after(picture_of(replaced.host.present(), sorted(SIZES)), (*first.steps, *first.later)))
    told = [step.says for step in (*first.steps, *first.later)]
    done = []
    while (plan := replaced.plan(replaced.host)).steps:
        for step in plan.steps:
            carry_out(replaced.host, step)
            done.append(step.says)
    assert sorted(told) == sorted(done)
    assert drawn == render(picture_of(replaced.host.present(), sorted(SIZES)))


@pytest.mark.parametrize("make", LAYOUTS)
def test_the_old_disk_is_emptied_where_wipe_names_it(make: Make) -> None:
    replaced = Replaced(make, ["sda"])
    confirmed = replaced.plan(replaced.host).losses
    replaced.complete(replaced.host)
    replaced.check(replaced.host)
    assert [loss.disk for loss in confirmed] == ids(["sda"])
    assert replaced.host.media.table("sda") is None
    assert not replaced.host.media.signatures(replaced.host.media.disk("sda"))
    # It is taken out, and the option stays.
    assert replaced.plan(replaced.host).steps == ()
