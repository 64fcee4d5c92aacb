# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ZFS pool, from the wish to the host and the installers."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage.zfs import PARTITION_TYPE, Shape, Vdev, room
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.compare import compare
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.zpools import compare_zpools
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import curtin
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import planned_layout, summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.host_files import needed_tools
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan

Plain = dict[str, t.Any]

TANK: Plain = {"id": "tank", "type": "zpool", "mount": "/tank"}


def planned(*spaces: Plain, disks: int = 2) -> Plain:
    return make_plan(list(spaces), hardware([("ssd", 20)] * disks))


def mistakes(*spaces: Plain, disks: int = 2) -> str:
    with pytest.raises(InputError) as caught:
        planned(*spaces, disks=disks)
    return str(caught.value)


@pytest.mark.parametrize(
    ("keys", "disks", "shape", "words"),
    [
        ({}, 3, Shape(Vdev.MIRROR, 1, 2), "zfs mirror, 2 disks"),
        ({"legs": "all"}, 5, Shape(Vdev.MIRROR, 2, 2), "zfs 2 x mirror, 4 disks"),
        ({"legs": 6, "vdevs": 2}, 6, Shape(Vdev.MIRROR, 2, 3), "zfs 2 x mirror, 6 disks"),
        ({"vdev": "raidz1"}, 3, Shape(Vdev.RAIDZ1, 1, 3), "zfs raidz1, 3 disks"),
        ({"vdev": "raidz2", "legs": "all", "vdevs": 2}, 9, Shape(Vdev.RAIDZ2, 2, 4), "zfs 2 x raidz2, 8 disks"),
        ({"vdev": "stripe"}, 2, Shape(Vdev.STRIPE, 1, 1), "zfs stripe"),
        ({"vdev": "stripe", "legs": "all", "alike": True}, 2, Shape(Vdev.STRIPE, 2, 1), "zfs stripe, 2 disks"),
    ],
)
def test_there_is_the_room_that_is_asked_for(keys: Plain, disks: int, shape: Shape, words: str) -> None:
    made = planned({**TANK, **keys, "size": 9000}, disks=disks)
    sizes = {space["size"] for disk in made["disks"] for space in disk["spaces"]}
    assert len(sizes) == 1
    (leg,) = sizes
    assert room(shape, leg - 1) < 9000 <= room(shape, leg)
    (pool,) = made["schema"]["zpools"]
    assert [(vdev["type"], len(vdev["devices"])) for vdev in pool["vdevs"]] == [(shape.kind, shape.width)] * shape.vdevs
    assert words in " ".join(summary(made).split())
    assert {part["guid"] for disk in made["schema"]["parteds"] for part in disk["partitions"]} == {PARTITION_TYPE}
    (desired,) = parse_static_schema(made["schema"]).zpools
    assert len(desired.devices) == shape.legs
    assert dict(desired.root.properties)["mountpoint"] == "/tank"


def test_datasets_go_all_the_way() -> None:
    home = {"name": "home", "mount": "/home", "quota": "3 GiB", "reservation": 100, "properties": {"recordsize": "16K", "atime": False}}
    made = planned({**TANK, "properties": {"compression": "lz4"}, "datasets": [home, {"name": "home/a"}]})
    (pool,) = parse_static_schema(made["schema"]).zpools
    assert dict(pool.root.properties) == {"mountpoint": "/tank", "compression": "lz4"}
    assert dict(pool.datasets[0].properties) == {
        "mountpoint": "/home",
        "quota": str(3 * 1024**3),
        "reservation": str(100 * 1024**2),
        "recordsize": "16K",
        "atime": "off",
    }
    assert (pool.datasets[1].name, pool.datasets[1].properties, pool.datasets[1].mount) == ("home/a", (), "none")
    assert "dataset /home ≤ 3 GiB" in " ".join(summary(made).split())
    assert "zpool tank mirror of 2\n  home: dataset /home\n" in planned_layout(made)
    assert needed_tools(made["schema"]) == ["sfdisk", "zpool"]
    assert made["schema"]["fss"] == []


