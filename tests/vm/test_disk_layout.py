# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users of other tools have lost data or nerves by, done on a machine with real md, LUKS, LVM, udev and mounts."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.vm import leftovers
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

MIB = 1024**2
GIB = 1024 * MIB
ESP = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"

Plain = dict[str, t.Any]
Plugged = t.Callable[[t.Sequence[Disk]], LayoutHost]

KEY = "/root/own-key"
ONE, TWO, OTHER = (Disk(serial, 2 * GIB, "scsi") for serial in ("ONE", "TWO", "OTHER"))


def by_hand(tables: t.Mapping[Disk, t.Sequence[tuple[str, int]]], **lists: list[Plain]) -> Plain:
    """Return a static schema with partitions (a name, MiB) one after the other, and the other lists as they are given."""
    return {"parteds": [_table(disk, partitions) for disk, partitions in tables.items()], **lists}


def _table(disk: Disk, partitions: t.Sequence[tuple[str, int]]) -> Plain:
    begins = [1]
    for _name, size in partitions:
        begins.append(begins[-1] + size)
    return {
        "name": disk.link,
        "disk_id": disk.link,
        "partitions": [
            {"name": part(disk, number), "count": number, "begin": begins[number - 1], "end": begins[number], "space_id": name}
            for number, (name, _size) in enumerate(partitions, start=1)
        ],
    }


def part(disk: Disk, number: int) -> str:
    return f"{disk.link}-part{number}"


def group(name: str, volumes: t.Mapping[str, int], *devices: str) -> dict[str, list[Plain]]:
    """Return the lists of a volume group on devices, with volumes of so many MiB."""
    return {
        "pvs": [{"name": device} for device in devices],
        "vgs": [{"name": name, "pvnames": list(devices)}],
        "lvs": [{"name": volume, "vgname": name, "size": size} for volume, size in volumes.items()],
    }


def filesystem(device: str, fs_type: str) -> Plain:
    return {"device": device, "fs_type": fs_type}


def room(host: LayoutHost, mountpoint: str) -> int:
    """Return the MiB of a mounted file system."""
    return int(host.shell(f"stat --file-system --format='%b %S' {mountpoint} | awk '{{ print int($1 * $2 / 1048576) }}'"))


def serial_of(host: LayoutHost, node: str) -> str:
    """Return the serial number of the disk that a node is on."""
    tree = json.loads(host.shell(f"lsblk --json --inverse --output NAME,TYPE,SERIAL {node}"))["blockdevices"][0]
    while "children" in tree:
        tree = tree["children"][0]
    return t.cast(str, tree["serial"])


def assert_same(host: LayoutHost, schema: Plain, **options: t.Any) -> None:
    """Another run finds nothing to do."""
    again = host.apply(schema, **options)
    assert (again["changed"], again["steps"]) == (False, [])


def test_disks_that_change_their_names_between_plan_and_run(layout_host: Plugged) -> None:
    """The plan is made when ONE is sda; when it is carried out that is TWO, of the same size. Check mode tells all and does nothing."""
    host = layout_host([ONE, TWO])
    schema = [
        {"id": "one", "type": "partition", "size": 777, "mount": "/srv/one", "fs_type": "ext4", "disks": [ONE.link]},
        {"id": "two", "type": "partition", "size": 888, "mount": "/srv/two", "fs_type": "xfs", "disks": [TWO.link]},
    ]
    plan = host.plan(schema)
    names = host.shell(f"readlink -f {ONE.link} {TWO.link}").split()
    host.machine.unplug(ONE)
    host.machine.unplug(TWO)
    host.shell(f"while [ -e {ONE.link} ] || [ -e {TWO.link} ]; do sleep 0.1; done")
    host.machine.plug(TWO)
    host.machine.plug(ONE)
    assert host.shell(f"readlink -f {TWO.link} {ONE.link}").split() == names
    before = host.machine.written([ONE, TWO])
    seen = host.foresee(plan["schema"])
    assert seen["changed"]
    assert ONE.link in json.dumps(seen["diff"])
    assert host.machine.written([ONE, TWO]) == before
    done = host.apply(plan["schema"])
    assert [step["says"] for step in done["steps"]] == [step["says"] for step in seen["steps"]]
    host.check(plan)
    assert {filesystem["device"]: serial_of(host, filesystem["node"]) for filesystem in done["filesystems"]} == {
        part(ONE, 1): "ONE",
        part(TWO, 1): "TWO",
    }
    assert_same(host, plan["schema"])


