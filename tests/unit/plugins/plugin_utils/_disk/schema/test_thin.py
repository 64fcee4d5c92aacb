# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Thin pools and what is in them, from the wish to the host and the installers."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistakes, NoSolution
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.planned_groups import planned_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.compare import compare
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import curtin, disko, kickstart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.picture import picture
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import planned_layout, summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.host_files import needed_tools
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan

Plain = dict[str, t.Any]
MIB = 1024**2

GROUP: Plain = {"id": "vg0", "type": "vg", "contains": ["root", "pool"]}
ROOT: Plain = {"id": "root", "type": "lv", "size": 4000, "mount": "/", "fs_type": "ext4"}
POOL: Plain = {"id": "pool", "type": "thin_pool", "contains": ["web", "db"]}
WEB: Plain = {"id": "web", "type": "thin", "size": 5001, "mount": "/web", "fs_type": "ext4"}
DB: Plain = {"id": "db", "type": "thin", "size": 3000, "mount": "/db", "encrypt": False}


def planned(*spaces: Plain, size: int = 20, disks: int = 1, **keys: t.Any) -> Plain:
    return make_plan(list(spaces or (GROUP, ROOT, {**POOL, **keys}, WEB, DB)), hardware([("ssd", size)] * disks))


def pool_of(made: Plain) -> Plain:
    (pool,) = made["schema"]["thin_pools"]
    return t.cast("Plain", pool)


def mistakes(*spaces: Plain) -> list[str]:
    with pytest.raises(InputError) as caught:
        planned(*spaces)
    return str(caught.value).splitlines()


def test_a_pool_is_as_large_as_what_is_in_it_and_counts_what_it_keeps() -> None:
    made = planned(weight=0)
    # 5001 MiB are 5004 in extents.
    assert pool_of(made) == {
        **{"name": "pool", "vgname": "vg0", "size": 8004, "metadata_size": 8, "chunk_size": 64},
        **{"keep_data": False, "space_id": "pool"},
    }
    volumes = {volume["name"]: volume for volume in made["schema"]["lvs"]}
    assert [(name, volume["size"], volume.get("pool")) for name, volume in volumes.items()] == [
        ("root", 4000, None),
        ("web", 5004, "pool"),
        ("db", 3000, "pool"),
    ]
    assert made["warnings"] == []
    assert [filesystem["device"] for filesystem in made["schema"]["fss"]] == [f"/dev/mapper/vg0-{name}" for name in volumes]
    (group,) = planned_groups(made, Mistakes())
    assert group.free == 20 * 1024 - 4 - 4000 - 8004 - 2 * 8 - (20 * 1024 - 4) % 4


def test_what_is_given_out_is_limited_and_told() -> None:
    made = planned(overcommit=2, weight=0)
    assert pool_of(made)["size"] == 4004
    (warning,) = made["warnings"]
    says = (
        "pool: web and db may come to 7.81 GiB, 2.00 times the 3.91 GiB that there are; when they are full, writes to all its volumes fail"
    )
    assert warning == says
    says = " ".join(summary(made).replace("│", "").split())
    assert "thin pool 7.82 GiB given out, 199.9%" in says
    assert "metadata and spare" in says
    assert "thin volume /web" in says
    (host,) = [picture(made)]
    by_id = host.by_id()
    assert (by_id["pool"].size, by_id["pool"].inside, by_id["web"].inside) == (4004 + 8, "vg0", "pool")
    assert host.painted() == ["root", "pool"]
    assert by_id["pool"].reasons == ("its volumes may come to 7.82 GiB: web 4.89 GiB on /web, db 2.93 GiB on /db",)
    assert "pool: 4004 MiB, thin pool, 4 MiB of metadata" in planned_layout(made)
    assert "web: 5004 MiB in pool ext4 /web" in planned_layout(made)


def test_a_pool_that_grows_takes_what_is_left() -> None:
    pool = pool_of(planned())
    assert pool["size"] + 2 * pool["metadata_size"] == (20 * 1024 - 4) // 4 * 4 - 4000
    large = pool_of(planned(size=2000, chunk_size="64 KiB", metadata_size="3 GiB"))
    assert (large["chunk_size"], large["metadata_size"]) == (64, 3072)
    assert pool_of(planned(size=2000))["chunk_size"] == 1024


def test_extents_are_those_of_the_group() -> None:
    made = planned({**GROUP, "extent_size": 32}, {**ROOT, "size": 4096}, {**POOL, "weight": 0}, WEB, DB)
    assert (pool_of(made)["size"], pool_of(made)["metadata_size"]) == (8032, 32)
    assert [volume["size"] for volume in made["schema"]["lvs"]] == [4096, 5024, 3008]


