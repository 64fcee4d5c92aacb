# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The diff on simulated hosts: what it says will be is what is there when the steps are done."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.module_utils._layout.disks import find_disks
from ansible_collections.bareon.allocator.plugins.module_utils._layout.identified import identities
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.preview import Picture, after, picture_of, render
from ansible_collections.bareon.allocator.plugins.module_utils._schema.model import Layout
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID, SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import DISK_SIZES, put_old_contents, schemas
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st


def picture(host: SimulatedHost, layout: Layout) -> Picture:
    present = host.present()
    found, _refusals = find_disks(layout, present, ())
    return picture_of(present, [disk.device.name for disk in found])


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_what_the_diff_says_will_be_there_is_there_afterwards(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    host = SimulatedHost.with_disks(DISK_SIZES)
    put_old_contents(data.draw, host, sorted(DISK_SIZES))
    host.start_all()
    layout = parse_static_schema(schema)
    wipe = [f"{BY_ID}{disk}" for disk in DISK_SIZES]
    wipe = [name for name in wipe if any(table["name"] == name for table in schema["parteds"])]
    plan = plan_steps(layout, host.present(), wipe)
    while plan.steps:
        before, present = picture(host, layout), host.present()
        foreseen = identities(layout, present, find_disks(layout, present, wipe)[0])
        for step in plan.steps:
            carry_out(host, step)
        assert render(after(before, plan.steps)) == render(picture(host, layout))
        if not plan.again:
            now = host.present()
            found = identities(layout, now, find_disks(layout, now, wipe)[0])
            assert _uuids(found) == _uuids(foreseen)
            assert all(thing["node"] for things in found.values() for thing in things)
        plan = plan_steps(layout, host.present(), wipe)


def _uuids(things: dict[str, list[dict[str, object]]]) -> list[tuple[str, object, object]]:
    return [(kind, thing["device"], thing["uuid"]) for kind, found in things.items() for thing in found]
