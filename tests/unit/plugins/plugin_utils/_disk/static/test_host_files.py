# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What fstab, crypttab and mdadm.conf have to say of a layout, and what of it they say already."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.host_files import (
    Settings,
    conflicting_mounts,
    host_files,
    needed_tools,
)


def entry(device, mount, fs_type="ext4", **more):
    return {"device": device, "mount": mount, "fs_type": fs_type, "fstab_enabled": mount != "none", "space_id": device[5:], **more}


LAYOUT = {
    "schema": {
        "mds": [{"name": "/dev/md/data", "level": "raid1", "devices": ["/dev/sda1", "/dev/sdb1"], "metadata": "1.2"}],
        "luks": [{"name": "srv-crypt", "device": "/dev/md/data", "space_id": "srv"}],
        "fss": [
            entry("/dev/log", "/var/log", fstab_options="nodev,noexec"),
            entry("/dev/mapper/srv-crypt", "/srv", "xfs"),
            entry("/dev/swap", "swap", "swap"),
            entry("/dev/root", "/"),
            entry("/dev/raw", "none"),
            entry("/dev/off", "/off", fstab_enabled=False),
            entry("/dev/var", "/var", "btrfs"),
            entry("/dev/esp", "/boot/efi", "vfat"),
        ],
    },
    "filesystems": [
        {"device": device, "uuid": f"u-{device[5:]}", "mountpoints": mountpoints}
        for device, mountpoints in (
            ("/dev/log", []),
            ("/dev/mapper/srv-crypt", ["/srv"]),
            ("/dev/swap", ["[SWAP]"]),
            ("/dev/root", ["/"]),
            ("/dev/var", []),
            ("/dev/esp", ["/target/boot/efi"]),
        )
    ],
    "containers": [{"name": "srv-crypt", "uuid": "u-luks"}],
    "arrays": [{"device": "/dev/md/data", "uuid": "01234567-89ab-cdef-0011-223344556677"}],
}


def lines(entries):
    return [" ".join(entry[key] for key in ("src", "path", "fstype", "opts", "dump", "passno")) for entry in entries]


def test_mounts_come_in_the_order_in_which_they_can_be_made():
    found = host_files(LAYOUT, Settings())
    assert lines(found["mounts"]) == [
        "UUID=u-root / ext4 defaults 0 1",
        "UUID=u-mapper/srv-crypt /srv xfs defaults 0 0",
        "UUID=u-var /var btrfs defaults 0 0",
        "UUID=u-esp /boot/efi vfat umask=0077 0 2",
        "UUID=u-log /var/log ext4 nodev,noexec 0 2",
    ]
    assert lines(found["swaps"]) == ["UUID=u-swap none swap defaults 0 0"]
    assert [mount["active"] for mount in found["mounts"]] == [True, True, False, False, False]
    assert (found["swaps"][0]["device"], found["swaps"][0]["active"]) == ("/dev/swap", True)
    assert not any(item["configured"] for kind in found.values() for item in kind)


def test_a_start_does_not_wait_for_one_of_several_esps():
    legs = [entry("/dev/one", "/boot/efi", "vfat", space_id="esp"), entry("/dev/two", "none", "vfat", space_id="esp")]
    layout = {"schema": {"fss": legs}, "filesystems": [{"device": "/dev/one", "uuid": "u-one"}, {"device": "/dev/two", "uuid": "u-two"}]}
    assert lines(host_files(layout, Settings())["mounts"]) == ["UUID=u-one /boot/efi vfat umask=0077,nofail 0 2"]
    alone = {**layout, "schema": {"fss": legs[:1]}}
    assert lines(host_files(alone, Settings())["mounts"]) == ["UUID=u-one /boot/efi vfat umask=0077 0 2"]


def test_arrays_and_containers_are_named_by_uuid():
    found = host_files(LAYOUT, Settings(key_files={"srv": "/etc/keys/srv"}, crypttab_options="luks,discard"))
    assert [array["line"] for array in found["arrays"]] == ["ARRAY /dev/md/data metadata=1.2 UUID=01234567:89abcdef:00112233:44556677"]
    assert [container["line"] for container in found["containers"]] == ["srv-crypt UUID=u-luks /etc/keys/srv luks,discard"]
    assert host_files(LAYOUT, Settings())["containers"][0]["line"] == "srv-crypt UUID=u-luks none luks"
    assert host_files(LAYOUT, Settings(key_file="/all"))["containers"][0]["line"] == "srv-crypt UUID=u-luks /all luks"
    by_name = host_files(LAYOUT, Settings(key_files={"srv": "/a", "srv-crypt": "/b"}))
    assert by_name["containers"][0]["line"] == "srv-crypt UUID=u-luks /b luks"


