# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state as layouts are compared with it, read from the record of a virtual machine with md, LVM, LUKS, btrfs, xfs and ext4."""

from __future__ import annotations

import json

from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import Signature
from ansible_collections.bareon.allocator.plugins.module_utils._facts.stacks import Superblock
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device, Tree
from ansible_collections.bareon.allocator.plugins.module_utils._layout.partitions import describe
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.read_present import read_present, read_unflushed
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage.btrfs import list_commands
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost

MIB = 1024**2
REPORT = "--config devices/use_devicesfile=0 --readonly --reportformat json --units b --nosuffix --options"
PVS = f"pvs {REPORT} pv_name,pv_uuid,pv_size,dev_size,pv_free,pe_start,pv_mda_count,pv_mda_size,vg_name,vg_uuid,vg_extent_size"
COLUMNS = (
    "vg_name,vg_uuid,lv_name,lv_uuid,lv_size,lv_tags,lv_host,lv_layout,pool_lv,lv_metadata_size,chunk_size,cache_mode,"
    "stripes,stripe_size,seg_pe_ranges,lv_role,origin"
)
LVS = f"lvs --all {REPORT} {COLUMNS}"
SDA = "/dev/sda"
DUMPE2FS = "Filesystem volume name:   x\nBlock count:              256000\nFirst block:              0\nBlock size:               4096\n"
XFS_INFO = """meta-data=/dev/x isize=512
data     =                       bsize=4096   blocks=128000, imaxpct=25
log      =internal bsize=4096 blocks=1
"""
BTRFS = "Label: none  uuid: 1\n\tTotal devices 1 FS bytes used 147456\n\tdevid    1 size 2147483648 used 239075328 path /dev/nvme0n1p2\n"


def physical(name, group="vg0", copies="1", size=1020 * MIB, device_size=1024 * MIB):
    return {
        "pv_name": name,
        "pv_uuid": f"uuid-of-{name}",
        "pv_size": str(size),
        "dev_size": str(device_size),
        "pv_free": "12582912",
        "pe_start": str(MIB),
        "pv_mda_count": copies,
        "pv_mda_size": str(2 * MIB),
        "vg_name": group,
        "vg_uuid": "vg-uuid" if group else "",
        "vg_extent_size": str(4 * MIB),
    }


def report(kind, *rows):
    return json.dumps({"report": [{kind: list(rows)}]})


def machine():
    volume = {"vg_name": "vg0", "vg_uuid": "vg-uuid", "lv_name": "data", "lv_uuid": "IL7d30-vcYP-ZfhP-NA3V-vzTJ-fF4n-2nm4jJ"}
    return (
        RecordedHost.load("vm-storage.json")
        .with_command(PVS, report("pv", physical("/dev/sda2"), physical("/dev/sdb2", copies="2"), physical("[unknown]")))
        .with_command(LVS, report("lv", {**volume, "lv_size": "524288000", "lv_tags": "a,bareon.unfinished", "lv_host": "web1"}))
        .with_command("dumpe2fs -h /dev/md127", DUMPE2FS)
        .with_command("xfs_info /srv/xfs", XFS_INFO)
        .with_command("btrfs filesystem show --raw /dev/nvme0n1p2", BTRFS)
    )


def layout(*disks):
    return parse_static_schema({"parteds": [{"name": disk, "partitions": [{"begin": 1, "end": 9}]} for disk in disks]})


def test_groups_are_read_with_what_they_lack():
    present = read_present(machine(), layout(SDA))
    (group,) = present.groups()
    assert [volume.device for volume in group.physical] == ["sda2", "sdb2", None]
    assert [volume.unused for volume in group.physical[:2]] == [3 * MIB, MIB]
    assert group.incomplete
    assert group.free == 3 * 12582912
    volume = group.volume("data")
    assert (volume.tags, volume.host) == (("a", "bareon.unfinished"), "web1")
    assert present.device_of(volume).dev == "/dev/mapper/vg0-data"
    assert present.whole_disk("sda2").device.name == "sda"


