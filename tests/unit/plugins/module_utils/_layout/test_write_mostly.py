# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write-mostly members of mirrors: planned by disks, made, changed on a running array, read, adopted, compared, lost by installers."""

from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._facts.present import Present
from ansible_collections.bareon.allocator.plugins.module_utils._layout.adopt import adopt
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import ChangeWriteMostly, CreateArray
from ansible_collections.bareon.allocator.plugins.module_utils._storage.raid import is_write_mostly
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.compare import compare
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import fai
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.runs import complete, ids
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import SchemaMaker

MIB = 1024**2
DISKS = {"sda": 600 * MIB, "sdb": 600 * MIB}
Plain = dict[str, t.Any]
HDD = "yaql=$.disks.where($.type = hdd)"


def schema(slow: t.Sequence[int] | None = None, **keys: t.Any) -> Plain:
    """A mirror in the words of the static schema; `slow` are positions of its members."""
    maker = SchemaMaker()
    for disk, size in DISKS.items():
        maker.disk(disk, size)
    maker.fill(maker.mirror(("sda", "sdb"), 200, "data", "1.2"), 198, "fs", "data", "ext4")
    (array,) = maker.schema["mds"]
    array |= keys
    if slow is not None:
        array["write_mostly"] = [array["devices"][at] for at in slow]
    return maker.schema


def present_with(*slow: int) -> Present:
    """A host that has the mirror, with the members that the kernel calls write-mostly; simulated arrays have no such files."""
    host = SimulatedHost.with_disks(DISKS)
    host.start_all()
    complete(host, parse_static_schema(schema()), ids(DISKS))
    present = host.present()
    (array,) = (device for device in present.tree.devices.values() if device.kind == "raid1")
    nodes = [str(present.tree.devices[array.parents[at]].dev) for at in slow]
    return replace(present, tree=present.tree.with_devices([replace(array, slots=2, details={"write_mostly": nodes})]))


def planned(shape: t.Sequence[str] = ("ssd", "hdd"), **keys: t.Any) -> Plain:
    disks = [{"id": f"/dev/disk/by-id/wwn-0x5{at}", "type": kind, "size": 1000} for at, kind in enumerate(shape)]
    entry = {"id": "data", "type": "raid", "level": "raid1", "legs": len(shape), "size": 200, **keys}
    return Planner([entry]).plan({"ram": 1024, "firmware": "uefi", "disks": disks})


def test_the_kernel_says_which_members_are_slow() -> None:
    assert is_write_mostly("in_sync,write_mostly\n")
    assert is_write_mostly("write_mostly")
    for state in ("in_sync\n", "", None, "spare", "not_write_mostly"):
        assert not is_write_mostly(state)


def test_an_array_is_made_with_its_slow_members_behind_the_others() -> None:
    made = parse_static_schema(schema([0]))
    (step,) = [
        step for step in plan_steps(made, SimulatedHost.with_disks(DISKS).present(), ids(DISKS)).steps if isinstance(step, CreateArray)
    ]
    fast, slow = step.members[1], step.members[0]
    assert step.command()[-3:] == [fast, "--write-mostly", slow]
    assert slow in step.says
    plain = parse_static_schema(schema())
    (step,) = [
        step for step in plan_steps(plain, SimulatedHost.with_disks(DISKS).present(), ids(DISKS)).steps if isinstance(step, CreateArray)
    ]
    assert "--write-mostly" not in step.command()


@pytest.mark.parametrize(
    ("there", "wanted", "changes"),
    [
        ((), [1], [(1, True)]),
        ((1,), [], [(1, False)]),
        ((0,), [1], [(0, False), (1, True)]),
        ((1,), [1], []),
        ((1,), None, []),
        ((), None, []),
    ],
)
def test_members_of_an_array_that_is_there_are_changed_if_the_schema_says_so(
    there: tuple[int, ...], wanted: list[int] | None, changes: list[tuple[int, bool]]
) -> None:
    present = present_with(*there)
    (array,) = (device for device in present.tree.devices.values() if device.kind == "raid1")
    plan = plan_steps(parse_static_schema(schema(wanted)), present, [])
    assert plan.refusals == ()
    made = [(array.parents.index(step.member), step.slow) for step in plan.steps if isinstance(step, ChangeWriteMostly)]
    assert len(made) == len(plan.steps)
    assert made == changes


class Sysfs:
    """A stand-in for a machine that has one file of sysfs; a kernel that does not `obey` takes a word and does nothing."""

    def __init__(self, *, obey: bool) -> None:
        self.state, self.obey, self.paths = "in_sync", obey, set()

    def write(self, path: str, pieces: t.Sequence[tuple[int, bytes]]) -> None:
        ((at, word),) = pieces
        assert at == 0
        self.paths.add(path)
        if self.obey:
            self.state = {b"writemostly": "in_sync,write_mostly", b"-writemostly": "in_sync"}[word]

    def read(self, path: str) -> str:
        self.paths.add(path)
        return f"{self.state}\n"


