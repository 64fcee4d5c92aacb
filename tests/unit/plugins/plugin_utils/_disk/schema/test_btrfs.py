# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Btrfs on several disks, from the wish to the host and the installers."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage.btrfs import data_legs, make_options, most_legs
from ansible_collections.bareon.allocator.plugins.module_utils._storage.raid import RaidLevel
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.compare import compare
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import curtin, kickstart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import planned_layout, summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.host_files import Settings, host_files
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import installed, maker_on, plan, refusal

Plain = dict[str, t.Any]

DATA: Plain = {"id": "data", "type": "btrfs", "mount": "/srv"}


def planned(*spaces: Plain, disks: int = 2) -> Plain:
    return make_plan(list(spaces), hardware([("ssd", 20)] * disks))


def mistakes(*spaces: Plain, disks: int = 2) -> str:
    with pytest.raises(InputError) as caught:
        planned(*spaces, disks=disks)
    return str(caught.value)


@pytest.mark.parametrize(
    ("keys", "disks", "parts", "room"),
    [
        ({}, 3, 2, 1),
        ({"legs": "all"}, 5, 4, 2),
        ({"level": "raid0", "legs": "all"}, 3, 3, 3),
        ({"level": "raid10"}, 5, 4, 2),
        ({"level": "raid1", "legs": 4}, 4, 4, 2),
    ],
)
def test_parts_are_equal_and_what_is_mirrored_counts_once(keys: Plain, disks: int, parts: int, room: int) -> None:
    made = planned({**DATA, **keys, "size": 3000 * room}, disks=disks)
    sizes = [space["size"] for disk in made["disks"] for space in disk["spaces"]]
    assert sizes == [3000] * parts
    (filesystem,) = made["schema"]["fss"]
    assert (len(filesystem["devices"]), filesystem["devices"][0], filesystem["level"]) == (
        parts,
        filesystem["device"],
        keys.get("level", "raid1"),
    )
    (desired,) = parse_static_schema(made["schema"]).filesystems
    assert (len(desired.more), desired.level, desired.mount) == (parts - 1, filesystem["level"], "/srv")
    assert f"btrfs {filesystem['level']}, {parts} disks" in summary(made)
    assert planned_layout(made).count("/srv") == parts


def test_levels() -> None:
    assert [most_legs(RaidLevel.RAID1, disks) for disks in (2, 3, 5)] == [2, 2, 4]
    assert [data_legs(level, 4) for level in (RaidLevel.RAID0, RaidLevel.RAID1, RaidLevel.RAID10)] == [4, 2, 2]
    assert make_options("raid0") == ("-d", "raid0", "-m", "raid1")


def test_all_mistakes_are_told_at_once() -> None:
    said = mistakes(
        {**DATA, "level": "raid5", "encrypt": True, "spares": 1},
        {**DATA, "id": "b", "mount": "/b", "legs": 3, "fs_type": "xfs"},
        {**DATA, "id": "c", "mount": "/c", "level": "raid10", "legs": "all"},
        {**DATA, "id": "d", "mount": "/d", "size": 100},
        disks=3,
    )
    for line in (
        "schema[0].level: is raid5, which Btrfs does not have, or which loses data in a power cut; it must be one of raid0, raid1, raid10",
        "schema[0].encrypt: makes no sense for the type btrfs",
        "schema[0].spares: makes no sense for the type btrfs",
        "schema[1].fs_type: is xfs; a space of type: btrfs has no other file system",
        "schema[1].legs: 3 is odd; raid1 of Btrfs is planned on disks by pairs",
        "schema[2].legs: all is 3 is too few; raid10 of Btrfs needs 4 disks or more",
        "schema[3].size: 100 MiB are too little for raid1 of 2 legs with btrfs, which takes 109 MiB",
    ):
        assert line in said, line


def test_a_conflict_is_told() -> None:
    with pytest.raises(NoSolution, match="data needs 2 disks"):
        planned(DATA, disks=1)


