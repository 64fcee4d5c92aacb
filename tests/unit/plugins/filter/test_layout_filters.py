# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters of the role disk_layout: options to one call, and mistakes of the input to one message."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.bareon.allocator.plugins.filter.bareon_to_static import bareon_to_static
from ansible_collections.bareon.allocator.plugins.filter.layout_to_host_files import layout_to_host_files
from ansible_collections.bareon.allocator.plugins.filter.static_to_conflicts import static_to_conflicts
from ansible_collections.bareon.allocator.plugins.filter.static_to_foreign_lines import static_to_foreign_lines
from ansible_collections.bareon.allocator.plugins.filter.static_to_tools import static_to_tools
from ansible_collections.bareon.allocator.plugins.filter.static_to_unknown_names import static_to_unknown_names

HARDWARE = {"disks": [{"id": "/dev/disk/by-id/ata-1", "dev": "/dev/sda", "size": 1000}]}
LAYOUT = {
    "schema": {"fss": [{"device": "/dev/a", "mount": "/a", "fs_type": "ext4"}]},
    "filesystems": [{"device": "/dev/a", "uuid": "u", "mountpoints": []}],
}


def disk(*volumes):
    return {"type": "disk", "id": {"type": "name", "value": "sda"}, "size": "1000", "volumes": list(volumes)}


def test_an_explicit_schema_stays_as_it_is():
    explicit = {"parteds": [], "fss": []}
    assert bareon_to_static(explicit, None) == explicit


def test_a_hand_written_schema_becomes_explicit():
    found = bareon_to_static([disk({"type": "partition", "size": "50%", "mount": "/srv"})], HARDWARE)
    assert [(part["begin"], part["end"]) for part in found["parteds"][0]["partitions"]] == [(1, 25), (25, 512)]


def test_all_mistakes_of_a_hand_written_schema_are_told():
    with pytest.raises(AnsibleFilterError) as caught:
        bareon_to_static([disk({"type": "partition"}, {"type": "partion", "size": "1"})], HARDWARE)
    message = str(caught.value)
    assert "schema[0].volumes[0].size: is missing" in message
    assert "did you mean partition?" in message
    with pytest.raises(AnsibleFilterError, match="hardware must be a dictionary"):
        bareon_to_static([], "sda")


def test_options_of_the_tables():
    (mount,) = layout_to_host_files(LAYOUT, root="/target", new_system=True, nofail=["/a"], key_files={})["mounts"]
    assert (mount["path"], mount["target"], mount["opts"]) == ("/a", "/target/a", "defaults,nofail")
    configured = layout_to_host_files(LAYOUT, present={"/etc/fstab": "UUID=u /a ext4 defaults 0 2"})["mounts"][0]["configured"]
    assert configured is True


@pytest.mark.parametrize("layout", [{}, {"schema": LAYOUT["schema"]}, "text", {"schema": {"fss": [{"mount": "/a"}]}}])
def test_what_is_no_layout_is_refused_in_words(layout):
    with pytest.raises(AnsibleFilterError, match="layout_to_host_files: "):
        layout_to_host_files(layout)


def test_unknown_options_are_refused_in_words():
    with pytest.raises(AnsibleFilterError, match="no_fail"):
        layout_to_host_files(LAYOUT, no_fail=["/a"])


@pytest.mark.parametrize("present", ["### /etc/fstab\nUUID=u /a ext4 defaults 0 2", {"/etc/fstab": 5}, [1]])
def test_texts_of_files_are_given_by_their_paths(present):
    for filter_ in (
        lambda: layout_to_host_files(LAYOUT, present=present),
        lambda: static_to_foreign_lines(LAYOUT["schema"], HARDWARE, present=present),
        lambda: static_to_conflicts(LAYOUT["schema"], HARDWARE, present=present),
    ):
        with pytest.raises(AnsibleFilterError, match="present must be the texts of files"):
            filter_()


def test_what_crypttab_has_no_form_for_is_refused():
    layout = {**LAYOUT, "schema": {"luks": [{"name": "a", "device": "/dev/b"}]}, "containers": [{"name": "a", "uuid": "u"}]}
    for key_file in ("/etc/my keys/a", "/etc/k\nroot UUID=0 none", '/etc/"k'):
        with pytest.raises(AnsibleFilterError, match="the key file of 'a' in crypttab is"):
            layout_to_host_files(layout, key_file=key_file)


def test_conflicts_and_tools():
    mounted = {"/proc/self/mountinfo": "22 1 254:1 / /a rw - ext4 /dev/vda1 rw"}
    assert static_to_conflicts(LAYOUT["schema"], HARDWARE, present=mounted) == ["/a"]
    assert static_to_conflicts(LAYOUT["schema"], HARDWARE, present=mounted, root="/b") == []
    foreign = {"/etc/fstab": "LABEL=old /a ext4 noauto 0 0"}
    assert static_to_foreign_lines(LAYOUT["schema"], HARDWARE, present=foreign) == ["/etc/fstab: LABEL=old /a ext4 noauto 0 0"]
    assert static_to_tools(LAYOUT["schema"]) == ["mkfs.ext4"]
    (unknown,) = static_to_unknown_names(
        LAYOUT["schema"], nofail=["/a"], mount_points=[{"path": "/a", "owner": "me"}], accounts="user you 1"
    )
    assert unknown == "mount_points: there is no user me, which is to be owner of /a"
    for filter_ in (
        lambda schema: static_to_unknown_names(schema, nofail=["no"]),
        static_to_tools,
        lambda schema: static_to_foreign_lines(schema, HARDWARE),
        lambda schema: static_to_conflicts(schema, HARDWARE),
    ):
        with pytest.raises(AnsibleFilterError, match="no"):
            filter_([1])


@pytest.mark.parametrize("disks", [5, [5], [{"dev": "/dev/sda"}], [{"id": "x", "dev": "/dev/sda", "size": "much"}]])
def test_what_is_no_hardware_is_refused(disks):
    schema = [disk({"type": "partition", "size": "50%", "mount": "/srv"})]
    with pytest.raises(AnsibleFilterError, match="hardware is not what bareon.allocator.disk_facts returns"):
        bareon_to_static(schema, {"disks": disks})


@pytest.mark.parametrize("settings", [{"nofail": object()}, {"nofail": 5}, {"unknown": 1}])
def test_settings_of_other_types_are_refused(settings):
    with pytest.raises(AnsibleFilterError, match="is not in what disk_layout returned"):
        layout_to_host_files(LAYOUT, **settings)


def test_foreign_lines_are_not_looked_for_in_what_is_no_hardware():
    part = {"number": "-dash", "name": "x"}
    with pytest.raises(AnsibleFilterError, match="this is not a static schema with its hardware"):
        static_to_foreign_lines(
            {"parteds": [{"disk_id": "/dev/disk/by-id/ata-1"}]},
            {"disks": [{**HARDWARE["disks"][0], "partitions": [part]}]},
            {"/etc/fstab": "UUID=1 / ext4 defaults 0 1"},
        )
