# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tables of a host say of a layout that is taken over is in its schema, so that nothing is left to write."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout.adopt import adopt
from ansible_collections.bareon.allocator.plugins.module_utils._layout.boot_lines import BootLines, read_boot_lines
from ansible_collections.bareon.allocator.plugins.module_utils._layout.disks import find_disks
from ansible_collections.bareon.allocator.plugins.module_utils._layout.identified import identities
from ansible_collections.bareon.allocator.plugins.module_utils._layout.table_names import table_names
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage.crypttab import read_containers
from ansible_collections.bareon.allocator.plugins.module_utils._storage.fstab import read_entries
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.host_files import Settings, host_files
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import installed, maker_on


@pytest.fixture
def present():
    """A host with a file system, and another in a LUKS container, both mounted, made by no schema."""
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 100, "plain"), 100, "ext4", "plain", "ext4")
    maker.fill(maker.partition("sda", 300, "keys"), 300, "luks-ext4", "keys", "ext4")
    found = installed(maker).present()
    at = {device.name: place for device, place in zip(filesystems(found), ("/srv/plain", "/srv/keys"))}
    changed = [dataclasses.replace(found.tree.devices[name], mountpoints=(place,)) for name, place in at.items()]
    return dataclasses.replace(found, tree=found.tree.with_devices(changed))


def filesystems(present):
    return [device for device in present.tree.devices.values() if device.filesystem is not None and device.filesystem.type == "ext4"]


def container(present):
    return next(one for one in present.tree.devices.values() if one.filesystem is not None and one.filesystem.type == "crypto_LUKS")


def lines_of(fstab, crypttab):
    return BootLines(tuple(read_entries(fstab)), tuple(read_containers(crypttab)))


def lacking(schema, present, fstab, crypttab):
    """What a run with this schema would write into the tables."""
    layout = parse_static_schema(schema)
    found, refusals = find_disks(layout, present, ())
    assert refusals == ()
    made = {"schema": schema, **identities(layout, present, found)}
    files = host_files(made, Settings(), {"/etc/fstab": fstab, "/etc/crypttab": crypttab})
    return [one for kind in files.values() for one in kind if not one["configured"]]


def test_options_and_key_files_are_carried_and_nothing_is_left_to_write(present):
    plain, _inner = filesystems(present)
    uuid = container(present).filesystem.uuid
    fstab = f"UUID={plain.filesystem.uuid} /srv/plain ext4 noatime,nofail,x-systemd.device-timeout=30,bind 0 0\n"
    fstab += "/dev/mapper/keys-crypt /srv/keys/ auto nofail 0 0\n"
    crypttab = f"keys-crypt UUID={uuid} /etc/keys/a luks,discard,header=/etc/h,tpm2-device=auto,mine\n"
    found = adopt(present, present.disks, {}, lines_of(fstab, crypttab))
    mounts = {entry["mount"]: entry for entry in found.schema["fss"]}
    assert mounts["/srv/plain"]["fstab_options"] == "noatime,nofail,x-systemd.device-timeout=30"
    assert mounts["/srv/keys"]["fstab_options"] == "nofail"
    (luks,) = found.schema["luks"]
    assert (luks["key_file"], luks["crypttab_options"]) == ("/etc/keys/a", "luks,discard,header=/etc/h,tpm2-device=auto,-nofail")
    assert ["bind of /srv/plain in fstab is left out" in note for note in found.notes] == [True]
    assert lacking(found.schema, present, fstab, crypttab) == []


def test_what_no_table_mentions_is_not_written_into_one(present):
    found = adopt(present, present.disks, {}, BootLines())
    assert [entry["fstab_enabled"] for entry in found.schema["fss"]] == [False, False]
    assert found.schema["luks"][0]["crypttab_enabled"] is False
    assert lacking(found.schema, present, "", "") == []


def test_lines_are_those_of_the_running_system():
    uuid = "01234567:89abcdef:00112233:44556677"
    files = {"/etc/fstab": "### x\nUUID=1 / ext4", "/etc/crypttab": "a UUID=2", "/etc/mdadm.conf": f"ARRAY /dev/md/a UUID={uuid}"}
    lines = read_boot_lines(RecordingMachine(files=files))
    assert [entry.path for entry in lines.mounts] == ["/"]
    assert [one.name for one in lines.containers] == ["a"]
    assert lines.arrays == {uuid}


def test_a_name_of_two_devices_is_a_name_of_neither(present):
    names = table_names(present.tree)
    plain, inner = filesystems(present)
    assert f"UUID={plain.filesystem.uuid}" in names[plain.name]
    twin = dataclasses.replace(inner, filesystem=dataclasses.replace(inner.filesystem, uuid=plain.filesystem.uuid, label="x"))
    both = table_names(present.tree.with_devices([twin]))
    assert not any(f"UUID={plain.filesystem.uuid}" in both[device.name] for device in (plain, twin))
    assert "LABEL=x" in both[twin.name]
