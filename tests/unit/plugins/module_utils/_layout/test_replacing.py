# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps a disk from being emptied onto another one is refused by name, all at once, before there is a step."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout.emptied import plan_replacing
from ansible_collections.bareon.allocator.plugins.module_utils._layout.protected import Protection
from ansible_collections.bareon.allocator.plugins.module_utils._layout.replacing import why_no_pairs
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import installed, maker_on
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import MIB
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import old_group
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out

OLD, NEW = f"{BY_ID}sda", f"{BY_ID}sdc"


def server(disk, os=200, boot=100, root=30):
    maker = maker_on(disk)
    maker.fill(maker.partition(disk, os, "os"), os, "pv", "os", "ext4")
    maker.fill(maker.partition(disk, boot, "boot"), boot, "fs", "boot", "ext4")
    maker.volume("vg0", "root", root, False, "ext4")
    return maker


def mirror(one, two, level="raid1"):
    maker = maker_on(one, two)
    maker.fill(maker.mirror((one, two), 300, "os", "1.2"), 290, "fs", "os", "ext4")
    maker.schema["mds"][0]["level"] = level
    return maker


def plan(host, maker, asked=None, **options):
    return plan_replacing(parse_static_schema(maker.schema), host.present(), asked or {OLD: NEW}, **options)


def refusals(host, maker, asked=None, **options):
    found = plan(host, maker, asked, **options)
    assert found.steps == ()
    return "\n".join(found.refusals)


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        ({OLD: OLD}, [OLD]),
        ({OLD: ""}, [OLD]),
        ({OLD: 5}, [OLD]),
        ({OLD: NEW, f"{BY_ID}sdb": NEW}, [NEW]),
        ({OLD: NEW}, []),
    ],
)
def test_what_is_wrong_with_the_option_itself(asked, places):
    found = list(why_no_pairs(asked))
    assert len(found) == len(places)
    assert all(place in line for place, line in zip(places, found))


def test_disks_that_are_none_of_a_pair_are_named_all_at_once():
    host = installed(server("sda"))
    said = refusals(host, server("sdc"), {OLD: f"{BY_ID}sdx", f"{BY_ID}sdy": NEW})
    assert f"{BY_ID}sdx is not a disk of the schema" in said
    assert f"there is no disk {BY_ID}sdy here" in said
    assert f"{OLD} (/dev/sda) is a disk of the schema" in refusals(host, server("sda"), {OLD: OLD})


def test_a_disk_that_may_be_another_one_tomorrow_is_not_named_so():
    assert "name /dev/disk/by-id/wwn-sda" in refusals(installed(server("sda")), server("sdc"), {"/dev/sda": NEW})


@pytest.mark.parametrize("disk", ["sda", "sdc"])
def test_a_protected_disk_is_neither_emptied_nor_written_to(disk):
    said = refusals(installed(server("sda")), server("sdc"), protections=[Protection(f"{BY_ID}{disk}", "protect")], wipe=[OLD, NEW])
    assert f"{BY_ID}{disk}" in said
    assert "protected" in said


def test_a_new_disk_with_something_on_it_needs_wipe():
    host = installed(server("sda"))
    old_group(host, [host.media.disk("sdc")], "others")
    assert f"name {NEW} in wipe" in refusals(host, server("sdc"))
    found = plan(host, server("sdc"), wipe=[NEW])
    assert not found.refusals
    assert [loss.disk for loss in found.losses] == [NEW]


def test_what_does_not_fit_is_named_all_at_once():
    said = refusals(installed(server("sda")), server("sdc", os=100, boot=80, root=20))
    assert "vg0 has 30 extents of 4 MiB to be moved" in said
    assert "/dev/sdc2" in said


def test_what_cannot_be_done_afterwards_is_refused_before():
    assert "vg0/root would have to shrink" in refusals(installed(server("sda")), server("sdc", root=20))
    assert "vg0/root would have to shrink" in refusals(installed(server("sda")), server("sdc", root=20), wipe=[NEW])


