# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of ZFS pools on a host: how they are made and changed, and when nothing is done to them."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.present import Zpool, ZpoolPart
from ansible_collections.bareon.allocator.plugins.module_utils._layout.adopt import adopt
from ansible_collections.bareon.allocator.plugins.module_utils._layout.losses import paragraph
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.preview import picture_of, render
from ansible_collections.bareon.allocator.plugins.module_utils._layout.read_traces import read_traces
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import installed, maker_on, plan, refusal
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import SchemaMaker
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out

DISKS = ("sda", "sdb")
WIPED = ["sda", "sdb", "sdc"]


def pooled(name: str = "tank", size: int = 200) -> SchemaMaker:
    maker = maker_on(*DISKS)
    maker.zpool(DISKS, size, name)
    return maker


def says(host, schema, wipe=()):
    found = plan(host, schema, wipe)
    assert not found.refusals, found.refusals
    return [step.says for step in found.steps]


def test_a_pool_is_made_with_its_datasets_before_its_partitions_are_finished():
    steps = says(installed(maker_on(*DISKS)), pooled().schema)
    assert [line.partition(" (PARTUUID")[0] for line in steps[3:]] == [
        "create the ZFS pool tank: mirror of /dev/sda1, /dev/sdb1, with mountpoint=none",
        "create the dataset tank/home, with compression=lz4",
        "create the dataset tank/home/user, with quota=16 MiB",
        "mark partition 1 of /dev/sda as finished",
        "mark partition 1 of /dev/sdb as finished",
    ]


def test_what_is_there_stays_and_what_is_new_or_other_is_made():
    maker = pooled()
    host = installed(maker)
    assert says(host, maker.schema) == says(host, maker.schema, DISKS) == []
    (pool,) = maker.schema["zpools"]
    pool["properties"] = {"atime": False}
    pool["datasets"] = [{"name": "home", "mount": "/home", "quota": 32, "properties": {"compression": "lz4"}}, {"name": "new"}]
    assert says(host, maker.schema) == [
        "set on the dataset tank: atime=off",
        "set on the dataset tank/home: mountpoint=/home, quota=32 MiB",
        "create the dataset tank/new",
    ]


def test_a_pool_that_is_not_imported_is_left_alone_whatever_may_be_wiped():
    maker = pooled()
    host = installed(maker)
    host.zpools.clear()
    for wipe in ((), DISKS):
        assert "the ZFS pool tank, which is not imported on this host: it was exported, or last used by another" in refusal(
            host, maker.schema, wipe
        )
    # What another plan makes there takes its place.
    assert "zfs_member is in the way of pond" in refusal(host, pooled("pond").schema)
    assert any("create the ZFS pool pond" in line for line in says(host, pooled("pond").schema, DISKS))


@pytest.mark.parametrize("imported", [True, False])
def test_what_a_failed_disk_left_of_a_pool_stays_though_its_log_is_in_the_way(imported):
    earlier = pooled("tank", 40)
    earlier.log(DISKS, 64, "tank_log")
    earlier.beside("caches", "sda", 40, "tank_cache")
    host = installed(earlier)
    host.media.wipe_table("sda")
    host.start_all()
    if imported:
        host.zpools = {host.media.signatures(host.by_node("/dev/sdb1"))["zfs_member"][0][0]}
    maker = pooled("tank", 40)
    for disk in DISKS:
        maker.fill(maker.partition(disk, 40, disk), 40, "ext4", disk, "ext4")
    said = refusal(host, maker.schema, DISKS)
    says_why = "no new one is made over its remains, even with wipe (wipefs clears them)" if imported else "import it first (zpool import"
    assert says_why in said
    assert "belongs to something" not in said


def test_a_pool_that_is_destroyed_is_named_and_exported_first_unless_it_is_mounted(monkeypatch):
    host = installed(pooled())
    found = plan(host, pooled("pond").schema, DISKS)
    assert found.steps[2].says == "export the ZFS pool tank"
    assert "zfs_member 'tank' on /dev/sda1 (200 MiB, of the ZFS pool tank)" in paragraph(found.losses)
    (pool,) = host.present().zpools
    monkeypatch.setattr(host, "_zpools", lambda: (Zpool(pool.name, pool.guid, "ONLINE", pool.datasets, ("/tank",)),))
    said = refusal(host, pooled("pond").schema, DISKS)
    assert "the ZFS pool tank, which would be destroyed, but is mounted on /tank; data in use stays" in said


