# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Striped volumes on simulated hosts: made before what may lie anywhere, cut off at any moment, grown, and never made anew."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout.adopt import adopt
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.tests.support.host.simulated.checks import check_data, check_layout, write_data
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.runs import complete, ids, run_until
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import SchemaMaker

MIB = 1024**2
DISKS = {"sda": 900 * MIB, "sdb": 900 * MIB, "sdc": 900 * MIB}
PLACES = {"sda": 201, "sdb": 401, "sdc": 401}
"""MiB of each physical volume: 50, 100 and 100 extents."""

Plain = dict[str, t.Any]


def schema(wide: int = 640, root: int = 300, encrypted: bool = False, **keys: t.Any) -> Plain:
    """A group on three disks with a linear volume before one in two stripes."""
    maker = SchemaMaker()
    for disk, size in DISKS.items():
        maker.disk(disk, size)
        maker.fill(maker.partition(disk, PLACES[disk] + (16 if encrypted else 0), disk), 0, "luks-pv" if encrypted else "pv", disk, "ext4")
    for group in maker.schema["vgs"][1:]:
        maker.schema["vgs"][0]["pvnames"] += group["pvnames"]
    del maker.schema["vgs"][1:]
    maker.room = {"vg0": 250}
    maker.volume("vg0", "root", root // 4, False, "ext4")
    maker.volume("vg0", "wide", wide // 4, False, "ext4")
    devices = maker.schema["vgs"][0]["pvnames"][1:]
    maker.schema["lvs"][1] |= {"stripes": 2, "devices": devices, **keys}
    return maker.schema


def new_host() -> SimulatedHost:
    host = SimulatedHost.with_disks(DISKS)
    host.start_all()
    return host


def planned(host: SimulatedHost, wanted: Plain, wipe: t.Sequence[str] = ()) -> t.Any:
    return plan_steps(parse_static_schema(wanted), host.present(), list(wipe))


def extents(host: SimulatedHost, name: str) -> dict[str, int]:
    """How many extents a volume has on each disk."""
    (group,) = host.present().groups()
    return {host.present().disks_below(device)[0]: count for device, count in group.volume(name).extents.items()}


@pytest.mark.parametrize("encrypted", [False, True])
def test_stripes_lie_in_equal_parts_where_the_plan_has_them_and_come_first(encrypted: bool) -> None:
    host, wanted = new_host(), schema(encrypted=encrypted)
    steps = [step for step in planned(host, wanted).steps if type(step).__name__.startswith("Create") and "Volume" in type(step).__name__]
    made = [step.name for step in steps if hasattr(step, "name")]
    assert made == ["wide", "root"]
    complete(host, parse_static_schema(wanted), ids(DISKS))
    check_layout(host, parse_static_schema(wanted), False)
    assert extents(host, "wide") == {"sdb": 80, "sdc": 80}
    assert planned(host, wanted).steps == ()


def test_a_run_that_is_cut_off_anywhere_is_completed() -> None:
    wanted = schema()
    for moment in range(200):
        host = new_host()
        if not run_until(host, planned(host, wanted, ids(DISKS)), moment):
            break
        host.start_all()
        complete(host, parse_static_schema(wanted), ids(DISKS))
        check_layout(host, parse_static_schema(wanted), False)
        assert extents(host, "wide") == {"sdb": 80, "sdc": 80}
    assert moment > 20


def test_a_volume_grows_in_its_stripes_with_its_data() -> None:
    host = new_host()
    before, larger = parse_static_schema(schema(root=200)), schema(wide=720, root=200)
    complete(host, before, ids(DISKS))
    write_data(host, before)
    (step,) = [step for step in planned(host, larger).steps if "logical volume" in step.says]
    assert step.plain() | {"says": ""} == {
        **{"step": "ExtendStripedVolume", "group": "vg0", "name": "wide", "size": 720 * MIB, "before": 640 * MIB},
        **{"stripes": 2, "stripe_size": 0, "on": step.on, "says": ""},
    }
    complete(host, parse_static_schema(larger), [])
    check_data(host, parse_static_schema(larger))
    assert extents(host, "wide") == {"sdb": 90, "sdc": 90}


def test_where_the_planned_disks_are_full_others_with_room_take_the_stripes() -> None:
    host, without = new_host(), schema()
    without["lvs"].pop()
    without["fss"].pop()
    complete(host, parse_static_schema(without), ids(DISKS))
    # Root has 75 extents, those of the first disk among them.
    room = {disk: count - extents(host, "root").get(disk, 0) for disk, count in {"sda": 50, "sdb": 100, "sdc": 100}.items()}
    _least, middle, _most = sorted(room.values())
    wanted = schema(wide=8 * (middle + 1))
    wanted["lvs"][1]["devices"] = wanted["vgs"][0]["pvnames"][:2]
    (refusal,) = planned(host, wanted).refusals
    assert f"needs room for {middle + 1} extents" in refusal
    fitting = schema(wide=8 * middle)
    fitting["lvs"][1]["devices"] = fitting["vgs"][0]["pvnames"][:2]
    complete(host, parse_static_schema(fitting), [])
    assert list(extents(host, "wide").values()) == [middle, middle]


@pytest.mark.parametrize("wipe", [False, True])
@pytest.mark.parametrize(("stripes", "says"), [(3, "has 2 stripes, but 3 are wanted"), (1, "has 2 stripes, but 1 are wanted")])
def test_other_stripes_are_named_and_the_volume_stays_whatever_may_be_wiped(wipe: bool, stripes: int, says: str) -> None:
    host, wanted = new_host(), schema(wide=480)
    complete(host, parse_static_schema(wanted), ids(DISKS))
    other = copy.deepcopy(wanted)
    other["lvs"][1] |= {"stripes": stripes, "devices": []}
    plan = planned(host, other, ids(DISKS) if wipe else ())
    assert len(plan.refusals) == 1
    assert says in plan.refusals[0]
    assert not plan.steps
    del other["lvs"][1]["stripes"]
    assert planned(host, other).steps == ()


def test_what_is_there_is_adopted_with_its_stripes() -> None:
    host, wanted = new_host(), schema()
    complete(host, parse_static_schema(wanted), ids(DISKS))
    present = host.present()
    found = adopt(present, present.disks).schema
    assert {volume["name"]: volume.get("stripes") for volume in found["lvs"]} == {"wide": 2, "root": None}
    assert planned(host, found).steps == ()


@pytest.mark.parametrize(
    ("keys", "place", "says"),
    [
        ({"stripes": 4, "devices": []}, "lvs[1].stripes", "4 stripes need as many physical volumes"),
        ({"stripes": 3}, "lvs[1].devices", "must be 3 physical volumes"),
        ({"devices": ["/dev/a", "/dev/b"]}, "lvs[1].devices", "is not one of the pvnames"),
        ({"stripe_size": 3}, "lvs[1].stripe_size", "3"),
        ({"stripe_size": 96}, "lvs[1].stripe_size", "must be a power of two"),
        ({"stripes": 1, "stripe_size": 64, "devices": []}, "lvs[1].stripe_size", "needs stripes of 2"),
        ({"size": 644}, "lvs[1].size", "must be a multiple of 8 MiB"),
        ({"pool": "x"}, "lvs[1].stripes", "thin pool"),
    ],
)
def test_stripes_that_cannot_be_are_mistakes(keys: Plain, place: str, says: str) -> None:
    with pytest.raises(SchemaMistakes) as caught:
        parse_static_schema(schema(**keys))
    assert any(mistake.startswith(f"{place}: ") and says in mistake for mistake in caught.value.mistakes), caught.value.mistakes