def test_the_flag_is_set_by_the_kernel_and_read_back() -> None:
    machine = Sysfs(obey=True)
    for slow in (True, False):
        ChangeWriteMostly("/dev/md127", "md127", "/dev/sdb1", "sdb1", slow).run(machine)
        assert is_write_mostly(machine.state) is slow
    assert machine.paths == {"/sys/block/md127/md/dev-sdb1/state"}
    with pytest.raises(StepFailed):
        ChangeWriteMostly("/dev/md127", "md127", "/dev/sdb1", "sdb1", True).run(Sysfs(obey=False))


@pytest.mark.parametrize("slow", [(), (1,), (0,)])
def test_what_is_there_is_adopted_and_is_then_no_change(slow: tuple[int, ...]) -> None:
    present = present_with(*slow)
    (array,) = adopt(present, present.disks).schema["mds"]
    assert array.get("write_mostly", []) == [array["devices"][at] for at in slow]


@pytest.mark.parametrize(
    "keys",
    [
        {"slow": [0, 1]},
        {"slow": [0], "level": "raid10"},
        {"slow": [0], "write_mostly": ["/dev/sdz1"]},
    ],
)
def test_what_md_does_not_do_is_a_mistake_of_the_static_schema(keys: Plain) -> None:
    wanted = schema(keys["slow"])
    wanted["mds"][0] |= {key: value for key, value in keys.items() if key != "slow"}
    with pytest.raises(SchemaMistakes) as caught:
        parse_static_schema(wanted)
    assert [mistake.partition(":")[0].split("[0]")[1] for mistake in caught.value.mistakes] in ([".write_mostly"], [".write_mostly[0]"])


@pytest.mark.parametrize("keys", [{"level": "raid0"}, {"level": "raid5", "legs": 3}, {"spares": 1, "legs": 2}])
def test_what_md_does_not_do_is_a_mistake_of_the_dynamic_schema(keys: Plain) -> None:
    with pytest.raises(InputError) as refused:
        planned(("ssd", "hdd", "hdd"), write_mostly=HDD, **keys)
    assert [mistake.place for mistake in refused.value.mistakes] == ["schema[0].write_mostly"]


def test_a_plan_names_the_legs_on_the_disks() -> None:
    plan = planned(write_mostly=HDD)
    (array,) = plan["schema"]["mds"]
    (slow,) = array["write_mostly"]
    assert slow == plan["schema"]["parteds"][1]["partitions"][-1]["name"]
    assert planned(write_mostly=["/dev/disk/by-id/wwn-0x51"])["schema"] == plan["schema"]
    assert "write_mostly" not in planned()["schema"]["mds"][0]
    assert planned(("hdd", "hdd"), write_mostly=HDD)["schema"]["mds"][0]["write_mostly"] == []
    parse_static_schema(plan["schema"])


def test_the_hosts_of_a_fleet_have_legs_of_their_own() -> None:
    planner = Planner([{"id": "data", "type": "raid", "level": "raid1", "size": 200, "write_mostly": HDD}])
    for order in (("ssd", "hdd"), ("hdd", "ssd"), ("ssd", "hdd")):
        disks = [{"id": f"/dev/disk/by-id/wwn-0x5{at}{kind}", "type": kind, "size": 1000} for at, kind in enumerate(order)]
        (array,) = planner.plan({"ram": 1024, "firmware": "uefi", "disks": disks})["schema"]["mds"]
        assert [name.partition("-part")[0][-3:] for name in array["write_mostly"]] == ["hdd"]


def test_drift_names_an_array_with_other_slow_members() -> None:
    plan = planned(write_mostly=HDD)
    for slow, differs in (([], True), (["/dev/sdb1"], False), (["/dev/sda1"], True)):
        disks = []
        for table, node in zip(plan["schema"]["parteds"], ("/dev/sda1", "/dev/sdb1"), strict=True):
            (part,) = table["partitions"]
            entry = {"number": 1, "dev": node, "uuid": part["uuid"], "start": part["begin"], "size": part["end"] - part["begin"]}
            holder = {"type": "raid1", "name": "data", "members": ["a", "b"], "write_mostly": slow}
            disks.append({"id": table["disk_id"], "size": 1000, "partitions": [entry], "holders": [holder]})
        assert [finding.place for finding in compare(plan, {"disks": disks})] == (["/dev/md/data"] if differs else [])
    open_plan = planned()
    assert "write_mostly" not in str(open_plan)


def test_installers_lose_it_by_its_space() -> None:
    plan = planned(write_mostly=HDD, fs_type="ext4", mount="/srv")
    with pytest.raises(InputError, match="data: FAI makes arrays without write-mostly members"):
        write_plan(fai.TARGET, plan, None, lossy=False, passphrase=None)
    assert "write-mostly" not in write_plan(fai.TARGET, plan, None, lossy=True, passphrase=None).value