def test_all_mistakes_are_told_at_once() -> None:
    said = mistakes(
        {**TANK, "id": "mirror1", "mount": "/boot", "encrypt": True, "fs_type": "xfs", "level": "raid1", "keep_data": True, "boot": True},
        {**TANK, "id": "b", "mount": "/b", "legs": 3, "vdevs": 2},
        {**TANK, "id": "c", "mount": "/c", "vdev": "raidz2", "legs": "all"},
        {**TANK, "id": "d", "mount": "swap", "properties": {"mountpoint": "/d"}},
        {**TANK, "id": "e", "mount": "/e", "datasets": [{"name": "x", "mount": "/"}, {"name": "x", "mount": "/b", "quota": 0}]},
        {**TANK, "id": "f", "mount": "/f", "datasets": [{"name": "/x", "properties": {"encryption": "on"}}]},
        {**TANK, "id": "g", "mount": "/g", "vdev": "raid5"},
        {**TANK, "id": "h", "mount": "/h", "size": 10},
        {"id": "p", "type": "partition", "datasets": [{"name": "x"}]},
        disks=3,
    )
    for line in (
        "schema[0].id: 'mirror1' cannot name a ZFS pool; it must be a letter",
        "schema[0].mount: is '/boot', which is not put on ZFS here; put it on a partition, an lv or a raid",
        "schema[0].encrypt: makes no sense for the type zpool",
        "schema[0].fs_type: makes no sense for the type zpool",
        "schema[0].level: makes no sense for the type zpool; it is for btrfs, raid",
        "schema[0].keep_data: makes no sense for the type zpool",
        "schema[0].boot: makes no sense for the type zpool",
        "schema[1].legs: 3 is too few; 2 vdevs of mirror need 4 disks or more",
        "schema[2].legs: all is 3 here; raidz2 needs 4 disks or more",
        "schema[3].mount: is 'swap'; a zpool holds files",
        "schema[3].properties: mountpoint has a key of its own; write it as mount, outside properties",
        "schema[4].datasets[1].name: 'x' is already the name of schema[4].datasets[0]",
        "schema[4].datasets[0].mount: is '/', which is not put on ZFS here",
        "schema[4].datasets[1].mount: '/b' is already the mount point of 'b'",
        "schema[4].datasets[1].quota: is 0; leave it out if there is to be none",
        "schema[5].datasets[0].name: is '/x'; must be a path of letters",
        "schema[5].datasets[0].properties: encryption is not set here",
        "schema[6].vdev: ",
        "schema[7].size: 10 MiB are too little for a mirror of ZFS on 2 disks, of 64 MiB each at least, which has 24",
        "schema[8].datasets: makes no sense for the type partition; it is for zpool",
    ):
        assert line in said, f"{line}\n{said}"
    assert "5 cannot be divided into 2 vdevs of one size; 4 can, and so can 6" in mistakes({**TANK, "legs": 5}, disks=6)


FAST: Plain = {"type": "partition", "size": 100}


def test_logs_caches_and_spares_go_all_the_way() -> None:
    log = {**FAST, "id": "log", "log_of": "tank", "mirror": "required"}
    made = planned({**TANK, "size": 1000, "spares": 1}, log, {**FAST, "id": "fast", "cache_of": "tank", "count": 2}, disks=3)
    (pool,) = parse_static_schema(made["schema"]).zpools
    assert [(len(vdev.devices), vdev.type) for vdev in (*pool.vdevs, *pool.logs)] == [(2, "mirror")] * 2
    assert (len(pool.caches), len(pool.spares)) == (2, 1)
    assert {part["guid"] for disk in made["schema"]["parteds"] for part in disk["partitions"]} == {PARTITION_TYPE}
    for words in ("zfs mirror, 2 disks log of tank", "partition cache of tank", "spare of a zfs mirror"):
        assert words in " ".join(summary(made).replace("│", "").split())
    assert "zpool tank mirror of 2 log mirror of 2 cache 2 spare 1\n" in planned_layout(made)
    sizes = {space["space_id"]: space["size"] for disk in made["disks"] for space in disk["spaces"]}
    assert (sizes["log"], sizes["fast1"], sizes["fast2"]) == (100, 100, 100)