def test_encryption_is_that_of_the_group() -> None:
    made = planned(GROUP, ROOT, POOL, WEB, {**DB, "encrypt": True})
    assert [container["space_id"] for container in made["schema"]["luks"]] == ["vg0"]


def test_what_starts_from_a_pool_has_its_boot_partition_on_the_disks_of_the_group() -> None:
    machine = {**hardware([("ssd", 20)] * 2), "firmware": "uefi"}
    group = {**GROUP, "disks": [machine["disks"][1]["id"]]}
    made = make_plan([group, {**ROOT, "mount": "/data"}, POOL, {**WEB, "mount": "/", "boot": True}, DB], machine)
    assert [[space["space_id"] for space in disk["spaces"]] for disk in made["disks"]] == [[], ["esp", "vg0"]]


def test_all_mistakes_are_told_at_once() -> None:
    said = mistakes(
        {"id": "vg0", "type": "vg", "contains": ["pool", "web", "lost"], "keep_data": True},
        {
            **POOL,
            "contains": ["web", "db", "web", "root"],
            "size": 100,
            "overcommit": 2,
            "chunk_size": "100 KiB",
            "metadata_size": 1,
            "mount": "/x",
        },
        {**WEB, "mount": "/boot", "min_size": 3, "weight": 2, "disks": ["a"], "keep_data": True},
        {"id": "db", "type": "thin"},
        {"id": "alone", "type": "thin", "size": 5},
        {"id": "lost", "type": "thin_pool", "overcommit": 0.5},
        {"id": "free", "type": "thin_pool"},
        {**ROOT, "pool": "pool", "overcommit": 2},
    )
    text = "\n".join(said)
    for line in (
        "schema[0].contains[1]: 'web' has type thin; a vg contains lv and thin_pool, and any raid that it lies on",
        "schema[0].keep_data: the vg vg0 has the thin pool lost, and what is in such a vg cannot be planned around",
        "schema[1].contains[2]: 'web' is twice in this thin_pool; a space is in one thin_pool",
        "schema[1].contains[3]: 'root' has type lv; a thin_pool contains thin",
        "schema[1].chunk_size: is '100 KiB'; must be a multiple of 64 KiB up to 1 GiB",
        "schema[1].metadata_size: is 1; must be a size from 2 MiB to 16128 MiB",
        "schema[1].mount: makes no sense for the type thin_pool",
        "schema[1].contains: web and db come to 5001 MiB, more than 2 times its size of 100 MiB; make it larger, or allow that with "
        "overcommit: 50.01",
        "schema[2].mount: GRUB cannot read /boot in a thin pool; put it on a partition, an lv or a raid",
        "schema[2].min_size: makes no sense for the type thin",
        "schema[2].weight: makes no sense for the type thin",
        "schema[2].disks: makes no sense for the type thin",
        "schema[2].keep_data: makes no sense for the type thin",
        "schema[3].size: is missing; a thin volume needs a size to show",
        "schema[4]: alone is in no thin_pool; add it to the 'contains' of one",
        "schema[5].overcommit: is 0.5; must be a number from 1 to 1000",
        "schema[6]: free is in no vg; a thin_pool lies in one, so add it to the 'contains' of a vg",
        "schema[7].overcommit: makes no sense for the type lv; it is for thin_pool",
    ):
        assert line in text, f"{line}\n\n{text}"


def test_a_conflict_tells_what_is_kept_for_metadata() -> None:
    with pytest.raises(NoSolution, match="pool needs at least 8004 MiB, and 16 more for its metadata and their spare"):
        planned(size=10)


def test_what_is_left_out_takes_its_volumes_along_and_asks_for_less() -> None:
    made = planned(GROUP, ROOT, {**POOL, "optional": True}, WEB, DB, size=10)
    assert [space["id"] for space in made["left_out"]] == ["pool", "web", "db"]
    assert [space["reason"] for space in made["left_out"]][1:] == ["its thin_pool is left out"] * 2
    assert "thin_pools" not in made["schema"]
    made = planned(GROUP, ROOT, POOL, {**WEB, "optional": True}, DB, size=10)
    assert [space["id"] for space in made["left_out"]] == ["web"]
    assert [volume["name"] for volume in made["schema"]["lvs"]] == ["root", "db"]


def test_the_other_objective_does_not_know_it() -> None:
    with pytest.raises(InputError, match="the objective ordered cannot plan thin_pool; use the objective fair"):
        Planner([GROUP, ROOT, POOL, WEB, DB], Objective.ORDERED).plan(hardware([("ssd", 20)]))