def test_the_host_refuses_what_it_cannot_make() -> None:
    schema = planned(DATA)["schema"]
    (filesystem,) = schema["fss"]
    first, second = filesystem["devices"]
    for changes, said in (
        ({"level": "raid5"}, "fss[0].level: is 'raid5'; must be one of raid0, raid1, raid10 (did you mean raid1?)"),
        ({"devices": [first]}, "fss[0].devices: raid1 needs at least 2 devices, not 1"),
        ({"devices": [second, first]}, f"fss[0].devices: has to begin with device, {first}"),
        ({"fs_type": "xfs"}, "fss[0].devices: only btrfs can lie on several devices, not xfs"),
        ({"devices": [first, "/dev/x"]}, "fss[0].devices: /dev/x is not a partition of the schema"),
        ({"devices": [first, first]}, f"fss[0].device: {first} is already used by fss[0].device"),
    ):
        with pytest.raises(SchemaMistakes) as caught:
            parse_static_schema({**schema, "fss": [{**filesystem, **changes}]})
        assert said in caught.value.mistakes


def test_fstab_has_one_line() -> None:
    made = planned(DATA)
    device = made["schema"]["fss"][0]["device"]
    layout = {"schema": made["schema"], "filesystems": [{"device": device, "uuid": "u", "mountpoints": []}]}
    assert [line["src"] for line in host_files(layout, Settings())["mounts"]] == ["UUID=u"]


def test_drift_looks_at_every_device() -> None:
    made = planned(DATA)
    disks = []
    for disk in made["schema"]["parteds"]:
        (part,) = disk["partitions"]
        there = {"number": 1, "uuid": part["uuid"], "start": part["begin"], "size": part["end"] - part["begin"], "fs_type": "btrfs"}
        disks.append({"id": disk["disk_id"], "size": disk["disk_size"], "partitions": [there]})
    assert compare(made, {"disks": disks}) == []
    disks[1]["partitions"][0]["fs_type"] = "xfs"
    assert [found.says for found in compare(made, {"disks": disks})] == ["partition 1 (data) holds xfs, in the plan btrfs"]


def test_installers_make_it_or_say_that_they_cannot() -> None:
    made = planned(DATA)
    text = write_plan(kickstart.TARGET, made, None, lossy=False, version="Fedora", passphrase=None).value
    assert "btrfs /srv --data=raid1 --metadata=raid1 btrfs.1 btrfs.2\n" in text
    with pytest.raises(InputError, match="data: curtin makes no Btrfs on several disks here; plan a raid with fs_type: btrfs instead"):
        write_plan(curtin.TARGET, made, None, lossy=True, version="2", key_file=None)


def test_devices_are_not_added_to_one_that_is_there() -> None:
    maker = maker_on("sda", "sdb")
    maker.fill(maker.partition("sda", 300, "data"), 300, "fs", "data", "btrfs")
    host = installed(maker)
    schema = maker_on("sda", "sdb")
    schema.spread(("sda", "sdb"), 300, "data")
    for one, other in zip(schema.schema["parteds"], maker.schema["parteds"], strict=True):
        for new, old in zip(one["partitions"], other["partitions"], strict=False):
            new.update(old)
    assert "devices of an existing one are not added, replaced or removed here" in refusal(host, schema.schema)
    # What a failed disk has left is not made anew, though its disk may be wiped.
    assert "no new one is made over its remains, even with wipe" in refusal(host, schema.schema, ["sda", "sdb"])
    host.media.sign(host.by_node("/dev/sda1"), "xfs", ("other", 1))
    host.media.zero(host.by_node("/dev/sda1"), 65600, 1)
    steps = [step.says for step in plan(host, schema.schema, ["sda"]).steps]
    assert any(says.startswith("make btrfs on /dev/sda1, raid1 with /dev/sdb1") for says in steps)


def test_one_of_which_all_is_there_is_made_anew_where_its_disks_may_be_wiped() -> None:
    earlier = maker_on("sda", "sdb", "sdc")
    earlier.spread(("sda", "sdb"), 310, "data")
    host = installed(earlier)
    maker = maker_on("sda", "sdb", "sdc")
    maker.spread(("sda", "sdc"), 300, "data")
    assert "would have to shrink" in refusal(host, maker.schema)
    steps = [step.says for step in plan(host, maker.schema, ["sda", "sdb", "sdc"]).steps]
    assert any(says.startswith("make btrfs on /dev/sda1, raid1 with /dev/sdc1") for says in steps)
    # The copy on the other disk goes, too: a half of it would be in the way of the new one's identity.
    assert any("wwn-sdb: remove partition 1" in says for says in steps)
