# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of snapshots that are not thin: LVM removes them with their origin, and resizes no origin."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import ExtendLogicalVolume, RemoveLogicalVolume
from ansible_collections.bareon.allocator.plugins.module_utils._storage.lvm import CLEARED, UNFINISHED
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost, Volume, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import installed, maker_on, plan
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers.basics import Refused
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers.lvm import (
    commit_metadata,
    free_extents,
    group_named,
    volume_named,
    with_volume,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import SchemaMaker
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out

DISK = "sda"


def set_volume(host: SimulatedHost, volume: Volume) -> None:
    for _moment in commit_metadata(host, with_volume(group_named(host, "vg0"), volume)):
        pass


def snapshotted() -> tuple[SimulatedHost, SchemaMaker]:
    """A host with the volume `data` of 40 MiB, of which somebody has made the snapshot `before` with room for 8 MiB."""
    maker = maker_on(DISK)
    maker.fill(maker.partition(DISK, 400, "os"), 400, "pv", "os", "ext4")
    maker.volume("vg0", "data", 10, False, "ext4")
    host = installed(maker)
    set_volume(host, Volume("before", new_uuid(), (), free_extents(group_named(host, "vg0"), 2), origin="data"))
    return host, maker


def unfinished(host: SimulatedHost) -> None:
    set_volume(host, replace(volume_named(host, "vg0", "data"), tags=(UNFINISHED, CLEARED)))


def lost(found) -> set[str]:
    return {content.device.rpartition("-")[2] for loss in found.losses for content in loss.contents}


def removed(found) -> list[str]:
    return [step.name for step in found.steps if isinstance(step, RemoveLogicalVolume)]


def test_an_origin_with_its_size_stays_with_its_snapshots():
    host, maker = snapshotted()
    found = plan(host, maker.schema)
    assert (found.refusals, found.steps) == ((), ())


@pytest.mark.parametrize("size", [80, 20])
@pytest.mark.parametrize("wipe", [(), (DISK,)])
def test_an_origin_is_neither_resized_nor_made_again_for_its_size(size, wipe):
    host, maker = snapshotted()
    maker.schema["lvs"][0]["size"] = size
    found = plan(host, maker.schema, wipe)
    assert any("vg0/before" in refusal for refusal in found.refusals)
    assert found.steps == ()


def test_an_unfinished_origin_of_snapshots_is_refused_without_wipe():
    host, maker = snapshotted()
    unfinished(host)
    found = plan(host, maker.schema)
    assert any("vg0/before" in refusal for refusal in found.refusals)
    assert found.steps == ()


def test_snapshots_are_lost_with_an_origin_that_is_made_again():
    host, maker = snapshotted()
    unfinished(host)
    found = plan(host, maker.schema, (DISK,))
    assert not found.refusals
    assert removed(found) == ["data"]
    assert lost(found) >= {"data", "before"}


def test_snapshots_of_what_is_not_listed_are_removed_once_and_give_their_room_back():
    host, maker = snapshotted()
    maker.schema["lvs"][0].update(name="other", size=99 * 4)
    maker.schema["fss"][-1]["device"] = "/dev/mapper/vg0-other"
    found = plan(host, maker.schema, (DISK,), keep_unlisted=False)
    assert not found.refusals
    assert removed(found) == ["data"]
    assert lost(found) >= {"data", "before"}
    for step in found.steps:
        carry_out(host, step)
    assert {volume.name for volume in group_named(host, "vg0").volumes} == {"other"}


def test_a_snapshot_is_not_taken_for_a_volume_of_the_layout():
    host, maker = snapshotted()
    maker.volume("vg0", "before", 2, False, "ext4")
    found = plan(host, maker.schema)
    assert any("vg0/before" in refusal for refusal in found.refusals)


def test_an_origin_is_not_grown_by_the_tools():
    host, _maker = snapshotted()
    with pytest.raises(Refused):
        carry_out(host, ExtendLogicalVolume("vg0", "data", 80 * 1024**2, 40 * 1024**2))