def test_a_log_lies_alone_where_there_are_no_twins() -> None:
    log = {**FAST, "id": "log", "log_of": "tank", "mirror": "when_possible", "disks": "yaql=$.disks.limit(1)"}
    made = planned({**TANK, "size": 1000}, log)
    assert [log["type"] for log in made["schema"]["zpools"][0]["logs"]] == ["stripe"]
    assert any("log is not mirrored" in warning for warning in made["warnings"])


def test_parts_are_left_out_with_their_pool() -> None:
    gone = {**TANK, "optional": True, "size": "90 GiB"}
    made = planned(gone, {**FAST, "id": "log", "log_of": "tank"}, {**FAST, "id": "rest"})
    assert [left["id"] for left in made["left_out"]] == ["tank", "log"]
    made = planned(
        {**gone, "disks": "yaql=$.disks.where($.type = hdd)"}, {**FAST, "id": "fast", "cache_of": "tank"}, {**FAST, "id": "rest"}
    )
    assert [left["id"] for left in made["left_out"]] == ["tank", "fast"]


def test_mistakes_in_parts_are_told() -> None:
    said = mistakes(
        {**TANK, "vdev": "stripe", "spares": 1},
        {"id": "os", "type": "vg", "contains": ["root"]},
        {"id": "root", "type": "lv", "size": 1000},
        {**FAST, "id": "a", "log_of": "tenk"},
        {**FAST, "id": "b", "log_of": "root"},
        {**FAST, "id": "c", "log_of": "tank", "cache_of": "tank"},
        {**FAST, "id": "d", "cache_of": "tank", "mirror": "required"},
        {**FAST, "id": "e", "cache_of": "tank", "cache_mode": "writeback"},
        {**FAST, "id": "f", "log_of": "tank", "encrypt": True, "mount": "/f"},
        {"id": "g", "type": "raid", "level": "raid1", "log_of": "tank"},
        {**TANK, "id": "pond", "mount": "/pond", "legs": "all", "spares": 1},
    )
    for line in (
        "schema[0].spares: a stripe does not survive the loss of a disk, so a spare is of no use; leave spares out",
        "schema[3].log_of: there is no space 'tenk' (did you mean tank?)",
        "schema[4].log_of: 'root' has type lv; only a zpool can have a log",
        "schema[5].log_of: cannot be combined with cache_of; a partition is a log or a cache",
        "schema[6].cache_of: a zpool's cache is a partition, for it holds only what is in the pool as well; leave mirror out",
        "schema[7].cache_mode: is for caches of an lv; a zpool's cache holds only what is in the pool as well",
        "schema[8].log_of: cannot be combined with mount; a log of a zpool holds nothing of its own",
        "schema[8].log_of: cannot be combined with encrypt; a log of a zpool holds nothing of its own",
        "schema[9].log_of: makes no sense for the type raid; it is for partition",
        "schema[10].legs: all is 1 here without 1 spares; mirror needs 2 disks or more",
    ):
        assert line in said, f"{line}\n{said}"


def test_a_conflict_says_what_zfs_keeps() -> None:
    with pytest.raises(NoSolution, match="more for what ZFS keeps free and for itself"):
        planned({**TANK, "size": "20 GiB"})


