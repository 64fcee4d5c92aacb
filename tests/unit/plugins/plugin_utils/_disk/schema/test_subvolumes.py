# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subvolumes from the wish to the lines of fstab, the picture, and the installers."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.compare import compare
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import curtin, disko, kickstart, repart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.picture import picture
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.svg import svg
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import planned_layout, summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.words import tip
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.host_files import Settings, conflicting_mounts, host_files
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan

Plain = dict[str, t.Any]

MIB = 1024**2
SYSTEM: Plain = {
    "id": "system",
    "type": "partition",
    "mount_options": "compress=zstd:1",
    "subvolumes": [
        {"name": "/@", "mount": "/"},
        {"name": "@home", "mount": "/home", "mount_options": "nodev", "quota": "5 GiB"},
        {"name": "@/.snapshots"},
    ],
}


def plan(*spaces: Plain, facts: Plain | None = None) -> Plain:
    return make_plan(list(spaces), facts or hardware([("ssd", 20)]))


def mistakes(*spaces: Plain) -> str:
    with pytest.raises(InputError) as caught:
        plan(*spaces)
    return str(caught.value)


def test_a_space_with_subvolumes_is_a_btrfs() -> None:
    made = plan(SYSTEM)
    (filesystem,) = made["schema"]["fss"]
    assert (filesystem["fs_type"], filesystem["mount"], filesystem["fstab_enabled"]) == ("btrfs", "none", True)
    assert filesystem["subvolumes"] == [
        {"name": "@", "mount": "/", "fstab_options": "defaults"},
        {"name": "@home", "mount": "/home", "fstab_options": "nodev", "quota": 5120},
        {"name": "@/.snapshots", "mount": "none", "fstab_options": "defaults"},
    ]
    (desired,) = parse_static_schema(made["schema"]).filesystems
    assert [(one.name, one.limit, one.mount) for one in desired.subvolumes] == [
        ("@", None, "/"),
        ("@home", 5120 * MIB, "/home"),
        ("@/.snapshots", None, "none"),
    ]
    assert "subvolumes" not in plan({"id": "a", "type": "partition", "fs_type": "btrfs"})["schema"]["fss"][0]


def test_what_is_mounted_at_the_root_boots_though_it_is_a_subvolume() -> None:
    facts = hardware([("ssd", 20), ("ssd", 20)])
    made = plan({**SYSTEM, "disks": [facts["disks"][1]["id"]]}, {"id": "esp", "type": "esp", "mount": "/boot/efi"}, facts=facts)
    assert [[space["space_id"] for space in disk["spaces"]] for disk in made["disks"]] == [[], ["esp", "system"]]


def test_several_alike_have_mount_points_of_their_own() -> None:
    several = {**SYSTEM, "subvolumes": [{"name": "@data", "mount": "/srv"}]}
    for space in ({**several, "count": 2}, {**several, "type": "partitions", "per_disk": True}):
        made = plan(space, facts=hardware([("ssd", 20), ("ssd", 20)]))
        assert [filesystem["subvolumes"][0]["mount"] for filesystem in made["schema"]["fss"]] == ["/srv1", "/srv2"]
    assert [line.split()[1:] for line in summary(made).splitlines() if "@data" in line] == [["@data", "subvolume", "/srv1", "…", "/srv2"]]