def test_a_pool_that_is_made_again_is_marked_on_all_its_disks_before_any_of_it_is_destroyed():
    host = installed(pooled())
    smaller = pooled("tank", 100).schema
    steps = plan(host, smaller, DISKS).steps
    assert [step.says for step in steps[:3]] == [
        "change the partition table on /dev/disk/by-id/wwn-sda: mark partition 1 as to be made again",
        "change the partition table on /dev/disk/by-id/wwn-sdb: mark partition 1 as to be made again",
        "export the ZFS pool tank",
    ]
    for step in steps[:3]:
        carry_out(host, step)
    # Nothing is lost yet, so that it takes a permission still; but the pool is not taken for one that somebody has exported.
    asked = refusal(host, smaller)
    assert "was to be made again by a run that was cut off; name /dev/disk/by-id/wwn-sda in wipe so that it is" in asked
    assert any("create the ZFS pool tank" in line for line in says(host, smaller, DISKS))


def test_a_pool_with_its_name_on_other_disks_is_in_the_way():
    host = installed(pooled())
    other = maker_on("sdc")
    other.schema["zpools"] = [{"name": "tank", "vdevs": [{"type": "stripe", "devices": [other.partition("sdc", 100, "tank")]}]}]
    assert "a ZFS pool tank is already imported, from other devices" in refusal(host, other.schema)


def test_a_pool_that_has_no_devices_any_more_keeps_its_name(monkeypatch):
    host = installed(maker_on(*DISKS))
    monkeypatch.setattr(host, "_zpools", lambda: (Zpool("tank", "1", "UNAVAIL"),))
    assert "a ZFS pool tank is already imported, from other devices, or from none that are left" in refusal(host, pooled().schema)


def with_parts() -> SchemaMaker:
    maker = maker_on("sda", "sdb", "sdc")
    maker.zpool(DISKS, 200, "tank")
    maker.log(("sda", "sdc"), 70, "tank_log")
    maker.beside("caches", "sdc", 80, "tank_cache")
    maker.beside("spares", "sdc", 200, "tank")
    return maker


def test_logs_caches_and_spares_are_made_with_the_pool_or_added_to_it():
    maker = with_parts()
    assert any(
        line == "create the ZFS pool tank: mirror of /dev/sda1, /dev/sdb1; log mirror of /dev/sda2, /dev/sdc1; cache /dev/sdc2; "
        "spare /dev/sdc3, with mountpoint=none"
        for line in says(installed(maker_on("sda", "sdb", "sdc")), maker.schema)
    )
    assert [line for line in says(installed(pooled()), maker.schema) if "pool" in line] == [
        "add to the ZFS pool tank: log mirror of /dev/sda2, /dev/sdc1",
        "add to the ZFS pool tank: cache /dev/sdc2",
        "add to the ZFS pool tank: spare /dev/sdc3",
    ]
    host = installed(maker)
    assert says(host, maker.schema) == says(host, maker.schema, WIPED) == []


def test_the_picture_names_the_pool_of_caches_and_spares_which_do_not_say_it_themselves():
    present = installed(with_parts()).present()
    lines = [line for line in render(picture_of(present, WIPED)).splitlines() if "cache" in line or "spare" in line]
    assert lines
    assert all(line.endswith("zfs_member tank") for line in lines)


def test_nothing_is_added_to_a_pool_that_lacks_something(monkeypatch):
    host = installed(pooled())
    (pool,) = host.present().zpools
    monkeypatch.setattr(host, "_zpools", lambda: (dataclasses.replace(pool, health="DEGRADED"),))
    assert "the ZFS pool tank is DEGRADED, so nothing is added to it; zpool status tank says" in refusal(host, with_parts().schema, WIPED)


def test_a_part_that_was_taken_out_by_hand_is_added_where_it_may_be_made_again(monkeypatch):
    maker = with_parts()
    host = installed(maker)
    (pool,) = host.present().zpools
    without = tuple(vdev for vdev in pool.vdevs if str(vdev.part) != "cache")
    monkeypatch.setattr(host, "_zpools", lambda: (dataclasses.replace(pool, vdevs=without),))
    assert (
        "/dev/sdc2 holds no filesystem, but is wanted as a cache of the ZFS pool tank; zpool add tank cache /dev/sdc2 adds it"
        in refusal(host, maker.schema)
    )
    assert [line for line in says(host, maker.schema, WIPED) if "pool" in line] == ["add to the ZFS pool tank: cache /dev/sdc2"]