def test_a_plan_for_other_hardware_is_refused(layout_host: Plugged) -> None:
    host = layout_host([ONE, TWO])
    plan = host.plan([{"id": "all", "type": "partitions", "min_size": 500}])
    facts = host.facts()
    assert facts["disks"][0]["id"] == ONE.link
    host.machine.unplug(TWO)
    host.machine.plug(OTHER)
    before = host.machine.written([ONE, OTHER])
    assert TWO.link in host.refuse(plan["schema"])
    assert TWO.link in host.refuse(plan["schema"], wipe=[ONE.link, TWO.link, OTHER.link])
    only_one = {"parteds": plan["schema"]["parteds"][:1]}
    assert "fingerprint" in host.refuse(only_one, fingerprint=plan["fingerprint"])
    larger = {"parteds": [{**only_one["parteds"][0], "disk_size": 3072}]}
    assert "3072" in host.refuse(larger)
    assert host.machine.written([ONE, OTHER]) == before


def test_what_is_there_is_not_destroyed_without_permission_and_what_is_in_use_never(layout_host: Plugged) -> None:
    host = layout_host([ONE, TWO, OTHER])
    leftovers.volumes_on_mirror(host, ONE, TWO)
    leftovers.sealed_volumes(host, OTHER)
    mirrored = by_hand({ONE: [("new", 500)], TWO: [("new", 500)]})
    other = by_hand({OTHER: [("new", 500)]})
    alone = by_hand({ONE: [("new", 500)]})
    host.shell("sync")
    before = host.writes_at_rest([ONE, TWO, OTHER])

    lost = host.refuse(mirrored)
    assert all(word in lost for word in (ONE.link, TWO.link, "raid1", "oldgroup/data", "oldgroup/thin", "ext4", "xfs"))
    lost = host.refuse(other)
    assert all(word in lost for word in (OTHER.link, "crypto_LUKS", "oldsecret/data", "swap"))
    spanning = host.refuse(alone, wipe=[ONE.link])
    assert "raid1" in spanning
    assert TWO.link in spanning
    assert host.machine.written([ONE, TWO, OTHER]) == before

    host.shell("mkdir -p /mnt/thin && mount /dev/oldgroup/thin /mnt/thin")
    assert "mounted on /mnt/thin" in host.refuse(mirrored, wipe=[ONE.link, TWO.link])
    host.shell("umount /mnt/thin && mount -o ro /dev/oldgroup/data /mnt/thin")
    assert "mounted on /mnt/thin" in host.refuse(mirrored, wipe=[ONE.link, TWO.link])
    host.shell(f"umount /mnt/thin; swapon {part(OTHER, 2)}")
    assert "swap" in host.refuse(other, wipe=[OTHER.link])
    host.shell(f"swapoff {part(OTHER, 2)}")
    assert host.shell("mount /dev/oldgroup/thin /mnt/thin; cat /mnt/thin/file; umount /mnt/thin") == "old\n"

    host.apply(mirrored, wipe=[ONE.link, TWO.link])
    assert "oldsecret/data" in host.refuse(other)
    host.apply(other, wipe=[OTHER.link])