@pytest.mark.parametrize(
    ("nofail", "expected"),
    [
        ((), []),
        (("/srv",), ["/srv"]),
        (("log", "swap", "/off"), ["/var/log", "none"]),
        (("all",), ["/srv", "/var", "/boot/efi", "/var/log", "none"]),
    ],
)
def test_nofail_is_for_mount_points_spaces_or_all_but_the_root(nofail, expected):
    found = host_files(LAYOUT, Settings(nofail=nofail))
    assert [item["path"] for item in (*found["mounts"], *found["swaps"]) if "nofail" in item["opts"].split(",")] == expected


@pytest.mark.parametrize(("nofail", "expected"), [((), "luks"), (("/srv",), "luks,nofail"), (("all",), "luks,nofail"), (("/var",), "luks")])
def test_what_need_not_be_there_is_not_waited_for_below_either(nofail, expected):
    assert host_files(LAYOUT, Settings(nofail=nofail))["containers"][0]["line"] == f"srv-crypt UUID=u-luks none {expected}"


ENCRYPTED_GROUP = {
    "schema": {
        "luks": [{"name": "os-crypt", "device": "/dev/sda2", "space_id": "os"}],
        "pvs": [{"name": "/dev/mapper/os-crypt"}],
        "vgs": [{"name": "o-s", "pvnames": ["/dev/mapper/os-crypt"]}],
        "lvs": [{"name": "srv", "vgname": "o-s", "size": 8}, {"name": "log", "vgname": "o-s", "size": 8}],
        "fss": [entry("/dev/mapper/o--s-srv", "/srv"), entry("/dev/o-s/log", "/srv/log")],
    },
    "filesystems": [{"device": "/dev/mapper/o--s-srv", "uuid": "u-srv"}, {"device": "/dev/mapper/o--s-log", "uuid": "u-log"}],
    "containers": [{"name": "os-crypt", "uuid": "u-luks"}],
}


@pytest.mark.parametrize(
    ("nofail", "expected"),
    [((), "luks"), (("all",), "luks,nofail"), (("/srv", "/srv/log"), "luks,nofail"), (("os",), "luks,nofail"), (("/srv",), "luks")],
)
def test_a_container_under_a_group_is_waited_for_as_long_as_anything_on_it_is(nofail, expected):
    assert host_files(ENCRYPTED_GROUP, Settings(nofail=nofail))["containers"][0]["line"] == f"os-crypt UUID=u-luks none {expected}"


def test_a_container_with_the_root_is_waited_for_whatever_else_is():
    schema = {**ENCRYPTED_GROUP["schema"], "fss": [entry("/dev/mapper/o--s-srv", "/"), entry("/dev/o-s/log", "/srv/log")]}
    found = host_files({**ENCRYPTED_GROUP, "schema": schema}, Settings(nofail=("all",)))
    assert found["containers"][0]["line"] == "os-crypt UUID=u-luks none luks"


@pytest.mark.parametrize(
    ("there", "settings", "key", "configured"),
    [
        ("srv-crypt UUID=u-luks /etc/keys/srv luks", Settings(), "/etc/keys/srv", True),
        ("srv-crypt UUID=u-luks /etc/keys/srv luks", Settings(key_files={"srv": "none"}), "none", False),
        ("srv-crypt UUID=u-luks /etc/keys/srv luks", Settings(key_file="/etc/keys/new"), "/etc/keys/new", False),
        ("srv-crypt UUID=u-luks /etc/keys/srv luks", Settings(key_files={"srv": "/etc/keys/new"}), "/etc/keys/new", False),
        ("srv-crypt UUID=u-luks none luks", Settings(), "none", True),
        ("srv-crypt UUID=u-other /etc/keys/old luks", Settings(), "none", False),
        ("srv-crypt", Settings(), "none", False),
    ],
)
def test_a_key_that_crypttab_has_stays_unless_another_is_asked_for(there, settings, key, configured):
    """A later run without the variable of the key must not leave a server that asks for it at its next start."""
    (found,) = host_files(LAYOUT, settings, {"/etc/crypttab": f"{there}\n"})["containers"]
    assert (found["line"], found["configured"]) == (f"srv-crypt UUID=u-luks {key} luks", configured)