def test_half_of_a_log_is_left_to_the_user():
    host = installed(with_parts())
    moved = maker_on("sda", "sdb", "sdc")
    moved.zpool(DISKS, 200, "tank")
    moved.log(("sda", "sdb"), 70, "tank_log")
    assert "should carry one filesystem, but not all of them do" in refusal(host, moved.schema)
    assert "use zpool replace, attach or add" in refusal(host, moved.schema, WIPED)


def test_a_pool_gets_a_further_vdev():
    maker = maker_on("sda", "sdb", "sdc")
    maker.zpool(DISKS, 200, "tank")
    host = installed(maker)
    more = [maker.partition(disk, 200, "tank") for disk in ("sdb", "sdc")]
    maker.schema["zpools"][0]["vdevs"].append({"type": "mirror", "devices": more})
    steps = says(host, maker.schema)
    assert [line for line in steps if "pool" in line] == ["add to the ZFS pool tank: mirror of /dev/sdb2, /dev/sdc1"]
    assert any(line.startswith("clear") and "/dev/sdb2" in line for line in steps)


def test_what_is_left_to_the_user_is_refused():
    host = installed(pooled())
    assert "only grows by hand (zpool online -e)" in refusal(host, pooled(size=300).schema)
    wider = maker_on("sda", "sdb", "sdc")
    wider.zpool(("sda", "sdb", "sdc"), 200, "tank")
    assert "use zpool replace, attach or add" in refusal(host, wider.schema)
    assert "use zpool replace, attach or add" in refusal(host, wider.schema, WIPED)
    wide = installed(wider)
    assert "also has /dev/sdc1, which is not removed here (use zpool replace" in refusal(wide, pooled().schema)
    sensitive = copy.deepcopy(pooled().schema)
    sensitive["zpools"][0]["datasets"][1]["properties"] = {"casesensitivity": "mixed"}
    host = installed(pooled())
    known = sensitive["zpools"][0]["datasets"][1]
    known["properties"]["casesensitivity"] = "insensitive"
    assert says(host, sensitive) == ["set on the dataset tank/home: casesensitivity=insensitive"]


@pytest.mark.parametrize("there", ["mixed", "sensitive"])
def test_properties_of_the_creation_do_not_change(there):
    maker = pooled()
    maker.schema["zpools"][0]["properties"] = {"casesensitivity": there}
    host = installed(maker)
    maker.schema["zpools"][0]["properties"] = {"casesensitivity": "insensitive"}
    assert f"casesensitivity is {there} and cannot be changed to insensitive" in refusal(host, maker.schema)


def test_a_pool_is_taken_over_with_nothing_to_do():
    maker = with_parts()
    maker.schema["zpools"][0]["mount"] = "/tank"
    host = installed(maker)
    present = host.present()
    own = {
        "": {"mountpoint": "/tank"},
        "home": {"compression": "lz4", "keylocation": "prompt"},
        "home/user": {"quota": str(16 * 1024**2), "reservation": "1000"},
    }
    found = adopt(present, present.disks, {"tank": own})
    assert found.notes == ()
    (pool,) = found.schema["zpools"]
    assert {key: len(pool[key]) for key in ("vdevs", "logs", "caches", "spares")} == {"vdevs": 1, "logs": 1, "caches": 1, "spares": 1}
    assert pool["logs"][0]["type"] == pool["vdevs"][0]["type"] == "mirror"
    assert pool["datasets"] == [
        {"name": "home", "properties": {"compression": "lz4"}},
        {"name": "home/user", "quota": 16},
    ]
    planned = plan_steps(parse_static_schema(found.schema), present)
    assert (planned.refusals, planned.steps) == ((), ())
    found.schema["zpools"][0]["datasets"].append({"name": "more"})
    assert [step.says for step in plan_steps(parse_static_schema(found.schema), present).steps] == ["create the dataset tank/more"]