def test_nothing_of_former_lives_comes_back(layout_host: Plugged) -> None:
    """New partitions lie where old ones did. After a wipe, and after the disks were plugged in anew, udev finds nothing of the old."""
    disks = [Disk(f"LEFT-{number}", 2 * GIB, "scsi") for number in range(8)]
    host = layout_host(disks)
    leftovers.volumes_on_mirror(host, *disks[:2])
    leftovers.mirror_of_whole_disks(host, *disks[2:4])
    leftovers.sealed_volumes(host, disks[4])
    leftovers.whole_disk_volumes(host, *disks[5:7])
    leftovers.backup_table_only(host, disks[7])
    schema = by_hand(
        {disk: [("first", 900), ("second", 1000)] for disk in disks}, fss=[filesystem(part(disk, 1), "btrfs") for disk in disks[::2]]
    )
    host.apply(schema, wipe=[disk.link for disk in disks])
    host.machine.run("sync")
    for disk in disks:
        host.machine.unplug(disk)
    host.shell("while ls /dev/sd* >/dev/null 2>&1; do sleep 0.1; done")
    for disk in disks:
        host.machine.plug(disk)
    assert "md" not in host.shell("grep ^md /proc/mdstat || true")
    assert host.shell("vgs --noheadings --options vg_name; lvs --noheadings; pvs --noheadings").strip() == ""
    for disk in disks:
        expected = ["btrfs"] if disk in disks[::2] else []
        for device, types in ((disk.link, ["gpt", "gpt", "PMBR"]), (part(disk, 1), expected), (part(disk, 2), [])):
            found = host.shell(f"wipefs --json --no-act {device}")
            assert sorted(entry["type"] for entry in json.loads(found or '{"signatures": []}')["signatures"]) == sorted(types), device
    assert_same(host, schema)


def test_a_layout_grows_while_it_is_in_use(layout_host: Plugged) -> None:
    """Volumes and partitions grow with their file systems and the data on them, one volume is new, a disk joins the group.

    Making anything smaller, or moving it, is refused.
    """
    host = layout_host([ONE, TWO])
    volumes = {"ext": 301, "xfs": 303, "btr": 333}
    devices = {name: f"/dev/mapper/data-{name}" for name in volumes}
    types = {"ext": "ext4", "xfs": "xfs", "btr": "btrfs"}
    filesystems = [filesystem(devices[name], types[name]) for name in volumes] + [filesystem(part(TWO, 1), "ext4")]
    tables = {ONE: [("data", 1400)], TWO: [("tail", 600)]}
    schema = by_hand(tables, **group("data", volumes, part(ONE, 1)), fss=filesystems)
    host.apply(schema)
    assert_same(host, schema)
    places = {**devices, "tail": part(TWO, 1)}
    for name, device in places.items():
        host.shell(f"mkdir -p /srv/{name}; mount {device} /srv/{name}; head -c 9000000 /dev/urandom >/srv/{name}/file")
    sums = host.shell("sha256sum /srv/*/file")
    small = {name: room(host, f"/srv/{name}") for name in places}

    larger = {"ext": 501, "xfs": 503, "btr": 533, "new": 2000}
    host.machine.plug(OTHER)
    tables = {ONE: [("data", 1900)], TWO: [("tail", 1500)], OTHER: [("data", 2000)]}
    filesystems = [*filesystems, filesystem("/dev/mapper/data-new", "xfs")]
    grown = by_hand(tables, **group("data", larger, part(ONE, 1), part(OTHER, 1)), fss=filesystems)
    seen = host.foresee(grown)
    done = host.apply(grown)
    assert [step["says"] for step in done["steps"]] == [step["says"] for step in seen["steps"]]
    assert_same(host, grown)
    assert host.shell("sha256sum /srv/*/file") == sums
    for name, wanted in {"ext": 200, "xfs": 200, "btr": 200, "tail": 900}.items():
        assert room(host, f"/srv/{name}") - small[name] >= 0.9 * wanted, name
    host.shell("mkdir -p /srv/new; mount /dev/mapper/data-new /srv/new")
    assert room(host, "/srv/new") > 1800

    for name, refused in {
        "data/ext": by_hand(tables, **group("data", {**larger, "ext": 400}, part(ONE, 1), part(OTHER, 1)), fss=filesystems),
        "tail": by_hand({**tables, TWO: [("tail", 700)]}, **group("data", larger, part(ONE, 1), part(OTHER, 1)), fss=filesystems),
        "moved": by_hand(
            {**tables, TWO: [("gap", 100), ("tail", 1500)]}, **group("data", larger, part(ONE, 1), part(OTHER, 1)), fss=filesystems[:3]
        ),
    }.items():
        before = host.machine.written([ONE, TWO, OTHER])
        host.refuse(refused)
        host.machine.run("sync")
        assert host.shell("sha256sum /srv/*/file") == sums, name
        assert host.machine.written([ONE, TWO, OTHER]) - before < 100