def test_thin_pools_are_read_with_their_metadata_and_what_is_in_them():
    """A volume on two segments has two rows; what LVM keeps for itself is in brackets."""

    def row(name, size, **more):
        empty = {"lv_tags": "", "lv_layout": "linear", "pool_lv": "", "lv_metadata_size": "", "chunk_size": "0", "cache_mode": ""}
        return {
            "vg_name": "vg0",
            "vg_uuid": "vg-uuid",
            "lv_name": name,
            "lv_uuid": f"uuid-of-{name}",
            "lv_size": str(size),
            **empty,
            **more,
        }

    pool = row("tp", 100 * MIB, lv_layout="thin,pool", lv_metadata_size=str(8 * MIB), chunk_size="65536")
    rows = [row("data", 12), row("data", 12), pool, row("th", 900 * MIB, lv_layout="thin,sparse", pool_lv="tp", chunk_size="65536")]
    rows.append(row("warm", 8 * MIB, lv_layout="cache", pool_lv="[fast_cvol]", chunk_size="65536", cache_mode="writeback"))
    hidden = [row("[tp_tdata]", 100 * MIB), row("[lvol0_pmspare]", 8 * MIB)]
    present = read_present(machine().with_command(LVS, report("lv", *rows, *hidden)), layout(SDA))
    (group,) = present.groups()
    assert [(volume.name, volume.pool, volume.is_pool) for volume in group.volumes] == [
        ("data", "", False),
        ("tp", "", True),
        ("th", "tp", False),
        ("warm", "", False),
    ]
    assert (group.volume("warm").cache, group.volume("warm").mode, group.volume("data").cache) == ("fast", "writeback", "")
    found = group.volume("tp")
    assert (found.metadata, found.chunk, group.spare) == (8 * MIB, 64 * 1024, 8 * MIB)
    assert [volume.name for volume in present.volumes_in(found)] == ["th"]


def test_stripes_are_read_of_all_segments_of_a_volume_and_of_what_a_cache_is_of():
    def row(name, stripes, ranges, **more):
        known = {"vg_name": "vg0", "vg_uuid": "vg-uuid", "lv_name": name, "lv_uuid": f"uuid-of-{name}", "lv_size": "12582912"}
        empty = {"lv_tags": "", "lv_layout": "striped", "pool_lv": "", "lv_metadata_size": "", "chunk_size": "0", "cache_mode": ""}
        return {**known, **empty, "stripes": stripes, "stripe_size": "65536", "seg_pe_ranges": ranges, **more}

    rows = [row("wide", "2", "/dev/sda2:0-9 /dev/sdb2:0-9"), row("wide", "2", "/dev/sda2:20-21 /dev/sdb2:20-21")]
    rows += [row("mixed", "2", "/dev/sda2:30-30 /dev/sdb2:30-30"), row("mixed", "1", "/dev/sda2:31-33")]
    rows += [row("warm", "1", "warm_corig:0-1", lv_layout="cache", pool_lv="[fast_cvol]", cache_mode="writeback")]
    rows += [row("[warm_corig]", "2", "/dev/sda2:40-40 /dev/sdb2:40-40")]
    (group,) = read_present(machine().with_command(LVS, report("lv", *rows)), layout(SDA)).groups()
    wide, mixed, warm = (group.volume(name) for name in ("wide", "mixed", "warm"))
    assert (wide.stripes, wide.stripe_size, dict(wide.extents)) == ((2,), 64 * 1024, {"sda2": 12, "sdb2": 12})
    assert (mixed.stripes, dict(mixed.extents)) == ((1, 2), {"sda2": 4, "sdb2": 1})
    assert warm.stripes == (2,)
    assert wide.entry == {"name": "wide", "vgname": "vg0", "size": 12, "stripes": 2, "stripe_size": 64}
    assert "stripes" not in mixed.entry