def test_a_static_schema_is_read_strictly() -> None:
    made = planned(TANK)["schema"]
    (pool,) = made["zpools"]
    (vdev,) = pool["vdevs"]
    wrong = {
        **pool,
        "name": "raidz",
        "mount": "tank",
        "ashift": 99,
        "vdevs": [{**vdev, "type": "raidz1"}, {**vdev, "type": "log"}],
        "properties": {"Bad": "x", "atime": [1]},
        "datasets": [{"name": "a@b", "quota": 0, "properties": "atime=off"}],
    }
    with pytest.raises(SchemaMistakes) as caught:
        parse_static_schema({**made, "zpools": [wrong, {"name": "other"}]})
    said = str(caught.value)
    for line in (
        "zpools[0].name: must be a letter",
        "zpools[0].mount: must be an absolute path",
        "zpools[0].ashift: is 99; must be a whole number from 9 to 16",
        "zpools[0].vdevs[0].devices: raidz1 needs at least 3 devices, not 2",
        "zpools[0].vdevs[1].type: is 'log'; must be one of stripe, mirror, raidz1, raidz2, raidz3",
        "zpools[0].properties: 'Bad' is no property",
        "zpools[0].properties: the value of atime is a list; must be a word or a number",
        "zpools[0].datasets[0].name: must be a path of letters",
        "zpools[0].datasets[0].quota: is 0; must be a whole number, 1 or more",
        "zpools[0].datasets[0].properties: is 'atime=off'; must be properties of ZFS by their names",
        "zpools[1].vdevs: is missing; must be a list of vdevs, 1 or more",
    ):
        assert line in said, f"{line}\n{said}"
    twice = {**made, "zpools": [pool, {**pool, "mount": "/tank"}], "fss": [{"device": vdev["devices"][0], "fs_type": "ext4"}]}
    with pytest.raises(SchemaMistakes) as caught:
        parse_static_schema(twice)
    for line in ("zpools[1].name: tank is already that of zpools[0]", "is already used by", "zpools[1].mount: /tank is already that of"):
        assert line in str(caught.value)


def test_installers_say_that_they_are_not_told() -> None:
    with pytest.raises(InputError, match="curtin gets no ZFS pools here; have disk_layout make it after the installation"):
        write_plan(curtin.TARGET, planned(TANK), None, lossy=True, version="2", key_file=None)


def test_drift_looks_at_the_partitions_of_a_pool() -> None:
    made = planned(TANK)
    facts = hardware([("ssd", 20)] * 2)
    for disk, planned_disk in zip(facts["disks"], made["schema"]["parteds"], strict=True):
        parts = ((part, part["end"] - part["begin"]) for part in planned_disk["partitions"])
        disk["partitions"] = [
            {"number": 1, "uuid": part["uuid"], "type": part["guid"], "start": part["begin"], "size": size, "fs_type": "zfs_member"}
            for part, size in parts
        ]
    assert not [finding for finding in compare(made, facts) if "tank" in finding.says]
    facts["disks"][0]["partitions"][0]["fs_type"] = "ext4"
    assert [finding for finding in compare(made, facts) if "zfs_member" in finding.says]


def test_drift_looks_at_pools_and_datasets() -> None:
    home = {"name": "home", "mount": "/home", "quota": "1 GiB", "properties": {"atime": False, "copies": 1}}
    made = planned({**TANK, "size": 1000, "spares": 1, "datasets": [home]}, {**FAST, "id": "log", "log_of": "tank"}, disks=3)
    vdevs = [("mirror-0", "data"), ("/dev/sda2", "log"), ("/dev/sdc1", "spare")]
    own = {"mountpoint": "/home", "quota": str(1024**3), "atime": "off"}
    tank: Plain = {
        "name": "tank",
        "guid": "1",
        "health": "ONLINE",
        "vdevs": [{"name": name, "part": part, "devices": []} for name, part in vdevs],
        "datasets": [
            {"name": "tank", "mounted": True, "mountpoint": "/tank", "properties": {}},
            {"name": "tank/home", "mounted": True, "mountpoint": "/home", "properties": own},
        ],
    }

    def found(*pools: Plain) -> list[str]:
        return [f"{place}: {says}" for place, _state, says in compare_zpools(made["schema"], {"zpools": pools})]

    assert found(tank) == list(compare_zpools(made["schema"], {})) == []
    assert found() == ["tank: the ZFS pool is not there, or not imported"]
    root, inner = tank["datasets"]
    other = {**inner, "mountpoint": "/mnt", "properties": {**own, "quota": "5", "copies": "2"}}
    assert found({**tank, "health": "DEGRADED", "vdevs": tank["vdevs"][:2], "datasets": [root, other]}) == [
        "tank: the ZFS pool is DEGRADED",
        "tank: the ZFS pool has no spares, in the plan 1",
        "tank/home: the mount point is /mnt, in the plan /home",
        "tank/home: copies is 2, in the plan 1",
        f"tank/home: quota is 5, in the plan {1024**3}",
    ]
    assert found({**tank, "datasets": [root]}) == ["tank/home: the dataset is not there"]