BY_HAND = """
sfdisk --quiet {one} <<TABLE
label: gpt
size=1000M, name=left
size=500001, name=sealed
TABLE
echo 'label: gpt
size=1000M' | sfdisk --quiet {two}
udevadm settle
mdadm --create /dev/md/hand --run --quiet --level=1 --metadata=1.2 --bitmap=internal --assume-clean --raid-devices=2 {one}-part1 {two}-part1
pvcreate --quiet /dev/md/hand
vgcreate --quiet hand /dev/md/hand
lvcreate --quiet --yes --name=roomy --size=600m hand
lvcreate --quiet --yes --name=narrow --extents=100%FREE hand
mkfs.ext4 -q -L roomy /dev/hand/roomy
mkfs.xfs -q /dev/hand/narrow
printf secret-of-a-disk | cryptsetup luksFormat --batch-mode --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file - {one}-part2
printf secret-of-a-disk | cryptsetup open --key-file - {one}-part2 sealed
mkfs.btrfs -q /dev/mapper/sealed
mkdir -p /srv/narrow /srv/roomy
mount /dev/hand/narrow /srv/narrow
mount /dev/hand/roomy /srv/roomy
head -c 9000000 /dev/urandom | tee /srv/narrow/file >/srv/roomy/file
udevadm settle
sync
"""


def test_what_was_made_by_hand_is_taken_over_and_one_volume_gives_room_to_another(layout_host: Plugged) -> None:
    host = layout_host([ONE, TWO, OTHER])
    host.shell(BY_HAND.format(one=ONE.link, two=TWO.link))
    before = host.writes_at_rest([ONE, TWO])
    adopted = host.adopt([ONE, TWO, OTHER])
    schema = adopted["schema"]
    assert (adopted["changed"], adopted["steps"], adopted.get("warnings")) == (False, [], None)
    assert host.machine.written([ONE, TWO]) == before
    assert [(array["name"], array["level"], len(array["devices"])) for array in schema["mds"]] == [("/dev/md/hand", "raid1", 2)]
    there = {volume["name"]: volume["size"] for volume in schema["lvs"]}
    assert there == {"roomy": 600, "narrow": there["narrow"]}
    mounts = {entry["device"]: (entry["fs_type"], entry["mount"]) for entry in schema["fss"]}
    assert mounts == {
        "/dev/mapper/sealed": ("btrfs", "none"),
        "/dev/mapper/hand-roomy": ("ext4", "/srv/roomy"),
        "/dev/mapper/hand-narrow": ("xfs", "/srv/narrow"),
    }
    host.shell(f"umask 077; printf secret-of-a-disk >{KEY}")
    assert_same(host, schema, luks_key_file=KEY, wipe=[ONE.link, TWO.link])

    sums = host.shell("sha256sum /srv/*/file")
    sizes = {"roomy": 200, "narrow": there["narrow"] + 400}
    changed = {**schema, "lvs": [{**volume, "size": sizes[volume["name"]]} for volume in schema["lvs"]]}
    options = {"luks_key_file": KEY, "allow_shrink": ["hand/roomy"]}
    assert "name hand/roomy in allow_shrink" in host.refuse(changed, luks_key_file=KEY)
    assert "unmount it (from /srv/roomy)" in host.refuse(changed, **options)
    host.shell("umount /srv/roomy")
    too_small = {**schema, "lvs": [{**volume, "size": {**sizes, "roomy": 8}[volume["name"]]} for volume in schema["lvs"]]}
    assert "MiB are in use" in host.refuse(too_small, **options)
    seen = host.foresee(changed, **options)
    done = host.apply(changed, **options)
    assert [step["kind"] for step in done["steps"]] == ["shrink_logical_volume", "extend_logical_volume", "grow_filesystem"]
    assert [step["says"] for step in done["steps"]] == [step["says"] for step in seen["steps"]]
    assert done["destroys"] == []
    host.shell("e2fsck -fn /dev/hand/roomy; mount /dev/hand/roomy /srv/roomy")
    assert host.shell("sha256sum /srv/*/file") == sums
    assert 170 < room(host, "/srv/roomy") < 200 < 700 < room(host, "/srv/narrow")
    assert_same(host, changed, **options)
    assert_same(host, changed, luks_key_file=KEY)