@pytest.mark.parametrize(
    ("changes", "own", "says"),
    [
        ({"health": "DEGRADED"}, {}, "it is DEGRADED, or has vdevs of other kinds"),
        ({"vdevs": (ZpoolPart(None, "special mirror-1", ("sda1", "sdb1")),)}, {}, "it is ONLINE, or has vdevs of other kinds"),
        ({}, {"": {"mountpoint": "legacy"}}, "its mount point is legacy, which is for others"),
    ],
)
def test_a_pool_that_a_schema_has_no_words_for_is_not_taken_over(changes, own, says):
    present = installed(pooled()).present()
    pools = tuple(dataclasses.replace(pool, **changes) for pool in present.zpools)
    found = adopt(dataclasses.replace(present, zpools=pools), present.disks, {"tank": own})
    assert "zpools" not in found.schema
    assert f"the ZFS pool tank is left out of the schema, and stays as it is: {says}" in found.notes[0]


def test_a_pool_is_taken_over_with_all_its_disks_only():
    present = installed(pooled()).present()
    found = adopt(present, [disk for disk in present.disks if disk.device.name == "sda"])
    assert "not all of its devices are partitions of the schema" in found.notes[0]


def test_a_vdev_is_not_added_to_a_pool_that_is_not_imported_and_the_reason_says_so():
    """Nobody is sent to wipefs over a pool that is whole."""
    host = installed(pooled())
    host.zpools.clear()
    maker = pooled()
    more = [maker.partition(disk, 200, "tank") for disk in DISKS]
    maker.schema["zpools"][0]["vdevs"].append({"type": "mirror", "devices": more})
    said = refusal(host, maker.schema)
    assert "import it first (zpool import" in said
    assert "wipefs" not in said


def test_a_torn_table_that_hides_a_log_is_written_before_its_pool_is_to_be_imported():
    """Without its log ZFS does not import it."""
    maker = maker_on(*DISKS, "sdc")
    maker.zpool(DISKS, 200, "tank")
    maker.log(("sdc",), 64, "tank_log")
    host = installed(maker)
    host.media.tear_table("sdc")
    host.start_all()
    assert not host.zpools
    assert len(steps := plan(host, maker.schema).steps) == 1
    carry_out(host, steps[0])
    assert "import it first (zpool import" in refusal(host, maker.schema)
    host.import_zpools()
    assert plan(host, maker.schema).steps == ()


class WithFolders:
    """A host that can be asked for nothing but what is in folders; the first label of a pool has nothing in it."""

    def __init__(self, **folders):
        self.folders = {f"/{name.replace('_', '/')}": names for name, names in folders.items()}

    def names(self, path):
        return self.folders.get(path, ())

    def read_bytes(self, _path, _start, size):
        return bytes(size)


HOME = {"home": ("user",), "home_user": ()}


@pytest.mark.parametrize(
    ("folders", "more", "trace"),
    [
        (HOME, (), None),
        ({**HOME, "home_user": ("precious",)}, (), "there are files in it, on /home/user"),
        ({**HOME, "home": ("precious", "user")}, (), "there are files in it, on /home"),
        (HOME, ("mine",), "no run of this layout has made the dataset tank/mine"),
    ],
)
def test_a_pool_of_a_run_that_failed_is_made_again_only_while_nobody_has_used_it(monkeypatch, folders, more, trace):
    """It failed behind zpool create, as where a mount point is not empty: the pool is imported, and mounted."""
    host, maker = installed(maker_on(*DISKS)), pooled()
    layout = parse_static_schema(maker.schema)
    for step in plan(host, maker.schema).steps:
        if "as finished" in step.says:
            break
        carry_out(host, step)
    (pool,) = host.present().zpools
    datasets = {**pool.datasets, **{name: {} for name in more}}
    mounted = dataclasses.replace(pool, datasets=datasets, mounted=("/home", "/home/user"))
    monkeypatch.setattr(host, "_zpools", lambda: (mounted,))
    present = host.present()
    traces, sealed = read_traces(WithFolders(**folders), present, layout)
    assert (traces, sealed) == ({} if trace is None else {"sda1": trace, "sdb1": trace}, {})
    present = dataclasses.replace(present, traces=traces)
    found = plan_steps(layout, present)
    assert bool(found.refusals) is (trace is not None)
    assert any("create the ZFS pool" in step.says for step in found.steps) is (trace is None)
    if trace is not None:
        assert found.steps == ()
        assert all(trace in line for line in found.refusals[:2])
        wiping = plan_steps(layout, present, [f"/dev/disk/by-id/wwn-{disk}" for disk in DISKS])
        assert wiping.steps == ()
        assert any("is mounted on /home, /home/user; data in use stays" in line for line in wiping.refusals)