def test_the_host_reads_what_is_planned_and_refuses_what_it_cannot_make() -> None:
    schema = planned()["schema"]
    layout = parse_static_schema(schema)
    (pool,) = layout.pools
    assert (pool.size, pool.metadata, pool.chunk) == (
        schema["thin_pools"][0]["size"] * MIB,
        schema["thin_pools"][0]["metadata_size"] * MIB,
        65536,
    )
    assert [volume.pool for volume in layout.volumes] == ["", "pool", "pool"]
    assert needed_tools(schema) == ["sfdisk", "lvm", "thin_check", "mkfs.ext4", "mkfs.xfs"]
    (entry,), (root, web, db) = schema["thin_pools"], schema["lvs"]
    for changes, said in (
        ({"thin_pools": [{**entry, "chunk_size": 100}]}, "thin_pools[0].chunk_size: must be a multiple of 64 KiB up to 1048576, not 100"),
        ({"thin_pools": [{**entry, "vgname": "other"}]}, "thin_pools[0].vgname: there is no vg other; there are vg0"),
        ({"thin_pools": [{**entry, "name": "root"}]}, "lvs[0].name: root is already that of thin_pools[0]"),
        ({"thin_pools": [{**entry, "name": "-"}]}, "thin_pools[0].name: must be a name that LVM accepts"),
        ({"lvs": [root, {**web, "pool": "other"}, db]}, "lvs[1].pool: there is no thin pool other in vg0; there are pool"),
    ):
        with pytest.raises(SchemaMistakes) as caught:
            parse_static_schema({**schema, **changes})
        assert any(mistake.startswith(said) for mistake in caught.value.mistakes) or "root" in said, caught.value.mistakes


def test_drift_tells_of_a_pool_and_not_of_its_parts() -> None:
    made = planned(weight=0)

    def holder(name: str, size: int, fs_type: str | None = None) -> Plain:
        return {"type": "lvm", "name": name, "volume_group": "vg0", "size": size, "fs_type": fs_type, "active": True, "label": None}

    holders = [
        holder("root", 4000, "ext4"),
        holder("pool", 8004),
        holder("pool_tdata", 8004),
        holder("pool_tmeta", 8),
        holder("pool-tpool", 8004),
    ]
    holders += [holder("web", 5004, "ext4"), holder("db", 3000, "xfs")]
    (disk,) = made["schema"]["parteds"]
    (part,) = disk["partitions"]
    there = {"number": 1, "uuid": part["uuid"], "start": part["begin"], "size": part["end"] - part["begin"], "fs_type": "LVM2_member"}
    facts = {"disks": [{"id": disk["disk_id"], "size": disk["disk_size"], "partitions": [there], "holders": holders}]}
    assert compare(made, facts) == []
    holders[1]["size"] = 4000
    assert [found.says for found in compare(made, facts)] == ["the thin pool has 4000 MiB and could grow to 8004"]
    del holders[1]
    assert [found.says for found in compare(made, facts)] == ["the thin pool is not there"]


def test_installers_make_it_or_say_that_they_cannot() -> None:
    made = planned(weight=0)
    text = write_plan(kickstart.TARGET, made, None, lossy=False, version="RHEL9", passphrase=None).value
    assert "logvol none --vgname=vg0 --name=pool --thinpool --size=8004 --metadatasize=8 --chunksize=64\n" in text
    assert "logvol /web --vgname=vg0 --name=web --size=5004 --thin --poolname=pool --fstype=ext4\n" in text
    nix = " ".join(write_plan(disko.TARGET, made, None, lossy=False, password_file=None).value.split())
    assert 'pool = { size = "8004M"; lvm_type = "thin-pool"; extraArgs = [ "--chunksize=64k" "--poolmetadatasize=8m" ]; };' in nix
    assert 'web = { size = "5004M"; lvm_type = "thinlv"; pool = "pool"; content' in nix
    with pytest.raises(InputError, match="pool: curtin makes no thin pools here; plan what is in it as lv instead"):
        write_plan(curtin.TARGET, made, None, lossy=True, version="2", key_file=None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"vgname": "other"}, "plan.schema.thin_pools[0].vgname: there is no vg other"),
        ({"chunk_size": 100}, "plan.schema.thin_pools[0].chunk_size: must be a multiple of 64 KiB up to 1048576, not 100"),
        ({"name": "p"}, "plan.schema.lvs[1].pool: there is no thin pool pool in vg0"),
    ],
)
def test_what_refers_to_nothing_is_not_written(changes: Plain, said: str) -> None:
    made = planned()
    broken = {**made, "schema": {**made["schema"], "thin_pools": [{**pool_of(made), **changes}]}}
    with pytest.raises(InputError) as caught:
        write_plan(kickstart.TARGET, broken, None, lossy=False, version="RHEL9", passphrase=None)
    assert said in str(caught.value)