def test_large_sectors_and_an_esp_on_every_disk(layout_host: Plugged) -> None:
    disks = [Disk("K-ONE", 3 * GIB, "scsi", block=4096), Disk("K-TWO", 3 * GIB, "nvme", block=4096), Disk("P-ONE", 3 * GIB)]
    host = layout_host(disks)
    schema = [
        {"id": "esp", "type": "esp", "size": 300, "disks": [disk.link for disk in disks]},
        {"id": "os", "type": "vg", "contains": ["root", "swap"]},
        {"id": "root", "type": "lv", "min_size": 3000, "mount": "/", "fs_type": "xfs"},
        {"id": "swap", "type": "lv", "size": 100, "fs_type": "swap"},
        {"id": "sealed", "type": "partition", "size": 200, "encrypt": True, "fs_type": "ext4", "mount": "/keys", "disks": [disks[0].link]},
    ]
    plan = host.plan(schema)
    host.apply(plan["schema"], fingerprint=None)
    assert_same(host, plan["schema"])
    host.check(plan)
    found = json.loads(host.shell("lsblk --json --list --output NAME,FSTYPE,PARTTYPE"))["blockdevices"]
    assert [entry["fstype"] for entry in found if entry["parttype"] == ESP] == ["vfat"] * 3


@pytest.mark.parametrize("level", ["raid1"])
def test_either_leg_of_a_mirrored_esp_is_an_esp(layout_host: Plugged, level: str) -> None:
    """Firmware knows nothing of md: it reads one leg, and finds a FAT."""
    host = layout_host([ONE, TWO])
    schema = [{"id": "esp", "type": "raid", "level": level, "legs": 2, "size": 300, "boot": True, "mount": "/boot/efi", "fs_type": "vfat"}]
    plan = host.plan(schema)
    done = host.apply(plan["schema"])
    assert_same(host, plan["schema"])
    host.shell(f"mount {done['filesystems'][0]['node']} /mnt; mkdir -p /mnt/EFI/BOOT; echo loader >/mnt/EFI/BOOT/BOOTX64.EFI; umount /mnt")
    host.build_up_arrays()
    host.shell("mdadm --stop /dev/md/esp")
    legs = [leg for array in plan["schema"]["mds"] for leg in array["devices"]]
    assert len(legs) == 2
    for leg in legs:
        said = host.shell(f"mount -t vfat -o ro $(readlink -f {leg}) /mnt; cat /mnt/EFI/BOOT/BOOTX64.EFI; umount /mnt")
        assert said == "loader\n"
    assert_same_after_start(host, plan["schema"])


def test_a_disk_that_failed_is_replaced_and_a_third_one_joins(layout_host: Plugged) -> None:
    """The file system stays mounted through all of it; at last only the disks that came later are left."""
    one, two, three, four = (Disk(f"LEG-{number}", 512 * MIB, "scsi") for number in (1, 2, 3, 4))
    host = layout_host([one, two])
    schema = [{"id": "data", "type": "raid", "level": "raid1", "legs": "all", "min_size": 400, "mount": "/srv", "fs_type": "ext4"}]
    host.apply(host.plan(schema)["schema"])
    host.shell("mkdir -p /srv; mount /dev/md/data /srv; head -c 9000000 /dev/urandom >/srv/file; sync")
    host.build_up_arrays()
    sums = host.shell("sha256sum /srv/file")

    for gone, new in ((two, three), (one, four)):
        host.machine.unplug(gone)
        host.shell("until grep -q _ /proc/mdstat; do sync; sleep 1; done")
        host.machine.plug(new)
        left = host.plan(schema)
        assert not host.foresee(left["schema"])["destroys"]
        kinds = [step["kind"] for step in host.apply(left["schema"])["steps"]]
        assert kinds == ["write_partition_table", "clear_signatures", "add_members", "finish_partitions"]
        host.build_up_arrays()
        host.shell("grep -q '\\[UU\\]' /proc/mdstat")
        assert_same(host, left["schema"])
    assert host.shell("sha256sum /srv/file") == sums

    host.machine.plug(Disk("LEG-5", 512 * MIB, "scsi"))
    more = host.plan(schema)
    assert [step["kind"] for step in host.apply(more["schema"])["steps"]][2] == "widen_array"
    host.build_up_arrays()
    host.shell("grep -q '\\[UUU\\]' /proc/mdstat")
    assert host.shell("sha256sum /srv/file") == sums
    assert_same(host, more["schema"])