def test_all_mistakes_are_told_at_once() -> None:
    wrong = [
        {"name": "../up", "mount": "/a"},
        {"name": "a,b"},
        {"name": "c", "mount": "/home", "mount_options": "noatime,compress=zstd"},
        {"name": "d", "mount": "swap", "mount_options": "subvol=x"},
        {"name": "/c", "mount": "/home", "quota": 0},
        {"mount": "relative", "quota": -1},
    ]
    said = mistakes(
        {"id": "a", "type": "partition", "fs_type": "ext4", "mount": "/home", "subvolumes": wrong},
        {"id": "b", "type": "esp", "subvolumes": [{"name": "x"}]},
    )
    for line in (
        "schema[0].subvolumes: only btrfs has subvolumes, ext4 does not",
        "schema[0].subvolumes[0].name: is '../up'; must be a path of letters",
        "schema[0].subvolumes[1].name: is 'a,b'",
        "schema[0].subvolumes[2].mount_options: compress holds for the whole file system",
        "schema[0].subvolumes[2].mount: '/home' is already the mount point of 'a'",
        "schema[0].subvolumes[3].mount_options: subvol follows from the name",
        "schema[0].subvolumes[3].mount: is 'swap'; a subvolume holds files",
        "schema[0].subvolumes[4].name: 'c' is already the name of schema[0].subvolumes[2]",
        "schema[0].subvolumes[4].quota: is 0; leave it out",
        "schema[0].subvolumes[5].name: is missing",
        "schema[0].subvolumes[5].mount: is 'relative'",
        "schema[0].subvolumes[5].quota: is -1; must be 0 or more",
        "schema[1].subvolumes: makes no sense for the type esp",
    ):
        assert line in said, line


def test_the_host_refuses_the_same_in_a_static_schema() -> None:
    schema = plan(SYSTEM)["schema"]
    schema["fss"][0] |= {
        "fs_type": "xfs",
        "mount": "/home",
        "subvolumes": [
            {"name": "a b"},
            {"name": "@", "mount": "/home", "fstab_options": "compress=no"},
            {"name": "@", "quota": 0},
            {"nam": "x"},
        ],
    }
    with pytest.raises(SchemaMistakes) as caught:
        parse_static_schema(schema)
    said = "\n".join(caught.value.mistakes)
    for line in (
        "fss[0].subvolumes: only btrfs has subvolumes, not xfs",
        "fss[0].subvolumes[0].name: must be a path of letters",
        "fss[0].subvolumes[1].fstab_options: compress holds for the whole file system",
        "fss[0].subvolumes[2].quota: ",
        "fss[0].subvolumes[3].nam: ",
    ):
        assert line in said, line
    schema["fss"][0] |= {"fs_type": "btrfs", "subvolumes": [{"name": "@", "mount": "/home"}, {"name": "/@"}]}
    with pytest.raises(SchemaMistakes) as caught:
        parse_static_schema(schema)
    assert caught.value.mistakes == (
        "fss[0].subvolumes[0].mount: /home is already that of fss[0]",
        "fss[0].subvolumes[1].name: @ is already that of fss[0].subvolumes[0]",
    )


def test_fstab_has_a_line_for_each_that_is_mounted() -> None:
    made = plan({**SYSTEM, "mount": "/mnt/top"})
    layout = {
        "schema": made["schema"],
        "filesystems": [{"device": made["schema"]["fss"][0]["device"], "uuid": "u", "mountpoints": ["/home"]}],
    }
    found = host_files(layout, Settings(nofail=("/home",)))["mounts"]
    assert [(line["src"], line["path"], line["fstype"], line["opts"], line["passno"], line["active"]) for line in found] == [
        ("UUID=u", "/", "btrfs", "compress=zstd:1,subvol=@", "0", False),
        ("UUID=u", "/home", "btrfs", "compress=zstd:1,nodev,subvol=@home,nofail", "0", True),
        ("UUID=u", "/mnt/top", "btrfs", "compress=zstd:1", "0", False),
    ]
    assert conflicting_mounts(made["schema"], {"disks": []}, "/", "1 2 3:4 / /home rw - ext4 /dev/x") == ["/home"]


def test_pictures_show_them() -> None:
    made = plan(SYSTEM)
    lines = [line.split() for line in summary(made).splitlines()]
    assert ["├─", "@", "subvolume", "/"] in lines
    assert ["├─", "@home", "subvolume", "/home", "≤", "5", "GiB"] in lines
    assert "btrfs / /home" in planned_layout(made)
    host = picture(made)
    assert tip(host.spaces[0], host.disks[0], 1)[-3:] == [
        "subvolume @, /",
        "subvolume @home, /home, 5 GiB at most",
        "subvolume @/.snapshots",
    ]
    assert "/ …" in svg(made)


