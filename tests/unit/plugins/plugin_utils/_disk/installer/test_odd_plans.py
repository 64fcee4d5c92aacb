# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans with odd names, labels and mount points: they arrive as they are, by each target's own rules of quoting, or are refused."""

from __future__ import annotations

import shlex
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import curtin, disko, fai, ignition, kickstart, repart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Target, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import make_plan
from pykickstart.parser import KickstartParser
from pykickstart.version import makeVersion

Plain = dict[str, t.Any]

# Letters that udev leaves in the names of links, and one that it writes as a number.
ODD = r"/dev/disk/by-id/usb-Card_Reader#1+2=3@x\x20_0:0"
NAMES = ["/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", ODD, "/dev/disk/by-id/it's$HOME"]
SPACES: list[Plain] = [
    {
        "id": "a.b+c",
        "type": "partition",
        "size": 1000,
        "fs_type": "ext4",
        "mount": "/srv/50%",
        "fs_label": "my $data's",
        "mount_options": "x-a=50%",
    },
    {"id": "v_1", "type": "vg", "contains": ["l.1"]},
    {"id": "l.1", "type": "lv", "size": 500, "fs_type": "xfs", "mount": "/b"},
]
TARGETS: dict[str, tuple[Target, Plain]] = {
    "kickstart": (kickstart.TARGET, {"version": "RHEL9", "passphrase": "secret"}),
    "curtin": (curtin.TARGET, {"version": "2", "key_file": "/key"}),
    "ignition": (ignition.TARGET, {"key_file": None, "tpm2": True}),
    "fai": (fai.TARGET, {"passphrase": "secret"}),
    "repart": (repart.TARGET, {"disk": None, "encrypt": "tpm2"}),
    "disko": (disko.TARGET, {"password_file": None}),
}


def plan(disk: str, *spaces: Plain) -> Plain:
    disks = [{"id": disk, "type": "ssd", "size": 20480}]
    return make_plan(spaces or SPACES, {"ram": 4096, "firmware": "uefi", "disks": disks})


def written(target: str, made: Plain, *, lossy: bool = False) -> t.Any:
    chosen, options = TARGETS[target]
    return write_plan(chosen, made, None, lossy=lossy, **options).value


@pytest.mark.parametrize("disk", NAMES)
def test_kickstart_reads_names_and_labels_as_they_are(disk: str) -> None:
    handler = makeVersion("RHEL9")
    KickstartParser(handler).readKickstartFromString(written("kickstart", plan(disk)))
    name = disk.removeprefix("/dev/")
    assert handler.ignoredisk.onlyuse == [name]
    assert handler.clearpart.drives == [name]
    assert {part.disk for part in handler.partition.partitions} == {name}
    (data,) = [part for part in handler.partition.partitions if part.mountpoint.startswith("/")]
    assert (data.mountpoint, data.label, data.fsopts) == ("/srv/50%", "my $data's", "x-a=50%")


def test_kickstart_has_commas_between_disks() -> None:
    with pytest.raises(InputError, match="Kickstart separates disks by commas"):
        written("kickstart", plan("/dev/disk/by-id/a,b"), lossy=True)


def test_fai_gives_the_shell_a_label_of_several_words_as_one() -> None:
    spaces = {**SPACES[0], "fs_label": "my data"}
    (line,) = [line for line in written("fai", plan(NAMES[0], spaces)).splitlines() if line.startswith("p=")]
    words = line.split('createopts="')[1].removesuffix('"')
    assert shlex.split(words) == ["-L", "my data"]