def test_nofail_is_not_said_twice():
    layout = {**LAYOUT, "schema": {"fss": [entry("/dev/var", "/var", fstab_options="nofail,noatime")]}}
    assert host_files(layout, Settings(nofail=("all",)))["mounts"][0]["opts"] == "nofail,noatime"


def test_below_a_directory():
    found = host_files(LAYOUT, Settings(root="/target/"))
    assert [(mount["path"], mount["target"]) for mount in found["mounts"][:2]] == [("/target", "/target"), ("/target/srv", "/target/srv")]
    assert [mount["active"] for mount in found["mounts"]] == [False, False, False, True, False]
    assert found["mounts"][0]["passno"] == "1"


def test_a_new_system_does_not_know_where_it_is_installed():
    found = host_files(LAYOUT, Settings(root="/target", new_system=True))
    assert [(mount["path"], mount["target"]) for mount in found["mounts"][:2]] == [("/", "/target"), ("/srv", "/target/srv")]


PRESENT = {
    "/etc/fstab": """# a comment of UUID=u-log /var/log ext4 nodev,noexec 0 2
UUID=u-root  /\text4 defaults 0 1
UUID=u-var /var btrfs noatime 0 0
UUID=u-swap none swap defaults 0 0
""",
    "/etc/crypttab": "srv-crypt UUID=u-luks   /etc/keys/srv luks\n",
    "/etc/mdadm/mdadm.conf": "HOMEHOST <system>\nARRAY /dev/md/other UUID=01234567:89abcdef:00112233:44556677 name=host:data\n",
}
MOUNTINFO = """22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 8:1 / /srv rw - ext4 /dev/sda1 rw
31 22 8:2 / /with\\040blank rw - ext4 /dev/sda2 rw
"""


def test_what_is_said_already_is_marked():
    found = host_files(LAYOUT, Settings(key_files={"srv": "/etc/keys/srv"}), PRESENT)
    assert [mount["path"] for mount in found["mounts"] if mount["configured"]] == ["/", "/var"]
    assert [found[kind][0]["configured"] for kind in ("swaps", "containers", "arrays")] == [True, True, True]
    other_key = host_files(LAYOUT, Settings(key_files={"srv": "/etc/keys/new"}), PRESENT)
    assert other_key["containers"][0]["configured"] is False


def test_a_device_without_uuid_is_named():
    with pytest.raises(KeyError, match="/dev/var"):
        host_files({**LAYOUT, "filesystems": [item for item in LAYOUT["filesystems"] if item["device"] != "/dev/var"]}, Settings())


class TestConflicts:
    schema = {
        "parteds": [{"disk_id": "one", "name": "/dev/sda"}],
        "fss": [entry("/dev/root", "/"), entry("/dev/srv", "/srv"), entry("/dev/x", "/with blank")],
    }

    def conflicts(self, mounted, root="/", disk_id="one"):
        holders = [{"mountpoints": [mounted]}]
        return conflicting_mounts(self.schema, {"disks": [{"id": disk_id, "partitions": [], "holders": holders}]}, root, MOUNTINFO)

    def test_what_others_have_mounted(self):
        assert self.conflicts("/nothing") == ["/", "/srv", "/with blank"]

    def test_what_lies_on_the_schemas_own_disks_may_be_mounted_there(self):
        assert self.conflicts("/srv") == ["/", "/with blank"]
        assert self.conflicts("/srv", disk_id="two") == ["/", "/srv", "/with blank"]

    def test_elsewhere_nothing_is_in_the_way(self):
        assert self.conflicts("/srv", root="/target") == []


def test_tools_follow_from_what_is_made():
    assert needed_tools({}) == []
    group = {"pvs": [{"name": "/dev/sda1"}], "vgs": [{"name": "os", "pvnames": ["/dev/sda1"]}]}
    assert needed_tools(
        {"parteds": [{"name": "/dev/sda"}], **group, "fss": [entry("/dev/a", "/", "xfs"), entry("/dev/b", "swap", "swap")]}
    ) == [
        "sfdisk",
        "lvm",
        "mkfs.xfs",
    ]
    assert needed_tools(LAYOUT["schema"]) == ["mdadm", "cryptsetup", "mkfs.btrfs", "mkfs.ext4", "mkfs.vfat", "mkfs.xfs"]
