# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that a layout has are fine, all others are told with what is meant."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.unknown_names import Named, unknown_names

SCHEMA = {
    "luks": [{"name": "keys-crypt", "space_id": "keys", "device": "/dev/sda1"}],
    "fss": [
        {"device": "/dev/mapper/keys-crypt", "mount": "/srv/keys", "fs_type": "ext4"},
        {"device": "/dev/sda2", "mount": "/srv", "fs_type": "btrfs", "space_id": "data", "subvolumes": [{"name": "@www", "mount": "/www"}]},
        {"device": "/dev/sda3", "mount": "swap", "fs_type": "swap", "space_id": "swapping"},
        {"device": "/dev/sda4", "mount": "none", "fs_type": "vfat", "space_id": "esp"},
    ],
    "zpools": [
        {
            "name": "tank",
            "vdevs": [{"type": "stripe", "devices": ["/dev/sdb1"]}],
            "mount": "none",
            "datasets": [{"name": "pg", "mount": "/pg"}, {"name": "pg/wal"}],
        }
    ],
}
ACCOUNTS = "tool /usr/bin/tar\nuser www-data 33\ngroup staff 50\n### /etc/fstab"


@pytest.mark.parametrize("name", ["/srv/keys", "/srv", "/www", "data", "keys", "keys-crypt", "swap", "swapping", "all"])
def test_what_the_layout_has_can_be_named(name: str) -> None:
    assert unknown_names(SCHEMA, Named(nofail=(name,))) == []


def test_what_it_has_not_is_told_with_what_is_meant() -> None:
    found = unknown_names(
        SCHEMA, Named(("/srv/keis", "esp"), {"keys": "/a", "data": "/b"}, ({"path": "/swr"}, {"path": "/pg/wal"}, {"path": "/pgs"}))
    )
    assert found == [
        "nofail: the layout has no mount point or space /srv/keis (did you mean /srv/keys?)",
        "nofail: the layout has no mount point or space esp; it has /srv, /srv/keys, /www, all, data, keys, keys-crypt, swap, swapping",
        "key_files: the layout has no encrypted container or space data; it has keys, keys-crypt",
        "mount_points: the layout has no mount point /swr (did you mean /srv?)",
        "mount_points: the layout has no mount point /pgs; it has /srv, /srv/keys, /www",
    ]
    assert unknown_names({}, Named(key_files={"a": "none"})) == ["key_files: the layout has no encrypted container or space a; it has none"]


def test_owners_are_looked_for_where_they_can_be_known() -> None:
    points = (
        {"path": "/srv", "owner": "www-data", "group": "staff"},
        {"path": "/www", "owner": "staff", "group": "33"},
        {"path": "/srv", "owner": 0},
    )
    assert unknown_names(SCHEMA, Named(mount_points=points)) == []
    assert unknown_names(SCHEMA, Named(mount_points=points), ACCOUNTS) == [
        "mount_points: there is no user staff, which is to be owner of /www"
    ]


def test_what_crypttab_has_no_form_for_is_told():
    schema = {"luks": [{"name": "a", "device": "/dev/b"}]}
    given = Named(key_files={"a": "/etc/my key"}, key_file="key", crypttab_options="luks,tmp=ext4")
    assert [says.split(" ")[0] for says in unknown_names(schema, given)] == ["key_files.a", "luks_key_file", "crypttab_options"]
    for options in ("luks,x\ny", "a b", "swap"):
        assert len(unknown_names(schema, Named(crypttab_options=options))) == 1
    assert unknown_names(schema, Named(key_files={"a": "none"}, key_file="/etc/key", crypttab_options="luks,-discard,header=/etc/h")) == []