@pytest.mark.parametrize(("disk", "says"), [(ODD, "cannot read the name"), (NAMES[2], "in the name"), ("/dev/disk/by-id/a[1]", "name")])
def test_fai_refuses_names_that_its_grammar_cannot_hold(disk: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        written("fai", plan(disk, *SPACES[1:]), lossy=True)


def test_fai_reads_a_colon_where_nothing_is_built_on_partitions() -> None:
    assert written("fai", plan(ODD, {**SPACES[0], "fs_label": "x"})).startswith(f"disk_config {ODD} ")


@pytest.mark.parametrize("target", ["fai", "repart"])
def test_a_colon_in_a_mount_point_is_a_loss(target: str) -> None:
    made = plan(NAMES[0], {"id": "a", "type": "partition", "size": 1000, "fs_type": "ext4", "mount": "/a:b"})
    with pytest.raises(InputError, match="a: .* allows no colon.* in /a:b"):
        written(target, made)
    text = written(target, made, lossy=True)
    assert "/a:b" not in str(text)


def test_fai_takes_no_spaces_in_mount_points() -> None:
    made = plan(NAMES[0], {"id": "a", "type": "partition", "size": 1000, "fs_type": "ext4", "mount": "/a"})
    made["schema"]["fss"][0]["mount"] = "/my data"
    with pytest.raises(InputError, match="no space in /my data"):
        written("fai", made)
    assert "p=a - 1000 ext4 defaults" in written("fai", made, lossy=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("key", "text"), [("fs_options", "-J device=/dev/sdb"), ("fs_options", "'"), ("fstab_options", "a b"), ("fstab_options", "loop")]
)
def test_nobody_gets_options_that_are_not_allowed(target: str, key: str, text: str) -> None:
    made = plan(NAMES[0], {"id": "a", "type": "partition", "size": 1000, "fs_type": "ext4", "mount": "/a"})
    made["schema"]["fss"][0][key] = text
    with pytest.raises(InputError, match=rf"plan\.schema\.fss\[0\]\.{key}: "):
        written(target, made, lossy=True)


def named(group: str = "os", volume: str = "root", array: str = "data", **filesystem: str) -> Plain:
    """Return a static schema with these names; `filesystem` is more of its file system."""
    parts = [
        [{"name": f"/dev/{disk}{number}", "begin": 1000 * number, "end": 1000 * (number + 1)} for number in (1, 2)]
        for disk in ("sda", "sdb")
    ]
    return {
        "parteds": [
            {"name": f"/dev/{disk}", "disk_id": disk, "partitions": made} for disk, made in zip(("sda", "sdb"), parts, strict=True)
        ],
        "mds": [{"name": f"/dev/md/{array}", "level": "raid1", "devices": ["/dev/sda1", "/dev/sdb1"]}],
        "pvs": [{"name": "/dev/sda2"}],
        "vgs": [{"name": group, "pvnames": ["/dev/sda2"]}],
        "lvs": [{"name": volume, "vgname": group, "size": 500}],
        "fss": [{"device": f"/dev/{group}/{volume}", "fs_type": "ext4", **filesystem}],
    }


HARMLESS = {"group": "os", "volume": "root", "array": "data", "fs_options": "-m 1", "mount": "/srv", "fstab_options": "noatime"}
SHELL = ("$(reboot)", "`reboot`", ";reboot", "|reboot", "&", ">b", "*", " ~root", "'", "\\", "{a,b}", "!1", "#")


@pytest.mark.parametrize("key", HARMLESS)
def test_fai_refuses_what_the_shell_of_setup_storage_would_read(key: str) -> None:
    write_plan(fai.TARGET, named(**HARMLESS), None, lossy=True, passphrase=None)
    for words in SHELL:
        made = named(**{**HARMLESS, key: HARMLESS[key] + words})
        for lossy in (True, False):
            with pytest.raises(InputError, match="shell|must be|options: "):
                write_plan(fai.TARGET, made, None, lossy=lossy, passphrase=None)


@pytest.mark.parametrize("passphrase", ["it's", 'a "word"'])
def test_fai_refuses_passphrases_that_its_shell_would_read_otherwise(passphrase: str) -> None:
    made = plan(NAMES[0], {"id": "a", "type": "partition", "size": 1000, "fs_type": "ext4", "encrypt": True})
    with pytest.raises(InputError, match="allows no quotation marks and no line breaks in a passphrase"):
        write_plan(fai.TARGET, made, None, lossy=True, passphrase=passphrase)


def test_percent_signs_are_no_specifiers_in_units() -> None:
    made = written("ignition", plan(NAMES[0], SPACES[0]))
    (unit,) = made["systemd"]["units"]
    assert unit["name"] == "srv-50\\x25.mount"
    assert "Where=/srv/50%%\n" in unit["contents"]
    assert "Options=x-a=50%%\n" in unit["contents"]
    assert made["storage"]["filesystems"][0]["path"] == "/srv/50%"
    (text,) = written("repart", plan(NAMES[0], SPACES[0])).values()
    assert "MountPoint=/srv/50%%:x-a=50%%\n" in text


def test_files_of_repart_keep_the_order_of_a_hundred_partitions() -> None:
    disk = NAMES[0]
    parts = [{"name": f"{disk}-part{at}", "count": at, "begin": at, "end": at + 1, "space_id": f"p{at}"} for at in range(1, 129)]
    names = list(written("repart", {"parteds": [{"name": disk, "disk_id": disk, "disk_size": 200, "partitions": parts}]}))
    assert names == sorted(names)
    assert len(names) == 128


@pytest.mark.parametrize("disk", NAMES)
def test_disko_and_curtin_hold_any_name(disk: str) -> None:
    actions = written("curtin", plan(disk))["config"]
    assert [action["path"] for action in actions if action["type"] == "disk"] == [disk]
    assert [action["label"] for action in actions if "label" in action] == ["my $data's"]
    quoted = disk.replace("\\", "\\\\")
    assert f'device = "{quoted}";' in written("disko", plan(disk))


@pytest.mark.parametrize(("level", "legs"), [("raid0", 2), ("raid5", 3), ("raid6", 4), ("raid10", 4)])
@pytest.mark.parametrize("target", ["kickstart", "curtin", "ignition", "fai", "disko"])
def test_levels_of_arrays_are_each_targets_word(target: str, level: str, legs: int) -> None:
    disks = [{"id": f"/dev/disk/by-id/x{at}", "type": "ssd", "size": 20480} for at in range(legs)]
    space = {"id": "r", "type": "raid", "level": level, "legs": legs, "size": 3000, "fs_type": "xfs", "mount": "/r"}
    made = written(target, make_plan([space], {"ram": 4096, "firmware": "uefi", "disks": disks}))
    words = {"kickstart": f"--level={level.upper()}", "fai": f"{level} /r ", "disko": f"level = {level.removeprefix('raid')};"}
    if target == "curtin":
        (array,) = [action for action in made["config"] if action["type"] == "raid"]
        assert (array["raidlevel"], len(array["devices"])) == (level, legs)
    elif target == "ignition":
        assert [(array["level"], len(array["devices"])) for array in made["storage"]["raid"]] == [(level, legs)]
    else:
        assert words[target] in made