def test_a_disk_that_came_late_is_taken_back_unless_something_is_lost_by_it(layout_host: Plugged) -> None:
    """md would take it back in any case, and overwrite what it alone has. What the messages advise is done as well."""
    one, two, spare = (Disk(f"LEG-{name}", 512 * MIB, "scsi") for name in ("ONE", "TWO", "SPARE"))
    host = layout_host([one, two])
    array = {"name": "/dev/md/m", "level": "raid1", "devices": [part(one, 1), part(two, 1)]}
    schema = by_hand({one: [("leg", 200)], two: [("leg", 200)]}, mds=[array], fss=[filesystem("/dev/md/m", "ext4")])
    both = [one.link, two.link]
    host.apply(schema)
    host.shell("mount /dev/md/m /mnt; echo first >/mnt/file; umount /mnt")

    def stop(*gone: Disk) -> None:
        host.build_up_arrays()
        host.shell("mdadm --stop /dev/md/m")
        for disk in gone:
            host.machine.unplug(disk)
            host.shell(f"while [ -e {disk.link} ]; do sleep 0.1; done")

    def run_without(late: Disk, write: str = "") -> None:
        """Start the array before a disk comes, as a machine does that waits no longer; md counts events with every write of its own."""
        host.shell("mdadm --assemble --run --scan; udevadm settle")
        if write:
            host.shell("mount /dev/md/m /mnt")
            for number in range(6):
                host.shell(f"echo {write} {number} >>/mnt/file; sync; sleep 2")
            host.shell("umount /mnt")
        host.machine.plug(late)

    def whole() -> str:
        """Wait until the copies are one, and return what is on them."""
        host.build_up_arrays()
        md = "/sys/block/$(basename $(readlink -f /dev/md/m))/md"
        host.shell(f"echo check >{md}/sync_action; while [ $(cat {md}/sync_action) != idle ]; do sleep 0.2; done")
        assert host.shell(f"cat {md}/mismatch_cnt {md}/degraded") == "0\n0\n"
        assert_same(host, schema)
        return host.shell("mount /dev/md/m /mnt; tail -n 1 /mnt/file; umount /mnt")

    for late in (one, two):
        stop(late)
        run_without(late)
        assert [step["kind"] for step in host.foresee(schema)["steps"]] == ["re_add_members"]
        assert [step["kind"] for step in host.apply(schema)["steps"]] == ["re_add_members"]
        assert whole() == "first\n"

    stop(two)
    run_without(two, write="later")
    says = host.refuse(schema)
    assert "was changed since" in says
    assert host.refuse(schema, wipe=[one.link]) == says
    (loss,) = host.foresee(schema, wipe=[two.link])["destroys"]
    assert (loss["disk"], [content["kind"] for content in loss["contents"]]) == (two.link, ["linux_raid_member"])
    host.apply(schema, wipe=both)
    assert whole() == "later 5\n"

    stop(one)
    run_without(one, write="by the second")
    advised = host.refuse(schema).rpartition("by hand: ")[2].splitlines()[0]
    assert advised.startswith("mdadm --manage /dev/md")
    host.shell(advised)
    assert whole() == "by the second 5\n"

    stop(two)
    run_without(two, write="apart")
    stop(one)
    run_without(one, write="elsewhere")
    split = host.refuse(schema, wipe=both)
    assert "which was in use without the others" in split
    host.shell(split.rpartition("give ")[2].partition(": ")[2].splitlines()[0].replace(", then ", "; "))
    assert whole() == "elsewhere 5\n"

    host.machine.plug(spare)
    standing_by = by_hand(
        {disk: [("leg", 200)] for disk in (one, two, spare)}, mds=[{**array, "spares": [part(spare, 1)]}], fss=schema["fss"]
    )
    host.apply(standing_by)
    stop(one)
    run_without(one, write="with the spare")
    taken = host.refuse(standing_by, wipe=[*both, spare.link])
    assert "whose place a spare has taken" in taken
    host.shell(taken.rpartition("give ")[2].partition(": ")[2].splitlines()[0].replace(", then ", "; "))
    schema = standing_by
    assert whole() == "with the spare 5\n"


