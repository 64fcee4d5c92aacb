# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._steps.btrfs import CreateSubvolumes, LimitSubvolumes
from ansible_collections.bareon.allocator.plugins.module_utils._steps.cache import AttachCache, ChangeCacheMode, CreateCacheVolume
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import (
    GrowFilesystem,
    MakeFilesystem,
    MakeSwap,
    RestoreSuperblock,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.key import Key
from ansible_collections.bareon.allocator.plugins.module_utils._steps.luks import CloseMapping, FormatLuks, OpenLuks, ResizeLuks, opens
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import (
    CreateLogicalVolume,
    CreatePhysicalVolume,
    CreateStripedVolume,
    CreateVolumeGroup,
    DeactivateGroup,
    ExtendLogicalVolume,
    ExtendStripedVolume,
    ExtendVolumeGroup,
    FinishLogicalVolumes,
    MarkCleared,
    RemoveLogicalVolume,
    RewriteGroup,
    ShrinkLogicalVolume,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import (
    AddMembers,
    CreateArray,
    GrowArray,
    ReAddMembers,
    StartArray,
    StopArray,
    WidenArray,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.thin import CreateThinPool, CreateThinVolume, ExtendPoolMetadata
from ansible_collections.bareon.allocator.plugins.module_utils._storage.units import MIB
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine

UUIDS = [f"{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}" for digit in "123456"]

ARRAY = UUIDS[1]
ARRAY_COLONS = "22222222:22222222:22222222:22222222"


def detail(level="raid1", uuid=ARRAY_COLONS):
    return {"mdadm --detail --export /dev/md/boot": f"MD_LEVEL={level}\nMD_UUID={uuid}\nMD_DEVICES=2\n"}


def test_an_array_is_created_with_its_identity_and_built_up():
    step = CreateArray("/dev/md/boot", "boot", "raid1", ("/dev/sda1", "/dev/sdb1"), ("/dev/sdc1",), "1.0", ARRAY)
    machine = RecordingMachine(detail())
    step.run(machine)
    (command,) = machine.commands
    assert command == (
        f"mdadm --create /dev/md/boot --run --name=boot --uuid={ARRAY_COLONS} --homehost=any --level=raid1 --metadata=1.0 "
        "--bitmap=internal --raid-devices=2 --spare-devices=1 /dev/sda1 /dev/sdb1 /dev/sdc1"
    )
    assert "--assume-clean" not in command


def test_stripes_have_no_bitmap():
    step = CreateArray("/dev/md/boot", "boot", "raid0", ("/dev/sda1", "/dev/sdb1"), (), "default", ARRAY)
    command = step.command()
    assert not {word for word in command if word.startswith(("--bitmap", "--metadata", "--spare"))}


@pytest.mark.parametrize("answers", [{}, detail(level="raid0"), detail(uuid="33333333:22222222:22222222:22222222")])
def test_another_array_than_the_wanted_is_a_failure(answers):
    step = CreateArray("/dev/md/boot", "boot", "raid1", ("/dev/sda1", "/dev/sdb1"), (), "1.2", ARRAY)
    with pytest.raises(StepFailed, match="/dev/md/boot"):
        step.run(RecordingMachine(answers))


DETAIL = "mdadm --detail --export /dev/md/boot"


def members(*nodes):
    return {DETAIL: "".join(f"MD_DEVICE_dev_{node[5:]}_ROLE=0\nMD_DEVICE_dev_{node[5:]}_DEV={node}\n" for node in nodes)}


def test_members_are_added_and_looked_for():
    machine = RecordingMachine(members("/dev/sda1", "/dev/sdc1"))
    AddMembers("/dev/md/boot", ("/dev/sdc1",)).run(machine)
    WidenArray("/dev/md/boot", ("/dev/sdc1",), 2).run(machine)
    assert machine.commands == [
        "mdadm --manage /dev/md/boot --add /dev/sdc1",
        "mdadm --grow /dev/md/boot --raid-devices=2 --add /dev/sdc1",
    ]
    for answers in ({}, members("/dev/sda1")):
        with pytest.raises(StepFailed, match="/dev/md/boot has .*, but not /dev/sdc1"):
            AddMembers("/dev/md/boot", ("/dev/sdc1",)).run(RecordingMachine(answers))


def test_members_come_back_as_the_members_that_they_were():
    machine = RecordingMachine(members("/dev/sda1", "/dev/sdc1"))
    ReAddMembers("/dev/md/boot", ("/dev/sdc1",)).run(machine)
    assert machine.commands == ["mdadm --manage /dev/md/boot --re-add /dev/sdc1"]
    with pytest.raises(StepFailed, match="/dev/md/boot has .*, but not /dev/sdc1"):
        ReAddMembers("/dev/md/boot", ("/dev/sdc1",)).run(RecordingMachine(members("/dev/sda1")))


def test_an_array_grows_when_it_is_built_up():
    machine = RecordingMachine()
    GrowArray("/dev/md127").run(machine)
    assert machine.commands == ["mdadm --wait /dev/md127", "mdadm --grow /dev/md127 --size=max"]


def test_arrays_start_and_stop():
    machine = RecordingMachine(detail())
    StartArray("/dev/md/boot", ("/dev/sda1", "/dev/sdb1"), ARRAY).run(machine)
    StopArray("/dev/md127").run(machine)
    assert machine.commands == [
        f"mdadm --assemble /dev/md/boot --uuid={ARRAY_COLONS} --homehost=any /dev/sda1 /dev/sdb1",
        "mdadm --stop /dev/md127",
    ]


KEY = Key(b"open sesame")


def test_keys_never_stand_in_commands():
    machine = RecordingMachine({"cryptsetup luksUUID /dev/sda1": f"{UUIDS[1]}\n"})
    FormatLuks("/dev/sda1", UUIDS[1], aligned=False).run(machine.with_key(KEY))
    OpenLuks("/dev/sda1", "keys").run(machine.with_key(KEY))
    ResizeLuks("keys").run(machine.with_key(KEY))
    CloseMapping("keys").run(machine)
    assert machine.commands == [
        f"cryptsetup luksFormat --batch-mode --type=luks2 --uuid={UUIDS[1]} --offset=32768 --key-file=- /dev/sda1",
        "cryptsetup open --type=luks --key-file=- /dev/sda1 keys",
        "cryptsetup resize --key-file=- keys",
        "cryptsetup close keys",
    ]
    assert set(machine.given.values()) == {b"open sesame"}
    assert "sesame" not in repr(KEY)


def test_key_files_are_named_and_arrays_keep_their_own_alignment():
    machine = RecordingMachine({"cryptsetup luksUUID /dev/md/x": UUIDS[1]})
    FormatLuks("/dev/md/x", UUIDS[1], aligned=True).run(machine.with_key(Key(file="/etc/key")))
    assert machine.commands == [f"cryptsetup luksFormat --batch-mode --type=luks2 --uuid={UUIDS[1]} --key-file=/etc/key /dev/md/x"]
    assert machine.given == {}


def test_what_goes_wrong_with_luks_is_said():
    with pytest.raises(StepFailed, match="the key does not open /dev/sda1"):
        OpenLuks("/dev/sda1", "keys").run(RecordingMachine(failing={"cryptsetup open": 2}).with_key(KEY))
    with pytest.raises(StepFailed, match="failed with code 5"):
        OpenLuks("/dev/sda1", "keys").run(RecordingMachine(failing={"cryptsetup open": 5}).with_key(KEY))
    with pytest.raises(StepFailed, match="no LUKS header"):
        FormatLuks("/dev/sda1", UUIDS[1], aligned=True).run(RecordingMachine().with_key(KEY))
    with pytest.raises(StepFailed, match="luks_key"):
        OpenLuks("/dev/sda1", "keys").run(RecordingMachine())


@pytest.mark.parametrize(
    ("version", "option"),
    [
        ("cryptsetup 2.3.7", ""),
        ("cryptsetup 2.4.0", "--disable-external-tokens "),
        ("cryptsetup 2.7.5 flags: UDEV BLKID", "--disable-external-tokens "),
        ("cryptsetup 3.0.0", "--disable-external-tokens "),
    ],
)
def test_a_tpm_does_not_answer_for_a_key(version, option):
    """Older ones ask none, and do not know the option."""
    machine = RecordingMachine({"cryptsetup --version": version})
    assert opens("/dev/sda1", machine, KEY)
    assert machine.commands == [f"cryptsetup open --test-passphrase --type=luks {option}--key-file=- /dev/sda1"]


def test_key_files_have_to_be_there(tmp_path):
    contents = {"empty": b"", "short": bytes(15), "open": bytes(16), "group": bytes(16), "full": bytes(16)}
    files = {name: tmp_path / name for name in contents}
    for name, content in contents.items():
        files[name].write_bytes(content)
        files[name].chmod({"open": 0o644, "group": 0o640}.get(name, 0o600))
    empty, full = files["empty"], files["full"]
    for path in (tmp_path, tmp_path / "none", empty, files["short"], files["open"], files["group"]):
        assert [problem.split(":")[0] for problem in Key(file=str(path)).problems()] == ["luks_key_file"], path
    assert list(Key(file=str(full)).problems()) == []
    keys = Key(file=str(empty), files={"one": str(full), "two": str(tmp_path / "none"), "three": 0})
    assert [problem.split(":")[0] for problem in keys.problems()] == ["luks_key_file", "luks_key_files.two", "luks_key_files.three"]


@pytest.mark.parametrize("character", ["\n", "\r", "\t", "\0", "\x1b", "\x7f", "\u2028"])
def test_a_passphrase_that_nobody_can_type_is_refused(character):
    for text in (f"open sesame{character}", f"{character}open", f"open{character}sesame"):
        assert [problem.split(":")[0] for problem in Key(text.encode()).passphrase_problems()] == ["luks_key"]
    assert list(Key("offen, Sésam \u00a0!".encode()).passphrase_problems()) == []


def test_a_container_can_have_a_key_of_its_own():
    keys = Key(b"open sesame", files={"own": "/etc/own"})
    machine = RecordingMachine({"cryptsetup luksUUID /dev/sda1": UUIDS[1]})
    FormatLuks("/dev/sda1", UUIDS[1], aligned=True, name="own").run(machine.with_key(keys))
    OpenLuks("/dev/sda1", "own").run(machine.with_key(keys))
    ResizeLuks("own").run(machine.with_key(keys))
    OpenLuks("/dev/sda2", "other").run(machine.with_key(keys))
    *own, other = machine.commands
    assert all("--key-file=/etc/own" in command for command in own)
    assert "--key-file=-" in other
    assert machine.given == {other: b"open sesame"}


def report(kind, **row):
    return json.dumps({"report": [{kind: [row]}]})


COLUMNS = "--reportformat json --units b --nosuffix --options"


def test_physical_volumes_begin_at_whole_mib_but_on_arrays():
    machine = RecordingMachine({f"pvs {COLUMNS} pv_uuid {device}": report("pv", pv_uuid="x") for device in ("/dev/sda1", "/dev/md/x")})
    CreatePhysicalVolume("/dev/sda1", 28 * MIB, 2, aligned=False).run(machine)
    CreatePhysicalVolume("/dev/md/x", 0, 1, aligned=True).run(machine)
    assert [command for command in machine.commands if command.startswith("pvcreate")] == [
        "pvcreate --yes --quiet --metadatasize=29360128b --dataalignment=1m --pvmetadatacopies=2 /dev/sda1",
        "pvcreate --yes --quiet --pvmetadatacopies=1 /dev/md/x",
    ]


def test_groups_are_made_and_extended_over_disks_of_all_sectors():
    rows = {"report": [{"vg": [{"pv_name": "/dev/sda1"}, {"pv_name": "/dev/sdb1"}]}]}
    machine = RecordingMachine({f"vgs {COLUMNS} pv_name os": json.dumps(rows)})
    CreateVolumeGroup("os", ("/dev/sda1",)).run(machine)
    ExtendVolumeGroup("os", ("/dev/sdb1",)).run(machine)
    mixed = "--config devices{allow_mixed_block_sizes=1}"
    assert [command for command in machine.commands if not command.startswith("vgs")] == [
        f"vgcreate --yes --quiet {mixed} --physicalextentsize=4194304b os /dev/sda1",
        f"vgextend --yes --quiet {mixed} os /dev/sdb1",
    ]
    RewriteGroup("os").run(machine)
    assert machine.commands[-1] == "vgck --updatemetadata os"
    with pytest.raises(StepFailed, match="lacks /dev/sdc1"):
        ExtendVolumeGroup("os", ("/dev/sdc1",)).run(machine)


def test_a_volume_is_made_unfinished_unseen_and_finished_at_last():
    rows = {"report": [{"lv": [{"lv_name": "c", "lv_tags": ""}, {"lv_name": "a-b", "lv_tags": "other"}]}]}
    machine = RecordingMachine({f"lvs {COLUMNS} lv_name,lv_tags os/a-b os/c": json.dumps(rows)}, {"/sys/class/block/os-a--b/size": "16384"})
    CreateLogicalVolume("os", "a-b", 8 * MIB, "/dev/mapper/os-a--b").run(machine)
    MarkCleared("os", ("a-b", "c")).run(machine)
    FinishLogicalVolumes("os", ("a-b", "c")).run(machine)
    assert machine.commands[:3] == [
        "lvcreate --yes --quiet --wipesignatures y --zero y --addtag bareon.unfinished --name a-b --size 8388608b os",
        "lvchange --quiet --addtag bareon.cleared os/a-b os/c",
        "lvchange --quiet --deltag bareon.unfinished --deltag bareon.cleared os/a-b os/c",
    ]
    with pytest.raises(StepFailed, match="8388608 bytes instead of 9437184"):
        CreateLogicalVolume("os", "a-b", 9 * MIB, "/dev/mapper/os-a--b").run(machine)


def striped_answers(free, stripes, size):
    """What LVM says of two physical volumes in the group, one of another group, and of the segments of a volume."""
    volumes = [{"pv_name": node, "pv_free": str(room), "vg_name": "os", "vg_extent_size": str(4 * MIB)} for node, room in free.items()]
    volumes.append({"pv_name": "/dev/sdz1", "pv_free": "99999999999", "vg_name": "other", "vg_extent_size": str(4 * MIB)})
    segments = [{"lv_size": str(size), "stripes": str(count)} for count in stripes]
    return {
        f"pvs {COLUMNS} pv_name,pv_free,vg_name,vg_extent_size": json.dumps({"report": [{"pv": volumes}]}),
        f"lvs {COLUMNS} lv_size,stripes os/wide": json.dumps({"report": [{"lv": segments}]}),
    }


@pytest.mark.parametrize(
    ("room", "commands"),
    [
        ((80, 80, 99), ["lvcreate SIZE=640 /dev/sda1 /dev/sdb1"]),
        ((79, 80, 99), ["lvcreate SIZE=640 /dev/sdc1 /dev/sdb1"]),
        ((40, 70, 90), ["lvcreate SIZE=560 /dev/sdc1 /dev/sdb1", "lvextend SIZE=640 /dev/sda1 /dev/sdc1"]),
    ],
)
def test_a_striped_volume_is_made_where_it_is_wanted_or_segment_after_segment(room, commands):
    free = {f"/dev/sd{letter}1": extents * 4 * MIB for letter, extents in zip("abc", room)}
    machine = RecordingMachine(striped_answers(free, [2], 640 * MIB), {"/sys/class/block/os-wide/size": str(640 * MIB // 512)})
    CreateStripedVolume("os", "wide", 640 * MIB, "/dev/mapper/os-wide", 2, 128 * 1024, ("/dev/sda1", "/dev/sdb1")).run(machine)
    made = [command for command in machine.commands if command.startswith(("lvcreate", "lvextend"))]
    assert all("--stripes=2 --stripesize=128k" in command for command in made)
    assert "--wipesignatures y --zero y --addtag bareon.unfinished --name wide os" in made[0]
    short = [f"{command.split()[0]} {' '.join(_size_and_nodes(command))}" for command in made]
    assert short == commands


def _size_and_nodes(command):
    size = next(word for word in command.split() if word.startswith("--size="))
    return [f"SIZE={int(size[7:-1]) // MIB}", *(word for word in command.split() if word.startswith("/dev/"))]


def test_a_striped_volume_grows_in_its_stripes_and_nothing_else_is_taken_for_it():
    free = {"/dev/sda1": 40 * MIB, "/dev/sdb1": 40 * MIB}
    step = ExtendStripedVolume("os", "wide", 80 * MIB, 40 * MIB, 2, 0, ("/dev/sda1", "/dev/sdb1"))
    machine = RecordingMachine(striped_answers(free, [2, 2], 80 * MIB))
    step.run(machine)
    assert "lvextend --yes --quiet --stripes=2 --size=83886080b os/wide /dev/sda1 /dev/sdb1" in machine.commands
    with pytest.raises(StepFailed, match="segments of 1, 2 stripes"):
        step.run(RecordingMachine(striped_answers(free, [2, 1], 80 * MIB)))
    with pytest.raises(StepFailed, match="no room"):
        step.run(RecordingMachine(striped_answers({"/dev/sda1": 40 * MIB, "/dev/sdb1": 4 * MIB}, [2], 80 * MIB)))


def test_a_thin_pool_and_what_is_in_it_are_made_unfinished():
    rows = [report("lv", lv_size="8388608", lv_metadata_size="4194304"), report("lv", lv_size="8388608", lv_metadata_size="0")]
    machine = RecordingMachine({f"lvs {COLUMNS} lv_size,lv_metadata_size os/p": rows}, {"/sys/class/block/os-a/size": "32768"})
    pool = CreateThinPool("os", "p", 8 * MIB, 4 * MIB, 64 * 1024)
    pool.run(machine)
    CreateThinVolume("os", "a", "p", 16 * MIB, "/dev/mapper/os-a").run(machine)
    assert [command for command in machine.commands if command.startswith("lvcreate")] == [
        "lvcreate --yes --quiet --type=thin-pool --zero=y --poolmetadataspare=y --size=8388608b --poolmetadatasize=4194304b "
        "--chunksize=65536b --addtag bareon.unfinished --name p os",
        "lvcreate --yes --quiet --type=thin --addtag bareon.unfinished --name a --virtualsize=16777216b --thinpool p os",
    ]
    with pytest.raises(StepFailed, match="0 of metadata"):
        pool.run(machine)


def test_a_cache_is_made_of_a_whole_physical_volume_attached_and_changed():
    attached = [report("lv", pool_lv="[fast_cvol]"), report("lv", pool_lv="")]
    modes = [report("lv", cache_mode="writeback"), report("lv", cache_mode="writethrough")]
    answers = {
        f"lvs {COLUMNS} pool_lv os/a": attached,
        f"lvs {COLUMNS} cache_mode os/a": modes,
    }
    machine = RecordingMachine(answers)
    CreateCacheVolume("os", "fast", "/dev/sdb1").run(machine)
    AttachCache("os", "a", "fast", "writethrough").run(machine)
    ChangeCacheMode("os", "a", "writeback").run(machine)
    assert [command for command in machine.commands if command.startswith(("lvc", "sync"))] == [
        "lvcreate --yes --quiet --wipesignatures y --zero y --addtag bareon.unfinished --name fast --extents 100%PVS os /dev/sdb1",
        "sync /dev/mapper/os-fast",
        "lvconvert --yes --quiet --type=cache --cachevol=os/fast --cachemode=writethrough os/a",
        "lvchange --yes --quiet --cachemode=writeback os/a",
    ]
    with pytest.raises(StepFailed, match="os/a has the cache \\(none\\) after it was given fast"):
        AttachCache("os", "a", "fast", "writethrough").run(machine)
    with pytest.raises(StepFailed, match="is cached by writethrough after it was changed to writeback"):
        ChangeCacheMode("os", "a", "writeback").run(machine)


def test_the_metadata_of_a_thin_pool_grow():
    rows = [report("lv", lv_metadata_size="8388608"), report("lv", lv_metadata_size="4194304")]
    machine = RecordingMachine({f"lvs {COLUMNS} lv_metadata_size os/p": rows})
    step = ExtendPoolMetadata("os", "p", 8 * MIB, 4 * MIB)
    step.run(machine)
    assert machine.commands[0] == "lvextend --yes --quiet --poolmetadatasize=8388608b os/p"
    with pytest.raises(StepFailed, match="4194304 bytes of metadata after"):
        step.run(machine)


def test_a_tag_that_stays_is_a_failure():
    rows = {"report": [{"lv": [{"lv_name": "a", "lv_tags": "x,bareon.unfinished"}, {"lv_name": "b", "lv_tags": "x"}]}]}
    machine = RecordingMachine({f"lvs {COLUMNS} lv_name,lv_tags os/a os/b os/c": json.dumps(rows)})
    with pytest.raises(StepFailed, match="^a, c of os still has the tag"):
        FinishLogicalVolumes("os", ("a", "b", "c")).run(machine)


def test_a_volume_that_lacks_a_byte_is_a_failure():
    machine = RecordingMachine(files={"/sys/class/block/os-a/size": "16384"})
    CreateLogicalVolume("os", "a", 8 * MIB - 1, "/dev/mapper/os-a").run(machine)
    with pytest.raises(StepFailed, match="8388608 bytes instead of 8388609"):
        CreateLogicalVolume("os", "a", 8 * MIB + 1, "/dev/mapper/os-a").run(machine)


def test_volumes_grow_and_go():
    machine = RecordingMachine({f"lvs {COLUMNS} lv_size os/a": [report("lv", lv_size="8388608"), report("lv", lv_size="4194304")]})
    step = ExtendLogicalVolume("os", "a", 8 * MIB, 4 * MIB)
    step.run(machine)
    RemoveLogicalVolume("os", "b").run(machine)
    assert machine.commands[0] == "lvextend --yes --quiet --size 8388608b os/a"
    RemoveLogicalVolume("os", "p", begun=True).run(machine)
    assert [command for command in machine.commands if command.startswith("lvremove")] == [
        "lvremove --yes --quiet os/b",
        "lvremove --yes --quiet --force --force os/p",
    ]
    with pytest.raises(StepFailed, match="4194304 bytes after"):
        step.run(machine)


def blocks(count):
    return f"Block count:              {count}\nFree blocks:              100\nBlock size:               1024\n"


SHRUNK = ShrinkLogicalVolume("os", "a", 4 * MIB, 8 * MIB, "/dev/mapper/os-a", "ext4")


def test_a_volume_shrinks_after_what_is_on_it():
    sizes = {"dumpe2fs -h /dev/mapper/os-a": [blocks(8192), blocks(4096)], f"lvs {COLUMNS} lv_size os/a": report("lv", lv_size="4194304")}
    machine = RecordingMachine(sizes)
    SHRUNK.run(machine)
    assert [command for command in machine.commands if not command.startswith(("dumpe2fs", "lvs"))] == [
        "e2fsck -f -p /dev/mapper/os-a",
        "resize2fs /dev/mapper/os-a 4096K",
        "lvreduce --yes --quiet --size 4194304b os/a",
    ]
    again = RecordingMachine({**sizes, "dumpe2fs -h /dev/mapper/os-a": blocks(4096)})
    SHRUNK.run(again)
    assert not [command for command in again.commands if command.startswith("resize2fs")]


@pytest.mark.parametrize(("answer", "says"), [(blocks(8192), "8388608 bytes after"), ("", "cannot be read")])
def test_nothing_is_cut_off_of_what_did_not_shrink(answer, says):
    machine = RecordingMachine({"dumpe2fs -h /dev/mapper/os-a": answer})
    with pytest.raises(StepFailed, match=says):
        SHRUNK.run(machine)
    assert not [command for command in machine.commands if command.startswith("lvreduce")]


def test_of_two_groups_of_one_name_the_right_one_is_deactivated():
    machine = RecordingMachine()
    DeactivateGroup("os").run(machine)
    DeactivateGroup("os", "abc").run(machine)
    assert machine.commands == ["vgchange --activate n os", "vgchange --activate n --select vg_uuid=abc"]


@pytest.mark.parametrize(
    ("kind", "uuid", "label", "options", "expected"),
    [
        ("ext4", UUIDS[1], "data", ("-m", "0"), f"mkfs.ext4 -q -U {UUIDS[1]} -L data -m 0 /dev/sda1"),
        ("ext2", UUIDS[1], "", (), f"mkfs.ext2 -q -U {UUIDS[1]} /dev/sda1"),
        ("xfs", UUIDS[1], "data", ("-m", "reflink=0"), f"mkfs.xfs -q -m uuid={UUIDS[1]} -L data -m reflink=0 /dev/sda1"),
        ("btrfs", UUIDS[1], "data", (), f"mkfs.btrfs -q -U {UUIDS[1]} -L data /dev/sda1"),
        ("f2fs", UUIDS[1], "data", (), f"mkfs.f2fs -q -U {UUIDS[1]} -l data /dev/sda1"),
        ("vfat", "1A2B-3C4D", "EFI", (), "mkfs.vfat -F 32 -i 1A2B3C4D -n EFI /dev/sda1"),
    ],
)
def test_filesystems_are_made_with_their_identity(kind, uuid, label, options, expected):
    machine = RecordingMachine({"blkid --probe --output export /dev/sda1": f"TYPE={kind}\nUUID={uuid}\nLABEL={label.upper()}\n"})
    MakeFilesystem("/dev/sda1", kind, uuid, label, options).run(machine)
    assert machine.commands == [expected]


def test_swap_is_made():
    machine = RecordingMachine({"blkid --probe --output export /dev/sda1": f"TYPE=swap\nUUID={UUIDS[1]}\nLABEL=s\n"})
    MakeSwap("/dev/sda1", UUIDS[1], "s", ("--pagesize", "4096")).run(machine)
    assert machine.commands == [f"mkswap -U {UUIDS[1]} -L s --pagesize 4096 /dev/sda1"]


@pytest.mark.parametrize(
    ("found", "said"),
    [("", "has None"), (f"TYPE=xfs\nUUID={UUIDS[1]}", "has xfs"), (f"TYPE=ext4\nUUID={UUIDS[2]}", UUIDS[2])]
    + [(f"TYPE=ext4\nUUID={UUIDS[1]}\nLABEL=b", "label b instead of a")],
)
def test_another_filesystem_than_the_wanted_is_a_failure(found, said):
    machine = RecordingMachine({"blkid --probe --output export /dev/sda1": found})
    with pytest.raises(StepFailed, match=said):
        MakeFilesystem("/dev/sda1", "ext4", UUIDS[1], "a", ()).run(machine)


def test_filesystems_grow_where_they_are_mounted():
    machine = RecordingMachine()
    for kind in ("ext4", "xfs", "btrfs"):
        GrowFilesystem("/dev/sda1", kind, "/srv").run(machine)
    assert machine.commands == ["resize2fs /dev/sda1", "xfs_growfs -d /srv", "btrfs filesystem resize max /srv"]


def test_filesystems_that_are_not_mounted_grow_apart():
    machine = RecordingMachine(failing={"e2fsck": 1})
    for kind in ("ext3", "xfs", "btrfs"):
        GrowFilesystem("/dev/sda1", kind, None).run(machine)
    assert machine.commands[0] == "e2fsck -f -p /dev/sda1"
    assert all(command.startswith("unshare --mount -- sh -c ") for command in machine.commands[1:])
    assert machine.commands[1].endswith(" sh /dev/sda1 /mnt resize2fs /dev/sda1")
    assert machine.commands[2].endswith(" sh /dev/sda1 /mnt xfs_growfs -d /mnt")
    assert machine.commands[3].endswith(" sh /dev/sda1 /mnt btrfs filesystem resize max /mnt")
    with pytest.raises(StepFailed, match="e2fsck"):
        GrowFilesystem("/dev/sda1", "ext4", None).run(RecordingMachine(failing={"e2fsck": 4}))


def test_an_ext4_that_may_not_grow_while_it_is_mounted_grows_unmounted():
    machine = RecordingMachine(failing={"unshare": 1})
    GrowFilesystem("/dev/sda1", "ext4", None).run(machine)
    assert [command.split(maxsplit=1)[0] for command in machine.commands] == ["e2fsck", "unshare", "e2fsck", "resize2fs"]
    for kind, mountpoint, failing in (("xfs", None, "unshare"), ("ext4", "/srv", "resize2fs")):
        with pytest.raises(StepFailed):
            GrowFilesystem("/dev/sda1", kind, mountpoint).run(RecordingMachine(failing={failing: 1}))


def test_what_is_no_whole_copy_of_a_superblock_is_not_written():
    machine = RecordingMachine()
    with pytest.raises(StepFailed, match="the block 8193 of /dev/sda1 has no whole copy of the superblock of its ext4"):
        RestoreSuperblock("/dev/sda1", "ext4", 8193, 1024).run(machine)
    assert machine.commands == []


def test_what_grows_only_unmounted_is_checked_and_grown_and_never_while_it_is_mounted():
    machine = RecordingMachine()
    GrowFilesystem("/dev/sda1", "f2fs", None).run(machine)
    assert machine.commands == ["fsck.f2fs -f --dry-run /dev/sda1", "resize.f2fs /dev/sda1"]
    with pytest.raises(StepFailed, match="fsck.f2fs"):
        GrowFilesystem("/dev/sda1", "f2fs", None).run(RecordingMachine(failing={"fsck.f2fs": 4}))
    for kind, mountpoint in (("f2fs", "/srv"), ("vfat", None)):
        machine = RecordingMachine()
        with pytest.raises(StepFailed, match=f"the {kind} on .* cannot be grown"):
            GrowFilesystem("/dev/sda1", kind, mountpoint).run(machine)
        assert machine.commands == []


def test_a_btrfs_on_several_devices_is_made_at_once_and_looked_at_on_each():
    found = f"TYPE=btrfs\nUUID={UUIDS[1]}\n"
    machine = RecordingMachine({f"blkid --probe --output export /dev/sd{disk}1": found for disk in "ab"})
    MakeFilesystem("/dev/sda1", "btrfs", UUIDS[1], "", ("-n", "16k"), ("/dev/sdb1",), "raid0").run(machine)
    assert machine.commands == [f"mkfs.btrfs -q -U {UUIDS[1]} -d raid0 -m raid1 -n 16k /dev/sda1 /dev/sdb1"]
    assert ("run", "btrfs device scan --forget") in machine.events
    with pytest.raises(StepFailed, match="/dev/sdc1 has None"):
        MakeFilesystem("/dev/sda1", "btrfs", UUIDS[1], "", (), ("/dev/sdc1",), "raid1").run(machine)
    GrowFilesystem("/dev/sda1", "btrfs", "/srv", several=True).run(machine)
    assert machine.commands[-1].startswith("sh -c set -e; shown=")
    assert machine.commands[-1].endswith(" sh /srv")


def test_subvolumes_are_made_and_limited_where_nobody_else_sees_it():
    machine = RecordingMachine()
    for step in (CreateSubvolumes("/dev/sda1", ("@", "@home")), LimitSubvolumes("/dev/sda1", ("@home",), (32 * MIB,))):
        # The machine says nothing of what is there afterwards.
        with pytest.raises(StepFailed, match="although btrfs did not complain|may refer to None bytes instead of"):
            step.run(machine)
    assert [command.startswith("unshare --mount -- sh -c ") for command in machine.commands] == [True, True]
    assert machine.commands[0].endswith(" sh /dev/sda1 /mnt @ @home")
    assert machine.commands[1].endswith(f" sh /dev/sda1 /mnt @home {32 * MIB}")