def test_what_lies_on_unlike_disks_has_its_subvolumes_once() -> None:
    pair = {"id": "data", "type": "btrfs", "mount": "/srv", "subvolumes": [{"name": "@a", "mount": "/srv/a"}]}
    said = summary(plan(pair, facts=hardware([("ssd", 20), ("ssd", 30)])))
    own, below = (line.split() for line in said.rpartition("\n\n")[2].splitlines())
    assert own == ["data", "20", "GiB", "btrfs", "raid1,", "2", "disks", "/srv", "btrfs"]
    assert below == ["└─", "@a", "subvolume", "/srv/a"]


def test_what_is_mounted_elsewhere_differs() -> None:
    made = plan(SYSTEM)
    (disk,) = made["schema"]["parteds"]
    (part,) = disk["partitions"]
    there = {"number": 1, "uuid": part["uuid"], "start": part["begin"], "size": part["end"] - part["begin"], "fs_type": "btrfs"}
    facts = {"disks": [{"id": disk["disk_id"], "size": disk["disk_size"], "partitions": [there]}]}
    assert compare(made, facts) == []
    there["mountpoints"] = ["/", "/home"]
    assert compare(made, facts) == []
    there["mountpoints"] = ["/"]
    assert [found.says for found in compare(made, facts)] == ["partition 1 (system) is not mounted at /home, as the plan has its @home"]


def lines_for(target: t.Any, made: Plain, **options: t.Any) -> tuple[str, tuple[str, ...]]:
    written = write_plan(target, made, None, **options)
    return str(written.value), written.warnings


def test_installers_make_what_they_can() -> None:
    made = plan({**SYSTEM, "subvolumes": [*SYSTEM["subvolumes"][:1], {"name": "@home", "mount": "/home"}]})
    text, warnings = lines_for(kickstart.TARGET, made, lossy=True, version="Fedora", passphrase=None)
    assert (
        "btrfs none --label=system btrfs.1\nbtrfs / --subvol --name=@ LABEL=system\nbtrfs /home --subvol --name=@home LABEL=system" in text
    )
    assert any("takes no mount options, such as compress=zstd:1; left out" in warning for warning in warnings)
    text, _warnings = lines_for(disko.TARGET, made, lossy=False, password_file=None)
    assert '"/@home" = {' in text
    assert 'type = "btrfs"' in text
    text, warnings = lines_for(repart.TARGET, made, lossy=False, disk=None, encrypt="tpm2")
    assert r"Subvolumes=/@ /@home\nMountPoint=/:compress=zstd:1,subvol=@\nMountPoint=/home:compress=zstd:1,subvol=@home" in text
    assert any("version 255" in warning for warning in warnings)
    with pytest.raises(InputError, match="system: curtin cannot make subvolumes such as @, @home; with lossy: true it is left out"):
        lines_for(curtin.TARGET, made, lossy=False, version="2", key_file=None)


def test_what_installers_cannot_say_is_told() -> None:
    with pytest.raises(InputError, match="system: disko sets no quotas, such as 5120 MiB for @home"):
        lines_for(disko.TARGET, plan(SYSTEM), lossy=False, password_file=None)
    odd = {**SYSTEM, "subvolumes": [{"name": "@", "mount": "/a:b"}, {"name": "@more"}]}
    with pytest.raises(InputError, match="allows no colon in /a:b, where @ is to be mounted"):
        lines_for(repart.TARGET, plan(odd), lossy=False, disk=None, encrypt="tpm2")
    with pytest.raises(InputError, match="Kickstart makes no subvolume without a mount point, such as @more"):
        lines_for(kickstart.TARGET, plan(odd), lossy=False, version="Fedora", passphrase=None)