def test_arrays_grow_with_their_members_and_what_is_on_them(layout_host: Plugged) -> None:
    """A mirror with volumes in LUKS, and parity with a file system, which is spread over a further disk at last; both stay mounted.

    md is still building them up when they grow.
    """
    mirror, parity = ([Disk(f"{name}-{number}", GIB, "scsi") for number in range(count)] for name, count in (("M", 2), ("P", 3)))
    host = layout_host([*mirror, *parity])

    def layout(leg: int, volume: int) -> Plain:
        arrays = [
            {"name": f"/dev/md/{name}", "level": level, "devices": [part(disk, 1) for disk in disks], "metadata": "1.2"}
            for name, level, disks in (("m", "raid1", mirror), ("p", "raid5", parity))
        ]
        return by_hand(
            {disk: [("leg", leg)] for disk in (*mirror, *parity)},
            mds=arrays,
            luks=[{"name": "sealed", "device": "/dev/md/m"}],
            **group("safe", {"data": volume}, "/dev/mapper/sealed"),
            fss=[filesystem("/dev/mapper/safe-data", "ext4"), filesystem("/dev/md/p", "xfs")],
        )

    host.apply(layout(300, 200))
    places = {"/srv/data": "/dev/mapper/safe-data", "/srv/parity": "/dev/md/p"}
    for place, device in places.items():
        host.shell(f"mkdir -p {place}; mount {device} {place}; head -c 9000000 /dev/urandom >{place}/file; sync")
    sums = host.shell("sha256sum /srv/*/file")
    small = {place: room(host, place) for place in places}
    host.shell("echo 1000000 | tee /proc/sys/dev/raid/speed_limit_max /proc/sys/dev/raid/speed_limit_min")

    grown = layout(600, 500)
    done = host.apply(grown)
    assert done["destroys"] == []
    kinds = [step["kind"] for step in done["steps"] if step["kind"] != "write_partition_table"]
    assert sorted(kinds) == sorted(
        ["grow_array", "grow_array", "resize_luks", "resize_physical_volume", "extend_logical_volume", "grow_filesystem", "grow_filesystem"]
    )
    assert host.shell("sha256sum /srv/*/file") == sums
    for place, wanted in {"/srv/data": 300, "/srv/parity": 600}.items():
        assert room(host, place) - small[place] >= 0.85 * wanted, place

    parity.append(Disk("P-3", GIB, "scsi"))
    host.machine.plug(parity[-1])
    wider = layout(600, 500)
    done = host.apply(wider)
    assert [step["kind"] for step in done["steps"]] == [
        "write_partition_table",
        "clear_signatures",
        "widen_array",
        "grow_array",
        "finish_partitions",
        "grow_filesystem",
    ]
    assert room(host, "/srv/parity") - small["/srv/parity"] >= 0.85 * 1200
    assert host.shell("sha256sum /srv/*/file") == sums
    assert_same(host, wider)
    host.shell("for array in /dev/md/m /dev/md/p; do mdadm --wait $array || true; done; umount /srv/data /srv/parity")
    host.shell("e2fsck -fn /dev/mapper/safe-data; xfs_repair -n /dev/md/p")