def test_thick_snapshots_are_read_with_their_origin_thin_ones_without():
    """lvs shows a snapshot that is being merged in brackets."""

    def row(name, role, origin, shown=None):
        known = {"vg_name": "vg0", "vg_uuid": "vg-uuid", "lv_name": shown or name, "lv_uuid": f"uuid-of-{name}", "lv_size": "4194304"}
        return {**known, "lv_tags": "", "lv_layout": "linear", "lv_role": role, "origin": origin}

    rows = [row("data", "public,origin,thickorigin", ""), row("before", "public,snapshot,thicksnapshot", "data")]
    rows += [row("back", "public,snapshot,thicksnapshot", "data", "[back]"), row("thin", "public,snapshot,thinsnapshot", "th")]
    present = read_present(machine().with_command(LVS, report("lv", *rows)), layout(SDA))
    found = {volume.name: (volume.origin, volume.merging) for volume in present.logical}
    assert found == {"data": ("", False), "before": ("data", False), "back": ("data", True), "thin": ("", False)}


def test_what_is_in_a_thin_pool_does_not_count_as_being_on_its_parts():
    tree = read_present(machine(), layout(SDA)).tree
    parts = sorted(device.title for device in tree.devices.values() if device.is_part)
    assert parts == ["tp", "tp-tpool", "tp_tdata", "tp_tmeta"]
    assert all(device.read and not device.signatures for device in tree.devices.values() if device.is_part)


def test_what_is_in_a_thin_pool_is_told_once_and_its_parts_are_not():
    tree = read_present(machine(), layout(SDA)).tree
    data = next(device for device in tree.devices.values() if device.title == "tp_tdata")
    told = describe(tree, tree.devices[data.parents[0]])
    assert told.count("/th ") == 1, told
    assert not any(part in told for part in ("_tdata", "_tmeta", "-tpool")), told


def test_filesystems_of_the_listed_disks_have_sizes():
    present = read_present(machine(), layout(SDA, "/dev/nvme0n1"))
    by_node = {present.tree.devices[name].dev: size for name, size in present.filesystem_sizes.items()}
    assert by_node == {"/dev/md127": 256000 * 4096, "/dev/mapper/vg0-data": 128000 * 4096, "/dev/nvme0n1p2": 2147483648}


def test_where_a_file_system_was_mounted_last_is_read():
    host = machine().with_command("dumpe2fs -h /dev/md127", f"Last mounted on:          /srv/md\n{DUMPE2FS}")
    assert read_present(host, layout(SDA)).last_mounts == {"md127": "/srv/md"}
    assert (
        read_present(machine().with_command("dumpe2fs -h /dev/md127", "Last mounted on:   <not available>"), layout(SDA)).last_mounts == {}
    )


def test_fstab_tells_it_of_what_does_not_remember_it_itself():
    present = read_present(machine(), layout(SDA, "/dev/nvme0n1"))
    btrfs = next(device for device in present.tree.devices.values() if device.dev == "/dev/nvme0n1p2")
    volume = next(device for device in present.tree.devices.values() if device.dev == "/dev/mapper/vg0-data")
    lines = ["# LABEL=commented /no", f"UUID={btrfs.filesystem.uuid} /srv/with\\040blank btrfs", f"{volume.dev} /srv/xfs xfs", "broken"]
    for line in (*lines, "/dev/nvme0n1p2 /moved xfs"):
        host = machine().with_files(files={"/etc/fstab": line})
        places = read_present(host, layout(SDA, "/dev/nvme0n1")).last_mounts
        expected = {lines[1]: {btrfs.name: "/srv/with blank"}, lines[2]: {volume.name: "/srv/xfs"}}.get(line, {})
        assert places == expected, line


def test_everything_that_is_in_use_is_named():
    (table,) = [found for found in plan_steps(layout(SDA), read_present(machine(), layout(SDA))).refusals if "is not empty" in found]
    for part in ("linux_raid_member", "mounted on /srv/md", "volume vg0/data", "mounted on /srv/xfs"):
        assert part in table
    text = "\n".join(plan_steps(layout(SDA), read_present(machine(), layout(SDA)), [SDA]).refusals)
    assert "can be another disk after a reboot" not in text
    for part in ("/dev/md127 would be destroyed, but is mounted on /srv/md", "vg0 is also on /dev/sdb2", "/dev/md127 is also on /dev/sdb1"):
        assert part in text