def test_what_grows_afterwards_is_told_before():
    found = plan(installed(server("sda")), server("sdc", os=260, boot=140, root=40))
    says = [step.says for step in found.later]
    assert any("grow the ext4 on /dev/sdc2" in line for line in says)
    assert any("vg0/root" in line for line in says)


def test_a_mounted_file_system_alone_on_a_partition_is_refused_with_the_way():
    host = installed(server("sda"))
    host.mounts["sda2"] = "/boot"
    said = refusals(host, server("sdc"))
    assert "/dev/sda2" in said
    assert "umount /boot" in said


def test_contents_without_a_place_are_refused_unless_the_old_disk_is_given_up():
    host = installed(server("sda"))
    maker = maker_on("sdc")
    maker.fill(maker.partition("sdc", 200, "os"), 200, "pv", "os", "ext4")
    maker.volume("vg0", "root", 30, False, "ext4")
    assert "/dev/sda2 of /dev/disk/by-id/wwn-sda (/dev/sda) has ext4, for which the schema has no place" in refusals(host, maker)
    found = plan(host, maker, wipe=[OLD])
    assert not found.refusals
    assert [loss.disk for loss in found.losses] == [OLD]
    assert "take the partitions and all signatures off" in found.later[-1].says


def test_arrays_without_redundancy_and_degraded_ones_are_refused():
    host = installed(mirror("sda", "sdb"))
    found = host.by_node("/dev/md/os")
    host.left_out[found.uuid] = frozenset({"sdb1"})
    assert "lacks another member" in refusals(host, mirror("sdc", "sdb"))


def test_a_second_copy_of_something_else_is_never_overwritten():
    """The partition that takes an ext4 has another one by now."""
    host = installed(server("sda"))
    first = plan(host, server("sdc"))
    carry_out(host, first.steps[0])
    host.media.sign(host.by_node("/dev/sdc2"), "ext4", (new_uuid(), 100 * MIB))
    assert "/dev/sdc2 was to take something, but has ext4" in refusals(host, server("sdc"))


def test_an_old_disk_that_is_gone_matters_only_as_long_as_the_new_one_is_not_complete():
    host = installed(server("sdc"))
    gone = {f"{BY_ID}sdy": NEW}
    found = plan(host, server("sdc"), gone)
    assert (found.steps, found.refusals) == ((), ())
    assert any("sdy" in note for note in found.notes)
    assert f"there is no disk {BY_ID}sdy here" in refusals(installed(server("sda")), server("sdc"), gone)


def test_what_an_old_disk_still_has_is_a_warning():
    host = installed(server("sda"))
    maker = server("sdc")
    for _round in range(4):
        found = plan(host, maker)
        for step in found.steps:
            carry_out(host, step)
    assert found.steps == ()
    assert any("carries nothing of this layout any more" in note for note in found.notes)


def moved(maker, *wipe):
    """Return a host whose disk was emptied onto another one."""
    host = installed(server("sda"))
    for _round in range(8):
        for step in plan(host, maker, wipe=wipe).steps:
            carry_out(host, step)
    return host


@pytest.mark.parametrize("wipe", [[], [NEW], [OLD, NEW]])
def test_what_was_moved_stays_whatever_somebody_puts_on_the_old_disk_later(wipe):
    host = moved(server("sdc"))
    host.media.sign(host.by_node("/dev/sda2"), "ext4", (new_uuid(), 100 * MIB))
    said = refusals(host, server("sdc"), wipe=wipe)
    assert "/dev/sda2" in said
    assert NEW in said


@pytest.mark.parametrize("wipe", [[], [NEW], [OLD, NEW]])
def test_a_copy_of_the_old_disk_takes_nothing(wipe):
    host = installed(server("sda"))
    host.media.copy(host.media.disk("sda"), host.media.disk("sdc"))
    said = refusals(host, server("sdc"), wipe=wipe)
    assert OLD in said
    assert NEW in said