def test_a_spare_takes_the_place_of_a_disk_that_failed_and_gets_a_successor(layout_host: Plugged) -> None:
    """The plan does not say which disk stands by now, but md: whoever is new becomes the spare."""
    one, two, three, four = (Disk(f"LEG-{number}", GIB, "scsi") for number in (1, 2, 3, 4))
    host = layout_host([one, two, three])
    schema = [
        {"id": "data", "type": "raid", "level": "raid1", "spares": 1, "size": 60, "mount": "/srv", "fs_type": "ext4"},
    ]
    made = host.plan(schema)
    host.apply(made["schema"])
    host.shell("mkdir -p /srv; mount /dev/md/data /srv; echo here >/srv/file; sync")
    host.build_up_arrays()
    assert "Spare Devices : 1" in host.shell("mdadm --detail /dev/md/data")
    assert_same(host, made["schema"])
    host.machine.unplug(two)
    # The kernel gives the spare the place that is free.
    host.shell("until mdadm --detail /dev/md/data | grep -q 'Spare Devices : 0' && grep -q '\\[UU\\]' /proc/mdstat; do sync; sleep 1; done")
    host.machine.plug(four)
    left = host.plan(schema)
    assert [step["kind"] for step in host.apply(left["schema"])["steps"]][2] == "add_members"
    assert "Spare Devices : 1" in host.shell("mdadm --detail /dev/md/data")
    assert host.shell("cat /srv/file") == "here\n"
    assert_same(host, left["schema"])


def assert_same_after_start(host: LayoutHost, schema: Plain) -> None:
    """A run starts what was stopped, and finds nothing to change but that."""
    assert {step["kind"] for step in host.apply(schema)["steps"]} == {"start_array"}
    assert_same(host, schema)


def test_data_are_kept_when_the_rest_of_the_disk_is_made_anew(layout_host: Plugged) -> None:
    """The same disk is in `wipe`, and what is beside the data has another shape in the second life."""
    host = layout_host([ONE, TWO])
    first = [
        {"id": "data", "type": "partition", "size": 700, "fs_type": "ext4", "mount": "/data", "disks": [ONE.link]},
        {"id": "old", "type": "partition", "size": 300, "fs_type": "xfs", "mount": "/old", "disks": [ONE.link]},
        {"id": "store", "type": "vg", "contains": ["images"], "disks": [TWO.link]},
        {"id": "images", "type": "lv", "min_size": 500, "fs_type": "xfs", "mount": "/images"},
    ]
    plan = host.plan(first)
    host.apply(plan["schema"])
    host.shell(f"mount {part(ONE, 1)} /mnt; head -c 9000000 /dev/urandom >/mnt/file; sync; umount /mnt")
    host.shell("mount /dev/store/images /mnt; head -c 9000000 /dev/urandom >/mnt/file; sync; umount /mnt")
    read = f"for device in {part(ONE, 1)} /dev/store/images; do mount $device /mnt; sha256sum /mnt/file; umount /mnt; done"
    sums = host.shell(read)
    second = [
        {"id": "data", "type": "partition", "fs_type": "ext4", "mount": "/data", "disks": [ONE.link], "keep_data": True},
        {"id": "new", "type": "partition", "size": 900, "fs_type": "btrfs", "mount": "/new", "disks": [ONE.link]},
        {"id": "store", "type": "vg", "contains": ["images"], "disks": [TWO.link], "keep_data": True},
        {"id": "images", "type": "lv", "fs_type": "xfs", "mount": "/images", "keep_data": True},
    ]
    plan = host.plan(second)
    assert "'old'" in host.refuse(plan["schema"])
    host.apply(plan["schema"], wipe=[ONE.link, TWO.link], keep_unlisted=False)
    assert host.shell(read) == sums
    assert_same(host, plan["schema"], wipe=[ONE.link, TWO.link], keep_unlisted=False)
    host.shell(f"mount {part(ONE, 2)} /mnt; findmnt --types btrfs /mnt; umount /mnt")
    names = [entry["name"] for entry in json.loads(host.shell(f"sfdisk --json {ONE.link}"))["partitiontable"]["partitions"]]
    assert sorted(names) == ["data", "new"]