def test_reports_that_are_none_tell_nothing():
    for text in ("", "{}", "[]", '{"report": 3}'):
        present = read_present(machine().with_command(PVS, text).with_command(LVS, text), layout(SDA))
        assert present.physical == present.logical == ()


def superblock(events, role, state):
    said = {"Array UUID": "fd1c3139:0b9219b3:ca334672:a4bc60e6", "Events": events, "Device Role": f"Active device {role}"}
    return "".join(f"{name:>15} : {value}\n" for name, value in {**said, "Array State": f"{state} ('A' == active, '.' == missing)"}.items())


def without_child(rows, name):
    """The rows of lsblk without what is built on a device."""
    kept = ({key: value for key, value in row.items() if (key, row["kname"]) != ("children", name)} for row in rows)
    return [{**row, **({"children": without_child(row["children"], name)} if "children" in row else {})} for row in kept]


def started_without(member):
    """The machine, whose mirror was started without a member."""
    host = machine()
    (command,) = [command for command in host.record["commands"] if command.startswith("lsblk --json")]
    rows = json.loads(host.run(command.split()).stdout)["blockdevices"]
    left = without_child(rows, member)
    slaves = [name for name in host.names("/sys/class/block/md127/slaves") if name != member]
    host = host.with_command(command, json.dumps({"blockdevices": left}))
    return host.with_files(directories={"/sys/class/block/md127/slaves": slaves})


def test_superblocks_are_read_of_an_array_that_was_started_without_a_member():
    seen = {"mdadm --examine /dev/sda1": superblock(21, 0, "A."), "mdadm --examine /dev/sdb1": superblock(17, 1, "AA")}
    whole, host = machine(), started_without("sdb1")
    for command, text in seen.items():
        whole, host = whole.with_command(command, text), host.with_command(command, text)
    uuid = "fd1c3139-0b92-19b3-ca33-4672a4bc60e6"
    there = {"sda1": Superblock(uuid, 21, 0, frozenset({1})), "sdb1": Superblock(uuid, 17, 1)}
    assert read_present(whole, layout(SDA)).superblocks == {}
    assert read_present(host, layout(SDA)).superblocks == there
    fails = host.with_command("mdadm --examine /dev/sdb1", code=1)
    assert read_present(fails, layout(SDA)).superblocks == {"sda1": there["sda1"]}


def test_subvolumes_are_read_where_the_layout_has_some():
    wanted = parse_static_schema(
        {
            "parteds": [{"name": "/dev/nvme0n1", "partitions": [{"begin": 1, "end": 9}]}],
            "fss": [{"device": "/dev/nvme0n1p1", "fs_type": "btrfs", "subvolumes": [{"name": "@"}]}],
        }
    )
    listing, quotas = (" ".join(command) for command in list_commands("/srv/btr"))
    host = machine().with_command(listing, "ID 256 gen 7 top level 5 path @\n").with_command(quotas, "", code=1)
    assert read_present(host, layout(SDA, "/dev/nvme0n1")).subvolumes == {}
    assert read_present(host, wanted).subvolumes == {"ff399c7b-fbf1-4f03-ad68-5109cdb485ea": {"@": None}}
    assert read_present(machine(), wanted).subvolumes == {}


def test_caches_of_bcache_with_data_that_are_nowhere_else():
    def superblock(version, state=0, of="1"):
        identities = bytes(16) + of.encode() * 16
        magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
        return bytes(16) + version.to_bytes(8, "little") + magic + identities + bytes(32) + (state << 61).to_bytes(8, "little") + bytes(8)

    written = {
        "sda": superblock(3),
        "sdb": superblock(1, 2),
        "sdc": superblock(1, 1),
        "sdd": superblock(3, of="2"),
        "sde": OSError(5, "Input/output error"),
    }
    devices = {name: Device(name, f"/dev/{name}", "disk", MIB, signatures=(Signature("bcache"),)) for name in written}
    host = RecordedHost({"bytes": {f"/dev/{name}": {4096: raw} for name, raw in written.items()}})
    # One that cannot be read may be the cache of anything.
    assert read_unflushed(host, Tree(devices)) == {"sda": ("sdb",), "sde": ("sdb",)}
